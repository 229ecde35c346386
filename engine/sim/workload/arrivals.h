// Arrival processes: from a seed and numbers, or from a trace, to a sorted list of arrivals. Everything the simulator
// replays. Errors (a trace that cannot be read) are one line of text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/core/types.h"
#include "leat/result.hpp"

namespace leat::sim {

using core::TimeNs;

struct Arrival {
  TimeNs at_ns = 0;          // when the scheduler sees it
  TimeNs capture_ns = 0;     // deadlines count from here; 0: at_ns
  std::uint32_t stream = 0;  // index into Scenario::streams
  std::uint32_t items = 1;
  std::uint32_t key = 0;
  TimeNs deadline_ns = 0;         // sooner than by its stream's SLO; 0: by that
  std::uint64_t branch_draw = 0;  // core::Submission's; 0: by the scenario's seed
};

// Homogeneous Poisson process; times in [0, length_ns).
[[nodiscard]] std::vector<TimeNs> poisson(double rate_rps, TimeNs length_ns, std::uint64_t seed);
// Renewal process with Gamma gaps of the given coefficient of variation (1: Poisson; above: bursty).
[[nodiscard]] std::vector<TimeNs> gamma(double rate_rps, double cv, TimeNs length_ns, std::uint64_t seed);
// Markov-modulated Poisson process: rate_rps[i] for an exponential time of mean dwell_ns[i], then the next state, round
// and round.
[[nodiscard]] std::vector<TimeNs> mmpp(std::span<const double> rate_rps, std::span<const TimeNs> dwell_ns,
                                       TimeNs length_ns, std::uint64_t seed);
// Rate series: bin i lasts bin_ns and has count[i] * scale requests on average. Within a bin: Poisson at the bin's
// rate.
[[nodiscard]] std::vector<TimeNs> from_series(std::span<const double> counts, TimeNs bin_ns, double scale,
                                              std::uint64_t seed);
// Batch sizes (items per request): log-normal with that median and sigma of the logarithm, rounded, clamped to [1,
// largest].
[[nodiscard]] std::uint32_t lognormal_items(std::uint64_t key, double median, double sigma, std::uint32_t largest);

// A file of ../shared/data/traces's format: "*_arrivals_*": seconds, one a line; "*_1s_*", "*_1min_*", "*_1h_*": counts
// per bin.
struct Trace {
  bool per_request = false;
  std::vector<double> values;  // seconds, or counts
  TimeNs bin_ns = 0;           // of counts
};
[[nodiscard]] Result<Trace> read_trace(const std::string& path);
// Replays a trace so that its mean rate is `rate_rps`. Per-request: real gaps, scaled. Counts: bins last bin_ns (0: the
// trace's own).
[[nodiscard]] std::vector<TimeNs> replay(const Trace& trace, double rate_rps, TimeNs bin_ns, TimeNs longest_ns,
                                         std::uint64_t seed);

// One stream's requests from times.
[[nodiscard]] std::vector<Arrival> to_stream(std::span<const TimeNs> times, std::uint32_t stream = 0);
// Several sorted lists into one, stable.
[[nodiscard]] std::vector<Arrival> merged(std::span<const std::vector<Arrival>> lists);

}  // namespace leat::sim
