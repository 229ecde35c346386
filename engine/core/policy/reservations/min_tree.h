// The least of n times that change one at a time, and which of them have come: a tournament in an array, so that
// hundreds of partitions that wait are not looked at one by one.
//
// Capacity is fixed at construction; all begin at kNever. Thread rule: one thread. set() O(log n), least() O(1),
// for_each_by() O(k log n) for k that are found.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "engine/core/snapshot.h"
#include "engine/core/types.h"

namespace leat::core {

class MinTree {
 public:
  explicit MinTree(std::size_t count)
      : leaves_(std::bit_ceil(std::max<std::size_t>(count, 1))), nodes_(2 * leaves_, kNever) {}

  [[nodiscard]] TimeNs min() const noexcept { return nodes_[1]; }
  [[nodiscard]] TimeNs operator[](std::size_t i) const noexcept { return nodes_[leaves_ + i]; }

  void set(std::size_t i, TimeNs at) noexcept {
    std::size_t n = leaves_ + i;
    nodes_[n] = at;
    while (n > 1) {
      n /= 2;
      const TimeNs min = std::min(nodes_[2 * n], nodes_[2 * n + 1]);
      if (nodes_[n] == min) return;
      nodes_[n] = min;
    }
  }

  // Calls each(i), in order, for those at or before `now`. It may set() the one it is called for.
  template <class Each>
  void for_each_by(TimeNs now, Each&& each) {
    visit(1, leaves_, 0, now, each);
  }
  void visit_state(Snapshot& state) { state(nodes_); }

 private:
  template <class Each>
  void visit(std::size_t node, std::size_t width, std::size_t first, TimeNs now, Each& each) {
    if (nodes_[node] > now) return;
    if (width == 1) {
      each(first);
      return;
    }
    visit(2 * node, width / 2, first, now, each);
    visit(2 * node + 1, width / 2, first + width / 2, now, each);
  }

  std::size_t leaves_;
  std::vector<TimeNs> nodes_;
};

}  // namespace leat::core
