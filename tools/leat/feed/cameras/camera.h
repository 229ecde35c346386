// One camera over the breaks of its source: opened, fed, and when it has broken off, stalled or ended opened anew,
// after pauses that grow. What others do does not touch it, nor it them.
//
// Thread rule: it has a thread of its own between start() and join(); report() and figures() from any one other.
// Errors: those of its source are in its report; error() is what it ended with.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "shm/src/protocol/limiters.h"
#include "tools/leat/feed/cameras/camera_states.h"
#include "tools/leat/feed/feeder.h"

namespace leat::tools {

// Before a source is tried again: from the first to the longest, each twice the one before. With the time that opening
// takes, whoever is well again is served within five seconds.
struct CameraPauses {
  std::int64_t first_ns = 250'000'000, longest_ns = 3'000'000'000;
};

class Camera {
 public:
  using Say = std::function<void(const std::string& line)>;
  // comes_back: its source is tried again. say: told of what happens to it, in lines; bounded. Any thread.
  Camera(FeederOptions options, bool comes_back, Say say, CameraPauses pauses = {});
  ~Camera();
  Camera(const Camera&) = delete;
  Camera& operator=(const Camera&) = delete;

  // Before start(), where it is to be known whether source and streams can be opened.
  Status open();
  void start(std::int64_t start_ns);  // when picture 0 is due
  void stop() noexcept { stop_.store(true, std::memory_order_relaxed); }
  void join();
  // acquire: partner is the release in live(); what it ended with is there.
  [[nodiscard]] bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }  // once ended; empty: none
  // Asked about once a second.
  [[nodiscard]] CameraReport report(std::int64_t now_ns);
  [[nodiscard]] std::vector<NamedLedger> figures() const { return feeder_.figures(); }
  [[nodiscard]] const Feeder& feeder() const noexcept { return feeder_; }

 private:
  void live(std::int64_t start_ns);
  bool open_source(bool again);  // again: nothing is to be said of it. false: it could not
  // It broke off: is there to be another try? Waits before that.
  bool broke(const std::string& why);
  void set(CameraState state);

  Feeder feeder_;
  const bool comes_back_;
  const Say say_;
  const CameraPauses pauses_;
  std::atomic<bool> stop_{false};  // relaxed: nothing is published with it
  std::atomic<bool> ended_{false};
  std::string error_;
  bool open_ = false;          // the source
  std::int64_t pause_ns_ = 0;  // before the next try
  std::int64_t opened_ns_ = 0;
  std::mutex mutex_;  // guards what follows
  CameraState state_ = CameraState::opening;
  std::string last_error_, said_trouble_;
  std::int64_t last_error_ns_ = 0;
  std::uint64_t breaks_ = 0;
  shm::LogLimit lines_;
  struct {
    std::int64_t at_ns = 0;
    std::uint64_t pictures = 0;
  } older_, newer_;  // for the rate
  std::thread thread_;
};

}  // namespace leat::tools
