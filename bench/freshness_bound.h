// What no schedule can beat in the freshness study, with every run time known beforehand.
//
// Alone: a stream on its fastest partition without any other work. A delivery covers one window, each window needs a frame of its
// own, frames go in order of capture, and a partition runs one at a time; so the state after a window is the frame last used and the
// moment from which the partition is free, of which the earliest is the best: a dynamic program over (window, frame, windows lost) is exact.
//
// Together: each covered window costs the run time of one frame; of all streams of a class and above, what their partitions cannot
// run in the time of the run stays uncovered. Taking the shortest frames gives the largest number of covered windows, whose
// shortfall is a lower bound of the sum of uncovered windows over those streams.
#pragma once

#include <cstdint>
#include <span>

#include "bench/freshness_scenarios.h"

namespace leat::bench {

struct Frame {
  TimeNs capture = 0, run = 0;
};
// Fewest windows of `period` without a delivery of age <= max_age, when these frames have a partition to themselves until `end`.
[[nodiscard]] std::uint32_t fewest_lost_alone(const Observed& stream, std::span<const Frame> frames);

// Fewest windows lost when `windows` of them are to be covered with these run times, one each, in `capacity_ns`.
[[nodiscard]] std::uint32_t fewest_lost_together(std::vector<TimeNs> runs, std::uint32_t windows, TimeNs capacity_ns);

// Of one stream of a scenario, alone, in permille (0 where it may run in several places at once: not computed).
[[nodiscard]] double least_uncovered_permille(const Scenario& scenario, std::size_t stream, std::uint64_t seed, TimeNs length);
// Of all streams of a scenario but the background, together, in windows.
[[nodiscard]] std::uint32_t least_lost_windows(const Scenario& scenario, std::uint64_t seed, TimeNs length);

}  // namespace leat::bench
