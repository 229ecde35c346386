// leat-plan mig: which MIG instances the mix of request sizes wants, the commands that would make them, and what they
// would stop. It changes nothing, but for --here --apply, where leat-gpu makes the difference.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "planner/child/solver_process.h"
#include "planner/io/profile_io.h"
#include "planner/mig/analytic.h"
#include "planner/mig/change.h"
#include "planner/mig/measured_sizes.h"
#include "planner/mig/paris.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"
#include "tools/plan/plan_options.h"

namespace leat::planner {
namespace {

constexpr cli::Command kCommand = {
    .name = "leat-plan mig",
    .summary = "MIG instances for a mix of request sizes (PARIS); changes nothing without --apply",
    .options = kMigOptions,
    .see_also = "leat-gpu(1)",
    .exit_status = "0: a layout; 1: no layout meets the SLA, or --apply ended in the middle; 2: bad input, or refused"};

bool parse_batches(const std::string& text, std::vector<double>& share) {
  double sum = 0;
  for (const char* at = text.c_str(); *at != 0;) {
    char* end = nullptr;
    const long batch = std::strtol(at, &end, 10);
    if (end == at || *end != ':' || batch < 1 || batch > 1024) return false;
    at = end + 1;
    const double p = std::strtod(at, &end);
    if (end == at || !(p >= 0) || (*end != 0 && *end != ',')) return false;
    if (share.size() < static_cast<std::size_t>(batch)) share.resize(static_cast<std::size_t>(batch));
    share[static_cast<std::size_t>(batch) - 1] += p;
    sum += p;
    at = *end == ',' ? end + 1 : end;
  }
  if (!(sum > 0)) return false;
  for (double& p : share) p /= sum;
  return true;
}

bool parse_lognormal(const std::string& text, std::vector<double>& share) {
  double mu = 0, sigma = 0;
  unsigned max = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%lf,%lf,%u%c", &mu, &sigma, &max, &rest) != 3 || !(sigma > 0) || max < 1 || max > 1024)
    return false;
  share = lognormal_batches(mu, sigma, max);
  return true;
}

constexpr std::chrono::milliseconds kToolLimit{300'000};  // a driver takes seconds for an instance

struct Question {
  MigHost host;
  std::vector<std::uint32_t> profiles;
  std::vector<double> compute;
  ParisProblem problem;
  SizeDemand demand;
};

Status fill_demand(const cli::Arguments& args, Question& q) {
  std::vector<double> share;
  if (args.given("batches") ? !parse_batches(args.text("batches"), share)
                            : !parse_lognormal(args.text("lognormal"), share))
    return Error{args.given("batches") ? "--batches: write BATCH:SHARE,BATCH:SHARE,... with batches of 1 to 1024"
                                       : "--lognormal: write MU,SIGMA,MAX"};
  const double total = q.host.geometry.compute_slices * static_cast<double>(q.host.gpus.size());
  if (args.given("profile")) {
    const auto profile = read_profile(args.text("profile"));
    if (!profile) return Error{profile.error()};
    q.demand.batch_share = share;
    q.problem.batch_share = share;
    q.problem.total_compute = total;
    for (std::size_t k = 0; k < q.profiles.size(); ++k) {
      const auto latency = class_latency_s(
          *profile, class_for(*profile, q.host.geometry, q.host.geometry.profiles[q.profiles[k]]), share.size());
      if (!latency) return Error{latency.error()};
      q.demand.latency_s.push_back(*latency);
      q.problem.sizes.push_back(measured_size(q.compute[k], *latency));
    }
    q.demand.sla_s = 1.5 * q.demand.latency_s.back().back();
  } else {
    const std::string name = args.given("model") ? args.text("model") : "medium";
    const auto& models = analytic_models();
    const auto model =
        std::find_if(models.begin(), models.end(), [&](const AnalyticModel& m) { return m.name == name; });
    q.problem = paris_problem(*model, share, q.compute, total);
    q.demand = size_demand(*model, share, q.compute, 1.5);
  }
  if (args.given("sla-ms")) q.demand.sla_s = args.real("sla-ms") * 1e-3;
  q.problem.knee = args.real("knee");
  if (const std::string problem = problem_of(q.problem); !problem.empty()) return Error{problem};
  return Done{};
}

Result<MigHost> host_here() {
  const SolverRun run = run_solver({gpu_tool_path(), "mig"}, kToolLimit);
  if (run.end != SolverRun::End::done) return Error{run.message};
  return parse_mig_host(run.output, "leat-gpu mig");
}

Result<Question> question_of(const cli::Arguments& args) {
  Question q;
  if (args.given("host") + args.given("gpu") + args.flag("here") != 1)
    return Error{"give one of --host FILE, --here and --gpu TABLE"};
  if (args.flag("apply") && !args.flag("here")) return Error{"--apply changes this machine's GPUs: it needs --here"};
  if (!args.given("gpu")) {
    auto host = args.flag("here") ? host_here() : read_mig_host(args.text("host"));
    if (!host) return Error{host.error()};
    q.host = std::move(*host);
  } else {
    const MigGeometry* table = mig_table(args.text("gpu"));
    if (table == nullptr)
      return Error{"--gpu " + args.text("gpu") + ": no such table; A30, A100-40, A100-80, H100-80, H200-141"};
    q.host.geometry = *table;
    for (std::uint32_t g = 0; g < args.integer("gpus"); ++g) q.host.gpus.push_back({g, "", true, {}});
  }
  q.profiles = profiles_for(q.host.geometry, args.integer("memory-mib"));
  if (q.profiles.empty()) return Error{"--memory-mib: no profile of " + q.host.geometry.gpu + " has that much"};
  for (std::uint32_t p : q.profiles) q.compute.push_back(q.host.geometry.profiles[p].compute);
  if (const Status filled = fill_demand(args, q); !filled) return Error{filled.error()};
  return q;
}

struct Answer {
  ParisResult paris;
  LayoutChoice best;
  MigChange change;
};

Json to_json(const Question& q, const Answer& a) {
  Json out = {{"gpu", q.host.geometry.gpu},        {"geometry_from", q.host.geometry.from_driver ? "driver" : "table"},
              {"sla_ms", q.demand.sla_s * 1e3},    {"served_before_rps", a.change.served_before_rps},
              {"served_rps", a.change.served_rps}, {"most_rps", a.best.bound_rps}};
  for (std::size_t k = 0; k < q.profiles.size(); ++k)
    out["sizes"].push_back({{"profile", q.host.geometry.profiles[q.profiles[k]].name},
                            {"knee_batch", a.paris.knee_batch[k]},
                            {"paris_instances", a.paris.instances[k]},
                            {"instances", a.change.counts[k]}});
  for (std::size_t g = 0; g < q.host.gpus.size(); ++g) {
    const auto place = [&](const MigPlacement& p) {
      return Json{{"profile", q.host.geometry.profiles[p.profile].name}, {"start", p.start}};
    };
    Json gpu = {{"index", q.host.gpus[g].index},
                {"kept", Json::array()},
                {"destroyed", Json::array()},
                {"created", Json::array()}};
    for (const MigInstance& i : a.change.gpus[g].kept) gpu["kept"].push_back(place(i.placement));
    for (const MigInstance& i : a.change.gpus[g].destroyed) {
      gpu["destroyed"].push_back(place(i.placement));
      gpu["destroyed"].back()["used_by"] = i.used_by;
    }
    for (const MigPlacement& p : a.change.gpus[g].created) gpu["created"].push_back(place(p));
    out["gpus"].push_back(gpu);
  }
  out["commands"] = commands_for(q.host, a.change);
  return out;
}

// One character a memory slice: the instance's compute slices at its first, '-' behind, '.' free.
std::string picture(const MigGeometry& geometry, const GpuChange& change) {
  std::string out(geometry.memory_slices, '.');
  const auto draw = [&](const MigPlacement& p) {
    for (std::uint32_t s = 0; s < geometry.profiles[p.profile].memory; ++s)
      out[p.start + s] = s == 0 ? static_cast<char>('0' + geometry.profiles[p.profile].compute) : '-';
  };
  for (const MigInstance& i : change.kept) draw(i.placement);
  for (const MigPlacement& p : change.created) draw(p);
  return out;
}

void print(const Question& q, const Answer& a) {
  std::printf("%s x %zu, geometry from the %s; SLA %.1f ms\n", q.host.geometry.gpu.c_str(), q.host.gpus.size(),
              q.host.geometry.from_driver ? "driver" : "table (for simulation; a real GPU must be asked)",
              q.demand.sla_s * 1e3);
  std::printf("%-14s %6s %8s %10s\n", "profile", "knee", "PARIS", "instances");
  for (std::size_t k = 0; k < q.profiles.size(); ++k)
    std::printf("%-14s %6u %8.2f %10u\n", q.host.geometry.profiles[q.profiles[k]].name.c_str(), a.paris.knee_batch[k],
                a.paris.instances[k], a.change.counts[k]);
  std::printf("served load: now %.1f, then %.1f, most possible %.1f requests/s\n", a.change.served_before_rps,
              a.change.served_rps, a.best.bound_rps);
  for (std::size_t g = 0; g < q.host.gpus.size(); ++g)
    std::printf("GPU %u  [%s]  keeps %zu, stops %zu, creates %zu\n", q.host.gpus[g].index,
                picture(q.host.geometry, a.change.gpus[g]).c_str(), a.change.gpus[g].kept.size(),
                a.change.gpus[g].destroyed.size(), a.change.gpus[g].created.size());
  std::printf("the commands would be:\n");
  for (const std::string& line : commands_for(q.host, a.change)) std::printf("  %s\n", line.c_str());
}

// Which request size is too slow everywhere, and the objective that would do. Exit status of a result: 1.
int infeasible(const Question& q) {
  double needed = 0;
  std::size_t worst = 0, size = 0;
  for (std::size_t b = 0; b < q.demand.batch_share.size(); ++b) {
    if (q.demand.batch_share[b] <= 0) continue;
    std::size_t fastest = 0;
    for (std::size_t k = 1; k < q.demand.latency_s.size(); ++k) {
      if (q.demand.latency_s[k][b] < q.demand.latency_s[fastest][b]) fastest = k;
    }
    if (q.demand.latency_s[fastest][b] <= needed) continue;
    needed = q.demand.latency_s[fastest][b];
    worst = b + 1;
    size = fastest;
  }
  std::printf(
      "infeasible: a request of %zu items takes %.3f ms on %s, the fastest here; the SLA is %.3f ms, %.3f ms short; "
      "nearest feasible: --sla-ms %.3f\n",
      worst, needed * 1e3, q.host.geometry.profiles[q.profiles[size]].name.c_str(), q.demand.sla_s * 1e3,
      (needed - q.demand.sla_s) * 1e3, std::ceil(needed * 1e6) / 1e3);
  return 1;
}

// What is to be there, for leat-gpu.
std::string layout_text(const Question& q, const Answer& a) {
  Json gpus = Json::array();
  for (std::size_t g = 0; g < q.host.gpus.size(); ++g) {
    Json instances = Json::array();
    const auto add = [&](const MigPlacement& p) {
      instances.push_back({{"profile", q.host.geometry.profiles[p.profile].name}, {"start", p.start}});
    };
    for (const MigInstance& i : a.change.gpus[g].kept) add(i.placement);
    for (const MigPlacement& p : a.change.gpus[g].created) add(p);
    if (a.change.gpus[g].any()) gpus.push_back({{"uuid", q.host.gpus[g].uuid}, {"instances", instances}});
  }
  return Json{{"schema", "leat-mig-layout/1"}, {"gpus", gpus}}.dump(2) + "\n";
}

// leat-gpu says what it would do or does it, and refuses what may not be. Exit status.
int hand_over(const cli::Arguments& args, const Question& q, const Answer& a) {
  char path[] = "/tmp/leat-layout-XXXXXX";
  const int fd = ::mkstemp(path);
  const std::string text = layout_text(q, a);
  const bool written = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) ::close(fd);
  std::vector<std::string> words = {gpu_tool_path(), "mig", "--layout", path};
  if (args.flag("apply")) words.push_back("--apply");
  SolverRun run;
  if (written) run = run_solver(words, kToolLimit);
  (void)::unlink(path);
  if (!written) return cli::fail("leat-plan", std::string(path) + ": cannot be written");
  std::fputs(run.output.c_str(), cli::JsonOutput(args).alone() ? stderr : stdout);
  if (run.end == SolverRun::End::done) return 0;
  (void)cli::fail("leat-plan", run.message);
  return run.end == SolverRun::End::infeasible ? 1 : 2;
}

int run(const cli::Arguments& args) {
  const auto q = question_of(args);
  if (!q) return cli::fail("leat-plan", q.error());
  const LayoutSpace space(q->host.geometry, q->profiles, static_cast<std::uint32_t>(q->host.gpus.size()));
  Answer a;
  a.paris = paris(q->problem);
  a.best = space.best_layout(q->demand);
  if (a.best.served_rps <= 0) return infeasible(*q);
  const bool follow_paris = args.text("method") == "paris";
  a.change = follow_paris
                 ? change_to(space, q->host, space.nearest_layout(a.paris.instances, q->demand).layouts, q->demand)
                 : min_change(space, q->host, a.best, args.real("tolerance"), q->demand);
  const cli::JsonOutput json(args);
  if (!json.alone()) print(*q, a);
  if (const int failed = json.write(to_json(*q, a).dump(1)); failed != 0) return failed;
  return args.flag("here") ? hand_over(args, *q, a) : 0;
}

}  // namespace

extern const cli::Subcommand kPlanMig;
const cli::Subcommand kPlanMig = {&kCommand, run};

}  // namespace leat::planner
