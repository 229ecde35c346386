// A stream that is a thread: work runs in order, each piece after a delay drawn from the seed, so that whoever forgets
// to wait reads what is not there yet. Thread rule: push() by one thread; done() and wait_for() by any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace leat::fake {

class Stream {
 public:
  // longest_us: read before each piece of work. dead: from then on work is dropped.
  Stream(std::uint64_t seed, std::function<std::uint32_t()> longest_us, std::function<bool()> dead);
  ~Stream();  // drops what has not begun

  std::uint64_t push(std::function<void()> work);  // its ticket: done when that many pieces have ended
  bool wait_for(std::uint64_t ticket);             // false: dead first, the work will never end
  bool done(std::uint64_t ticket);
  // Between the two, push() only collects. False: it is so already, or was not.
  bool begin_capture();
  [[nodiscard]] bool capturing() const noexcept { return captured_.has_value(); }
  bool end_capture(std::vector<std::function<void()>>* collected);
  // Once dead: returns when no stream of this process touches memory any more.
  static void settle();

 private:
  void run();

  std::function<std::uint32_t()> longest_us_;
  std::function<bool()> dead_;
  std::mt19937_64 random_;
  std::mutex mutex_;
  std::condition_variable pushed_, ended_;
  std::deque<std::function<void()>> work_;
  std::optional<std::vector<std::function<void()>>> captured_;  // by the thread that pushes
  std::uint64_t given_ = 0, done_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace leat::fake
