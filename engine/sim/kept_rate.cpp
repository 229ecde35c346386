#include "engine/sim/kept_rate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/sim/simulator.h"

namespace leat::sim {
namespace {

constexpr double kStep = 1.12;          // up or down, until it is no longer kept, or at last
constexpr double kMin = .01;            // parts below are none
constexpr std::uint32_t kDepth = 4096;  // requests in flight; who needs more is long late
constexpr double kSlos = 40;            // a run lasts at least so many of the longest SLO
constexpr double kLongest = 4;          // but has at most so many times the requests asked for

}  // namespace

double worst_in_time(const core::Topology& topology, const core::Policy& policy, std::span<const double> rates_rps,
                     double part, const KeptRateOptions& options) {
  Scenario s;
  s.topology = topology;
  s.policy = policy;
  s.seed = options.seed;
  s.streams.clear();
  double total = 0, slo_s = 0;
  for (std::uint32_t a = 0; a < topology.applications.size(); ++a) {
    total += rates_rps[a];
    if (rates_rps[a] > 0) slo_s = std::max(slo_s, static_cast<double>(topology.applications[a].slo_ns) / 1e9);
    s.streams.push_back({.application = a, .depth = kDepth});
  }
  if (total <= 0) return 1;
  const auto requests = static_cast<double>(options.requests);
  const double seconds =
      std::min(std::max(requests / (total * part), kSlos * slo_s), kLongest * requests / (total * part));
  s.limits.requests = kDepth;
  s.limits.tasks = 8 * kDepth;
  s.limits.streams = static_cast<std::uint32_t>(s.streams.size());
  s.limits.partitions = static_cast<std::uint32_t>(topology.partitions.size());
  s.limits.batches = std::max<std::uint32_t>(1024, 2 * s.limits.partitions);
  std::vector<std::vector<Arrival>> lists;
  for (std::uint32_t a = 0; a < topology.applications.size(); ++a) {
    if (rates_rps[a] > 0)
      lists.push_back(
          to_stream(poisson(rates_rps[a] * part, static_cast<TimeNs>(seconds * 1e9), options.seed * 1000 + a), a));
  }
  s.arrivals = merged(lists);
  const Outcomes out = run(s);
  double worst = 1;
  for (std::uint32_t a = 0; a < topology.applications.size(); ++a) {
    const core::RequestCounters& c = out.counters.streams[a];
    if (c.submitted > 0)
      worst = std::min(worst, static_cast<double>(c.of(Outcome::completed)) / static_cast<double>(c.submitted));
  }
  return worst;
}

KeptRate kept_rate(const core::Topology& topology, const core::Policy& policy, std::span<const double> rates_rps,
                   const KeptRateOptions& options) {
  const auto in_time = [&](double part) { return worst_in_time(topology, policy, rates_rps, part, options); };
  const auto kept = [&](double part) { return in_time(part) >= options.in_time; };
  KeptRate out{.part = 0, .in_time = in_time(1)};
  double low = 1, high = 1;  // kept, and not kept
  if (out.in_time >= options.in_time) {
    for (high = std::min(options.max, kStep); high > low && kept(high); high = std::min(options.max, high * kStep))
      low = high;
  } else {
    for (low = 1 / kStep; low > kMin && !kept(low); low /= kStep) high = low;
    if (low <= kMin) return out;
  }
  while (high > low * (1 + options.resolution)) {
    const double middle = (low + high) / 2;
    (kept(middle) ? low : high) = middle;
  }
  out.part = low;
  return out;
}

}  // namespace leat::sim
