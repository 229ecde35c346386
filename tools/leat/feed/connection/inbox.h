// Answers on their way from a connection's thread to the thread that feeds their stream.
//
// It holds no more than the streams have slots. Thread rule: put() and poke() from any thread, the rest from one.
// Errors: none.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "leat/client.hpp"

namespace leat::tools {

class Inbox {
 public:
  void put(Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
    more_.notify_one();
  }
  // Ends one wait: something else has changed.
  void poke() {
    const std::lock_guard lock(mutex_);
    poked_ = true;
    more_.notify_one();
  }
  // Empty: none came in that time, or it was poked. 0: looks, and does not wait.
  std::optional<Answer> take(std::int64_t timeout_ns) {
    std::unique_lock lock(mutex_);
    const auto there = [&] { return !answers_.empty() || poked_; };
    if (timeout_ns > 0 && !there()) more_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), there);
    if (timeout_ns > 0) poked_ = false;
    if (answers_.empty()) return std::nullopt;
    Answer answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }
  // Before a stream goes: its answers go first. No more of it are put.
  void forget(const leat_stream* stream) {
    const std::lock_guard lock(mutex_);
    std::erase_if(answers_, [&](const Answer& answer) { return answer.raw().stream == stream; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Answer> answers_;
  bool poked_ = false;
};

}  // namespace leat::tools
