#include "planner/harpagon/plan.h"

#include <algorithm>
#include <cmath>

namespace leat::planner {
namespace {

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(std::llround(seconds * 1e9)); }

// Duration of any batch on one hardware: a straight line between the configurations around it.
double duration_s(const HarpagonModule& module, std::uint32_t hardware, std::uint32_t batch) {
  const Configuration *below = nullptr, *above = nullptr;
  for (const Configuration& c : module.configurations) {
    if (c.hardware != hardware) continue;
    if (c.batch <= batch && (below == nullptr || c.batch > below->batch)) below = &c;
    if (c.batch >= batch && (above == nullptr || c.batch < above->batch)) above = &c;
  }
  if (below == nullptr || above == nullptr || below == above) return (below != nullptr ? below : above)->duration_s;
  const double part = static_cast<double>(batch - below->batch) / (above->batch - below->batch);
  return below->duration_s + part * (above->duration_s - below->duration_s);
}

void add_configurations(const Profile& profile, const std::vector<PricedClass>& classes, HarpagonModule& module) {
  for (const ProfileRow& row : profile.rows)
    for (std::uint32_t k = 0; k < classes.size(); ++k) {
      if (row.partition_class != classes[k].partition_class || row.share != classes[k].share) continue;
      std::int64_t p99_ns = 0;
      for (const Latency& block : row.blocks) p99_ns += block.p99_ns;
      module.configurations.push_back({row.batch, static_cast<double>(p99_ns) * 1e-9, classes[k].price, k});
    }
  order_by_ratio(module.configurations);
}

Route route_of(const HarpagonModule& module, std::uint32_t index, const Tuple& tuple) {
  Route route;
  route.module = index;
  route.batch = tuple.configuration.batch;
  route.rate_rps = tuple.rate_rps();
  Stage stage;
  for (std::uint32_t b = 1; b <= tuple.configuration.batch; ++b) {
    const std::int64_t ns = nanoseconds(duration_s(module, tuple.configuration.hardware, b));
    stage.latency_by_batch.push_back({ns, ns, 0});
  }
  route.stages = {std::move(stage)};
  return route;
}

}  // namespace

Result<HarpagonProblem> harpagon_problem(const Application& application, const std::vector<Profile>& profiles,
                                         const std::vector<PricedClass>& classes) {
  HarpagonProblem problem;
  problem.name = application.name;
  problem.slo_s = static_cast<double>(application.slo_ns) * 1e-9;
  if (application.rate_rps <= 0)
    return Error{"application '" + application.name +
                 "': rate_rps is missing: say how many requests per second to plan for"};
  for (const Module& m : application.modules) {
    HarpagonModule module;
    module.name = m.name;
    module.rate_rps = application.rate_rps * m.items_per_request;
    module.after = m.after;
    const auto profile =
        std::find_if(profiles.begin(), profiles.end(), [&](const Profile& p) { return p.model == m.model; });
    if (profile == profiles.end())
      return Error{"module '" + m.name + "': no profile of model '" + m.model + "': add one to the profiles"};
    add_configurations(*profile, classes, module);
    if (module.configurations.empty())
      return Error{"module '" + m.name + "': the profile of '" + m.model +
                   "' has no row of any priced class: name its classes with --price"};
    problem.modules.push_back(std::move(module));
  }
  return problem;
}

PlanFile harpagon_plan_file(const Application& application, const HarpagonProblem& problem, const HarpagonPlan& plan,
                            const std::vector<PricedClass>& classes) {
  PlanFile file;
  file.applications = {application};
  file.plan.budget_ns.emplace_back();
  for (std::uint32_t m = 0; m < plan.modules.size(); ++m) {
    file.plan.budget_ns[0].push_back(nanoseconds(plan.modules[m].latency_s));
    for (const Tuple& tuple : plan.modules[m].tuples) {
      Route route = route_of(problem.modules[m], m, tuple);
      const auto machines = static_cast<std::uint32_t>(std::ceil(tuple.machines * (1 - kRelative)));
      for (std::uint32_t i = 0; i < machines; ++i) {
        const auto index = static_cast<std::uint32_t>(file.plan.partitions.size());
        const PricedClass& kind = classes[tuple.configuration.hardware];
        Partition partition;
        partition.name = problem.modules[m].name + "/" + std::to_string(index);
        partition.partition_class = kind.partition_class;
        partition.share = kind.share;
        partition.price = partition.size = kind.price;
        partition.device = index;
        file.plan.partitions.push_back(std::move(partition));
        route.stages[0].pool.push_back(index);
      }
      file.plan.routes.push_back(std::move(route));
    }
  }
  file.plan.certificate.objective = plan.cost;
  file.plan.certificate.upper_bound = plan.proven ? plan.cost : 0;
  file.plan.certificate.gap = plan.proven ? 0 : 1;
  file.plan.certificate.binding = "least cost for the rate and the SLO";
  file.plan.certificate.method = plan.proven ? "harpagon, exact" : "harpagon, heuristic";
  return file;
}

Application application_of(const HarpagonProblem& problem) {
  Application application;
  application.name = problem.name;
  application.slo_ns = nanoseconds(problem.slo_s);
  application.rate_rps = problem.modules[0].rate_rps;
  for (const HarpagonModule& m : problem.modules) {
    Module module;
    module.name = module.model = m.name;
    module.after = m.after;
    module.items_per_request = m.rate_rps / application.rate_rps;
    module.fan_out_cap = static_cast<std::uint32_t>(std::ceil(module.items_per_request));
    application.modules.push_back(std::move(module));
  }
  return application;
}

}  // namespace leat::planner
