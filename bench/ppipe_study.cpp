// PPipe's data plane (Kong et al., sections 7.2 and 7.4) on its reference plans: for every DNN the largest load factor
// at which at least 99 % of its requests are answered in time, averaged over the DNNs of every cluster and group.
//
// Load factor 1.0 is the rate that PPipe's own plan gives that DNN, for every plan and preset. All DNNs of a scenario
// run together and share servers and links; latencies are exact; arrivals are Poisson, or Gamma gaps with a stated
// coefficient of variation. A GPU cut into v shares is v partitions; a server's GPUs share one link each way.
//
// How the pools of a plan are laid on servers is the scheduler's freedom: `packed` fills server after server, pool
// after pool; `spread` looks for the servers where features wait least for their links, measured in the slack of their
// DNN.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/figures.h"
#include "bench/ppipe_profiles.h"
#include "engine/sim/simulator.h"
#include "planner/io/scenario_io.h"
#include "planner/profile_table.h"
#include "tools/cli/command.h"
#include "tools/cli/json_output.h"
#include "tools/cli/progress.h"
#include "tools/json/json.h"

namespace {

using namespace leat;
using bench::mean;
using core::TimeNs;

constexpr cli::Option kOptions[] = {
    {.name = "data",
     .type = cli::Type::path,
     .value = "DIR",
     .help = "scenarios.json, reference_plans.json and profiles, as PPipe's planning data"},
    {.name = "profiles",
     .type = cli::Type::path,
     .value = "DIR",
     .help = "in its place: measured models; what the plans carry by the planners alone"},
    {.name = "classes",
     .type = cli::Type::text,
     .value = "A,B",
     .fallback = "mps:100,mps:43",
     .help = "with --profiles: the faster and the slower class, 4 and 8 of them"},
    {.name = "family",
     .type = cli::Type::text,
     .value = "NAME",
     .fallback = "maf19",
     .help = "scenarios of that family"},
    {.name = "contenders",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "np,dart_r,ppipe,leat",
     .help = "comma-separated: np, dart_r, ppipe, ppipe-append, ppipe-spread, reactive, leat, leat-packed"},
    {.name = "seeds",
     .type = cli::Type::integer,
     .value = "N",
     .fallback = "3",
     .min = 1,
     .max = 100,
     .help = "paired seeds"},
    {.name = "grid",
     .type = cli::Type::real,
     .value = "STEP",
     .fallback = "0.05",
     .min = 0.005,
     .max = 0.5,
     .help = "step of the load factor"},
    {.name = "lowest",
     .type = cli::Type::real,
     .value = "FACTOR",
     .fallback = "0.3",
     .min = 0,
     .max = 1,
     .help = "a DNN below it counts as 0"},
    {.name = "seconds",
     .type = cli::Type::integer,
     .value = "N",
     .fallback = "30",
     .min = 1,
     .max = 3600,
     .help = "of arrivals in each run"},
    {.name = "cv",
     .type = cli::Type::real,
     .value = "X",
     .fallback = "1.4",
     .min = 0.1,
     .max = 10,
     .help = "coefficient of variation of the bursty arrivals"},
    {.name = "arrivals",
     .type = cli::Type::choice,
     .choices = "both|poisson|bursty",
     .fallback = "both",
     .help = "which arrivals"},
    {.name = "scenarios",
     .type = cli::Type::integer,
     .value = "N",
     .fallback = "1000",
     .min = 1,
     .max = 1000,
     .help = "only the first N of the family"},
    {.name = "threads",
     .type = cli::Type::integer,
     .value = "N",
     .fallback = "2",
     .min = 1,
     .max = 256,
     .help = "scenarios at a time"},
    {.name = "verbose", .help = "a line for every DNN"},
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "ppipe_study", .summary = "the load PPipe's plans carry under each scheduler", .options = kOptions};

struct Contender {
  const char* name;
  const char* plan;  // whose stored plan
  const char* preset;
  bool chains;  // every pipeline is n chains of one partition a stage (DART)
  bool spread;
};
constexpr Contender kContenders[] = {{"np", "np", "ppipe", false, false},
                                     {"dart_r", "dart_r", "ppipe", true, false},
                                     {"ppipe", "ppipe", "ppipe", false, false},
                                     {"reactive", "ppipe", "reactive", false, false},
                                     {"leat", "ppipe", "leat", false, true},
                                     {"leat-packed", "ppipe", "leat", false, false},
                                     {"ppipe-spread", "ppipe", "ppipe", false, true},
                                     {"ppipe-append", "ppipe", "ppipe-append", false, false}};

// One physical GPU that a plan uses, and what it puts on its server's links.
struct UsedGpu {
  double up = 0, down = 0;        // share of the link's time
  double up_ms = 0, down_ms = 0;  // the sum of (share x time of one transfer): what one finds in its way is half of it
  double weight = 0;              // share of a DNN's requests that pass here / slack in ms
  std::uint32_t server = 0;
};

// ---- from a stored plan to a topology ----

class Builder {
 public:
  Builder(const planner::Scenario& scenario, const Contender& contender) : scenario_(scenario), contender_(contender) {
    for (const planner::PooledDnn& dnn : scenario.problem.dnns) tables_.emplace_back(*dnn.profile);
    gpus_.resize(scenario.problem.types.size());
  }

  core::Topology build() {
    const auto& plans = scenario_.plans.at(contender_.plan);
    for (std::size_t d = 0; d < plans.size(); ++d) add_dnn(d, plans[d]);
    place_on_servers();
    const double speed = scenario_.problem.bandwidth_gbps / 8;
    topology_.hosts.assign(servers_, {.up_bytes_per_ns = speed, .down_bytes_per_ns = speed});
    for (std::size_t p = 0; p < topology_.partitions.size(); ++p)
      topology_.partitions[p].host = gpus_[gpu_of_[p].first][gpu_of_[p].second].server;
    for (core::RouteSpec& route : topology_.routes) {
      for (core::StageSpec& stage : route.stages) interleave(stage.pool);
    }
    return std::move(topology_);
  }

 private:
  void add_dnn(std::size_t d, const planner::PooledDnnPlan& plan) {
    core::ApplicationSpec app{.slo_ns = static_cast<TimeNs>(scenario_.slo_us[d] * 1000),
                              .rate_rps = plan.rps,
                              .modules = {static_cast<core::ModuleId>(d)}};
    topology_.applications.push_back(app);
    topology_.modules.push_back(
        {.application = static_cast<std::uint32_t>(d), .before = {}, .after = {}, .routes = {}});
    // Pools: (stage index, type) -> its shares, largest first, packed first-fit on whole GPUs; different pools share
    // none.
    std::vector<std::vector<std::vector<core::PartitionId>>> pools(plan.pipelines.size());
    for (std::size_t i = 0; i < plan.pipelines.size(); ++i) pools[i].resize(plan.pipelines[i].stages.size());
    for (std::uint32_t s = 0; s < planner::kMostStages; ++s) {
      for (std::uint32_t type = 0; type < gpus_.size(); ++type) {
        std::vector<std::pair<std::uint32_t, std::size_t>> by_share;
        for (std::size_t i = 0; i < plan.pipelines.size(); ++i) {
          if (s < plan.pipelines[i].stages.size() && plan.pipelines[i].stages[s].type == type)
            by_share.push_back({plan.pipelines[i].stages[s].share, i});
        }
        std::sort(by_share.begin(), by_share.end());
        std::vector<std::pair<double, std::uint32_t>> room;  // free fraction, GPU
        for (const auto& [share, i] : by_share) {
          for (std::uint64_t n = 0; n < plan.pipelines[i].stages[s].vgpus; ++n)
            pools[i][s].push_back(add_partition(d, plan.pipelines[i], s, type, share, room));
        }
      }
    }
    for (std::size_t i = 0; i < plan.pipelines.size(); ++i) add_routes(d, plan.pipelines[i], pools[i]);
  }

  core::PartitionId add_partition(std::size_t d, const planner::PooledPipeline& pipe, std::uint32_t s,
                                  std::uint32_t type, std::uint32_t share,
                                  std::vector<std::pair<double, std::uint32_t>>& room) {
    auto it = std::find_if(room.begin(), room.end(), [&](const auto& r) { return r.first >= 1.0 / share - 1e-9; });
    if (it == room.end()) {
      gpus_[type].push_back({});
      room.push_back({1.0, static_cast<std::uint32_t>(gpus_[type].size() - 1)});
      it = room.end() - 1;
    }
    it->first -= 1.0 / share;
    UsedGpu& gpu = gpus_[type][it->second];
    const auto& boundary = scenario_.problem.dnns[d].profile->boundary_bytes;
    double service_us = 0;
    for (const planner::PooledStage& stage : pipe.stages) service_us += stage.latency_us + stage.transfer_us;
    const double rps = pipe.rps / static_cast<double>(pipe.stages[s].vgpus);
    const auto load = [&](std::uint32_t sender, double& busy, double& ms) {
      const double one_ms = static_cast<double>(boundary[pipe.stages[sender].end_block - 1]) * 8 /
                            (scenario_.problem.bandwidth_gbps * 1e6);
      busy += rps * one_ms / 1000;
      ms += rps * one_ms / 1000 * one_ms;
    };
    if (s + 1 < pipe.stages.size()) load(s, gpu.up, gpu.up_ms);
    if (s > 0) load(s - 1, gpu.down, gpu.down_ms);
    gpu.weight +=
        rps / scenario_.plans.at(contender_.plan)[d].rps / std::max(1.0, (scenario_.slo_us[d] - service_us) / 1000);
    topology_.partitions.push_back({.size = 1.0 / share, .price = 1, .device = it->second, .host = 0});
    gpu_of_.push_back({type, it->second});
    return static_cast<core::PartitionId>(topology_.partitions.size() - 1);
  }

  void add_routes(std::size_t d, const planner::PooledPipeline& pipe,
                  const std::vector<std::vector<core::PartitionId>>& pools) {
    core::RouteSpec route{
        .module = static_cast<core::ModuleId>(d), .batch = pipe.batch, .rate_rps = pipe.rps, .stages = {}};
    const auto& boundary = scenario_.problem.dnns[d].profile->boundary_bytes;
    for (std::size_t s = 0; s < pipe.stages.size(); ++s) {
      const planner::PooledStage& stage = pipe.stages[s];
      const std::string& type = scenario_.problem.types[stage.type].name;
      core::StageSpec spec{.pool = pools[s],
                           .latency = {},
                           .transfer_bytes = s + 1 < pipe.stages.size() ? boundary[stage.end_block - 1] : 0};
      for (std::uint32_t b = 1; b <= tables_[d].largest_batch(type, stage.share); ++b) {
        spec.latency.p50_ns.push_back(tables_[d].p50_ns(type, stage.share, b, stage.first_block, stage.end_block));
      }
      spec.latency.p99_ns = spec.latency.p50_ns;
      route.stages.push_back(std::move(spec));
    }
    std::size_t chains = 1;
    if (contender_.chains && pools.size() > 1) {
      for (const auto& pool : pools) chains = std::max(chains, pool.size());
    }
    for (std::size_t c = 0; c < chains; ++c) {
      core::RouteSpec chain = route;
      if (chains > 1) {
        chain.rate_rps /= static_cast<double>(chains);
        for (std::size_t s = 0; s < pools.size(); ++s) chain.stages[s].pool = {pools[s][c % pools[s].size()]};
      }
      topology_.modules[d].routes.push_back(static_cast<core::RouteId>(topology_.routes.size()));
      topology_.routes.push_back(std::move(chain));
    }
  }

  // Neighbours in a pool stand on different servers: who takes partitions in turn does not fill one link after the
  // other.
  void interleave(std::vector<core::PartitionId>& pool) const {
    std::map<std::uint32_t, std::size_t> on_host;
    std::vector<std::pair<std::size_t, core::PartitionId>> order;
    for (core::PartitionId p : pool) order.push_back({on_host[topology_.partitions[p].host]++, p});
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < pool.size(); ++i) pool[i] = order[i].second;
  }

  void place_on_servers() {
    for (std::size_t type = 0; type < gpus_.size(); ++type) {
      const planner::GpuType& t = scenario_.problem.types[type];
      const auto per_server = static_cast<std::uint32_t>(t.gpus_per_server);
      const std::uint32_t servers = (t.count + per_server - 1) / per_server;
      std::vector<UsedGpu>& gpus = gpus_[type];
      if (contender_.spread) {
        spread(gpus, servers, per_server, t.count);
      } else {
        for (std::size_t g = 0; g < gpus.size(); ++g) gpus[g].server = static_cast<std::uint32_t>(g) / per_server;
      }
      for (UsedGpu& g : gpus) g.server += servers_;
      servers_ += servers;
    }
  }

  // Expected wait for a server's two links, in slack: a transfer finds, by chance, half of another GPU's in its way,
  // and a busy link's queue. What a GPU sends follows on itself and is never in its own way; what it receives may be.
  static double waiting(const std::vector<UsedGpu>& gpus, const std::vector<std::size_t>& here) {
    double up = 0, down = 0, up_ms = 0, down_ms = 0, sum = 0;
    for (std::size_t g : here) {
      up += gpus[g].up;
      down += gpus[g].down;
      up_ms += gpus[g].up_ms;
      down_ms += gpus[g].down_ms;
    }
    for (std::size_t g : here) {
      if (gpus[g].up > 0) sum += gpus[g].weight * (up_ms - gpus[g].up_ms) / std::max(0.02, 1 - up);
      if (gpus[g].down > 0) sum += gpus[g].weight * down_ms / std::max(0.02, 1 - down);
    }
    return sum / 2;
  }

  // Deals the GPUs out, then exchanges any two (or moves one into an empty place) while features wait less by it.
  static void spread(std::vector<UsedGpu>& gpus, std::uint32_t servers, std::uint32_t per_server, std::uint32_t count) {
    const std::size_t used = gpus.size();
    gpus.resize(count);  // empty places are GPUs that send nothing
    std::vector<std::vector<std::size_t>> here(servers);
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return gpus[a].weight * (gpus[a].up_ms + gpus[a].down_ms) > gpus[b].weight * (gpus[b].up_ms + gpus[b].down_ms);
    });
    for (std::size_t g : order) {
      std::uint32_t best = core::kNone;
      double least = 0;
      for (std::uint32_t i = 0; i < servers; ++i) {
        if (here[i].size() == std::min(per_server, count - i * per_server)) continue;
        const double before = waiting(gpus, here[i]);
        here[i].push_back(g);
        const double more = waiting(gpus, here[i]) - before;
        here[i].pop_back();
        if (best == core::kNone || more < least) {
          best = i;
          least = more;
        }
      }
      here[best].push_back(g);
    }
    for (bool better = true; better;) {
      better = false;
      for (std::uint32_t a = 0; a < servers; ++a) {
        for (std::uint32_t b = a + 1; b < servers; ++b) {
          for (std::size_t& x : here[a]) {
            for (std::size_t& y : here[b]) {
              const double before = waiting(gpus, here[a]) + waiting(gpus, here[b]);
              std::swap(x, y);
              if (waiting(gpus, here[a]) + waiting(gpus, here[b]) < before * (1 - 1e-9)) {
                better = true;
              } else {
                std::swap(x, y);
              }
            }
          }
        }
      }
    }
    for (std::uint32_t i = 0; i < servers; ++i) {
      for (std::size_t g : here[i]) gpus[g].server = i;
    }
    gpus.resize(used);
  }

  const planner::Scenario& scenario_;
  const Contender& contender_;
  std::vector<planner::ProfileTable> tables_;
  std::vector<std::vector<UsedGpu>> gpus_;                     // by type
  std::vector<std::pair<std::size_t, std::uint32_t>> gpu_of_;  // by partition: type, GPU
  std::uint32_t servers_ = 0;
  core::Topology topology_;
};

// ---- one scenario under one contender ----

struct Setting {
  double grid, lowest, cv;  // cv 1: Poisson
  TimeNs length_ns;
  std::uint64_t seeds;
};

struct Carried {  // of one DNN, per seed
  std::vector<double> factor, attainment_at_full;
};

std::vector<double> attainments(const core::Topology& topology, const core::Policy& policy,
                                const planner::Scenario& scenario, double factor, const Setting& setting,
                                std::uint64_t seed) {
  sim::Scenario run;
  run.topology = topology;
  run.policy = policy;
  run.seed = seed;
  run.streams.clear();
  std::vector<std::vector<sim::Arrival>> lists;
  const auto& full = scenario.plans.at("ppipe");
  for (std::uint32_t d = 0; d < topology.applications.size(); ++d) {
    run.streams.push_back({.application = d, .depth = 16384});
    const std::uint64_t key = seed * 1000 + d * 17;
    const double rate = full[d].rps * factor;
    lists.push_back(sim::to_stream(setting.cv == 1 ? sim::poisson(rate, setting.length_ns, key)
                                                   : sim::gamma(rate, setting.cv, setting.length_ns, key),
                                   d));
  }
  run.arrivals = sim::merged(lists);
  const sim::Outcomes out = sim::run(run);
  std::vector<double> in_time;
  for (std::uint32_t d = 0; d < topology.applications.size(); ++d) {
    const core::RequestCounters& c = out.counters.streams[d];
    in_time.push_back(
        c.submitted == 0 ? 1 : static_cast<double>(c.of(Outcome::completed)) / static_cast<double>(c.submitted));
  }
  return in_time;
}

std::vector<Carried> carried(const planner::Scenario& scenario, const Contender& contender, const Setting& setting) {
  const core::Topology topology = Builder(scenario, contender).build();
  if (const std::string text = topology.problem(); !text.empty()) {
    std::fprintf(stderr, "ppipe_study: %s, %s: %s\n", scenario.id.c_str(), contender.name, text.c_str());
    std::exit(cli::kBadInput);
  }
  core::Policy policy;
  if (!core::preset(contender.preset, policy)) std::abort();
  std::vector<Carried> out(topology.applications.size());
  for (std::uint64_t seed = 1; seed <= setting.seeds; ++seed) {
    std::vector<double> best(out.size(), 0);
    for (int step = 0;; ++step) {
      const double factor = 1 - step * setting.grid;
      if (factor < setting.lowest - 1e-9) break;
      const std::vector<double> in_time = attainments(topology, policy, scenario, factor, setting, seed);
      bool all = true;
      for (std::size_t d = 0; d < out.size(); ++d) {
        if (step == 0) out[d].attainment_at_full.push_back(in_time[d]);
        if (best[d] == 0 && in_time[d] >= 0.99) best[d] = factor;
        all = all && best[d] > 0;
      }
      if (all) break;
    }
    for (std::size_t d = 0; d < out.size(); ++d) out[d].factor.push_back(best[d]);
  }
  return out;
}

// What the figures are measured against: PPipe's own (section 7) for its authors' rules, and bars for ours.
struct Bar {
  const char *family, *load, *contender;
  double grid;  // of the study; 0: any
  double least, most;
  const char* meaning;
};
constexpr Bar kBars[] = {
    {"maf19", "poisson", "ppipe", 0.05, 0.945, 0.985, "within .02 of the paper's .965"},
    {"maf19", "poisson", "leat", 0.05, 0.970, 1, "at least .970"},
    {"maf19", "bursty", "leat", 0.05, 0.92, 1, "at least .920"},
    {"maf19", "poisson", "leat", 0.01, 0.983, 1, "at least .983 on the fine grid"},
    {"maf19", "bursty", "leat", 0.01, 0.928, 1, "at least .928 on the fine grid"},
    {"ablation", "poisson", "reactive", 0, 0.68, 0.74, "within .03 of the paper's .71"},
};

Json bars(const Json& figures, const std::string& family, double grid) {
  Json out = Json::array();
  const auto judge = [&](const std::string& name, const std::string& meaning, double value, bool reached) {
    out.push_back({{"figure", name}, {"bar", meaning}, {"value", value}, {"reached", reached}});
  };
  for (const Bar& bar : kBars) {
    if (family != bar.family || (bar.grid > 0 && std::abs(bar.grid - grid) > 1e-9)) continue;
    if (!figures.contains(bar.load) || !figures[bar.load].contains(bar.contender)) continue;
    const auto value = figures[bar.load][bar.contender].get<double>();
    judge(std::string(bar.load) + "." + bar.contender, bar.meaning, value, value >= bar.least && value <= bar.most);
  }
  for (const auto& [load, of] : figures.items()) {
    if (!of.contains("leat") || !of.contains("ppipe")) continue;
    const double more = of["leat"].get<double>() - of["ppipe"].get<double>();
    judge(load + ".leat - ppipe", "above it on the same seeds", more, more > 0);
  }
  return out;
}

}  // namespace

namespace {

int plan_profiles(const cli::Arguments& args) {
  const std::string classes = args.text("classes");
  const std::size_t comma = classes.find(',');
  if (comma == std::string::npos) return cli::fail("ppipe_study", "--classes: write two classes, A,B");
  const auto plans = bench::plans_of_profiles(
      args.text("profiles"),
      {.fast_class = classes.substr(0, comma), .slow_class = classes.substr(comma + 1), .fast = 4, .slow = 8});
  if (!plans) return cli::fail("ppipe_study", plans.error());
  const cli::JsonOutput output(args);
  if (const int failed = output.write(plans->dump(1)); failed != 0 || output.alone()) return failed;
  for (const auto& [name, plan] : plans->items())
    std::printf("%-8s %10.1f requests/s of each model, gap %.2g\n", name.c_str(), plan.at("rps").get<double>(),
                plan.at("gap").get<double>());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  if (args.given("data") == args.given("profiles"))
    return cli::fail("ppipe_study", "give one of --data and --profiles");
  if (args.given("profiles")) return plan_profiles(args);
  const auto set = planner::read_scenarios(args.text("data"));
  if (!set) return cli::fail("ppipe_study", set.error());
  std::vector<const planner::Scenario*> scenarios;
  for (const planner::Scenario& s : set->scenarios) {
    if (s.family == args.text("family") && s.plans.count("ppipe") != 0 &&
        static_cast<std::int64_t>(scenarios.size()) < args.integer("scenarios"))
      scenarios.push_back(&s);
  }
  if (scenarios.empty())
    return cli::fail("ppipe_study",
                     "no scenario of family '" + args.text("family") + "' with a stored plan; see --family");
  std::vector<const Contender*> contenders;
  std::string list = args.text("contenders") + ",";
  for (std::size_t from = 0, to = list.find(','); to != std::string::npos; from = to + 1, to = list.find(',', from)) {
    const std::string name = list.substr(from, to - from);
    const auto* it = std::find_if(std::begin(kContenders), std::end(kContenders),
                                  [&](const Contender& c) { return name == c.name; });
    if (it == std::end(kContenders))
      return cli::fail("ppipe_study",
                       "unknown contender '" + name + "'; one of np, dart_r, ppipe, reactive, leat, leat-packed");
    contenders.push_back(it);
  }
  struct Load {
    const char* name;
    double cv;
  };
  std::vector<Load> loads;
  if (args.text("arrivals") != "bursty") loads.push_back({"poisson", 1});
  if (args.text("arrivals") != "poisson") loads.push_back({"bursty", args.real("cv")});

  struct Job {
    std::size_t load, contender, scenario;
    std::vector<Carried> result;
  };
  std::vector<Job> jobs;
  for (std::size_t l = 0; l < loads.size(); ++l) {
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      for (std::size_t s = 0; s < scenarios.size(); ++s) jobs.push_back({l, c, s, {}});
    }
  }
  {
    cli::Progress progress("ppipe study", jobs.size(), "runs");
    std::mutex mutex;
    bench::for_each_job(jobs.size(), static_cast<std::size_t>(args.integer("threads")), [&](std::size_t i) {
      const Setting setting{args.real("grid"), args.real("lowest"), loads[jobs[i].load].cv,
                            args.integer("seconds") * 1'000'000'000, static_cast<std::uint64_t>(args.integer("seeds"))};
      jobs[i].result = carried(*scenarios[jobs[i].scenario], *contenders[jobs[i].contender], setting);
      const std::lock_guard lock(mutex);
      progress.add(1);
    });
  }

  const cli::JsonOutput output(args);
  Json json = {{"family", args.text("family")},  {"scenarios", scenarios.size()},
               {"seeds", args.integer("seeds")}, {"grid", args.real("grid")},
               {"cv", args.real("cv")},          {"load_1.0", "the rate of PPipe's own plan"}};
  for (std::size_t l = 0; l < loads.size(); ++l) {
    if (!output.alone())
      std::printf(
          "%s, CV %.1f: mean largest load factor with >= 99 %% in time (spread over seeds), attainment at load 1.0\n",
          loads[l].name, loads[l].cv);
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      std::vector<double> at_full;
      std::vector<std::vector<double>> by_seed(static_cast<std::size_t>(args.integer("seeds")));
      for (const Job& job : jobs) {
        if (job.load != l || job.contender != c) continue;
        for (std::size_t d = 0; d < job.result.size(); ++d) {
          for (std::size_t s = 0; s < by_seed.size(); ++s) by_seed[s].push_back(job.result[d].factor[s]);
          at_full.push_back(mean(job.result[d].attainment_at_full));
          if (args.flag("verbose") && !output.alone()) {
            std::printf("    %-22s %-32.32s %.3f  at 1.0: %.4f\n", scenarios[job.scenario]->id.c_str(),
                        scenarios[job.scenario]->problem.dnns[d].profile->model.c_str(), mean(job.result[d].factor),
                        at_full.back());
          }
        }
      }
      std::vector<double> means;
      for (const auto& v : by_seed) means.push_back(mean(v));
      const auto [low, high] = std::minmax_element(means.begin(), means.end());
      json["mean_load_factor"][loads[l].name][contenders[c]->name] = mean(means);
      json["spread"][loads[l].name][contenders[c]->name] = {*low, *high};
      json["attainment_at_full_load"][loads[l].name][contenders[c]->name] = mean(at_full);
      if (!output.alone())
        std::printf("  %-12s %.4f  (%.4f to %.4f)  %.4f\n", contenders[c]->name, mean(means), *low, *high,
                    mean(at_full));
    }
  }
  json["bars"] = bars(json["mean_load_factor"], args.text("family"), args.real("grid"));
  if (!output.alone()) {
    for (const auto& bar : json["bars"]) {
      std::printf("bar %-32s %-32s %.4f  %s\n", bar["figure"].get<std::string>().c_str(),
                  bar["bar"].get<std::string>().c_str(), bar["value"].get<double>(),
                  bar["reached"].get<bool>() ? "reached" : "NOT reached");
    }
  }
  return output.write(json.dump(1));
}
