// The recorder: the ring that the scheduler thread records into (engine/record/ring.h), in memory that others can be
// given for reading, and its file. A thread of its own copies what is new to the disk, twenty times a second, so that
// the scheduler thread waits for nothing and a leatd that is killed leaves all but its last moment behind. The file is
// the ring's image. One of an earlier run is renamed to `path`.1.
// Threads: made, asked, woken and ended by the control thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "engine/daemon/metrics/metrics.h"
#include "engine/record/ring.h"
#include "leat/result.hpp"
#include "shm/src/segments/segment.h"

namespace leat::daemon {

class Recorder {
 public:
  using Tell = std::function<void(const std::string& line)>;  // one line of what is wrong; any thread

  // A ring of so many bytes, a whole number of segments and two at least. Touches all of its memory.
  static Result<std::unique_ptr<Recorder>> create(std::uint64_t bytes,
                                                  std::uint64_t segment_bytes = record::kSegmentBytes);
  ~Recorder();  // writes what is left. Precondition: nobody records into ring() any more
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  [[nodiscard]] record::Ring& ring() noexcept { return ring_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }  // of the file
  [[nodiscard]] std::uint64_t bytes() const noexcept { return memory_.bytes(); }
  [[nodiscard]] Result<shm::Fd> share() const { return memory_.share_read_only(); }

  // From now on in a file too; `metrics` outlives this. Error: no file can be made there.
  Status keep_in(std::string path, Metrics& metrics, Tell tell);
  void wake();  // what is new is written now; does not wait for it

 private:
  Recorder(shm::Segment memory, std::uint64_t segment_bytes);
  void run();
  void write_what_is_new();
  Status begin_file();
  Status copy(std::uint64_t sequence);
  Status put(const void* bytes, std::size_t count, std::uint64_t place);

  shm::Segment memory_;
  record::Ring ring_;

  // The file's thread.
  std::string path_;
  Metrics* metrics_ = nullptr;
  Tell tell_;
  shm::Fd file_;
  std::uint64_t sequence_ = 1;  // the segment that is being written
  std::uint64_t copied_ = 0;    // bytes of it
  bool failing_ = false;        // said already
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace leat::daemon
