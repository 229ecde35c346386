// Who of a client's two threads sleeps at its bell. A ring is for either: the answering thread waits for answers, the
// submitting one for its turn. One of them takes the bell and looks after the other's things too; the other sleeps
// beside it until it is told to look. With one thread all this is a mutex that nobody else takes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "leat/leat.h"
#include "shm/src/rings/doorbell.h"

namespace leat::shm {

class BellWatch {
 public:
  class Sleeper {
   public:
    virtual void publish() noexcept = 0;                      // before the look: what it has taken from rings
    [[nodiscard]] virtual bool nothing() const noexcept = 0;  // has come for it

   protected:
    ~Sleeper() = default;
  };

  // Sleeps until something may have come, or `until_ns` (CLOCK_MONOTONIC; < 0: for ever). False: the daemon is gone.
  bool sleep(BellSocket& bell, SleepWord& word, Sleeper& me, std::int64_t until_ns) {
    std::unique_lock lock(mutex_);
    if (taken_) {
      sleep_beside(lock, me, until_ns);
      return true;
    }
    taken_ = true;
    const bool idle = may_sleep(
        [&] {
          me.publish();
          announce_sleep(word);
        },
        [&] { return me.nothing() && (other_ == nullptr || other_->nothing()); });
    lock.unlock();
    const std::int64_t left_ns = until_ns < 0 ? -1 : until_ns - leat_now_ns();
    const bool rung = idle && (until_ns < 0 || left_ns > 0) && bell.wait(left_ns);
    announce_awake(word);
    const bool there = !rung || bell.drain() == Drained::rings;
    lock.lock();
    taken_ = false;
    if (other_ != nullptr) changed_.notify_one();  // it looks, and takes the bell if nothing has come for it
    return there;
  }

 private:
  void sleep_beside(std::unique_lock<std::mutex>& lock, const Sleeper& me, std::int64_t until_ns) {
    other_ = &me;
    // The other's word says that somebody sleeps; what makes the daemon ring for us was written before.
    if (may_sleep([] {}, [&] { return me.nothing(); })) {
      const std::int64_t left_ns = until_ns - leat_now_ns();
      if (until_ns < 0)
        changed_.wait(lock);
      else if (left_ns > 0)
        changed_.wait_for(lock, std::chrono::nanoseconds(left_ns));
    }
    other_ = nullptr;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool taken_ = false;              // by the other thread
  const Sleeper* other_ = nullptr;  // that sleeps beside it
};

}  // namespace leat::shm
