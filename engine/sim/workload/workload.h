// What arrives, in words a user types: a process or a trace, scaled to a rate; bursts on top. Deterministic for a seed.
// Errors are one line. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/sim/workload/arrivals.h"
#include "leat/result.hpp"

namespace leat::sim {

enum class ProcessKind : std::uint8_t { poisson, gamma, mmpp, trace };

struct ArrivalProcess {
  ProcessKind kind = ProcessKind::poisson;
  double cv = 1;                       // gamma
  std::vector<double> relative_rates;  // mmpp: of its states, in turn
  std::vector<TimeNs> dwell_ns;        // mmpp: mean time in each state
  Trace trace;
};

// "poisson", "gamma:CV", "mmpp:RATE/SECONDS,RATE/SECONDS,..." (rates relative to each other), or a trace's path
// (read_trace).
[[nodiscard]] Result<ArrivalProcess> read_process(const std::string& word);

// How long the process lasts by itself at that mean rate; 0: as long as one likes. bin_ns 0: the trace's own bins.
[[nodiscard]] TimeNs own_length(const ArrivalProcess& process, double rate_rps, TimeNs bin_ns);

// Arrival times in [0, length_ns), ascending, at a mean of `rate_rps`. A rate series is Poisson within each bin, a
// per-request trace is stretched as a whole; either is cut at length_ns, so that what remains may have another mean.
[[nodiscard]] std::vector<TimeNs> times(const ArrivalProcess& process, double rate_rps, TimeNs length_ns, TimeNs bin_ns,
                                        std::uint64_t seed);

// A while in which `factor` times as many requests arrive.
struct Burst {
  std::uint32_t application = core::kNone;  // kNone: all
  TimeNs from_ns = 0, until_ns = 0;
  double factor = 1;
};
// factor > 1 adds a Poisson process of (factor - 1) x rate_rps; factor < 1 keeps each arrival by chance.
[[nodiscard]] std::vector<TimeNs> with_burst(std::vector<TimeNs> times, const Burst& burst, double rate_rps,
                                             std::uint64_t seed);

}  // namespace leat::sim
