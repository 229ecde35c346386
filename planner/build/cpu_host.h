// What `cpu = "auto"` of leatd and `--host auto` of leat-plan mean: this machine's cores as `cpu` partitions. One room
// for both, so that a plan for the one is a plan for the other. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/plan.h"
#include "planner/profile.h"

namespace leat::planner {

// What one item takes of a partition at its best batch; latency[b - 1]: of a batch of b. Empty: a guess, a millisecond.
[[nodiscard]] double item_ns(std::span<const Latency> latency);

// The mean over what a request of an application makes of its modules.
class MeanItem {
 public:
  void add(double items_per_request, double item_ns) noexcept {
    items_ += items_per_request, ns_ += items_per_request * item_ns;
  }
  [[nodiscard]] double ns() const noexcept { return items_ > 0 ? ns_ / items_ : 1e18; }

 private:
  double items_ = 0, ns_ = 0;
};

// Partitions of `each` cores, class "cpu:EACH", named after their first core. mean_item_ns: of the application whose
// items are the shortest. The scheduler thread takes some time for every item, on whatever core it can have at once;
// where all partitions together would have it work for more than half of the time, the last core is left to it.
[[nodiscard]] std::vector<Partition> cpu_partitions(std::span<const std::uint32_t> cores, std::uint32_t each,
                                                    double mean_item_ns);

}  // namespace leat::planner
