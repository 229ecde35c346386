// PARIS on generated workloads: served load of its layouts (paris: nearest to Algorithm 1's numbers; paris+: then
// improved one GPU at a time) against the exact layout search, which is what leat-plan uses, the best homogeneous
// server and random layouts; every layout checked for validity.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/study.h"
#include "planner/mig/layout.h"
#include "planner/mig/paris.h"
#include "planner/papers/layouts.h"
#include "planner/test/paris_workloads.h"

namespace {

using namespace leat;
using namespace leat::planner;
using bench::mean;
using bench::min_of, bench::max_of;
using Clock = std::chrono::steady_clock;

constexpr cli::Option kOptions[] = {
    cli::integer_option("seed", "1", 0, 1e15, "of the workloads"),
    cli::integer_option("workloads", "200", 1, 1e6, "how many"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "paris_study",
    .summary = "PARIS on random workloads: served load against exact, homogeneous and random layouts",
    .options = kOptions};

// Served load over the exact search's, by method.
struct Study {
  std::map<std::string, std::vector<double>> share, milliseconds;
  std::uint32_t layouts = 0, invalid = 0;
  std::vector<double> over_homogeneous;  // the exact layout over the best homogeneous server
  std::uint32_t homogeneous_cannot = 0;  // no homogeneous server can serve every class

  void add(std::uint64_t seed, std::uint32_t index,
           std::map<std::pair<std::string, std::uint32_t>, LayoutSpace>& spaces) {
    const ParisWorkload w = paris_workload(seed, index);
    const MigGeometry& geometry = *mig_table(w.geometry);
    const auto found = spaces.try_emplace({w.geometry, w.gpus}, geometry, profiles_for(geometry, 0), w.gpus).first;
    const LayoutSpace& space = found->second;
    const std::vector<double> compute = space.compute_of_sizes();
    const SizeDemand demand = size_demand(w.model, w.batch_share, compute, w.sla_factor);
    const LayoutChoice best = timed("exact", [&] { return space.best_layout(demand); });
    const auto note = [&](const std::string& name, const LayoutChoice& c) {
      share[name].push_back(c.served_rps / best.bound_rps);
      for (std::uint32_t l : c.layouts) {
        ++layouts;
        for (const auto& placements : placements_of(geometry, space.profiles(), space.layouts()[l]))
          if (!problem_of(geometry, placements).empty()) ++invalid;
      }
    };
    note("exact", best);
    const ParisResult wanted = paris(paris_problem(w.model, w.batch_share, compute, geometry.compute_slices * w.gpus));
    const LayoutChoice nearest = timed("paris", [&] { return space.nearest_layout(wanted.instances, demand); });
    note("paris", nearest);
    const LayoutChoice refined = timed("paris+", [&] { return refined_layout(space, nearest, demand); });
    note("paris+", refined);
    note("random", random_layout(space, seed + index, demand));
    double homogeneous = 0;
    for (std::uint32_t k = 0; k < compute.size(); ++k) {
      const LayoutChoice same = homogeneous_layout(space, k, demand);
      homogeneous = std::max(homogeneous, same.served_rps);
    }
    share["homogeneous"].push_back(homogeneous / best.bound_rps);
    if (homogeneous > 0)
      over_homogeneous.push_back(best.served_rps / homogeneous - 1);
    else
      ++homogeneous_cannot;
  }

  template <class Make>
  LayoutChoice timed(const std::string& name, Make make) {
    const auto start = Clock::now();
    LayoutChoice out = make();
    milliseconds[name].push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    return out;
  }
};

double within(const std::vector<double>& v, double share) {
  return static_cast<double>(std::count_if(v.begin(), v.end(), [&](double x) { return x >= share; })) /
         static_cast<double>(v.size());
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const bench::Workloads workloads(args);
  Study study;
  std::map<std::pair<std::string, std::uint32_t>, LayoutSpace> spaces;
  workloads.each("paris study", [&](std::uint32_t i) { study.add(workloads.seed, i, spaces); });
  const char* const names[] = {"exact", "paris+", "paris", "homogeneous", "random"};
  const cli::JsonOutput json(args);
  Json out = {{"seed", workloads.seed},
              {"workloads", workloads.count},
              {"layouts_checked", study.layouts},
              {"layouts_invalid", study.invalid},
              {"exact_over_homogeneous_mean", mean(study.over_homogeneous)},
              {"exact_over_homogeneous_least", min_of(study.over_homogeneous)},
              {"exact_over_homogeneous_most", max_of(study.over_homogeneous)},
              {"homogeneous_cannot_serve", study.homogeneous_cannot}};
  for (const char* name : names) {
    const auto& share = study.share[name];
    out["methods"][name] = {{"of_bound_mean", mean(share)},
                            {"of_bound_least", min_of(share)},
                            {"within_3_percent", within(share, 0.97)},
                            {"ms_mean", mean(study.milliseconds[name])},
                            {"ms_max", max_of(study.milliseconds[name])}};
  }
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  std::printf("seed %llu, %u workloads on 1 to 8 GPUs; %u layouts checked, %u invalid\n",
              static_cast<unsigned long long>(workloads.seed), workloads.count, study.layouts, study.invalid);
  std::printf("%-12s %10s %10s %12s %9s %9s\n", "method", "of bound", "least", "within 3 %", "ms", "worst");
  for (const char* name : names) {
    const auto& share = study.share[name];
    std::printf("%-12s %8.2f %% %8.2f %% %10.1f %% %9.2f %9.2f\n", name, 100 * mean(share), 100 * min_of(share),
                100 * within(share, 0.97), mean(study.milliseconds[name]), max_of(study.milliseconds[name]));
  }
  std::printf(
      "exact over the best homogeneous server: %+.1f %% on average, %+.1f %% to %+.1f %%; %u workloads no homogeneous "
      "server can serve\n",
      100 * mean(study.over_homogeneous), 100 * min_of(study.over_homogeneous), 100 * max_of(study.over_homogeneous),
      study.homogeneous_cannot);
  return 0;
}
