#include "engine/daemon/metrics/recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "shm/src/rings/clock.h"

namespace leat::daemon {
namespace {

constexpr std::chrono::milliseconds kInterval{50};

std::int64_t wall_less_monotonic_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec - shm::monotonic_ns();
}

}  // namespace

Recorder::Recorder(shm::Segment memory, std::uint64_t segment_bytes)
    : memory_(std::move(memory)),
      ring_(std::span(memory_.data(), memory_.bytes()), segment_bytes, wall_less_monotonic_ns(), LEAT_VERSION) {}

Result<std::unique_ptr<Recorder>> Recorder::create(std::uint64_t bytes, std::uint64_t segment_bytes) {
  auto memory = shm::Segment::create("leat:record", bytes, shm::Seal::future_write);
  if (!memory.ok()) return Error{"no memory to record into: " + memory.error()};
  return std::unique_ptr<Recorder>(new Recorder(std::move(*memory), segment_bytes));
}

Recorder::~Recorder() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

Status Recorder::keep_in(std::string path, Metrics& metrics, Tell tell) {
  path_ = std::move(path);
  metrics_ = &metrics;
  tell_ = std::move(tell);
  if (auto status = begin_file(); !status) return status;
  thread_ = std::thread([this] { run(); });
  return Done{};
}

void Recorder::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

void Recorder::run() {
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kInterval, [&] { return woken_ || ending_; });
      woken_ = false;
      last = ending_;
    }
    write_what_is_new();
  }
}

void Recorder::write_what_is_new() {
  for (;;) {
    const std::uint64_t newest = ring_.newest();
    if (newest == 0) return;
    if (newest - sequence_ >= ring_.segments()) {  // the ring has come round before the disk took what was there
      const std::uint64_t oldest = newest - ring_.segments() + 2;  // one is about to be overwritten
      tell_("the file of the record, " + path_ +
            ", lacks some of it: more came than the disk took; put it on a faster one");
      metrics_->daemon().add(shm::DaemonCounter::events_lost, oldest - sequence_);
      sequence_ = oldest;
      copied_ = 0;
    }
    const Status written = copy(sequence_);
    if (!written && !failing_) tell_(written.error());
    failing_ = !written;
    if (failing_ || sequence_ == newest) return;  // it stays in the ring, and is tried again
    ++sequence_;
    copied_ = 0;
  }
}

// What of the segment is not in the file yet. Its header says how much is, so that whoever reads the file at any moment
// finds whole entries.
Status Recorder::copy(std::uint64_t sequence) {
  const std::span<const std::byte> there = ring_.view(sequence);
  const std::uint64_t place = ring_.place(sequence);
  record::SegmentHeader header;
  std::memcpy(&header, there.data(), sizeof header);
  if (copied_ == 0) {  // what of an earlier round lies there is no more
    record::SegmentHeader none = header;
    none.sequence = none.used = 0;
    if (auto status = put(&none, sizeof none, place); !status) return status;
    copied_ = sizeof header;
  }
  if (there.size() > copied_)
    if (auto status = put(there.data() + copied_, there.size() - copied_, place + copied_); !status) return status;
  // Unless it has become another meanwhile.
  if (ring_.newest() - sequence >= ring_.segments() || header.sequence != sequence) return Done{};
  header.used = there.size() - sizeof header;
  if (auto status = put(&header, sizeof header, place); !status) return status;
  copied_ = there.size();
  return Done{};
}

Status Recorder::begin_file() {
  const auto trouble = [&](int error) {
    return Error{"the record cannot be written to " + path_ + ": " + std::strerror(error) +
                 "; correct `recorder` in the configuration"};
  };
  struct stat there {};
  if (stat(path_.c_str(), &there) == 0) {
    if (!S_ISREG(there.st_mode)) return trouble(S_ISDIR(there.st_mode) ? EISDIR : EINVAL);
    if (std::rename(path_.c_str(), (path_ + ".1").c_str()) != 0) return trouble(errno);
  }
  file_ = shm::Fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
  if (!file_ || ftruncate(file_.get(), static_cast<off_t>(bytes())) != 0) return trouble(errno);
  return Done{};
}

Status Recorder::put(const void* bytes, std::size_t count, std::uint64_t place) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t wrote =
        pwrite(file_.get(), static_cast<const char*>(bytes) + done, count - done, static_cast<off_t>(place + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0)
      return Error{"the record cannot be written to " + path_ + ": " + std::strerror(wrote < 0 ? errno : ENOSPC) +
                   "; make room there, it is tried again"};
    done += static_cast<std::size_t>(wrote);
  }
  return Done{};
}

}  // namespace leat::daemon
