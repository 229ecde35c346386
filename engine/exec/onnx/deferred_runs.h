// Runs that go on behind the call that gave them: which of them failed. A run puts pieces of work on a stream, which
// does them in order; a batch may be put there before the one before it has been asked about. Thread rule: ended() and
// failed() on the stream, the rest on the thread that puts.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace leat::exec::ort {

class DeferredRuns {
 public:
  void put() noexcept { ++put_; }  // one piece
  // The run has put all of its pieces. Of those that nobody asks about the oldest is forgotten, and what it says is the
  // next one's.
  void run_ends() noexcept {
    if (runs_ == last_.size()) forget_oldest();
    last_[(first_ + runs_++) % last_.size()] = put_;
  }
  // What the oldest run that was not asked about has said; empty: nothing, or there is none. Its pieces have ended.
  std::string oldest() {
    if (runs_ == 0) return {};
    const std::uint64_t last = last_[first_];
    forget_oldest();
    const std::lock_guard lock(mutex_);
    std::string out;
    while (!failures_.empty() && failures_.front().first <= last) {
      if (out.empty()) out = std::move(failures_.front().second);
      failures_.pop_front();
    }
    return out;
  }

  // ---- on the stream ----
  void ended() {
    const std::lock_guard lock(mutex_);
    ++ended_;
  }
  void failed(std::string why) {
    const std::lock_guard lock(mutex_);
    failures_.emplace_back(++ended_, std::move(why));
  }

 private:
  void forget_oldest() noexcept {
    first_ = (first_ + 1) % last_.size();
    --runs_;
  }

  std::uint64_t put_ = 0;
  std::array<std::uint64_t, 8> last_{};  // the number of each run's last piece
  std::size_t first_ = 0, runs_ = 0;
  std::mutex mutex_;
  std::uint64_t ended_ = 0;
  std::deque<std::pair<std::uint64_t, std::string>> failures_;
};

}  // namespace leat::exec::ort
