// Which batches pay, by what batches really take: the smallest size that no larger one's rate is well above
// (planner/paying_batch.h). A profile says what a batch takes while its partition has the host to itself. Where
// partitions share memory, caches or a clock, all of them together slow large batches down more than small ones, and a
// batch that paid alone only makes everybody in it wait for the others.
//
// Of each size of a route of one stage: what its batches take of their profiled time, smoothed. A size that was not run
// for a while is believed to take as much of its profile as the size nearest to it that was, and, where that is a
// larger one, no more than its profile says. So a size that may be better is tried now and then, for a few batches, and
// left again where it is not. Routes of several stages, and modules whose requests bring several items, which are there
// together, keep what the profile says. No allocation after construction. One thread, the scheduler's.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/model/model.h"
#include "engine/core/snapshot.h"

namespace leat::core {

class PayingBatches {
 public:
  explicit PayingBatches(const Model& model);

  [[nodiscard]] std::uint32_t of(RouteId r) const noexcept { return paying_[r]; }
  // The same in requests of an application, by all that the partition does for them: as many are worth having there
  // together.
  [[nodiscard]] std::uint32_t requests(std::uint32_t application, PartitionId p) const noexcept;

  // A batch of so many items has run. True: another size pays than before.
  bool ran(RouteId r, std::uint32_t items, TimeNs planned, TimeNs took) noexcept;
  void forget(ModuleId module) noexcept;  // as profiled, until it is learned again
  void visit_state(Snapshot& state) { state(routes_, paying_); }

 private:
  struct Size {
    std::int64_t scale_ppm = 1'000'000;  // of its profiled time
    std::uint32_t seen = 0;              // batches, up to those that it forgets in
    std::uint32_t last = 0;              // of the route's batches
  };
  struct Route {
    bool fixed = false;         // nothing is learned
    std::uint32_t batches = 0;  // that ran
    std::vector<Size> sizes;    // [b]
    std::vector<TimeNs> ns;     // [b], as believed
    void visit_state(Snapshot& state) { state(batches, sizes, ns); }
  };
  [[nodiscard]] static bool known(const Route& route, const Size& size) noexcept;
  [[nodiscard]] static std::int64_t scale_of(const Route& route, std::uint32_t b) noexcept;
  void believe(RouteId r) noexcept;
  [[nodiscard]] bool settle(RouteId r) noexcept;
  [[nodiscard]] TimeNs takes_ns(const ApplicationSpec& application, PartitionId p,
                                std::uint32_t requests) const noexcept;

  const Model& model_;
  std::vector<Route> routes_;
  std::vector<std::uint32_t> paying_;
};

}  // namespace leat::core
