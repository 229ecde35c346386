// The flight recorder's file: a thread of its own copies the events of the counters segment to the disk while leatd
// serves, ten times a second, so that a leatd that is killed leaves all but its last moment behind. The scheduler
// thread only writes into the segment's ring and waits for nothing here: what the ring has overwritten before this
// thread came to it is counted (DaemonCounter::events_lost). While the disk takes nothing, the ring is what keeps.
// The file: 64-byte shm::Event records, oldest first. A full file, and one of an earlier run, is renamed to `path`.1.
// Threads: made, woken and ended by the control thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/daemon/metrics/metrics.h"
#include "leat/result.hpp"
#include "shm/src/segments/segment.h"

namespace leat::daemon {

class FlightRecorder {
 public:
  using Tell = std::function<void(const std::string& line)>;  // one line of what is wrong; any thread
  static constexpr std::uint64_t kMaxFileBytes = 64 << 20;    // a million events

  // `metrics` outlives it. Null: no path, or no file can be made there, and `tell` has been told why.
  static std::unique_ptr<FlightRecorder> start(Metrics& metrics, std::string path, Tell tell,
                                               std::uint64_t max_file_bytes = kMaxFileBytes);
  ~FlightRecorder();  // writes what is left
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  void wake();  // what is new is written now; does not wait for it

 private:
  FlightRecorder(Metrics& metrics, std::string path, Tell tell, std::uint64_t max_file_bytes);
  Status map_events();
  void run();
  void write_what_is_new();
  Status begin_file();
  Status append(const std::vector<shm::Event>& events, std::size_t count);
  void count_lost(std::uint64_t events);

  Metrics& metrics_;
  const std::string path_;
  const Tell tell_;
  const std::uint64_t max_file_bytes_;
  shm::CountersReader reader_;
  std::vector<shm::Event> buffer_;
  shm::Fd file_;
  std::uint64_t file_bytes_ = 0;  // whole events
  std::uint64_t next_event_ = 0, lost_ = 0;
  bool failing_ = false;  // said already

  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace leat::daemon
