// PARD's study (its section 5): four pipelines, five traces, three places of the bottleneck; goodput, drop rate,
// invalid rate and drops by module of every preset and ablation, beside a clairvoyant bound. Everything runs in the
// simulator, on the daemon's core.
//
// Profiles are stated, not measured: d(b) = d1 (1 - f) + d1 f b. PARD's own plan: the largest common batch B with
// 2 x (sum of d(B) over the longest path) <= SLO. `leat` and `pard+` (PARD with the best of several plans) may use
// batches up to 32. A series' values last as replay_bin_ns() says, Poisson within them; --compress shortens that.
// Workers: the bottleneck module has `--workers`; its utilisation at the trace's mean rate and PARD's batch is
// `--load`; the others have at least 25 % more capacity; balanced: all as close as whole workers allow.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "bench/study.h"
#include "engine/papers/pard/worker_queues.h"
#include "engine/papers/presets.h"
#include "engine/sim/bound.h"
#include "engine/sim/for_each_job.h"
#include "engine/sim/simulator.h"

namespace {

using namespace leat;
using bench::Bar;
using core::TimeNs;

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
  const std::vector<ModuleProfile> video{
      {"person", 18, .30}, {"face", 10, .25}, {"expression", 8, .20}, {"eye", 9, .25}, {"pose", 22, .35}};
  return {
      {"tm", 400, {{"object", 20, .30}, {"face", 12, .25}, {"text", 15, .30}}, {{}, {0}, {1}}},
      {"lv", 500, video, {{}, {0}, {1}, {2}, {3}}},
      {"ga",
       600,
       {{"object", 16, .30}, {"kill", 10, .25}, {"alive", 9, .20}, {"health", 8, .22}, {"icon", 14, .30}},
       {{}, {0}, {1}, {2}, {3}}},
      // person, then face and pose beside each other, merged in expression, then eye
      {"da", 420, {video[0], video[1], video[4], video[2], video[3]}, {{}, {0}, {0}, {1, 2}, {3}}},
  };
}

// How the study names what it finds in a directory of rate series: files that begin with `first`, else with `second`.
struct SeriesSpec {
  const char *name, *first, *second;
};
constexpr SeriesSpec kSeries[] = {
    {"twitter-calm", "twitter_calm", "twitter_calm"},
    {"twitter-bursty", "twitter_bursty", "twitter_bursty"},
    {"twitter-verybursty", "twitter_verybursty", "twitter_verybursty"},
    {"wikipedia", "wiki_variable", "wiki"},
    {"azure", "azure_slopower", "azure_"},
};
struct Series {
  std::string name;
  sim::Trace trace;
  TimeNs bin_ns = 0;  // how long one value lasts in the replay; within it: Poisson
};

// One hour of a series is replayed as 10 s and one minute as 2.5 s; seconds, and arrivals one by one, as they are.
TimeNs replay_bin_ns(const sim::Trace& trace) {
  constexpr TimeNs kSecond = 1'000'000'000;
  return trace.bin_ns == 3600 * kSecond ? 10 * kSecond : trace.bin_ns == 60 * kSecond ? kSecond * 5 / 2 : trace.bin_ns;
}

// The study's five series where the directory has them, else every series in it.
Result<std::vector<Series>> find_series(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    if (entry.path().extension() == ".csv") files.push_back(entry.path().filename().string());
  }
  if (failed) return Error{directory + ": cannot be listed; give a directory of rate series with --traces"};
  std::sort(files.begin(), files.end());
  std::vector<std::pair<std::string, std::string>> chosen;  // name, file
  for (const SeriesSpec& spec : kSeries) {
    std::vector<std::string> found;
    for (const char* prefix : {spec.first, spec.second}) {
      for (const std::string& file : files) {
        if (found.size() < 32 && file.starts_with(prefix)) found.push_back(file);
      }
      if (!found.empty()) break;
    }
    for (const std::string& file : found)
      chosen.emplace_back(found.size() == 1 ? spec.name : file.substr(0, file.size() - 4), file);
  }
  const bool all = chosen.empty();
  if (all) {
    for (const std::string& file : files) chosen.emplace_back(file.substr(0, file.size() - 4), file);
  }
  std::vector<Series> list;
  for (const auto& [name, file] : chosen) {
    Result<sim::Trace> trace = sim::read_trace(directory + "/" + file);
    if (trace.ok()) {
      list.push_back({name, *trace, replay_bin_ns(*trace)});
    } else if (all) {
      std::fprintf(stderr, "pard_study: left out: %s\n", trace.error().c_str());
    } else {
      return Error{trace.error()};
    }
  }
  if (list.empty())
    return Error{directory + ": it has no rate series (*_1s_*.csv, *_1min_*.csv, *_1h_*.csv, *_arrivals_*.csv)"};
  return list;
}

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
  std::uint64_t seed = 1;
  std::size_t pipeline = 0, place = 0;
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
    for (std::uint32_t b = 1; b <= batch; ++b)
      stage.latency.p50_ns.push_back(static_cast<TimeNs>(run_ms(p.modules[i], b) * kMs));
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

// What every workload of one run shares.
struct Setting {
  std::uint32_t workers = 8;  // partitions of the bottleneck
  double load = 0.9, slo_scale = 1;
  TimeNs longest_ns = 0;
  std::int64_t compress = 1;
};

std::string name_of(std::size_t pipeline, const Series& series, std::size_t place) {
  return std::string(pipelines()[pipeline].name) + "/" + series.name + "/" + kPlaces[place];
}

Workload make_workload(std::size_t pipeline, const Series& series, std::size_t place, const Setting& setting,
                       std::uint64_t seed) {
  Pipeline p = pipelines()[pipeline];
  p.slo_ms *= setting.slo_scale;
  Workload w;
  w.pipeline = pipeline;
  w.place = place;
  w.seed = seed;
  w.name = name_of(pipeline, series, place);
  while (w.batch < kLargestBatch && 2 * path_ms(p, w.batch + 1) <= p.slo_ms) ++w.batch;
  const auto per_worker = [&](std::size_t i) { return w.batch / run_ms(p.modules[i], w.batch) * 1e3; };  // requests/s
  std::vector<std::uint32_t> workers(p.modules.size(), 1);
  const std::size_t neck = place == 1 ? 0 : p.modules.size() - 1;
  const double capacity = setting.workers * per_worker(neck);
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const double want = capacity / per_worker(i) * (place == 2 ? 1 : 1.25);
    workers[i] =
        i == neck ? setting.workers : std::max(1u, static_cast<std::uint32_t>(place == 2 ? want + 0.5 : want + 0.999));
  }
  double min = 1e18;
  for (std::size_t i = 0; i < workers.size(); ++i) min = std::min(min, workers[i] * per_worker(i));
  w.rate_rps = setting.load * min;
  w.pard = topology_of(p, workers, w.batch);
  w.free = topology_of(p, workers, kLargestBatch);
  w.times = sim::replay(series.trace, w.rate_rps, series.bin_ns / setting.compress, setting.longest_ns, seed);
  std::map<TimeNs, double> per_second;
  for (TimeNs t : w.times) ++per_second[t / 1'000'000'000];
  for (const auto& [second, n] : per_second) w.overloaded += n > min ? 1.0 / static_cast<double>(per_second.size()) : 0;
  w.bound_fixed = sim::clairvoyant_bound(w.pard, 0, w.times).requests;
  w.bound_free = sim::clairvoyant_bound(w.free, 0, w.times).requests;
  return w;
}

// One column of the study: a preset and the plans it runs on, of which the best counts, chosen with hindsight.
struct Contender {
  std::string name;
  core::Policy policy;
  std::vector<std::uint32_t> kappas;  // permille of the SLO; 0: PARD's own plan; none: the policy's own caps
};
// The chain with the batches that carry the highest rate of which the sum of d_k(b_k) over the longest path is at most
// kappa of the SLO; each module takes the smallest that carries it.
core::Topology with_batches(core::Topology t, std::uint32_t kappa_permille) {
  const core::ApplicationSpec& app = t.applications[0];
  const auto run = [&](core::ModuleId m, std::uint32_t n) { return t.routes[m].stages[0].latency.p50_ns[n - 1]; };
  const auto throughput = [&](core::ModuleId m, std::uint32_t n) {
    return n / static_cast<double>(run(m, n)) * static_cast<double>(t.routes[m].stages[0].pool.size());
  };
  std::array<TimeNs, core::kMaxModulesPerApplication> d{};
  std::vector<std::uint32_t> batch(app.modules.size()), best(app.modules.size(), 1);
  double best_rate = 0;
  for (core::ModuleId candidate : app.modules) {
    for (std::uint32_t b = 1; b <= t.routes[candidate].batch; ++b) {
      const double rate = throughput(candidate, b);
      if (rate <= best_rate) continue;
      bool fits = true;
      for (core::ModuleId m : app.modules) {
        std::uint32_t n = 1;
        while (n <= t.routes[m].batch && throughput(m, n) < rate * (1 - 1e-12)) ++n;
        fits = fits && n <= t.routes[m].batch;
        if (!fits) break;
        batch[m] = n;
        d[m] = run(m, n);
      }
      if (!fits || core::longest_path(t, app, d) > app.slo_ns / 1000 * kappa_permille) continue;
      best_rate = rate;
      best = batch;
    }
  }
  for (core::ModuleId m : app.modules) t.routes[m].batch = best[m];
  return t;
}

// Besides PARD's own, which is the column `pard`.
const std::vector<std::uint32_t> kOtherPlans{450, 520, 580, 650, 750};

// `which`: main, all, or presets with settings, and pard+, separated by commas.
Result<std::vector<Contender>> contenders(const std::string& which) {
  std::string words = which;
  if (which == "main" || which == "all") words = "leat,pard,pard+,nexus,clipper++,clipper++d,naive";
  if (which == "all")
    words +=
        ",nexus-local,pard-back,pard-sf,pard-oc,pard-split,pard-wcl,pard-lower,pard-upper,pard-fcfs,pard-hbf,pard-lbf,"
        "pard-instant";
  std::vector<Contender> list;
  std::istringstream stream(words);
  for (std::string word; std::getline(stream, word, ',');) {
    const bool plus = word == "pard+";
    const Result<core::NamedPolicy> named = core::read_policy(plus ? "pard" : word, papers::study_presets());
    if (!named.ok()) return Error{named.error()};
    const bool own_caps = named->policy.scheduler == nullptr;
    list.push_back({word, named->policy,
                    plus       ? kOtherPlans
                    : own_caps ? std::vector<std::uint32_t>{}
                               : std::vector<std::uint32_t>{0}});
  }
  if (list.empty()) return Error{"none given; use main, all, or names such as leat,pard,nexus"};
  return list;
}

sim::Outcomes simulate(const Workload& w, const Contender& c, std::uint32_t noise) {
  sim::Outcomes best;
  const auto consider = [&](const core::Topology& topology, const core::Policy& policy) {
    sim::Scenario s;
    s.topology = topology;
    s.policy = policy;
    s.arrivals = sim::to_stream(w.times);
    s.noise_permille = noise;
    s.seed = w.seed;
    sim::Outcomes out = sim::run(s);
    if (best.requests == 0 || out.goodput() > best.goodput()) best = std::move(out);
  };
  if (c.kappas.empty()) consider(w.free, c.policy);
  for (std::uint32_t kappa : c.kappas) consider(kappa == 0 ? w.pard : with_batches(w.free, kappa), c.policy);
  return best;
}

struct Cell {
  Workload workload;
  std::vector<sim::Outcomes> outcomes;

  [[nodiscard]] double bound() const { return static_cast<double>(std::max<std::uint64_t>(1, workload.bound_free)); }
  [[nodiscard]] double of_bound(std::size_t column) const {
    return static_cast<double>(outcomes[column].counters.total.of(Outcome::completed)) / bound();
  }
};

struct Table {
  std::vector<Cell> cells;
  std::vector<Contender> columns;

  [[nodiscard]] std::size_t column(const char* name) const {  // columns.size(): not run
    std::size_t i = 0;
    while (i < columns.size() && columns[i].name != name) ++i;
    return i;
  }
};

// The smallest (or largest) of `value` over the cells that `choose` takes.
template <class Choose, class Value>
Bar extreme(const Table& t, std::string name, double bar, bool at_least, Choose choose, Value value) {
  Bar out{std::move(name), at_least ? 1e9 : -1e9, bar, at_least, "no workload"};
  for (const Cell& c : t.cells) {
    if (!choose(c)) continue;
    const double v = value(c);
    if (at_least ? v >= out.value : v <= out.value) continue;
    out.value = v;
    out.where = c.workload.name + ", seed " + std::to_string(c.workload.seed);
  }
  return out;
}

std::vector<Bar> bars_of(const Table& t) {
  std::vector<Bar> bars;
  const std::size_t none = t.columns.size(), leat = t.column("leat"), pard = t.column("pard");
  const auto ratio = [](std::size_t a, std::size_t b) {
    return [a, b](const Cell& c) { return c.of_bound(a) / std::max(1e-9, c.of_bound(b)); };
  };
  const auto every = [](const Cell&) { return true; };
  if (leat != none) {
    double gap = 0;
    for (const Cell& c : t.cells) gap += 100 * (1 - c.of_bound(leat)) / static_cast<double>(t.cells.size());
    bars.push_back({"leat: mean gap to the bound, %", gap, 2, false, ""});
    bars.push_back(extreme(t, "leat: worst gap to the bound, %", 6, false, every,
                           [&](const Cell& c) { return 100 * (1 - c.of_bound(leat)); }));
    bars.push_back(extreme(t, "leat: worst invalid rate, %", 1, false, every,
                           [&](const Cell& c) { return 100 * c.outcomes[leat].invalid_rate(); }));
    for (const char* name : {"pard", "pard+", "nexus", "clipper++", "clipper++d"}) {
      const std::size_t other = t.column(name);
      if (other != none)
        bars.push_back(extreme(t, std::string("leat over ") + name + ", least ratio of goodput", 1, true, every,
                               ratio(leat, other)));
    }
  }
  if (pard == none) return bars;
  for (const char* name : {"nexus", "clipper++", "clipper++d"}) {
    const std::size_t other = t.column(name);
    if (other == none) continue;
    const auto downstream = [](const Cell& c) { return c.workload.place == 0; };
    bars.push_back(extreme(t, std::string("pard over ") + name + " where the bottleneck is downstream, least ratio", 1,
                           true, downstream, ratio(pard, other)));
  }
  return bars;
}

void print(const Table& t, const std::vector<Bar>& bars) {
  const std::vector<Contender>& columns = t.columns;
  std::printf("goodput in %% of the clairvoyant bound (any batch up to %u); invalid rate in %%\n%-34s %4s %6s %6s",
              kLargestBatch, "workload", "seed", "bound%", "UBfix%");
  for (const Contender& c : columns) std::printf(" %13s", c.name.c_str());
  std::printf("\n");
  std::vector<double> sum(columns.size(), 0), worst(columns.size(), 1), invalid(columns.size(), 0),
      goodput(columns.size(), 0);
  for (const Cell& cell : t.cells) {
    const Workload& w = cell.workload;
    const double n = static_cast<double>(w.times.size());
    std::printf("%-34s %4llu %6.1f %6.1f", w.name.c_str(), static_cast<unsigned long long>(w.seed),
                100.0 * static_cast<double>(w.bound_free) / n, 100.0 * static_cast<double>(w.bound_fixed) / n);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double part = cell.of_bound(c), wasted = cell.outcomes[c].invalid_rate();
      std::printf(" %6.2f (%4.1f)", 100 * part, 100 * wasted);
      sum[c] += part / static_cast<double>(t.cells.size());
      goodput[c] += cell.outcomes[c].goodput() / static_cast<double>(t.cells.size());
      worst[c] = std::min(worst[c], part);
      invalid[c] = std::max(invalid[c], wasted);
    }
    std::printf("\n");
  }
  const auto row = [](const char* name, const std::vector<double>& v) {
    std::printf("%-53s", name);
    for (double x : v) std::printf(" %6.2f       ", 100 * x);
    std::printf("\n");
  };
  row("mean of the bound, %", sum);
  row("worst of the bound, %", worst);
  row("mean goodput, % of requests", goodput);
  row("worst invalid rate, %", invalid);
  bench::print(bars);
}

Json to_json(const Table& t, const std::vector<Bar>& bars, const cli::Arguments& args) {
  Json root;
  root["seed"] = args.integer("seed");
  root["seeds"] = args.integer("seeds");
  root["load"] = args.real("load");
  root["noise_permille"] = args.integer("noise");
  root["compress"] = args.integer("compress");
  root["seconds"] = args.integer("seconds");
  root["unit"] = "goodput in requests/s";
  root["within_bins"] = "Poisson";
  root["workloads"] = Json::array();
  for (const Cell& cell : t.cells) {
    const Workload& w = cell.workload;
    const double seconds = static_cast<double>(w.times.empty() ? 1 : w.times.back()) / 1e9;
    Json row{{"name", w.name},
             {"seed", w.seed},
             {"overloaded", w.overloaded},
             {"rate_rps", static_cast<double>(w.times.size()) / seconds},
             {"pard_batch", w.batch},
             {"bound_goodput", static_cast<double>(w.bound_free) / seconds},
             {"bound_fixed_goodput", static_cast<double>(w.bound_fixed) / seconds}};
    for (std::size_t c = 0; c < t.columns.size(); ++c) {
      const sim::Outcomes& o = cell.outcomes[c];
      Json drops = Json::array();
      for (const core::ModuleCounters& m : o.counters.modules) drops.push_back(m.dropped_here);
      row["policies"][t.columns[c].name] = {{"goodput", o.goodput() * static_cast<double>(w.times.size()) / seconds},
                                            {"drop_rate", o.drop_rate()},
                                            {"invalid_rate", o.invalid_rate()},
                                            {"drops_by_module", drops},
                                            {"trace_hash", std::to_string(o.trace_hash)}};
    }
    root["workloads"].push_back(row);
  }
  root["bars"] = bench::to_json(bars);
  return root;
}

void run(Table& t, std::uint32_t noise, std::int64_t threads) {
  cli::Progress progress("pard_study", t.cells.size() * t.columns.size(), "columns");
  std::mutex lock;
  sim::for_each_job(t.cells.size() * t.columns.size(), static_cast<std::size_t>(threads), [&](std::size_t job) {
    Cell& cell = t.cells[job / t.columns.size()];
    cell.outcomes[job % t.columns.size()] = simulate(cell.workload, t.columns[job % t.columns.size()], noise);
    const std::lock_guard guard(lock);
    progress.add(1);
  });
  const std::size_t pard = t.column("pard"), plus = t.column("pard+");
  if (pard == t.columns.size() || plus == t.columns.size()) return;
  for (Cell& cell : t.cells) {  // PARD's own plan is one of those that pard+ chooses from
    if (cell.outcomes[pard].goodput() > cell.outcomes[plus].goodput()) cell.outcomes[plus] = cell.outcomes[pard];
  }
}

constexpr cli::Option kOptions[] = {
    {.name = "traces",
     .type = cli::Type::path,
     .value = "DIR",
     .fallback = "../shared/data/traces",
     .help = "directory of rate series"},
    {.name = "policies",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "main",
     .help = "main, all, or presets with settings (pard:order=lbf), and pard+, separated by commas"},
    {.name = "workloads",
     .type = cli::Type::text,
     .value = "TEXT",
     .fallback = "",
     .help = "only workloads whose name contains this"},
    cli::integer_option("seconds", "1800", 1, 100000, "at most this much of each trace"),
    cli::integer_option("compress", "1", 1, 100,
                        "replay the traces' rates N times faster (a shorter run; bursts are as much shorter)"),
    cli::real_option("load", "0.9", 0.05, 10, "mean utilisation of the bottleneck at PARD's batch", "X"),
    cli::integer_option("workers", "8", 1, 64, "partitions of the bottleneck module"),
    cli::real_option("slo-scale", "1", 0.1, 10, "tighter or looser SLOs", "X"),
    cli::integer_option("noise", "0", 0, 500, "standard deviation of execution times", "PERMILLE"),
    {.name = "seed", .type = cli::Type::integer, .value = "N", .fallback = "1", .help = "of arrivals and noise"},
    cli::integer_option("seeds", "1", 1, 100, "every workload with so many seeds, from --seed on"),
    cli::integer_option("threads", "2", 1, 64, "simulations at a time"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "pard_study",
    .summary = "PARD's study on its pipelines and traces, with every preset and a clairvoyant bound",
    .options = kOptions};

std::vector<Cell> make_cells(const std::vector<Series>& series, const cli::Arguments& args) {
  const Setting setting{.workers = static_cast<std::uint32_t>(args.integer("workers")),
                        .load = args.real("load"),
                        .slo_scale = args.real("slo-scale"),
                        .longest_ns = args.integer("seconds") * 1'000'000'000,
                        .compress = args.integer("compress")};
  std::vector<Cell> cells;
  for (const Series& one : series) {
    for (std::size_t p = 0; p < pipelines().size(); ++p) {
      for (std::size_t place = 0; place < std::size(kPlaces); ++place) {
        if (name_of(p, one, place).find(args.text("workloads")) == std::string::npos) continue;
        for (std::int64_t s = 0; s < args.integer("seeds"); ++s) {
          cells.push_back(
              {make_workload(p, one, place, setting, static_cast<std::uint64_t>(args.integer("seed") + s)), {}});
        }
      }
    }
  }
  std::stable_sort(cells.begin(), cells.end(),
                   [](const Cell& a, const Cell& b) { return a.workload.name < b.workload.name; });
  return cells;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const cli::JsonOutput json(args);
  if (!json.alone()) std::printf("seed %lld\n", static_cast<long long>(args.integer("seed")));
  Table table;
  Result<std::vector<Contender>> columns = contenders(args.text("policies"));
  if (!columns.ok()) return cli::fail(kCommand.name, "--policies: " + columns.error());
  table.columns = std::move(*columns);
  for (Contender& c : table.columns)
    papers::shorten_windows(c.policy, args.integer("compress"));  // what looks back, in the trace's time
  const Result<std::vector<Series>> series = find_series(args.text("traces"));
  if (!series.ok()) return cli::fail(kCommand.name, series.error());
  table.cells = make_cells(*series, args);
  if (table.cells.empty())
    return cli::fail(kCommand.name, "--workloads: no workload's name contains '" + args.text("workloads") +
                                        "'; names are like lv/azure/balanced");
  for (Cell& cell : table.cells) cell.outcomes.resize(table.columns.size());
  run(table, static_cast<std::uint32_t>(args.integer("noise")), args.integer("threads"));
  const std::vector<Bar> bars = bars_of(table);
  if (!json.alone()) print(table, bars);
  return json.write(to_json(table, bars, args).dump(1));
}
