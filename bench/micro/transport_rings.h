// Two pinned processes and the cache lines between them: the floor, the submission ring's round trip, and its
// throughput beside Boost's queue. A message that is lost, doubled or torn ends the program.
#pragma once

#include <optional>

#include "bench/serving/peers.h"

namespace leat::bench {

struct RingFigures {
  double floor_rtt_ns[2] = {0,
                            0};  // one line each way; medians over the kept rounds, before and after each measurement
  double one_line_rtt_ns = 0;    // one line that both ends write
  Figure rtt_over_floor;
  Figure throughput;         // messages per second, ours, in batches
  Figure throughput_single;  // ours, one by one
  Figure throughput_boost;   // boost::lockfree::spsc_queue, one by one: its default use
  Figure throughput_over_boost, single_over_boost;
  std::uint64_t messages = 0;  // carried and checked in all rounds of a throughput
  std::size_t dropped = 0;     // rounds in which the floor moved by more than 25 % or an end lost its core
};

RingFigures measure_rings(const Cores& cores, double seconds);

}  // namespace leat::bench
