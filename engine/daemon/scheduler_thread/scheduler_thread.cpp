#include "engine/daemon/scheduler_thread/scheduler_thread.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/core/policy/registry.h"

namespace leat::daemon {

Status SchedulerThread::open() {
  for (shm::Doorbell* const bell : {&events_, &commands_}) {
    auto made = shm::Doorbell::create();
    if (!made.ok()) return Error{"no eventfd: " + made.error()};
    *bell = std::move(*made);
  }
  return Done{};
}

Status SchedulerThread::prepare(const core::Topology& topology, const core::Policy& policy, LoopOptions options,
                                Metrics& metrics) {
  estimator_ = core::make_estimator(policy, topology);
  options.samples = estimator_ != nullptr;
  auto loop = SchedulerLoop::create(topology, policy, std::move(options), metrics, events_, std::move(commands_));
  if (!loop.ok()) return Error{loop.error()};
  loop_ = std::move(*loop);
  return Done{};
}

void SchedulerThread::begin() {
  begun_ = true;
  thread_ = std::thread([this] { loop_->run(); });
}

void SchedulerThread::end() {
  if (!thread_.joinable()) return;
  command({.kind = Command::Kind::stop});
  thread_.join();
}

void SchedulerThread::command(const Command& command) {
  if (begun_) loop_->command(command);
}

const LoopPlan* SchedulerThread::replace_plan(const core::Topology& topology, const core::Policy& policy,
                                              PlanTables tables, std::span<const std::uint32_t> new_edges,
                                              bool measured_anew) {
  std::unique_ptr<LoopPlan> plan = loop_->prepare(topology, policy, std::move(tables));
  plan->measured_anew = measured_anew;
  for (const auto& [edge, spec] : plan->tables.edges)
    if (std::ranges::find(new_edges, edge) != new_edges.end())
      plan->new_rows.emplace_back(edge, shm::FeatureRows(spec));
  const LoopPlan* const id = plan.get();
  command({.kind = Command::Kind::replace_plan, .plan = plan.release()});
  return id;
}

void SchedulerThread::update_estimates(std::int64_t now_ns) {
  core::Sample sample;  // a queue full at most: more come while these are taken
  for (std::uint32_t i = 0; i < kQueueRoom && loop_->sample(sample); ++i) estimator_->add(std::span(&sample, 1));
  command({.kind = Command::Kind::set_estimates, .estimates = &estimator_->update(now_ns)});
}

}  // namespace leat::daemon
