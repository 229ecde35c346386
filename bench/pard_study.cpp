// PARD's study (its section 5): four pipelines, five traces, three places of the bottleneck; goodput, drop rate, invalid rate and
// drops by module of every preset and ablation, beside a clairvoyant bound. Everything runs in the simulator, on the daemon's core.
//
// Profiles are stated, not measured: d(b) = d1 (1 - f) + d1 f b. PARD's own plan: the largest common batch B with
// 2 x (sum of d(B) over the longest path) <= SLO. `leat` and `pard+` (PARD with the best of several plans) may use batches up to 32.
// Workers: the bottleneck module has `--workers`; its utilisation at the trace's mean rate and PARD's batch is `--load`; the
// others have at least 25 % more capacity; balanced: all as close as whole workers allow.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/sim/bound.h"
#include "engine/sim/simulator.h"
#include "tools/cli/command.h"
#include "tools/cli/progress.h"

namespace {

using namespace leat;
using core::TimeNs;
using Json = nlohmann::ordered_json;

constexpr double kMs = 1e6;
constexpr std::uint32_t kLargestBatch = 32;

struct ModuleProfile {
  const char* name;
  double d1_ms, f;
};
struct Pipeline {
  const char* name;
  double slo_ms;
  std::vector<ModuleProfile> modules;
  std::vector<std::vector<core::ModuleId>> before;
};

std::vector<Pipeline> pipelines() {
  const std::vector<ModuleProfile> video{{"person", 18, .30}, {"face", 10, .25}, {"expression", 8, .20}, {"eye", 9, .25}, {"pose", 22, .35}};
  return {
      {"tm", 400, {{"object", 20, .30}, {"face", 12, .25}, {"text", 15, .30}}, {{}, {0}, {1}}},
      {"lv", 500, video, {{}, {0}, {1}, {2}, {3}}},
      {"ga", 600, {{"object", 16, .30}, {"kill", 10, .25}, {"alive", 9, .20}, {"health", 8, .22}, {"icon", 14, .30}}, {{}, {0}, {1}, {2}, {3}}},
      // person, then face and pose beside each other, merged in expression, then eye
      {"da", 420, {video[0], video[1], video[4], video[2], video[3]}, {{}, {0}, {0}, {1, 2}, {3}}},
  };
}

struct TraceSpec {
  const char* name;
  const char* file;
  TimeNs bin_ns;  // how long one value lasts in the replay
};
constexpr TraceSpec kTraces[] = {
    {"twitter-calm", "twitter_calm_30min_1s_a.csv", 1'000'000'000},
    {"twitter-bursty", "twitter_bursty_30min_1s_a.csv", 1'000'000'000},
    {"twitter-verybursty", "twitter_verybursty_30min_1s_a.csv", 1'000'000'000},
    {"wikipedia", "wiki_variable_240h_1h_a.csv", 10'000'000'000},
    {"azure", "azure_slopower_720min_1min_a.csv", 2'500'000'000},
};
constexpr const char* kPlaces[] = {"downstream", "entry", "balanced"};

double run_ms(const ModuleProfile& m, double b) { return m.d1_ms * (1 - m.f) + m.d1_ms * m.f * b; }

double path_ms(const Pipeline& p, double b) {
  std::vector<double> end(p.modules.size(), 0);
  double longest = 0;
  for (std::size_t i = 0; i < end.size(); ++i) {
    for (core::ModuleId before : p.before[i]) end[i] = std::max(end[i], end[before]);
    end[i] += run_ms(p.modules[i], b);
    longest = std::max(longest, end[i]);
  }
  return longest;
}

struct Workload {
  std::string name;
  std::size_t pipeline = 0;
  core::Topology pard, free;  // batches up to B; up to 32
  double rate_rps = 0, overloaded = 0;
  std::uint32_t batch = 1;
  std::vector<TimeNs> times;
  std::uint64_t bound_fixed = 0, bound_free = 0;
};

core::Topology topology_of(const Pipeline& p, std::span<const std::uint32_t> workers, std::uint32_t batch) {
  core::Topology t;
  core::ApplicationSpec app{.slo_ns = static_cast<TimeNs>(p.slo_ms * kMs), .rate_rps = 0, .modules = {}};
  for (std::size_t i = 0; i < p.modules.size(); ++i) {
    const auto id = static_cast<core::ModuleId>(i);
    core::ModuleSpec module{.application = 0, .before = p.before[i], .after = {}, .routes = {id}};
    for (core::ModuleId before : module.before) t.modules[before].after.push_back(id);
    core::StageSpec stage;
    for (std::uint32_t b = 1; b <= batch; ++b) stage.latency.p50_ns.push_back(static_cast<TimeNs>(run_ms(p.modules[i], b) * kMs));
    stage.latency.p99_ns = stage.latency.p50_ns;
    for (std::uint32_t w = 0; w < workers[i]; ++w) {
      stage.pool.push_back(static_cast<core::PartitionId>(t.partitions.size()));
      t.partitions.push_back({});
    }
    t.routes.push_back({.module = id, .batch = batch, .rate_rps = 0, .stages = {stage}});
    t.modules.push_back(module);
    app.modules.push_back(id);
  }
  t.applications.push_back(app);
  return t;
}

Workload make_workload(std::size_t pipeline, const TraceSpec& spec, const sim::Trace& trace, std::size_t place, std::uint32_t neck_workers, double load, double slo_scale,
                       TimeNs longest_ns, std::uint64_t seed) {
  Pipeline p = pipelines()[pipeline];
  p.slo_ms *= slo_scale;
  Workload w;
  w.pipeline = pipeline;
  w.name = std::string(p.name) + "/" + spec.name + "/" + kPlaces[place];
  while (w.batch < kLargestBatch && 2 * path_ms(p, w.batch + 1) <= p.slo_ms) ++w.batch;
  const auto per_worker = [&](std::size_t i) { return w.batch / run_ms(p.modules[i], w.batch) * 1e3; };  // requests/s
  std::vector<std::uint32_t> workers(p.modules.size(), 1);
  const std::size_t neck = place == 1 ? 0 : p.modules.size() - 1;
  const double capacity = neck_workers * per_worker(neck);
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const double want = capacity / per_worker(i) * (place == 2 ? 1 : 1.25);
    workers[i] = i == neck ? neck_workers : std::max(1u, static_cast<std::uint32_t>(place == 2 ? want + 0.5 : want + 0.999));
  }
  double least = 1e18;
  for (std::size_t i = 0; i < workers.size(); ++i) least = std::min(least, workers[i] * per_worker(i));
  w.rate_rps = load * least;
  w.pard = topology_of(p, workers, w.batch);
  w.free = topology_of(p, workers, kLargestBatch);
  w.times = sim::replay(trace, w.rate_rps, spec.bin_ns, longest_ns, seed);
  std::map<TimeNs, double> per_second;
  for (TimeNs t : w.times) ++per_second[t / 1'000'000'000];
  for (const auto& [second, n] : per_second) w.overloaded += n > least ? 1.0 / static_cast<double>(per_second.size()) : 0;
  w.bound_fixed = sim::clairvoyant_bound(w.pard, 0, w.times).requests;
  w.bound_free = sim::clairvoyant_bound(w.free, 0, w.times).requests;
  return w;
}

// One column of the study: a preset and the plan it runs on. `pard+`: the best of PARD's plans, chosen with hindsight.
struct Contender {
  std::string name, preset;
  std::vector<std::uint32_t> kappas;  // 0: PARD's own plan
};

std::vector<Contender> contenders(const std::string& which) {
  std::vector<Contender> list{{"leat", "leat", {}},           {"pard", "pard", {0}},   {"pard+", "pard", {0, 450, 520, 580, 650, 750}},
                              {"nexus", "nexus", {0}},        {"clipper++", "clipper++", {0}},
                              {"clipper++d", "clipper++d", {0}}, {"naive", "naive", {0}}};
  if (which == "main") return list;
  for (const char* name : {"pard-back", "pard-sf", "pard-oc", "pard-split", "pard-wcl", "pard-lower", "pard-upper", "pard-fcfs", "pard-hbf",
                           "pard-lbf", "pard-instant"}) {
    list.push_back({name, name, {0}});
  }
  if (which == "all") return list;
  std::vector<Contender> some;
  for (Contender& c : list) {
    if (("," + which + ",").find("," + c.name + ",") != std::string::npos) some.push_back(c);
  }
  return some;
}

sim::Outcomes simulate(const Workload& w, const Contender& c, std::uint32_t noise, std::uint64_t seed) {
  sim::Outcomes best;
  const auto consider = [&](const core::Topology& topology, const core::Policy& policy) {
    sim::Scenario s;
    s.topology = topology;
    s.policy = policy;
    s.arrivals = sim::to_stream(w.times);
    s.noise_permille = noise;
    s.seed = seed;
    sim::Outcomes out = sim::run(s);
    if (best.requests == 0 || out.goodput() > best.goodput()) best = std::move(out);
  };
  core::Policy policy;
  if (!core::preset(c.preset, policy)) std::abort();
  if (c.kappas.empty()) consider(w.free, policy);
  for (std::uint32_t kappa : c.kappas) {
    policy.kappa_permille = kappa;
    consider(kappa == 0 ? w.pard : w.free, policy);
  }
  return best;
}

constexpr cli::Option kOptions[] = {
    {.name = "traces", .type = cli::Type::path, .value = "DIR", .fallback = "../shared/data/traces", .help = "directory of rate series"},
    {.name = "policies", .type = cli::Type::text, .value = "LIST", .fallback = "main", .help = "main, all, or names separated by commas"},
    {.name = "workloads", .type = cli::Type::text, .value = "TEXT", .fallback = "", .help = "only workloads whose name contains this"},
    {.name = "seconds", .type = cli::Type::integer, .value = "N", .fallback = "1800", .min = 1, .max = 100000, .help = "at most this much of each trace"},
    {.name = "compress", .type = cli::Type::integer, .value = "N", .fallback = "1", .min = 1, .max = 100, .help = "replay the traces' rates N times faster (a shorter run; bursts are as much shorter)"},
    {.name = "load", .type = cli::Type::real, .value = "X", .fallback = "0.9", .min = 0.05, .max = 10, .help = "mean utilisation of the bottleneck at PARD's batch"},
    {.name = "workers", .type = cli::Type::integer, .value = "N", .fallback = "8", .min = 1, .max = 64, .help = "partitions of the bottleneck module"},
    {.name = "slo-scale", .type = cli::Type::real, .value = "X", .fallback = "1", .min = 0.1, .max = 10, .help = "tighter or looser SLOs"},
    {.name = "noise", .type = cli::Type::integer, .value = "PERMILLE", .fallback = "0", .min = 0, .max = 500, .help = "standard deviation of execution times"},
    {.name = "seed", .type = cli::Type::integer, .value = "N", .fallback = "1", .help = "of arrivals and noise"},
    {.name = "threads", .type = cli::Type::integer, .value = "N", .fallback = "2", .min = 1, .max = 64, .help = "simulations at a time"},
    {.name = "json", .type = cli::Type::path, .value = "FILE", .help = "write the results"},
};
constexpr cli::Command kCommand = {
    .name = "pard_study", .summary = "PARD's study on its pipelines and traces, with every preset and a clairvoyant bound", .options = kOptions};

struct Cell {
  Workload workload;
  std::vector<sim::Outcomes> outcomes;
};

void print(const std::vector<Cell>& cells, const std::vector<Contender>& columns) {
  std::printf("goodput in %% of the clairvoyant bound (any batch up to %u); invalid rate in %%\n%-34s %6s %6s", kLargestBatch, "workload", "bound%", "UBfix%");
  for (const Contender& c : columns) std::printf(" %12s", c.name.c_str());
  std::printf("\n");
  std::vector<double> sum(columns.size(), 0), worst(columns.size(), 1), invalid(columns.size(), 0), goodput(columns.size(), 0);
  for (const Cell& cell : cells) {
    const Workload& w = cell.workload;
    const double n = static_cast<double>(w.times.size());
    std::printf("%-34s %6.1f %6.1f", w.name.c_str(), 100.0 * static_cast<double>(w.bound_free) / n, 100.0 * static_cast<double>(w.bound_fixed) / n);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const sim::Outcomes& o = cell.outcomes[c];
      const double part = o.goodput() * n / static_cast<double>(w.bound_free);
      std::printf(" %6.2f (%3.1f)", 100 * part, 100 * o.invalid_rate());
      sum[c] += part / static_cast<double>(cells.size());
      goodput[c] += o.goodput() / static_cast<double>(cells.size());
      worst[c] = std::min(worst[c], part);
      invalid[c] = std::max(invalid[c], o.invalid_rate());
    }
    std::printf("\n");
  }
  const auto row = [&](const char* name, const std::vector<double>& v) {
    std::printf("%-48s", name);
    for (double x : v) std::printf(" %6.2f      ", 100 * x);
    std::printf("\n");
  };
  row("mean of the bound, %", sum);
  row("worst of the bound, %", worst);
  row("mean goodput, % of requests", goodput);
  row("worst invalid rate, %", invalid);
}

Json to_json(const std::vector<Cell>& cells, const std::vector<Contender>& columns, const cli::Arguments& args) {
  Json root;
  root["seed"] = args.integer("seed");
  root["load"] = args.real("load");
  root["noise_permille"] = args.integer("noise");
  root["unit"] = "goodput in requests/s";
  for (const Cell& cell : cells) {
    const Workload& w = cell.workload;
    const double seconds = static_cast<double>(w.times.empty() ? 1 : w.times.back()) / 1e9;
    Json row{{"name", w.name}, {"overloaded", w.overloaded}, {"rate_rps", static_cast<double>(w.times.size()) / seconds}, {"pard_batch", w.batch},
             {"bound_goodput", static_cast<double>(w.bound_free) / seconds}, {"bound_fixed_goodput", static_cast<double>(w.bound_fixed) / seconds}};
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const sim::Outcomes& o = cell.outcomes[c];
      Json drops = Json::array();
      for (const core::ModuleCounters& m : o.counters.modules) drops.push_back(m.dropped_here);
      row["policies"][columns[c].name] = {{"goodput", o.goodput() * static_cast<double>(w.times.size()) / seconds}, {"drop_rate", o.drop_rate()},
                                          {"invalid_rate", o.invalid_rate()}, {"drops_by_module", drops}, {"trace_hash", std::to_string(o.trace_hash)}};
    }
    root["workloads"].push_back(row);
  }
  return root;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const auto seed = static_cast<std::uint64_t>(args.integer("seed"));
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  const std::vector<Contender> columns = contenders(args.text("policies"));
  if (columns.empty()) {
    std::fprintf(stderr, "pard_study: --policies: no such policy; use main, all, or names such as leat,pard,nexus\n");
    return cli::kBadInput;
  }
  std::vector<Cell> cells;
  for (const TraceSpec& spec : kTraces) {
    const Result<sim::Trace> trace = sim::read_trace(args.text("traces") + "/" + spec.file);
    if (!trace.ok()) {
      std::fprintf(stderr, "pard_study: %s\n", trace.error().c_str());
      return cli::kBadInput;
    }
    for (std::size_t p = 0; p < pipelines().size(); ++p) {
      for (std::size_t place = 0; place < 3; ++place) {
        const std::string name = std::string(pipelines()[p].name) + "/" + spec.name + "/" + kPlaces[place];
        if (name.find(args.text("workloads")) == std::string::npos) continue;
        cells.push_back({make_workload(p, {spec.name, spec.file, spec.bin_ns / args.integer("compress")}, *trace, place, static_cast<std::uint32_t>(args.integer("workers")), args.real("load"), args.real("slo-scale"), args.integer("seconds") * 1'000'000'000, seed), {}});
        cells.back().outcomes.resize(columns.size());
      }
    }
  }
  std::sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.workload.name < b.workload.name; });
  cli::Progress progress("pard_study", cells.size() * columns.size(), "runs");
  std::atomic<std::size_t> next{0};
  std::mutex lock;
  std::vector<std::thread> threads;
  for (std::int64_t i = 0; i < args.integer("threads"); ++i) {
    threads.emplace_back([&] {
      for (std::size_t job = next.fetch_add(1, std::memory_order_relaxed); job < cells.size() * columns.size();
           job = next.fetch_add(1, std::memory_order_relaxed)) {  // a counter only; join() publishes the results
        Cell& cell = cells[job / columns.size()];
        cell.outcomes[job % columns.size()] =
            simulate(cell.workload, columns[job % columns.size()], static_cast<std::uint32_t>(args.integer("noise")), seed);
        const std::lock_guard guard(lock);
        progress.add(1);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  print(cells, columns);
  if (args.given("json")) std::ofstream(args.text("json")) << to_json(cells, columns, args).dump(1) << "\n";
  return 0;
}
