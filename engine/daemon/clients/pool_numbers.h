// The numbers of streams' pools, which are those of their counters records. A number that is used again has another
// generation, so that nobody mistakes one pool for the one before. Thread rule: the control thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace leat::daemon {

class PoolNumbers {
 public:
  explicit PoolNumbers(std::uint32_t most) : used_(most, false), generation_(most, 0) {}
  // The lowest that is free, with its generation. Precondition: there is one.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> take() {
    const auto free = static_cast<std::uint32_t>(std::find(used_.begin(), used_.end(), false) - used_.begin());
    used_[free] = true;
    return {free, ++generation_[free]};
  }
  void give_back(std::uint32_t number) { used_[number] = false; }

 private:
  std::vector<bool> used_;
  std::vector<std::uint32_t> generation_;
};

}  // namespace leat::daemon
