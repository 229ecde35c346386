// What the scheduler asks of its driver, in order: a ring of fixed size. Spans are filled when an action is taken.
#pragma once

#include <vector>

#include "engine/core/check.h"
#include "engine/core/scheduler.h"

namespace leat::core {

class Actions {
 public:
  explicit Actions(std::size_t limit) : ring_(limit) {}
  void push(const Action& action) noexcept {
    check(count_ < ring_.size(), "the driver does not take its actions");
    const std::size_t at = first_ + count_;
    ring_[at < ring_.size() ? at : at - ring_.size()] = action;
    ++count_;
  }
  [[nodiscard]] bool pop(Action& out) noexcept {
    if (count_ == 0) return false;
    out = ring_[first_];
    if (++first_ == ring_.size() || count_ == 1) first_ = 0;  // empty: the same memory again
    --count_;
    return true;
  }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

 private:
  std::vector<Action> ring_;
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace leat::core
