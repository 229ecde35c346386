// What no schedule can beat in the freshness study, with every run time known beforehand.
//
// Alone: a stream on its fastest partition without any other work. A delivery covers one window, each window needs a
// frame of its own, frames go in order of capture, and a partition runs one at a time; so the state after a window is
// the frame last used and the moment from which the partition is free, of which the earliest is the best: a dynamic
// program over (window, frame, windows lost) is exact.
//
// Together: each covered window costs the run time of one frame, whatever the order. Class by class, the heaviest
// first, what the partitions' time still has room for is covered, in the order of coverage gained per time, the last
// frame in part (a fractional knapsack, so a bound for its class given the classes above). The mean of the streams'
// uncovered shares is what is left.
#pragma once

#include <cstdint>
#include <span>

#include "bench/coordinated/freshness_scenarios.h"

namespace leat::bench {

struct Frame {
  TimeNs capture = 0, run = 0;
};
// Fewest windows of `period` without a delivery of age <= max_age, when these frames have a partition to themselves
// until `end`.
[[nodiscard]] std::uint32_t fewest_lost_alone(const Observed& stream, std::span<const Frame> frames);

// Something that may be covered: what it is worth and what it costs.
struct Offer {
  double worth = 0;
  TimeNs run = 0;
};
// The most worth that fits into `capacity`, which is lowered by what it takes.
[[nodiscard]] double max_worth(std::vector<Offer> offers, TimeNs& capacity);

// Of one stream of a scenario, alone, in permille (0 where it may run in several places at once: not computed).
[[nodiscard]] double min_uncovered_permille(const Scenario& scenario, std::size_t stream, std::uint64_t seed,
                                            TimeNs length);
// Least mean of the uncovered shares of all streams but the background, in permille, with the heavier classes served
// first.
[[nodiscard]] double min_mean_permille(const Scenario& scenario, std::uint64_t seed, TimeNs length);

}  // namespace leat::bench
