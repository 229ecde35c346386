#include "bench/coordinated/freshness_scenarios.h"

#include <algorithm>

#include "engine/sim/workload/random.h"

namespace leat::bench {
namespace {

using core::Priority;

constexpr TimeNs kUs = 1000, kMs = 1'000'000;

// Time on a share of the device: as a whole, plus cost of what a share in proportion would add.
TimeNs shared(TimeNs whole, double share, double cost) {
  return static_cast<TimeNs>(static_cast<double>(whole) * (1 + cost * (1 / share - 1)));
}

Scenario m3(std::string name) {
  Scenario c{.name = std::move(name), .sources = {}, .models = {}};
  c.sources = {{"det", 33 * kMs, 33 * kMs, 66 * kMs, Priority::protected_, 0, false, 7, 15},
               {"pose", 33 * kMs, 33 * kMs, 66 * kMs, Priority::high, 1, false, 8},
               {"depth", 66 * kMs, 66 * kMs, 132 * kMs, Priority::high, 2, false, 12},
               {"vlm", 500 * kMs, 800 * kMs, 1500 * kMs, Priority::background, 3, true, 1000}};
  c.models = {{15'600 * kUs, 19'600 * kUs},
              {4'100 * kUs, 5'700 * kUs},
              {9'300 * kUs, 11'500 * kUs},
              {97'900 * kUs, 110'000 * kUs}};
  return c;
}

// The long job has 30 % of the device to itself, the others share 70 %; the long job keeps at least half of its solo
// rate (2/s).
Scenario m3_split(std::string name, double cost) {
  Scenario c = m3(std::move(name));
  c.partitions = 2;
  for (Model& m : c.models) {
    const bool large = &m != &c.models[3];
    m.p50 = shared(m.p50, large ? 0.7 : 0.3, cost);
    m.p99 = shared(m.p99, large ? 0.7 : 0.3, cost);
    m.pool = {large ? 0u : 1u};
  }
  c.sources[3].min_answers_per_s = 1;
  if (cost >= 1)
    c.sources[0].max_gap_ms = c.sources[1].max_uncovered = c.sources[2].max_uncovered =
        -1;  // 105 % of the large share: no schedule can
  return c;
}

Scenario ramp(std::uint32_t load, double max_uncovered) {
  const auto period =
      static_cast<TimeNs>(22'850 * kUs * 100 / load);  // 14.9 + 4.0 + 7.9 / 2 ms of work a period at 100 %
  Scenario c{.name = "ramp " + std::to_string(load) + " %", .sources = {}, .models = {}};
  c.sources = {{"det", period, period, 2 * period, Priority::protected_, 0, false, max_uncovered},
               {"pose", period, period, 2 * period, Priority::high, 1},
               {"depth", 2 * period, 2 * period, 4 * period, Priority::high, 2}};
  if (load == 150) c.sources[1].max_uncovered = c.sources[2].max_uncovered = 998;
  c.models = {{14'900 * kUs, 18'700 * kUs}, {4'000 * kUs, 5'600 * kUs}, {7'900 * kUs, 9'800 * kUs}};
  return c;
}

// Two places to run, for both models; a batch of cameras where the model takes one. vlm: 223 answers in 40 s without
// governor, 2 with; with batches our own bars, each camera covered for 60 % and 100 answers.
Scenario cameras(std::string name, std::uint32_t item_permille, TimeNs budget_ns) {
  Scenario c{
      .name = std::move(name), .sources = {}, .models = {}, .partitions = 2, .length = 4.0 / 3, .budget_ns = budget_ns};
  for (const char* camera : {"front", "left", "right", "rear"}) {
    const bool front = c.sources.empty();
    const double max_uncovered = front ? 0 : item_permille < 1000 ? 400 : 680;
    c.sources.push_back({camera, 33'333 * kUs, 100 * kMs, 100 * kMs, front ? Priority::protected_ : Priority::normal, 0,
                         false, max_uncovered});
  }
  c.sources.push_back({.name = "vlm",
                       .period = 150 * kMs,
                       .deadline = 1000 * kMs,
                       .max_age = 2000 * kMs,
                       .priority = Priority::background,
                       .model = 1,
                       .background = true,
                       .min_answers_per_s = (item_permille < 1000 ? 100.0 : 2.0) / 40});
  c.models = {{19'000 * kUs, 21'800 * kUs, item_permille < 1000 ? 4u : 1u, item_permille, {0, 1}},
              {121'000 * kUs, 170'000 * kUs, 1, 1000, {0, 1}}};
  return c;
}

}  // namespace

std::vector<Scenario> freshness_scenarios() {
  std::vector<Scenario> out = {m3("m3")};
  out.push_back(m3_split("m3 70/30, half cost", 0.5));
  out.push_back(m3_split("m3 70/30, full cost", 1.0));
  for (auto [load, max] :
       {std::pair{50u, 0.0}, {75u, 0.0}, {90u, 0.0}, {100u, 0.0}, {110u, 15.0}, {125u, 17.0}, {150u, 24.0}})
    out.push_back(ramp(load, max));
  out.push_back(cameras("4 cameras", 1000, -1));
  out.push_back(cameras("4 cameras, vlm 300/s", 1000, 300 * kMs));
  out.push_back(cameras("4 cameras, batch", 500, 300 * kMs));
  return out;
}

TimeNs batch_ns(const Model& m, TimeNs one, std::uint32_t items) {
  return one + one * m.item_permille / 1000 * (items - 1);
}

TimeNs drawn_ns(const Model& m, std::uint64_t seed, std::uint32_t stream, TimeNs capture) {
  constexpr double kNormal99 = 2.3263;
  sim::Random random(sim::mix(sim::mix(seed) + stream) + static_cast<std::uint64_t>(capture));
  const auto p50 = static_cast<double>(m.p50), p99 = static_cast<double>(m.p99);
  const double t = p50 * sim::exp(random.normal() * sim::ln(p99 / p50) / kNormal99);
  return static_cast<TimeNs>(std::clamp(t, p50 / 2, 3 * p99));
}

TimeNs phase_ns(const Source& source, std::uint64_t seed, std::uint32_t stream) {
  return 1 + static_cast<TimeNs>(sim::Random(sim::mix(seed) + stream).below(static_cast<std::uint64_t>(source.period)));
}

sim::Scenario to_simulate(const Scenario& c, const core::Policy& policy, const Clients& clients, std::uint64_t seed,
                          TimeNs length) {
  sim::Scenario s;
  s.policy = policy;
  if (c.budget_ns >= 0) s.policy.background_budget_ns = c.budget_ns;
  s.seed = seed;
  s.streams.clear();
  s.topology.partitions.resize(c.partitions);
  s.topology.hosts.resize(1);
  for (std::uint32_t m = 0; m < c.models.size(); ++m) {
    core::StageSpec stage{.pool = c.models[m].pool, .latency = {}};
    for (std::uint32_t b = 1; b <= c.models[m].batch; ++b) {
      stage.latency.p50_ns.push_back(batch_ns(c.models[m], c.models[m].p50, b));
      stage.latency.p99_ns.push_back(batch_ns(c.models[m], c.models[m].p99, b));
    }
    s.topology.routes.push_back({.module = m, .batch = c.models[m].batch, .rate_rps = 0, .stages = {stage}});
    s.topology.modules.push_back({.application = m, .before = {}, .after = {}, .routes = {m}});
    s.topology.applications.push_back({.slo_ns = 0, .rate_rps = 0, .modules = {m}});
  }
  std::vector<std::vector<sim::Arrival>> lists;
  for (std::uint32_t i = 0; i < c.sources.size(); ++i) {
    const Source& source = c.sources[i];
    s.topology.applications[source.model].slo_ns = source.deadline;
    const bool replaces = clients.freshness && !source.background && clients.cap > 1;
    s.streams.push_back({.application = source.model,
                         .slo_ns = source.deadline,
                         .max_age_ns = clients.freshness ? source.max_age : 0,
                         .period_ns = source.period,
                         .depth = source.background ? 4 : clients.cap,
                         .supersede = replaces ? core::Supersede::latest : core::Supersede::fifo,
                         .priority = source.priority});
    std::vector<TimeNs> times;
    for (TimeNs at = phase_ns(source, seed, i); at < length; at += source.period) times.push_back(at);
    lists.push_back(sim::to_stream(times, i));
  }
  s.arrivals = sim::merged(lists);
  return s;
}

}  // namespace leat::bench
