#include "engine/daemon/scheduler_thread/recorder.h"

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace leat::daemon {
namespace {

// One write at `offset`; bytes written or a negative errno.
int write_through_uring(io_uring& ring, int fd, const char* data, unsigned bytes, std::uint64_t offset) {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring);
  io_uring_prep_write(sqe, fd, data, bytes, offset);
  if (const int sent = io_uring_submit(&ring); sent < 0) return sent;
  io_uring_cqe* cqe = nullptr;
  if (const int got = io_uring_wait_cqe(&ring, &cqe); got < 0) return got;
  const int done = cqe->res;
  io_uring_cqe_seen(&ring, cqe);
  return done;
}

}  // namespace

Status save_recording(CountersBoard& board, const std::string& path) {
  const auto trouble = [&](int error) {
    return Error{"the flight recorder cannot be saved to " + path + ": " + std::strerror(error) +
                 "; correct `recorder` in the configuration"};
  };
  auto share = board.writer().share();
  if (!share.ok()) return Error{share.error()};
  auto reader = shm::CountersReader::map(std::move(*share), board.writer().bytes());
  if (!reader.ok()) return Error{reader.error()};
  std::vector<shm::Event> events(shm::kEvents);
  std::uint64_t next = 0;
  events.resize(reader->events(0, events, &next));
  const shm::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return trouble(errno);
  const auto* data = reinterpret_cast<const char*>(events.data());
  const std::uint64_t bytes = events.size() * sizeof(shm::Event);
  io_uring ring{};
  const bool uring = io_uring_queue_init(4, &ring, 0) == 0;
  std::uint64_t at = 0;
  int error = 0;
  while (at < bytes && error == 0) {
    const auto chunk = static_cast<unsigned>(std::min<std::uint64_t>(bytes - at, 1 << 20));
    const auto done = uring ? write_through_uring(ring, file.get(), data + at, chunk, at)
                            : static_cast<int>(pwrite(file.get(), data + at, chunk, static_cast<off_t>(at)));
    if (done > 0)
      at += static_cast<unsigned>(done);
    else
      error = uring ? -done : errno;
  }
  if (uring) io_uring_queue_exit(&ring);
  if (error != 0) return trouble(error);
  return Done{};
}

}  // namespace leat::daemon
