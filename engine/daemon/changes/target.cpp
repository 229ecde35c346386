#include "engine/daemon/changes/target.h"

#include <algorithm>
#include <utility>

#include "engine/daemon/deployment/plan/memory.h"
#include "engine/daemon/startup.h"
#include "engine/daemon/workers/gpu_tool.h"
#include "engine/daemon/workers/models/model_files.h"
#include "planner/io/plan_io.h"
#include "tools/base/cores/cores.h"

namespace leat::daemon {
namespace {

// The applications as they would answer, whatever plan there is: every module opened on paper, its files hashed.
Result<Deployment> on_paper(Config wanted) {
  wanted.plan_path.clear();
  wanted.plan_auto = true;  // what a plan decides is not looked at
  const auto cores = usable_cores();
  if (!cores.ok()) return Error{cores.error()};
  if (auto status = locate_gpus(wanted.partitions); !status) return Error{wanted.file + ": " + status.error()};
  auto deployment = deploy(wanted, *cores);
  if (!deployment.ok()) return deployment;
  if (auto status = pin_models(deployment->setups); !status) return Error{status.error()};
  return deployment;
}

bool unplanned(const Config& config) { return config.plan_path.empty() && !config.plan_auto; }

// What the running deployment is laid beside: by the numbers of the configuration in force.
Result<Deployment> by_plan(const Config& config, const planner::PlanFile& plan,
                           const std::vector<std::string>& partitions, std::span<const worker::Setup> pinned) {
  Config own = config;
  const bool by_itself = unplanned(config);
  if (!by_itself) own.plan_auto = true;  // what a setting says to whom was asked when it was read
  std::erase_if(own.partitions, [&](const PartitionConfig& p) {
    return std::ranges::find(partitions, p.partition.name) == partitions.end();
  });
  const auto cores = usable_cores();
  if (!cores.ok()) return Error{cores.error()};
  if (auto status = locate_gpus(own.partitions); !status) return Error{own.file + ": " + status.error()};
  auto out = deploy(own, *cores, by_itself ? nullptr : &plan);
  if (!out.ok()) return out;
  if (auto status = pin_models(out->setups, pinned); !status) return Error{status.error()};
  return out;
}

std::vector<std::string> moves_of(const Config& config, const Deployment& running, const Deployment& wanted) {
  const Residents now = residents_of(config, running), then = residents_of(config, wanted);
  std::vector<std::string> out;
  for (std::size_t p = 0; p < then.holds.size(); ++p) {
    const std::string& name = wanted.partitions[p].partition.name;
    const auto at = std::ranges::find(running.partitions, name, [](const auto& q) { return q.partition.name; });
    if (at == running.partitions.end()) continue;
    const auto q = static_cast<std::size_t>(at - running.partitions.begin());
    const std::string text = moves_text(config, then.modules, now.holds[q], then.holds[p]);
    if (!text.empty()) out.push_back("partition '" + name + "' " + text);
  }
  return out;
}

Status lay_beside(const Running& running, Target& out) {
  if (auto status = number_edges(running.deployment.edges, out.deployment); !status) return status;
  auto fresh = give_slots(running.deployment, out.deployment, running.slots);
  if (!fresh.ok()) return Error{out.config.file + ": " + fresh.error()};
  out.fresh = std::move(*fresh);
  out.waves = waves_of(out.fresh);
  return Done{};
}

Result<Target> take_step(const Running& running, Target out, InPlaceStep step, std::span<const worker::Setup> pinned) {
  auto deployment = by_plan(out.config, step.plan, step.partitions, pinned);
  if (!deployment.ok()) return Error{deployment.error()};
  out.deployment = std::move(*deployment);
  out.deployment.scheduler_cores = running.deployment.scheduler_cores;
  out.deployment.scheduler_alone = running.deployment.scheduler_alone;
  out.deployment.tiny_hops = running.deployment.tiny_hops;
  if (auto status = lay_beside(running, out); !status) return Error{status.error()};
  return out;
}

// The second step, the new version on the first half of the partitions; the third, on all of them.
Result<Target> next_of_exchange(const Running& running, const Additions& additions, const ChangeRequest& request) {
  const Exchange& all = *running.exchange;
  const bool last = running.step == 2;
  Target out{.request = request, .additions = last ? additions : all.additions, .config = all.config};
  InPlaceStep step;
  for (const PartitionConfig& p : all.wanted.partitions)
    if (last || std::ranges::find(all.halves.second, p.partition.name) == all.halves.second.end())
      step.partitions.push_back(p.partition.name);
  step.plan = plan_on(all.config, all.wanted, step.partitions);
  if (!last) {
    out.heirs = all.heirs;
    out.retiring = all.retiring;
    out.in_place = {all.halves.second};
  }
  return take_step(running, std::move(out), std::move(step), all.wanted.setups);
}

// The first step: what runs serves on without the first half of the partitions.
Result<Target> begin_exchange(const Running& running, const Additions& additions, Target whole, Halves halves) {
  Target out{.request = whole.request, .additions = additions, .config = running.config};
  out.in_place = {halves.first, halves.second};
  for (const std::uint32_t a : whole.retiring)
    out.moves.push_back("application '" + running.config.applications[a].application.name +
                        "' gets another version, on one half of its partitions after the other");
  InPlaceStep step;
  for (const PartitionConfig& p : running.deployment.partitions)
    if (std::ranges::find(halves.first, p.partition.name) == halves.first.end())
      step.partitions.push_back(p.partition.name);
  step.plan = plan_on(running.config, running.deployment, step.partitions);
  out.exchange = std::make_shared<const Exchange>(Exchange{std::move(whole.config), std::move(whole.deployment),
                                                           std::move(whole.heirs), std::move(whole.retiring),
                                                           std::move(whole.additions), std::move(halves)});
  return take_step(running, std::move(out), std::move(step), running.deployment.setups);
}

// What partitions hold is another than before, and nothing else.
Result<Target> find_step(const Running& running, const Additions& additions, const ChangeRequest& request) {
  Target out{.request = request, .additions = additions, .config = running.config};
  if (running.back) {
    auto step = back_in_place(out.config, running.deployment, *running.before);
    if (!step) return Error{"nothing is out"};
    return take_step(running, std::move(out), std::move(*step), running.deployment.setups);
  }
  out.config.plan_path = request.text;
  out.config.plan_auto = false;
  out.config.plan_place.clear();
  const auto plan = planner::read_plan(request.text);
  if (!plan.ok()) return Error{plan.error()};
  std::vector<std::string> all;
  for (const PartitionConfig& p : out.config.partitions) all.push_back(p.partition.name);
  auto wanted = by_plan(out.config, *plan, all, running.deployment.setups);
  if (!wanted.ok()) return Error{wanted.error()};
  if (auto status = check_memory(out.config, *wanted); !status) return Error{status.error()};
  out.moves = moves_of(out.config, running.deployment, *wanted);
  auto step = next_in_place(out.config, running.deployment, *wanted);
  if (!step.ok()) return Error{step.error()};
  if (*step) {
    out.in_place = (*step)->waves;
    return take_step(running, std::move(out), std::move(**step), running.deployment.setups);
  }
  out.deployment = std::move(*wanted);
  out.deployment.scheduler_cores = running.deployment.scheduler_cores;
  out.deployment.scheduler_alone = running.deployment.scheduler_alone;
  if (auto status = lay_beside(running, out); !status) return Error{status.error()};
  return out;
}

}  // namespace

Result<Target> find_target(const Running& running, const Additions& additions, const ChangeRequest& request) {
  if (running.exchange && !running.back) return next_of_exchange(running, additions, request);
  if (running.before) return find_step(running, additions, request);
  auto added = with(additions, request, running.config);
  if (!added.ok()) return Error{added.error()};
  if (request.automatic) return find_step(running, *added, request);
  auto wanted = read_wanted(running.config, *added);
  if (!wanted.ok()) return Error{wanted.error()};
  if (std::string line = needs_restart(running.config, *wanted); !line.empty()) return Error{std::move(line)};
  const auto paper = on_paper(*wanted);
  if (!paper.ok()) return Error{paper.error()};
  auto laid =
      arrange(running.config, identities(running.config, running.deployment), *wanted, identities(*wanted, *paper));
  if (!laid.ok()) return Error{laid.error()};
  Target out{.request = request, .additions = std::move(*added), .config = std::move(laid->config)};
  out.heirs = std::move(laid->heirs);
  out.retiring = std::move(laid->retiring);
  auto deployment = find_deployment(out.config, Purpose::serving, paper->setups);
  if (!deployment.ok()) return Error{deployment.error()};
  out.deployment = std::move(*deployment);
  if (out.deployment.scheduler_cores != running.deployment.scheduler_cores)
    return Error{out.config.file +
                 ": the scheduler thread would have other cores; restart leatd, or name its core by "
                 "scheduler_core in [daemon]"};
  if (request.kind == ChangeRequest::Kind::replace) {
    auto halves = halves_of(running.config, running.deployment, out.config, out.deployment);
    if (!halves.ok()) return Error{halves.error()};
    if (*halves) return begin_exchange(running, additions, std::move(out), std::move(**halves));
  }
  const bool only_plan = request.kind == ChangeRequest::Kind::plan && out.heirs.empty() && out.retiring.empty() &&
                         out.config.applications.size() == running.config.applications.size();
  if (only_plan) {
    out.moves = moves_of(out.config, running.deployment, out.deployment);
    auto step = next_in_place(out.config, running.deployment, out.deployment);
    if (!step.ok()) return Error{step.error()};
    if (*step) {
      out.in_place = (*step)->waves;
      return take_step(running, std::move(out), std::move(**step), running.deployment.setups);
    }
  }
  if (request.kind != ChangeRequest::Kind::unload)
    if (auto status = room_beside(running.config, running.deployment, out.config, out.deployment); !status)
      return Error{status.error()};
  if (auto status = lay_beside(running, out); !status) return Error{status.error()};
  return out;
}

void widen(Config& config, Deployment& d, const Config& other) {
  for (std::size_t a = 0; a < other.applications.size(); ++a) {
    if (a < config.applications.size() && !config.applications[a].retired) continue;
    ApplicationConfig retired = other.applications[a];
    retired.retired = true;
    retired.application.rate_rps = 0;
    retired.expected.clear();
    if (a < config.applications.size()) {  // as many modules
      d.applications[a] = retired.application;
      config.applications[a] = std::move(retired);
      continue;
    }
    const auto modules = static_cast<std::uint32_t>(retired.modules.size());
    d.first_module.push_back(d.first_module.back() +
                             static_cast<std::uint32_t>(config.applications.back().modules.size()));
    d.applications.push_back(retired.application);
    d.expected.emplace_back();
    for (auto& sessions : d.session_of) sessions.resize(sessions.size() + modules, UINT32_MAX);
    if (!d.sizes.empty()) d.sizes.resize(d.sizes.size() + modules);
    config.applications.push_back(std::move(retired));
  }
}

Both both(const Config& now, const Deployment& deployment, const Config& before, const Deployment& old,
          std::span<const std::uint32_t> retiring) {
  Both out{now, deployment};
  Deployment& d = out.deployment;
  const auto goes = [&](std::uint32_t a) { return std::ranges::find(retiring, a) != retiring.end(); };
  for (const std::uint32_t a : retiring) {
    out.config.applications[a] = before.applications[a];
    d.applications[a] = old.applications[a];
    for (std::size_t m = 0; m < before.applications[a].modules.size(); ++m)
      d.sizes[d.first_module[a] + m] = old.sizes[old.first_module[a] + m];
  }
  std::vector<std::uint32_t> at(old.partitions.size(), UINT32_MAX);
  const auto place = [&](std::uint32_t p) {
    if (at[p] != UINT32_MAX) return at[p];
    const auto kept = std::ranges::find(d.slots, old.slots[p]);
    if (kept != d.slots.end()) {  // it has the same sessions
      at[p] = static_cast<std::uint32_t>(kept - d.slots.begin());
      for (const std::uint32_t a : retiring)
        for (std::size_t m = 0; m < before.applications[a].modules.size(); ++m)
          d.session_of[at[p]][d.first_module[a] + m] = old.session_of[p][old.first_module[a] + m];
      return at[p];
    }
    at[p] = static_cast<std::uint32_t>(d.partitions.size());
    d.partitions.push_back(old.partitions[p]);
    d.slots.push_back(old.slots[p]);
    d.setups.push_back(old.setups[p]);
    d.session_of.push_back(old.session_of[p]);
    d.session_of.back().resize(d.session_of.front().size(), UINT32_MAX);
    d.plan.partitions.push_back(old.plan.partitions[p]);
    return at[p];
  };
  for (planner::Route route : old.plan.routes) {
    if (!goes(route.application)) continue;
    for (planner::Stage& stage : route.stages)
      for (std::uint32_t& p : stage.pool) p = place(p);
    d.plan.routes.push_back(std::move(route));
  }
  for (const FeatureEdge& e : old.edges)
    if (goes(e.application)) d.edges.push_back(e);
  return out;
}

// ---- the thread ----

Result<std::unique_ptr<TargetBuilder>> TargetBuilder::create() {
  auto bell = shm::Doorbell::create();
  if (!bell.ok()) return Error{"no eventfd: " + bell.error()};
  return std::unique_ptr<TargetBuilder>(new TargetBuilder(std::move(*bell)));
}

TargetBuilder::~TargetBuilder() {
  if (thread_.joinable()) thread_.join();
}

void TargetBuilder::begin(Running running, Additions additions, ChangeRequest request) {
  if (thread_.joinable()) thread_.join();
  thread_ =
      std::thread([this, running = std::move(running), additions = std::move(additions), request = std::move(request)] {
        auto found = find_target(running, additions, request);
        const std::lock_guard lock(mutex_);
        made_ = std::move(found);
        bell_.ring();
      });
}

std::optional<Result<Target>> TargetBuilder::take() {
  bell_.drain();
  const std::lock_guard lock(mutex_);
  return std::exchange(made_, std::nullopt);
}

}  // namespace leat::daemon
