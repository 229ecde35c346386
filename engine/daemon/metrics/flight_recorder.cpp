#include "engine/daemon/metrics/flight_recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace leat::daemon {
namespace {

// The ring holds 32768 events, so that 300 000 of them a second are written without a loss.
constexpr std::chrono::milliseconds kInterval{100};
constexpr std::size_t kBufferedEvents = 4096;

}  // namespace

FlightRecorder::FlightRecorder(Metrics& metrics, std::string path, Tell tell, std::uint64_t max_file_bytes)
    : metrics_(metrics),
      path_(std::move(path)),
      tell_(std::move(tell)),
      max_file_bytes_(max_file_bytes),
      buffer_(kBufferedEvents) {}

std::unique_ptr<FlightRecorder> FlightRecorder::start(Metrics& metrics, std::string path, Tell tell,
                                                      std::uint64_t max_file_bytes) {
  if (path.empty()) return nullptr;
  std::unique_ptr<FlightRecorder> recorder(
      new FlightRecorder(metrics, std::move(path), std::move(tell), max_file_bytes));
  Status ready = recorder->map_events();
  if (ready) ready = recorder->begin_file();
  if (!ready) {
    recorder->tell_(ready.error());
    return nullptr;
  }
  recorder->thread_ = std::thread([r = recorder.get()] { r->run(); });
  return recorder;
}

Status FlightRecorder::map_events() {
  auto share = metrics_.writer().share();
  if (!share.ok()) return Error{share.error()};
  auto reader = shm::CountersReader::map(std::move(*share), metrics_.writer().bytes());
  if (!reader.ok()) return Error{reader.error()};
  reader_ = std::move(*reader);
  return Done{};
}

FlightRecorder::~FlightRecorder() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void FlightRecorder::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

void FlightRecorder::run() {
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

void FlightRecorder::write_what_is_new() {
  for (std::uint32_t count = kBufferedEvents; count == kBufferedEvents;) {
    std::uint64_t next = next_event_;
    count = reader_.events(next_event_, buffer_, &next);
    if (count > 0) {
      const Status written = append(buffer_, count);
      if (!written && !failing_) tell_(written.error());
      failing_ = !written;
      if (failing_) return;  // they stay in the ring, and are tried again
    }
    count_lost(next - next_event_ - count);
    next_event_ = next;
  }
}

void FlightRecorder::count_lost(std::uint64_t events) {
  if (events == 0) return;
  if (lost_ == 0)
    tell_("the flight recorder loses events: they come faster than " + path_ +
          " is written; put it on a faster disk (`leat status` counts them as events_lost)");
  lost_ += events;
  metrics_.daemon().add(shm::DaemonCounter::events_lost, events);
}

Status FlightRecorder::begin_file() {
  const auto trouble = [&](int error) {
    return Error{"the flight recorder cannot be written to " + path_ + ": " + std::strerror(error) +
                 "; correct `recorder` in the configuration"};
  };
  struct stat there {};
  if (stat(path_.c_str(), &there) == 0) {
    if (!S_ISREG(there.st_mode)) return trouble(S_ISDIR(there.st_mode) ? EISDIR : EINVAL);
    if (std::rename(path_.c_str(), (path_ + ".1").c_str()) != 0) return trouble(errno);
  }
  file_ = shm::Fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  file_bytes_ = 0;
  if (!file_) return trouble(errno);
  return Done{};
}

// What a failed write has left behind the last whole event is overwritten by the next.
Status FlightRecorder::append(const std::vector<shm::Event>& events, std::size_t count) {
  const std::uint64_t bytes = count * sizeof(shm::Event);
  if (!file_ || (file_bytes_ > 0 && file_bytes_ + bytes > max_file_bytes_))
    if (auto status = begin_file(); !status) return status;
  const auto* data = reinterpret_cast<const char*>(events.data());
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t wrote = pwrite(file_.get(), data + done, bytes - done, static_cast<off_t>(file_bytes_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0)
      return Error{"the flight recorder's events cannot be written to " + path_ + ": " +
                   std::strerror(wrote < 0 ? errno : ENOSPC) + "; make room there, they are tried again"};
    done += static_cast<std::uint64_t>(wrote);
  }
  file_bytes_ += bytes;
  return Done{};
}

}  // namespace leat::daemon
