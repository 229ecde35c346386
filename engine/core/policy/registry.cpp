#include "engine/core/policy/registry.h"

#include "engine/core/policy/queues/queue_scheduler.h"
#include "engine/core/policy/reservations/reservation_scheduler.h"
#include "engine/core/policy/windows/window_scheduler.h"

namespace leat::core {

std::unique_ptr<Estimator> SchedulerFactory::estimator(const Topology&, std::uint32_t, std::uint64_t) const {
  return nullptr;
}

bool needs_estimates(const Policy& policy) noexcept {
  return policy.scheduler != nullptr && policy.scheduler->estimates();
}

std::unique_ptr<Estimator> make_estimator(const Policy& policy, const Topology& topology, std::uint32_t draws,
                                          std::uint64_t seed) {
  return needs_estimates(policy) ? policy.scheduler->estimator(topology, draws, seed) : nullptr;
}

Own own_scheduler(const LeatVariant& variant, const Component& c) noexcept {
  if (c.pipelined) return Own::reservations;
  const bool windows =
      variant.windows == LeatVariant::Windows::all || (variant.windows == LeatVariant::Windows::shared && c.shared);
  return windows ? Own::windows : Own::queues;
}

std::unique_ptr<ComponentScheduler> make_scheduler(const Making& from) {
  if (from.policy.scheduler != nullptr) return from.policy.scheduler->make(from);
  switch (own_scheduler(from.policy.variant, from.component)) {
    case Own::reservations:
      return std::make_unique<ReservationScheduler>(from);
    case Own::windows:
      return std::make_unique<WindowScheduler>(from);
    case Own::queues:
      break;
  }
  return std::make_unique<QueueScheduler>(from);
}

std::vector<QueueConsumer> consumers_of(const Topology& topology, ModuleId module) {
  std::vector<QueueConsumer> consumers;
  for (RouteId r : topology.modules[module].routes) {
    for (PartitionId p : topology.routes[r].stages.front().pool) consumers.push_back({.partition = p, .route = r});
  }
  return consumers;
}

void add_plain_queues(const Making& from) {
  for (ModuleId m : from.component.modules) from.queues.add(from.view.model, m, consumers_of(from.view.topology(), m));
}

}  // namespace leat::core
