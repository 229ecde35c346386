// What a decision costs: the scheduler core under a driver that does nothing but move a clock, at 90 % load, for every
// preset. ns per request: submission, drop decision, placement, batching, dispatch, end of stage and answer, driver
// included; with five modules that is five decisions a request. Allocations inside the core after set-up are counted by
// replacing operator new. Look-ahead, which weighs moves where periodic streams share a partition, is timed decision by
// decision for 3, 8 and 24 streams. Reservations need links and starts in the future, so `ppipe` and `reactive` run
// inside the simulator, whose cost is in the figure.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>

#include "engine/core/policy_words.h"
#include "engine/sim/simulator.h"
#include "tools/cli/command.h"

namespace {
std::uint64_t allocations = 0;  // this program has one thread
}

[[gnu::noinline]] void* operator new(std::size_t n) {
  ++allocations;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

using namespace leat;
using core::TimeNs;
using Json = nlohmann::ordered_json;

constexpr std::uint32_t kBatch = 8;
constexpr TimeNs kMs = 1'000'000;
TimeNs run_ns(std::uint32_t b) { return 5 * kMs + b * kMs; }

core::Topology chain(std::uint32_t modules, std::uint32_t partitions) {
  core::Topology t;
  core::ApplicationSpec app{.slo_ns = modules * 60 * kMs, .rate_rps = 0, .modules = {}};
  for (core::ModuleId m = 0; m < modules; ++m) {
    core::ModuleSpec module{.application = 0, .before = {}, .after = {}, .routes = {m}};
    if (m > 0) module.before = {m - 1};
    if (m + 1 < modules) module.after = {m + 1};
    core::StageSpec stage;
    for (std::uint32_t b = 1; b <= kBatch; ++b) stage.latency.p50_ns.push_back(run_ns(b));
    stage.latency.p99_ns = stage.latency.p50_ns;
    for (std::uint32_t p = partitions * m / modules; p < partitions * (m + 1) / modules; ++p) stage.pool.push_back(p);
    t.routes.push_back({.module = m, .batch = kBatch, .rate_rps = 0, .stages = {stage}});
    t.modules.push_back(module);
    app.modules.push_back(m);
  }
  t.partitions.resize(partitions);
  t.applications.push_back(app);
  return t;
}

double rate_of(const core::Topology& t) {  // requests/s at 90 % of the smallest pool
  std::size_t least = SIZE_MAX;
  for (const core::RouteSpec& r : t.routes) least = std::min(least, r.stages[0].pool.size());
  return 0.9 * static_cast<double>(least) * kBatch / (static_cast<double>(run_ns(kBatch)) / 1e9);
}

constexpr core::Limits kLimits{.streams = 4, .requests = 16384, .tasks = 32768, .batches = 2048, .actions = 32768};

struct Cost {
  double ns_per_request = 0;
  std::uint64_t allocations = 0;
  double goodput = 0;
};

struct End {
  TimeNs at;
  std::uint64_t serial;
  core::BatchHandle batch;
  bool operator<(const End& o) const { return at != o.at ? at > o.at : serial > o.serial; }
};

Cost drive(const core::Topology& t, const core::Policy& policy, const std::vector<TimeNs>& times) {
  core::Scheduler core(t, policy, kLimits);
  for (core::PartitionId p = 0; p < t.partitions.size(); ++p) core.partition_ready(0, p);
  const core::StreamId stream = core.open_stream(0, {.depth = 16384});
  std::vector<End> ends;
  ends.reserve(4096);
  std::uint64_t serial = 0;
  std::size_t next = 0;
  const std::uint64_t before = allocations;
  const auto started = std::chrono::steady_clock::now();
  while (next < times.size() || !core.idle()) {
    const TimeNs arrival = next < times.size() ? times[next] : core::kNever;
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
      (void)core.submit(now, {.stream = stream, .token = next++, .capture_ns = now});
    }
    for (core::Action a; core.next_action(a);) {
      if (a.kind != core::ActionKind::dispatch) continue;
      core.stage_started(now, a.batch, 0);
      ends.push_back({now + run_ns(static_cast<std::uint32_t>(a.tasks.size())), ++serial, a.batch});
      std::push_heap(ends.begin(), ends.end());
    }
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - started;
  return {took.count() / static_cast<double>(times.size()), allocations - before,
          static_cast<double>(core.counters().total.of(Outcome::completed)) / static_cast<double>(times.size())};
}

sim::Outcomes simulate(const core::Topology& t, const core::Policy& policy, const std::vector<TimeNs>& times) {
  sim::Scenario s;
  s.topology = t;
  s.policy = policy;
  s.arrivals = sim::to_stream(times);
  return sim::run(s);
}

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
    const auto started = std::chrono::steady_clock::now();
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

Json look_ahead_cost(std::uint32_t streams, TimeNs length, std::int64_t repeats, std::uint64_t& in_core) {
  Json row;
  for (const bool look_ahead : {false, true}) {
    std::vector<double> least;  // the runs are the same, event by event
    for (std::int64_t i = 0; i < repeats; ++i) {
      const Weighing w = weigh(streams, look_ahead, length);
      in_core += w.allocations;
      if (least.empty()) least = w.ns;
      for (std::size_t k = 0; k < least.size(); ++k) least[k] = std::min(least[k], w.ns[k]);
    }
    double sum = 0;
    for (double ns : least) sum += ns;
    row[look_ahead ? "mean_ns" : "mean_ns_without"] = sum / static_cast<double>(least.size());
    if (look_ahead) row["worst_ns"] = *std::max_element(least.begin(), least.end());
  }
  return row;
}

constexpr cli::Option kOptions[] = {
    {.name = "requests",
     .type = cli::Type::integer,
     .value = "N",
     .fallback = "100000",
     .min = 100,
     .max = 100000000,
     .help = "per measurement"},
    {.name = "presets",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "leat,pard,elsa,ppipe,harpagon,reactive,nexus,clipper++,naive,fifs",
     .help = "names separated by commas"},
    {.name = "repeats",
     .type = cli::Type::integer,
     .value = "N",
     .fallback = "3",
     .min = 1,
     .max = 100,
     .help = "the least time of so many counts"},
    {.name = "json", .type = cli::Type::flag, .help = "print JSON instead of a table"},
};
constexpr cli::Command kCommand = {
    .name = "scheduler", .summary = "cost of a scheduling decision and of the simulator", .options = kOptions};

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const auto requests = static_cast<std::size_t>(args.integer("requests"));
  Json root{{"requests", requests}, {"batch", kBatch}};
  std::uint64_t in_core = 0;
  if (!args.flag("json"))
    std::printf("ns per request (1 module, then 5 modules) by partitions\n%-12s %17s %17s %17s %17s\n", "preset", "8",
                "56", "100", "400");
  const Result<std::vector<core::NamedPolicy>> presets = core::read_policies(args.text("presets"));
  if (!presets.ok()) return cli::fail(kCommand.name, "--presets: " + presets.error());
  for (const auto& [name, policy] : *presets) {
    if (!args.flag("json")) std::printf("%-12s", name.c_str());
    for (const std::uint32_t partitions : {8u, 56u, 100u, 400u}) {
      double cost[2] = {1e18, 1e18};
      for (const std::uint32_t modules : {1u, 5u}) {
        const core::Topology t = chain(modules, partitions);
        const double rate = rate_of(t);
        const std::vector<TimeNs> times =
            sim::poisson(rate, static_cast<TimeNs>(static_cast<double>(requests) / rate * 1e9), 1);
        for (std::int64_t i = 0; i < args.integer("repeats"); ++i) {
          double ns = 0;
          if (policy.place == core::Place::reservation || policy.batch == core::Batching::reactive) {
            ns = simulate(t, policy, times).wall_seconds * 1e9 / static_cast<double>(times.size());
          } else {
            const Cost c = drive(t, policy, times);
            ns = c.ns_per_request;
            in_core += c.allocations;
          }
          cost[modules == 5] = std::min(cost[modules == 5], ns);
        }
        root[modules == 1 ? "ns_per_request" : "ns_per_request_5_modules"][name][std::to_string(partitions)] =
            cost[modules == 5];
      }
      if (!args.flag("json")) std::printf(" %8.0f %8.0f", cost[0], cost[1]);
    }
    if (!args.flag("json")) std::printf("\n");
  }
  core::Policy policy;
  if (!core::preset("leat", policy)) return 1;
  const core::Topology t = chain(5, 64);
  const std::vector<TimeNs> times =
      sim::poisson(rate_of(t), static_cast<TimeNs>(static_cast<double>(requests) * 5 / rate_of(t) * 1e9), 1);
  double best = 0;
  for (std::int64_t i = 0; i < args.integer("repeats"); ++i)
    best = std::max(best, static_cast<double>(times.size()) / simulate(t, policy, times).wall_seconds);
  root["simulated_requests_per_second"] = best;
  if (!args.flag("json")) std::printf("look-ahead, ns per decision: mean, worst; mean of the same events without it\n");
  for (const std::uint32_t streams : {3u, 8u, 24u}) {
    const TimeNs length = std::max<TimeNs>(static_cast<TimeNs>(requests) * 33 * kMs / streams / 10, 500 * kMs);
    const Json row = look_ahead_cost(streams, length, args.integer("repeats"), in_core);
    if (!args.flag("json")) {
      std::printf("  %2u streams %10.0f %10.0f %10.0f\n", streams, row["mean_ns"].get<double>(),
                  row["worst_ns"].get<double>(), row["mean_ns_without"].get<double>());
    }
    root["look_ahead"][std::to_string(streams)] = row;
  }
  root["allocations_after_setup"] = in_core;
  if (args.flag("json")) {
    std::printf("%s\n", root.dump(1).c_str());
  } else {
    std::printf(
        "simulator, leat, 5 modules on 64 partitions: %.0f requests/s of wall time\nallocations after set-up: %llu\n",
        best, static_cast<unsigned long long>(in_core));
  }
  return 0;
}
