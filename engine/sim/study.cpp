#include "engine/sim/study.h"

#include <algorithm>
#include <limits>
#include <map>

#include "engine/sim/bound.h"
#include "engine/sim/workload/random.h"
#include "planner/profile_table.h"
#include "tools/base/text/quantile.h"

namespace leat::sim {
namespace {

constexpr TimeNs kSecond = 1'000'000'000;
constexpr TimeNs kDefaultLength = 60 * kSecond;
constexpr std::size_t kBins = 200;  // of a history: at least a second each, about so many
constexpr std::uint64_t kProgressEvery = 4096;

std::uint64_t seed_of(std::uint64_t seed, std::uint64_t application, std::uint64_t what) {
  return mix(seed * 1'000'003 + application * 101 + what);
}

// The fastest that a batch ever runs here, for the bound: partitions may be faster than planned for a while.
core::Topology fastest(const Study& study) {
  std::int64_t min = 1000;
  for (const Fault& f : study.faults.faults) {
    if (f.kind == FaultKind::slow) min = std::min(min, f.value);
  }
  core::Topology t = study.reality;
  for (core::RouteSpec& r : t.routes) {
    for (core::StageSpec& s : r.stages) {
      for (TimeNs& ns : s.latency.p50_ns) ns = std::max<TimeNs>(1, ns / 1000 * min + ns % 1000 * min / 1000);
    }
  }
  return t;
}

struct Recorder {
  const Study& study;
  const Load& load;
  const std::function<void(std::uint64_t)>& progress;
  Measured& out;
  std::vector<double> latency_ms;
  std::vector<std::vector<std::uint32_t>> samples;
  std::uint64_t untold = 0;

  void begin_history() {
    History& h = out.history;
    h.bin_ns =
        std::max<TimeNs>(kSecond, (load.length_ns / static_cast<TimeNs>(kBins) + kSecond - 1) / kSecond * kSecond);
    const auto bins = static_cast<std::size_t>(load.length_ns / h.bin_ns + 1);
    h.arrived.assign(bins, 0);
    h.in_time.assign(bins, 0);
    h.wait_ns.assign(study.believed.modules.size(), std::vector<double>(bins, 0));
    samples.assign(study.believed.modules.size(), std::vector<std::uint32_t>(bins, 0));
    for (const Arrival& a : load.arrivals) ++h.arrived[bin(a.at_ns)];
  }
  [[nodiscard]] std::size_t bin(TimeNs at) const {
    return std::min(out.history.arrived.size() - 1,
                    static_cast<std::size_t>(std::max<TimeNs>(0, at) / out.history.bin_ns));
  }
  void answered(const AnswerEvent& e) {
    const TimeNs at = load.arrivals[e.arrival].at_ns;
    if (e.outcome == Outcome::completed || e.outcome == Outcome::late)
      latency_ms.push_back(static_cast<double>(e.at_ns - at) / 1e6);
    if (!out.history.in_time.empty() && e.outcome == Outcome::completed) ++out.history.in_time[bin(at)];
    if (progress && ++untold == kProgressEvery) tell();
  }
  void tell() {
    if (progress && untold > 0) progress(untold);
    untold = 0;
  }
  void sampled(const core::Sample& s) {
    out.history.wait_ns[s.module][bin(s.at_ns)] += static_cast<double>(s.queue_ns + s.wait_ns);
    ++samples[s.module][bin(s.at_ns)];
  }
  void end() {
    tell();
    for (std::size_t m = 0; m < samples.size(); ++m) {
      for (std::size_t b = 0; b < samples[m].size(); ++b) {
        double& q = out.history.wait_ns[m][b];
        q = samples[m][b] == 0 ? std::numeric_limits<double>::quiet_NaN() : q / samples[m][b];
      }
    }
    out.p50_ms = quantile(latency_ms, 0.5);
    out.p99_ms = quantile(latency_ms, 0.99);
  }
};

}  // namespace

double planned_rate(const planner::PlanFile& plan, std::uint32_t application) {
  const planner::Application& app = plan.applications[application];
  double min = std::numeric_limits<double>::infinity();
  for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
    double rate = 0;
    for (const planner::Route& r : plan.plan.routes) {
      if (r.application == application && r.module == m) rate += r.rate_rps;
    }
    min = std::min(min, rate / app.modules[m].items_per_request);
  }
  return min > 0 ? min : app.rate_rps;
}

TimeNs length_of(const Study& study, double factor) {
  if (study.length_ns > 0) return study.length_ns;
  TimeNs longest = 0;
  for (std::size_t a = 0; a < study.processes.size(); ++a)
    longest = std::max(longest, own_length(study.processes[a], study.full_rps[a] * factor, study.bin_ns));
  return longest > 0 ? longest : kDefaultLength;
}

double expected_requests(const Study& study, double factor) {
  const double seconds = static_cast<double>(length_of(study, factor)) / 1e9;
  double sum = 0;
  for (std::size_t a = 0; a < study.full_rps.size(); ++a) {
    // A trace that ends before the others do brings no more.
    const TimeNs own = own_length(study.processes[a], study.full_rps[a] * factor, study.bin_ns);
    sum += study.full_rps[a] * factor * (own > 0 ? std::min(seconds, static_cast<double>(own) / 1e9) : seconds);
  }
  return sum;
}

Result<core::Topology> reality_of(const planner::PlanFile& plan, const core::Topology& believed,
                                  std::span<const planner::Profile> profiles, std::span<const ProfileError> errors) {
  core::Topology out = believed;
  std::map<std::string, planner::ProfileTable> tables;
  for (const planner::Profile& p : profiles) tables.try_emplace(p.model, p);
  for (std::size_t r = 0; r < out.routes.size() && !profiles.empty(); ++r) {
    const planner::Route& route = plan.plan.routes[r];
    const planner::Module& module = plan.applications[route.application].modules[route.module];
    const std::string& model = module.model.empty() ? module.name : module.model;
    const auto table = tables.find(model);
    if (table == tables.end())
      return Error{"there is no profile of model '" + model +
                   "'; add one, or leave --profiles out to take the plan's latencies"};
    for (std::size_t s = 0; s < route.stages.size(); ++s) {
      const planner::Stage& stage = route.stages[s];
      const planner::Partition& at = plan.plan.partitions[stage.pool.front()];
      core::LatencyTable& latency = out.routes[r].stages[s].latency;
      if (table->second.largest_batch(at.partition_class, at.share) < latency.p50_ns.size()) {
        return Error{"the profile of model '" + model + "' has no row for class '" + at.partition_class + "' share " +
                     std::to_string(at.share) + " and batch " + std::to_string(latency.p50_ns.size()) +
                     ", which the plan uses"};
      }
      for (std::uint32_t b = 1; b <= latency.p50_ns.size(); ++b) {
        latency.p50_ns[b - 1] =
            table->second.p50_ns(at.partition_class, at.share, b, stage.first_block, stage.end_block);
        latency.p99_ns[b - 1] =
            std::max(latency.p50_ns[b - 1],
                     table->second.p99_ns(at.partition_class, at.share, b, stage.first_block, stage.end_block));
      }
    }
  }
  for (const ProfileError& error : errors) {
    for (core::RouteSpec& r : out.routes) {
      if (error.module != core::kNone && error.module != r.module) continue;
      for (core::StageSpec& s : r.stages) {
        for (auto* table : {&s.latency.p50_ns, &s.latency.p99_ns}) {
          for (TimeNs& ns : *table) ns = std::max<TimeNs>(1, ns + ns / 100 * error.percent);
        }
      }
    }
  }
  return out;
}

void add_overhead(core::Topology& reality, TimeNs per_batch_ns) {
  for (core::RouteSpec& r : reality.routes) {
    for (core::StageSpec& s : r.stages) {
      for (auto* table : {&s.latency.p50_ns, &s.latency.p99_ns}) {
        for (TimeNs& ns : *table) ns += per_batch_ns;
      }
    }
  }
}

Load make_load(const Study& study, double factor, std::uint64_t seed) {
  Load load{.factor = factor, .seed = seed, .length_ns = length_of(study, factor)};
  const auto applications = static_cast<std::uint32_t>(study.believed.applications.size());
  std::vector<std::vector<Arrival>> lists;
  const core::Topology best = fastest(study);
  for (std::uint32_t a = 0; a < applications; ++a) {
    const double rate = study.full_rps[a] * factor;
    std::vector<TimeNs> list = times(study.processes[a], rate, load.length_ns, study.bin_ns, seed_of(seed, a, 1));
    std::uint64_t n = 2;
    for (const Burst& b : study.faults.bursts) {
      if (b.application == core::kNone || b.application == a)
        list = with_burst(std::move(list), b, rate, seed_of(seed, a, n++));
    }
    while (!list.empty() && list.back() >= load.length_ns) list.pop_back();
    load.bound += clairvoyant_bound(best, a, list).requests;
    lists.push_back(to_stream(list, a * study.streams));
    for (std::size_t i = 0; i < lists.back().size(); ++i)
      lists.back()[i].stream += static_cast<std::uint32_t>(i % study.streams);
  }
  load.arrivals = merged(lists);
  if (study.items.largest > 1) {
    load.bound = load.arrivals.size();  // requests of several items: the bound says nothing
    for (std::size_t i = 0; i < load.arrivals.size(); ++i) {
      load.arrivals[i].items =
          lognormal_items(seed_of(seed, 7, i), study.items.median, study.items.sigma, study.items.largest);
    }
  }
  return load;
}

double Measured::share(Outcome o) const {
  return outcomes.requests == 0
             ? 0
             : static_cast<double>(outcomes.counters.total.of(o)) / static_cast<double>(outcomes.requests);
}
double Measured::share(Reason r) const {
  return outcomes.requests == 0
             ? 0
             : static_cast<double>(outcomes.counters.total.of(r)) / static_cast<double>(outcomes.requests);
}

Measured measure(const Study& study, const Load& load, const core::Policy& policy, bool with_history,
                 const std::function<void(std::uint64_t)>& progress) {
  Measured out;
  Recorder recorder{study, load, progress, out, {}, {}};
  if (with_history) recorder.begin_history();
  Scenario s;
  s.topology = study.believed;
  s.reality = &study.reality;
  s.policy = policy;
  s.policy.seed = load.seed;
  s.seed = load.seed;
  s.noise_permille = study.noise_permille;
  s.check_every = study.check_every;
  s.faults = study.faults.faults;
  s.arrivals = load.arrivals;
  s.streams.clear();
  for (std::uint32_t i = 0; i < study.believed.applications.size() * study.streams; ++i)
    s.streams.push_back({.application = i / study.streams, .depth = study.depth});
  s.limits.streams = std::max(s.limits.streams, static_cast<std::uint32_t>(s.streams.size()));
  s.on_answer = [&](const AnswerEvent& e) { recorder.answered(e); };
  if (with_history) {
    s.limits.samples = true;
    s.on_run = [&](const RunEvent& e) { out.history.runs.push_back(e); };
    s.on_sample = [&](const core::Sample& e) { recorder.sampled(e); };
  }
  out.outcomes = run(s);
  out.seconds = static_cast<double>(load.length_ns) / 1e9;
  out.bound_share = load.bound == 0 ? 1
                                    : static_cast<double>(out.outcomes.counters.total.of(Outcome::completed)) /
                                          static_cast<double>(load.bound);
  recorder.end();
  return out;
}

}  // namespace leat::sim
