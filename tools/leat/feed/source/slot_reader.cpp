#include "tools/leat/feed/source/slot_reader.h"

#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace leat::tools {
namespace {

constexpr unsigned kRingEntries = 16;
constexpr std::uint64_t kLargestRead = 1U << 30;  // one system call reads no more than about 2 GiB

Error read_error(int error) {
  return Error{std::string("reading the raw file failed: ") + std::strerror(error) + "; check the disk and the file"};
}

}  // namespace

struct SlotReader::Ring {
  struct io_uring uring {};
  std::vector<iovec> registered;
  ~Ring() { ::io_uring_queue_exit(&uring); }
};

SlotReader::SlotReader(int fd, bool use_ring) : fd_(fd) {
  struct io_uring uring {};
  if (!use_ring || ::io_uring_queue_init(kRingEntries, &uring, 0) != 0) return;
  ring_ = std::make_unique<Ring>();
  ring_->uring = uring;
}

SlotReader::~SlotReader() = default;

void SlotReader::register_memory(std::span<const iovec> memory) {
  if (!ring_ || memory.empty()) return;
  if (!ring_->registered.empty()) (void)::io_uring_unregister_buffers(&ring_->uring);  // of a stream that is gone
  ring_->registered.clear();
  if (::io_uring_register_buffers(&ring_->uring, memory.data(), static_cast<unsigned>(memory.size())) == 0) {
    ring_->registered.assign(memory.begin(), memory.end());
  }
}

std::string SlotReader::way() const {
  return !ring_ ? "pread" : ring_->registered.empty() ? "io_uring" : "io_uring, registered";
}

int SlotReader::registered_index(const ReadPart& part) const {
  const auto* to = static_cast<const char*>(part.to);
  for (std::size_t i = 0; i < ring_->registered.size(); ++i) {
    const iovec& memory = ring_->registered[i];
    const auto* base = static_cast<const char*>(memory.iov_base);
    if (to >= base && to + part.bytes <= base + memory.iov_len) return static_cast<int>(i);
  }
  return -1;
}

Result<bool> SlotReader::read(std::span<const ReadPart> parts) {
  if (ring_) return read_by_ring(parts);
  for (const ReadPart& part : parts) {
    auto whole = read_by_pread(part);
    if (!whole.ok() || !*whole) return whole;
  }
  return true;
}

Result<bool> SlotReader::read_by_pread(ReadPart part) const {
  while (part.bytes > 0) {
    const ssize_t got = ::pread(fd_, part.to, std::min(part.bytes, kLargestRead), static_cast<off_t>(part.offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return read_error(errno);
    if (got == 0) return false;
    part.to = static_cast<char*>(part.to) + got;
    part.bytes -= static_cast<std::uint64_t>(got);
    part.offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

Result<bool> SlotReader::read_by_ring(std::span<const ReadPart> parts) {
  // Parts are few (the planes of one picture, or its rows where strides differ): they go in rounds of the ring's size.
  while (!parts.empty()) {
    const std::span<const ReadPart> round = parts.first(std::min<std::size_t>(parts.size(), kRingEntries));
    parts = parts.subspan(round.size());
    for (std::size_t i = 0; i < round.size(); ++i) {
      io_uring_sqe* entry = ::io_uring_get_sqe(&ring_->uring);
      const auto bytes = static_cast<unsigned>(std::min(round[i].bytes, kLargestRead));
      const int index = registered_index(round[i]);
      if (index >= 0) {
        ::io_uring_prep_read_fixed(entry, fd_, round[i].to, bytes, round[i].offset, index);
      } else {
        ::io_uring_prep_read(entry, fd_, round[i].to, bytes, round[i].offset);
      }
      ::io_uring_sqe_set_data64(entry, i);
    }
    int submitted = ::io_uring_submit_and_wait(&ring_->uring, static_cast<unsigned>(round.size()));
    if (submitted < 0 && submitted != -EINTR) return read_error(-submitted);
    // Every read of the round is waited for, also after an error: the kernel must not write into a slot given back.
    int error = 0;
    bool whole = true;
    for (std::size_t left = round.size(); left > 0;) {
      io_uring_cqe* done = nullptr;
      const int waited = ::io_uring_wait_cqe(&ring_->uring, &done);
      if (waited == -EINTR) continue;
      if (waited < 0) return read_error(-waited);
      ReadPart part = round[::io_uring_cqe_get_data64(done)];
      const int got = done->res;
      ::io_uring_cqe_seen(&ring_->uring, done);
      --left;
      if (got < 0 && got != -EINTR && got != -EAGAIN) {
        error = -got;
        continue;
      }
      const auto read = static_cast<std::uint64_t>(std::max(got, 0));
      if (read == part.bytes) continue;
      part.to = static_cast<char*>(part.to) + read;  // a short read: the rest the plain way
      part.bytes -= read;
      part.offset += read;
      auto rest = read_by_pread(part);
      if (!rest.ok()) error = EIO;
      whole = whole && rest.ok() && *rest;
    }
    if (error != 0) return read_error(error);
    if (!whole) return false;
  }
  return true;
}

}  // namespace leat::tools
