#include "engine/daemon/startup.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "engine/daemon/deployment/plan/auto_plan.h"
#include "engine/daemon/deployment/plan/memory.h"
#include "engine/daemon/log.h"
#include "engine/daemon/service_manager.h"
#include "engine/daemon/workers/gpu_tool.h"
#include "engine/daemon/workers/models/model_files.h"
#include "planner/child/solver_process.h"
#include "tools/base/cores/cores.h"

namespace leat::daemon {
namespace {

constexpr std::chrono::milliseconds kNeededLimit{60'000};  // where there is no doing without a plan

// A plan is a gain: whatever becomes of the solver, leatd starts. Only where memory does not hold all models is it a
// condition.
Result<Deployment> ask_planner(const Config& config, std::span<const std::uint32_t> cores, Deployment deployment) {
  log_info("plan = \"auto\": asking leat-plan");
  const bool needed = !check_memory(config, deployment);
  const auto plan = auto_plan(config, deployment, planner::solver_path(), needed ? kNeededLimit : kSolverLimit,
                              needed ? PlanNeed::condition : PlanNeed::gain);
  auto planned = plan.ok() ? deploy(config, cores, &plan->file) : Result<Deployment>(Error{plan.error()});
  if (!planned.ok() && needed)
    return Error{config.file +
                 ": plan = \"auto\": memory does not hold all models on every partition, and there is no " +
                 "plan: " + planned.error()};
  if (!planned.ok()) {
    log_warning("plan = \"auto\": no plan, every partition runs every module: " + planned.error());
    return deployment;
  }
  if (!plan->carried.empty()) log_warning("plan = \"auto\": " + plan->carried);
  log_info("plan = \"auto\": " + std::to_string(planned->plan.routes.size()) + " routes by leat-plan");
  return std::move(*planned);
}

}  // namespace

Result<Deployment> find_deployment(Config& config, Purpose purpose, std::span<const worker::Setup> pinned) {
  if (!config.workers.user.empty() && geteuid() != 0)
    return Error{config.file + ": [workers] user: only a leatd that root starts can give its workers another user; " +
                 "start it as root, or leave the key out"};
  const auto cores = usable_cores();
  if (!cores.ok()) return Error{cores.error()};
  if (auto status = locate_gpus(config.partitions); !status) return Error{config.file + ": " + status.error()};
  auto deployment = deploy(config, *cores);
  if (!deployment.ok()) return deployment;
  if (purpose == Purpose::serving) *deployment = with_device_pairs(config, *cores, std::move(*deployment));
  if (config.plan_auto) deployment = ask_planner(config, *cores, std::move(*deployment));
  if (!deployment.ok()) return deployment;
  if (auto status = check_memory(config, *deployment); !status) return Error{status.error()};
  if (auto status = pin_models(deployment->setups, pinned); !status) return Error{status.error()};
  return deployment;
}

Result<shm::Listener> take_socket(const Config& config, Purpose purpose) {
  if (purpose == Purpose::checking) {
    if (auto status = shm::Listener::possible(config.socket); !status)
      return Error{config.socket_place + status.error()};
    return shm::Listener();
  }
  Fd passed = passed_socket();
  auto listener = passed ? shm::Listener::adopt(std::move(passed), config.socket)
                         : shm::Listener::open(config.socket, config.socket_mode, config.socket_group);
  if (!listener.ok()) return Error{config.socket_place + listener.error()};
  return listener;
}

Result<std::vector<shm::FeaturePool>> make_feature_pools(const Config& config, const Deployment& deployment) {
  std::vector<shm::FeaturePool> out;
  for (const FeatureEdge& edge : deployment.edges) {
    if (!edge.place.empty()) {
      out.emplace_back();
      continue;
    }
    auto pool = shm::FeaturePool::create(edge.spec);
    if (!pool.ok()) return Error{name_of(edge, config) + ": " + pool.error()};
    out.push_back(std::move(*pool));
  }
  return out;
}

}  // namespace leat::daemon
