#include "bench/papers/ppipe_profiles.h"

#include "planner/io/profile_io.h"
#include "planner/papers/replicated_pairs.h"
#include "planner/pooled/solver.h"
#include "planner/profile_table.h"

namespace leat::bench {

Result<Json> plans_of_profiles(const std::string& folder, const ProfilePool& pool) {
  using namespace planner;
  const auto profiles = read_profiles(folder);
  if (!profiles) return Error{profiles.error()};
  PooledProblem problem;
  problem.types = {{.name = pool.fast_class, .count = pool.fast}, {.name = pool.slow_class, .count = pool.slow}};
  for (const Profile& p : *profiles) {
    const ProfileTable table(p);
    for (const GpuType& t : problem.types)
      if (table.largest_batch(t.name, 1) == 0)
        return Error{"profile of '" + p.model + "': class " + t.name + " is not measured; see leat profile --gpu"};
    const auto alone = static_cast<double>(table.p50_ns(pool.fast_class, 1, 1, 0, p.blocks)) / 1000;
    problem.dnns.push_back({.profile = &p, .budget_us = (1 - pool.margin) * pool.slo_scale * alone, .weight = 1});
  }
  if (problem.dnns.empty()) return Error{folder + ": holds no profile"};
  const PooledSolution np = solve_whole_models(problem);
  const PooledSolution solutions[] = {np, solve_replicated_pairs(problem, gpus_taken(problem, np.dnns)),
                                      solve_pooled(problem), solve_free(problem)};
  const char* const names[] = {"np", "dart_r", "ppipe", "leat"};
  Json out;
  for (std::size_t s = 0; s < std::size(names); ++s)
    out[names[s]] = {{"rps", solutions[s].certificate.objective}, {"gap", solutions[s].certificate.gap}};
  return out;
}

}  // namespace leat::bench
