// What tasks take of their module's batches where its pictures vary in size (engine/exec/picture/sizes.h). One picture
// of the largest size is divided into units; each smaller cost class takes as many as its measured share of the
// largest's time, on the partition where that share is greatest:
//   units(c) = max over classes of partitions of round(U t_c / t_largest), 1..U, U <= 8, so that a batch has at most 64
// A picture that is shown in pieces (wide=split) takes what they take together; of a module whose sizes are not divided
// one unit each. No task takes more than a batch, so that one of fewer pictures than pieces is charged too little.
// Latency tables and batch sizes then count units: `batch` pictures of the largest size are `batch` x U. The size of a
// task follows from its stream's frames, or from what an earlier module found: the result slot's geometry, never
// pixels.
//
// Modules whose sizes were not measured (an older profile, a plan of one's own) count every picture as the largest.
// Thread rule: made on the control thread, then read by the scheduler's. What workers claim was bounded when it was
// read (engine/worker/link/protocol.cpp); what they write into slots is bounded here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/exec/picture/preprocess.h"
#include "leat/result_types.h"
#include "planner/profile.h"

namespace leat::daemon {

// One module's latencies on one partition.
struct MeasuredSizes {
  std::vector<planner::Latency> rows;     // [b-1]: b pictures of the largest size
  std::vector<planner::Latency> by_size;  // [class]: one picture; empty: not measured
};

struct ModuleSizes {
  exec::CropSpec cut;
  exec::SizeRule rule;
  std::vector<exec::Size> sizes;     // of the classes; empty: every picture is one unit
  std::vector<std::uint32_t> units;  // [class], ascending; the last is U
  bool crops = false;                // its items are detections

  [[nodiscard]] std::uint32_t each() const noexcept { return units.empty() ? 1 : units.back(); }  // U
  [[nodiscard]] double mean_units() const noexcept;
  // Latency by units on a partition of which this was measured; where sizes are not divided, `rows` itself.
  [[nodiscard]] std::vector<planner::Latency> table(const MeasuredSizes& measured) const;
  // Item `item` of a frame of these sides; result: what is known of it, for crops, in a slot of slot_bytes.
  [[nodiscard]] std::uint32_t units_of(std::uint32_t width, std::uint32_t height, const leat_result* result,
                                       std::uint64_t slot_bytes, std::uint32_t item) const noexcept;
};

// `preprocess`: the words in force; partitions: all that run the module; none: its sizes are not divided.
ModuleSizes divide_sizes(const std::string& preprocess, bool crops, std::span<const MeasuredSizes> partitions);

}  // namespace leat::daemon
