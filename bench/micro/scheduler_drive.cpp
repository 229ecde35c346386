#include <algorithm>

#include "bench/micro/scheduler_cases.h"

namespace leat::bench {
namespace {

using core::TimeNs;

TimeNs run_ns(std::uint32_t b) { return 5 * kMs + b * kMs; }

core::LatencyTable table() {
  core::LatencyTable t;
  for (std::uint32_t b = 1; b <= kBatch; ++b) t.p50_ns.push_back(run_ns(b));
  t.p99_ns = t.p50_ns;
  return t;
}

struct End {
  TimeNs at;
  std::uint64_t serial;
  core::BatchHandle batch;
  bool operator<(const End& o) const { return at != o.at ? at > o.at : serial > o.serial; }
};

}  // namespace

core::Topology chain(std::uint32_t modules, std::uint32_t partitions) {
  core::Topology t;
  core::ApplicationSpec app{.slo_ns = modules * 60 * kMs, .rate_rps = 0, .modules = {}};
  for (core::ModuleId m = 0; m < modules; ++m) {
    core::ModuleSpec module{.application = 0, .before = {}, .after = {}, .routes = {m}};
    if (m > 0) module.before = {m - 1};
    if (m + 1 < modules) module.after = {m + 1};
    core::StageSpec stage{.pool = {}, .latency = table()};
    for (std::uint32_t p = partitions * m / modules; p < partitions * (m + 1) / modules; ++p) stage.pool.push_back(p);
    t.routes.push_back({.module = m, .batch = kBatch, .rate_rps = 0, .stages = {stage}});
    t.modules.push_back(module);
    app.modules.push_back(m);
  }
  t.partitions.resize(partitions);
  t.applications.push_back(app);
  return t;
}

core::Topology pipeline(std::uint32_t stages, std::uint32_t partitions) {
  core::Topology t;
  core::RouteSpec route{.module = 0, .batch = kBatch, .rate_rps = 0, .stages = {}};
  for (std::uint32_t k = 0; k < stages; ++k) {
    core::StageSpec stage{.pool = {}, .latency = table(), .transfer_bytes = k + 1 < stages ? 500'000 : 0};
    for (std::uint32_t p = k; p < partitions; p += stages) stage.pool.push_back(p);
    route.stages.push_back(stage);
  }
  t.partitions.resize(partitions);
  for (std::uint32_t p = 0; p < partitions; ++p) t.partitions[p].host = p / 8;
  t.hosts.assign((partitions + 7) / 8, {.up_bytes_per_ns = 10, .down_bytes_per_ns = 10});
  t.routes.push_back(route);
  t.modules.push_back({.application = 0, .before = {}, .after = {}, .routes = {0}});
  t.applications.push_back({.slo_ns = stages * 60 * kMs, .rate_rps = 0, .modules = {0}});
  t.routes[0].rate_rps = rate_of(t);
  return t;
}

double rate_of(const core::Topology& t) {
  std::size_t min = SIZE_MAX;
  for (const core::RouteSpec& r : t.routes) {
    for (const core::StageSpec& s : r.stages) min = std::min(min, s.pool.size());
  }
  return 0.9 * static_cast<double>(min) * kBatch / (static_cast<double>(run_ns(kBatch)) / 1e9);
}

std::vector<TimeNs> arrivals(double rate, std::size_t requests) {
  return sim::poisson(rate, static_cast<TimeNs>(static_cast<double>(requests) / rate * 1e9), 1);
}

Cost drive(const core::Topology& t, const core::Policy& policy, const std::vector<core::StreamConfig>& streams,
           const std::vector<sim::Arrival>& arrivals,
           const std::function<void(core::Scheduler&, TimeNs)>& now_and_then) {
  const auto count = static_cast<std::uint32_t>(streams.size());
  core::Scheduler core(t, policy,
                       {.streams = count, .requests = 16384, .tasks = 32768, .batches = 2048, .actions = 32768});
  for (core::PartitionId p = 0; p < t.partitions.size(); ++p) core.partition_ready(0, p);
  std::vector<core::StreamId> ids;
  for (const core::StreamConfig& s : streams) ids.push_back(core.open_stream(0, s));
  std::vector<End> ends;
  ends.reserve(4096);
  std::uint64_t serial = 0;
  std::size_t next = 0;
  const std::uint64_t before = allocations;
  const double started = cpu_ns();
  while (next < arrivals.size() || !core.idle()) {
    const TimeNs arrival = next < arrivals.size() ? arrivals[next].at_ns : core::kNever;
    const TimeNs end = ends.empty() ? core::kNever : ends.front().at, timer = core.next_timer();
    const TimeNs now = std::min({arrival, end, timer});
    if (now == end) {
      std::pop_heap(ends.begin(), ends.end());
      const core::BatchHandle batch = ends.back().batch;
      ends.pop_back();
      (void)core.stage_finished(now, batch, 0, {});
    } else if (now == timer) {
      core.advance(now);
    } else {
      (void)core.submit(now, {.stream = ids[arrivals[next].stream], .token = next, .capture_ns = now});
      if (++next % 4096 == 0 && now_and_then) now_and_then(core, now);
    }
    for (core::Action a; core.next_action(a);) {
      if (a.kind != core::ActionKind::dispatch) continue;
      core.stage_started(now, a.batch, 0);
      ends.push_back({now + t.routes[a.route].stages[0].latency.p50_ns[a.tasks.size() - 1], ++serial, a.batch});
      std::push_heap(ends.begin(), ends.end());
    }
  }
  return {(cpu_ns() - started) / static_cast<double>(arrivals.size()), allocations - before,
          static_cast<double>(core.counters().total.of(Outcome::completed)) / static_cast<double>(arrivals.size())};
}

sim::Outcomes simulate(const core::Topology& t, const core::Policy& policy, const std::vector<TimeNs>& times) {
  sim::Scenario s;
  s.topology = t;
  s.policy = policy;
  s.arrivals = sim::to_stream(times);
  return sim::run(s);
}

}  // namespace leat::bench
