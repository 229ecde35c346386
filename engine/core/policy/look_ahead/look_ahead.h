// Look-ahead: what a partition that periodic streams share does next: start one of the requests that wait, or idle on
// purpose.
//
// A stream of period P and max_age A divides time into windows [b, b + P), on the grid of its captures. A window is
// covered when a result of age <= A is delivered in it; an uncovered one costs its length times the weight of the
// stream's class. A single request (period 0) costs its run time times its weight when it ends after its deadline, and
// a little for its delay; one that is owed costs its whole delay.
//
// decide() compares possible first moves: each waiting request with each size of its batch, or idling until some job
// can start. A move is played on over a horizon by a simple rule: start the job whose window ends first, unless a
// heavier job would then miss a window that it meets otherwise; do not end a job before the window it is for. As long
// as looks are left, the best of the next moves are tried out instead of the rule, one more with each round. The move
// with the least expected cost is made; at equal cost starting comes before idling, the earlier window before the
// later.
//
// Run times are taken as skewed around the median, so that what ends close to a window's edge costs in proportion to
// its risk. A run that is only planned can still be left out when those before it take longer, so the risk that it adds
// to a heavier job costs no more than it is worth itself; only what has started or is the move in question puts the
// heavier job's whole worth at risk.
//
// Plain data in, a move out: no clock, no memory between calls, no allocation. The number of looks at a job bounds the
// time of a decision, whatever the number of sources.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/core/types.h"

namespace leat::core {

inline constexpr std::size_t kLookAheadSources = 24;
inline constexpr std::size_t kLookAheadMachines = 4;

struct LookAheadSource {
  TimeNs period_ns = 0;    // 0: a single request
  TimeNs need_ns = 0;      // periodic: begin of the first window without a result
  TimeNs deadline_ns = 0;  // single: when it must have ended
  bool owed =
      false;  // single: it should have started already; the delay costs its length times the weight, whenever it ends
  TimeNs waiting_ns = kNever;       // capture of the request that waits here; kNever: none does
  std::uint32_t waiting = 1;        // single: so many alike wait
  TimeNs next_ns = kNever;          // periodic: capture of the next request that has not come
  TimeNs transit_ns = 0;            // from capture to arrival
  TimeNs max_age_ns = 0;            // periodic
  TimeNs slo_ns = 0;                // periodic: a result in its window but after the deadline costs a little
  const TimeNs* run_ns = nullptr;   // [n]: median for a batch of n, n = 1..cap
  const TimeNs* safe_ns = nullptr;  // the same from p99
  std::uint32_t items = 1;          // of the request that waits
  std::uint32_t cap = 1;
  std::uint32_t group = 0;     // requests of one group may share a batch
  std::uint32_t machines = 1;  // bit m: machine m can run it
  double weight = 1;
  bool latest = true;  // a newer capture takes the place of the one that waits
};

struct LookAheadMove {
  std::uint32_t source = kNone;  // start its waiting request; kNone: idle
  std::uint32_t requests = 1;    // with so many requests of its group in the batch, itself included
  TimeNs until_ns = kNever;      // idle: look again then at the latest
};

struct LookAhead {
  std::span<const LookAheadSource> sources;            // at most kLookAheadSources
  std::array<TimeNs, kLookAheadMachines> free_ns{};    // expected; machine 0 is the one that asks; it is free now
  std::array<TimeNs, kLookAheadMachines> spread_ns{};  // standard deviation of free_ns
  std::uint32_t machines = 1;
  TimeNs horizon_ns = 100'000'000;
  std::uint32_t margin_permille = 1000;  // of the safe bounds

  [[nodiscard]] LookAheadMove decide(TimeNs now) const noexcept;
};

}  // namespace leat::core
