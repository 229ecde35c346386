#include "engine/daemon/workers/worker_output.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "engine/daemon/log.h"
#include "shm/src/protocol/kernel_features.h"
#include "tools/base/text/system_reason.h"
#include "tools/base/text/units.h"

namespace leat::daemon {
namespace {

constexpr double kBytesPerSecond = 1024, kBurstBytes = 64 << 10;
constexpr std::size_t kPieceBytes = 4096;
constexpr int kPiecesAtOnce = 16;
constexpr std::int64_t kPauseNs = 10'000'000;

}  // namespace

WorkerOutput::WorkerOutput() noexcept : allowance_(kBytesPerSecond, kBurstBytes) {}

Result<Fd> WorkerOutput::open() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{"cannot create a socket pair: " + text::system_reason(errno)};
  fd_ = Fd(ends[0]);
  next_ns_ = INT64_MAX;
  shm::refuse_descriptors(ends[0]);
  (void)shutdown(ends[0], SHUT_WR);
  return Fd(ends[1]);
}

bool WorkerOutput::pass_on(std::int64_t now_ns, TimedCalls& calls) {
  next_ns_ = INT64_MAX;
  char piece[kPieceBytes];
  for (int i = 0; i < kPiecesAtOnce; ++i) {
    ssize_t n = 0;
    int error = 0;
    calls.timed([&] {
      n = recv(fd_.get(), piece, sizeof piece, MSG_DONTWAIT);
      error = errno;
    });
    if (n < 0 && (error == EAGAIN || error == EINTR)) return true;
    if (n <= 0) {  // it has closed its end
      fd_.reset();
      return true;
    }
    print(piece, static_cast<std::size_t>(n), now_ns);
  }
  next_ns_ = now_ns + kPauseNs;
  return false;
}

void WorkerOutput::close(std::int64_t now_ns, TimedCalls& calls) {
  if (fd_) (void)pass_on(now_ns, calls);
  fd_.reset();
  next_ns_ = INT64_MAX;
}

void WorkerOutput::print(const char* text, std::size_t bytes, std::int64_t now_ns) {
  const std::string start = line_start(), out = with_starts({text, bytes}, start);
  if (!allowance_.take(now_ns, static_cast<double>(out.size()))) {
    left_out_ += bytes;
    return;
  }
  erase_bar();
  if (const std::uint64_t n = std::exchange(left_out_, 0); n != 0) {
    const std::string note = (line_begins_ ? "" : "\n") + start + "leatd: " + text::bytes_text(n) +
                             " of what a worker printed were left out here\n";
    (void)!write(STDERR_FILENO, note.data(), note.size());
  }
  (void)!write(STDERR_FILENO, out.data(), out.size());
  line_begins_ = text[bytes - 1] == '\n';
}

// What goes on in the middle of a line gets none.
std::string WorkerOutput::with_starts(std::string_view text, const std::string& start) const {
  std::string out;
  bool begins = line_begins_;
  for (const char c : text) {
    if (begins) out += start;
    out += c;
    begins = c == '\n';
  }
  return out;
}

}  // namespace leat::daemon
