// Which instances to cut a host's GPUs into: the whole numbers that follow PARIS's real ones, by the layouts MIG
// allows. A layout is the count of each size on one GPU; only layouts to which nothing can be added are considered. All
// GPUs share one geometry. Any thread; pure and deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/mig/geometry.h"
#include "planner/mig/served_load.h"

namespace leat::planner {

using SizeCounts = std::vector<std::uint32_t>;  // [size], in the order of profiles_for()

// Every maximal layout of one GPU, as counts.
std::vector<SizeCounts> maximal_layouts(const MigGeometry& geometry, const std::vector<std::uint32_t>& profiles);

// All placements that make up `counts` on one GPU; empty when there is none.
std::vector<std::vector<MigPlacement>> placements_of(const MigGeometry& geometry,
                                                     const std::vector<std::uint32_t>& profiles,
                                                     const SizeCounts& counts);

struct LayoutChoice {
  std::vector<std::uint32_t> layouts;  // [gpu]: index into the space's layouts
  SizeCounts counts;                   // of all GPUs
  double served_rps = 0;
  double bound_rps = 0;  // no layout serves more; only from best_layout()
};

class LayoutSpace {
 public:
  LayoutSpace(const MigGeometry& geometry, std::vector<std::uint32_t> profiles, std::uint32_t gpus);

  const MigGeometry& geometry() const { return geometry_; }
  const std::vector<SizeCounts>& layouts() const { return layouts_; }
  const std::vector<std::uint32_t>& profiles() const { return profiles_; }
  std::uint32_t gpus() const { return gpus_; }
  std::size_t size() const { return totals_.size(); }  // distinct totals over all GPUs
  std::vector<double> compute_of_sizes() const;

  // Exact search: the most served load over every combination of layouts. Bounds by the dual prices of the linear
  // programs solved so far, so that few of the totals are ever solved.
  LayoutChoice best_layout(const SizeDemand& demand) const;
  // The total nearest to `instances` (PARIS's N) among those that serve every batch size within the SLA: least sum of
  // compute slices off, then least unused, then in order.
  LayoutChoice nearest_layout(const std::vector<double>& instances, const SizeDemand& demand) const;
  // What one layout for each GPU serves.
  LayoutChoice choice_of(std::vector<std::uint32_t> layouts, const SizeDemand& demand) const;

 private:
  struct Total {
    SizeCounts counts;
    std::uint32_t parent = 0, layout = 0;  // of the level before
  };
  LayoutChoice choice_of(std::size_t total, const SizeDemand& demand) const;

  MigGeometry geometry_;
  std::vector<std::uint32_t> profiles_;
  std::uint32_t gpus_;
  std::vector<SizeCounts> layouts_;
  std::vector<std::vector<Total>> levels_;  // [gpus placed]
  std::vector<SizeCounts> totals_;
};

}  // namespace leat::planner
