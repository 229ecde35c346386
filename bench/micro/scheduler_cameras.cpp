#include <algorithm>
#include <array>
#include <chrono>

#include "bench/micro/scheduler_cases.h"
#include "engine/core/policy/policy_settings.h"
#include "tools/base/json/json.h"

namespace leat::bench {
namespace {

using core::TimeNs;

// Streams of three models and three classes on one partition, 90 % loaded, each with a frame every 33 ms; batches of up
// to four.
struct Weighing {
  std::vector<double> ns;  // of each event that found the partition free, or freed it
  std::uint64_t allocations = 0;
};

Weighing weigh(std::uint32_t streams, bool look_ahead, TimeNs length) {
  constexpr std::array<TimeNs, 3> kRun = {16'500'000, 4'400'000, 8'800'000};  // of three streams; more share as much
  constexpr std::array kClass = {core::Priority::protected_, core::Priority::high, core::Priority::normal};
  constexpr TimeNs kPeriod = 33 * kMs;
  core::Topology t;
  t.partitions.resize(1);
  for (core::ModuleId m = 0; m < kRun.size(); ++m) {
    core::StageSpec stage{.pool = {0}, .latency = {}};
    for (std::uint32_t b = 1; b <= 4; ++b) stage.latency.p50_ns.push_back(kRun[m] * 3 / streams * (b + 1) / 2);
    for (TimeNs ns : stage.latency.p50_ns) stage.latency.p99_ns.push_back(ns * 5 / 4);
    t.routes.push_back({.module = m, .batch = 4, .rate_rps = 0, .stages = {stage}});
    t.modules.push_back({.application = m, .before = {}, .after = {}, .routes = {m}});
    t.applications.push_back({.slo_ns = kPeriod, .rate_rps = 0, .modules = {m}});
  }
  core::Policy policy;
  if (!core::preset("leat", policy)) return {};
  policy.look_ahead = look_ahead;
  core::Scheduler core(t, policy, {.streams = 32, .requests = 1024, .tasks = 1024, .batches = 64, .actions = 4096});
  core.partition_ready(0, 0);
  std::vector<TimeNs> next;
  for (std::uint32_t i = 0; i < streams; ++i) {
    (void)core.open_stream(0, {.application = i % 3,
                               .max_age_ns = 2 * kPeriod,
                               .period_ns = kPeriod,
                               .supersede = core::Supersede::latest,
                               .priority = kClass[i % 3]});
    next.push_back(1 + kPeriod * ((i * 7) % streams) / streams);
  }
  Weighing out;
  out.ns.reserve(static_cast<std::size_t>(length / kMs) * streams);
  core::BatchHandle running;
  TimeNs end = core::kNever;
  std::uint64_t serial = 0;
  for (TimeNs now = 0; now < length;) {
    const auto arrival = std::min_element(next.begin(), next.end());
    now = std::min({*arrival, end, core.next_timer()});
    const bool free = end == core::kNever || now == end;
    const std::uint64_t before = allocations;
    const auto started = std::chrono::steady_clock::now();  // for so short a while the CPU clock costs too much
    if (now == end) {
      end = core::kNever;
      (void)core.stage_finished(now, running, 0, {});
    } else if (now == *arrival) {
      (void)core.submit(
          now, {.stream = static_cast<core::StreamId>(arrival - next.begin()), .token = serial++, .capture_ns = now});
      *arrival += kPeriod;
    } else {
      core.advance(now);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - started;
    out.allocations += allocations - before;
    if (free) out.ns.push_back(took.count());
    for (core::Action a; core.next_action(a);) {
      if (a.kind != core::ActionKind::dispatch) continue;
      running = a.batch;
      core.stage_started(now, a.batch, 0);
      const TimeNs planned = a.expected_end_ns - a.start_ns;
      end = now + planned * static_cast<TimeNs>(900 + serial * 37 % 200) / 1000;
    }
  }
  return out;
}

}  // namespace

Json look_ahead_cost(std::uint32_t streams, TimeNs length, std::int64_t repeats, std::uint64_t& in_core) {
  Json row;
  for (const bool look_ahead : {false, true}) {
    std::vector<double> min;  // the runs are the same, event by event
    for (std::int64_t i = 0; i < repeats; ++i) {
      const Weighing w = weigh(streams, look_ahead, length);
      in_core += w.allocations;
      if (min.empty()) min = w.ns;
      for (std::size_t k = 0; k < min.size(); ++k) min[k] = std::min(min[k], w.ns[k]);
    }
    double sum = 0;
    for (double ns : min) sum += ns;
    row[look_ahead ? "mean_ns" : "mean_ns_without"] = sum / static_cast<double>(min.size());
    if (look_ahead) row["worst_ns"] = *std::max_element(min.begin(), min.end());
  }
  return row;
}

Cost cameras(const core::Policy& policy, std::uint32_t groups, std::size_t requests) {
  constexpr std::uint32_t kStreams = 1000, kPartitions = 250;
  constexpr TimeNs kPeriod = 33 * kMs;
  core::Topology t;
  t.partitions.resize(kPartitions);
  for (std::uint32_t m = 0; m < 2 * groups; ++m) {
    core::StageSpec stage{.pool = {}, .latency = {}};
    for (std::uint32_t p = m / 2; p < kPartitions; p += groups) stage.pool.push_back(p);
    for (std::uint32_t b = 1; b <= 4; ++b) stage.latency.p50_ns.push_back((3 + 2 * b) * kMs);
    for (TimeNs ns : stage.latency.p50_ns) stage.latency.p99_ns.push_back(ns * 5 / 4);
    t.routes.push_back({.module = m, .batch = 4, .rate_rps = 0, .stages = {stage}});
    t.modules.push_back({.application = m, .before = {}, .after = {}, .routes = {m}});
    t.applications.push_back({.slo_ns = kPeriod, .rate_rps = 0, .modules = {m}});
  }
  std::vector<core::StreamConfig> streams;
  std::vector<sim::Arrival> arrivals;
  for (std::uint32_t i = 0; i < kStreams; ++i) {
    streams.push_back({.application = i % (2 * groups),
                       .max_age_ns = 2 * kPeriod,
                       .period_ns = kPeriod,
                       .supersede = core::Supersede::latest,
                       .priority = i % 2 == 0 ? core::Priority::protected_ : core::Priority::normal});
  }
  for (std::size_t n = 0; n < requests; ++n) {  // evenly spread, in an order that mixes the groups
    const auto i = static_cast<std::uint32_t>(n * 389 % kStreams);
    arrivals.push_back({.at_ns = 1 + static_cast<TimeNs>(n) * kPeriod / kStreams, .stream = i});
  }
  return drive(t, policy, streams, arrivals);
}

Swap swap(const core::Policy& policy) {
  constexpr std::uint32_t kStreams = 1000, kPartitions = 400;
  const core::Topology a = chain(5, kPartitions);
  core::Topology b = a;  // every partition one module further
  for (core::RouteSpec& r : b.routes) {
    for (core::PartitionId& p : r.stages[0].pool) p = (p + kPartitions / 5) % kPartitions;
  }
  std::vector<core::StreamConfig> streams(kStreams, core::StreamConfig{.depth = 64});
  std::vector<sim::Arrival> list = sim::to_stream(arrivals(rate_of(a), 60'000));
  for (std::size_t i = 0; i < list.size(); ++i) list[i].stream = static_cast<std::uint32_t>(i * 389 % kStreams);
  std::vector<double> prepare_ms, replace_us;
  (void)drive(a, policy, streams, list, [&](core::Scheduler& core, TimeNs now) {
    double started = cpu_ns();
    core::ReadyPlanPtr plan = core.prepare(prepare_ms.size() % 2 == 0 ? b : a);
    prepare_ms.push_back((cpu_ns() - started) / 1e6);
    started = cpu_ns();
    const bool taken = core.replace(now, plan);
    if (taken) replace_us.push_back((cpu_ns() - started) / 1e3);
    while (core.take_retired() != nullptr) {
    }
  });
  std::ranges::sort(prepare_ms);
  std::ranges::sort(replace_us);
  const Swap out{prepare_ms[prepare_ms.size() / 2], replace_us[replace_us.size() / 2], replace_us.back()};
  return out;
}

}  // namespace leat::bench
