// Which scheduler a component of a plan gets: one of Leat's own, by the plan, or the one that the policy names.
#pragma once

#include <memory>
#include <vector>

#include "engine/core/policy/scheduler_interface.h"

namespace leat::core {

// What a scheduler is made from. It adds its queues, those of its component's modules, and no others.
struct Making {
  const StateView& view;
  Operations& core;
  const Component& component;
  const Policy& policy;
  const Limits& limits;
  TaskQueues& queues;
};

// Makes a policy's scheduler, with its settings: a paper's, or a test's. Shared by all who have the policy; constant.
class SchedulerFactory {
 public:
  virtual ~SchedulerFactory() = default;
  [[nodiscard]] virtual std::unique_ptr<ComponentScheduler> make(const Making& from) const = 0;
  // What makes its estimates of the samples that the core leaves; nullptr: it looks at none. `draws` and `seed` are of
  // what it draws.
  [[nodiscard]] virtual std::unique_ptr<Estimator> estimator(const Topology& topology, std::uint32_t draws,
                                                             std::uint64_t seed) const;
  [[nodiscard]] virtual bool estimates() const noexcept { return false; }
};

// Whether the policy's scheduler looks at estimates, and what makes them.
[[nodiscard]] bool needs_estimates(const Policy& policy) noexcept;
[[nodiscard]] std::unique_ptr<Estimator> make_estimator(const Policy& policy, const Topology& topology,
                                                        std::uint32_t draws = 10'000, std::uint64_t seed = 1);

// Leat's own schedulers.
enum class Own : std::uint8_t { reservations, windows, queues };
[[nodiscard]] Own own_scheduler(const LeatVariant& variant, const Component& component) noexcept;

[[nodiscard]] std::unique_ptr<ComponentScheduler> make_scheduler(const Making& from);

// A module's consumers, in the plan's order.
[[nodiscard]] std::vector<QueueConsumer> consumers_of(const Topology& topology, ModuleId module);

// One queue for each module of the component, with all its partitions in the plan's order.
void add_plain_queues(const Making& from);

}  // namespace leat::core
