// PPipe's data plane as printed (Algorithms 1 and 2): a whole batch is reserved on a whole path, on timelines of
// partitions and of links, and reservations are corrected by what really happened.
#pragma once

#include "engine/core/policy/policy_keys.h"
#include "engine/core/policy/reservations/reservations.h"

namespace leat::papers {

using namespace core;  // a scheduler is written in the core's words

struct PPipe {
  bool append_only = false;   // nothing is booked before what is booked already
  bool as_simulated = false;  // what else its authors' simulator does beyond Algorithm 1
};
extern const std::span<const Key<PPipe>> kPPipeKeys;
void use(const PPipe& settings, Policy& out);

// With `as_simulated` by what its authors' simulator does beyond Algorithm 1: the entry's partition is the one whose
// uplink could send first, of equals the pool's first; who is not in time with the planned batch when first looked at
// is dropped; routes of single tasks that are late are the last choice. That simulator's tables only append.
class PPipePlane final : public Reservations {
 public:
  PPipePlane(const Making& from, const PPipe& settings);
  void visit_state(Snapshot& state) override {
    Reservations::visit_state(state);
    state(looked_at_);
  }

 private:
  [[nodiscard]] TaskId next_task(const TaskQueue& queue) const noexcept override;
  [[nodiscard]] TimeNs bound_of(ModuleId module, TaskId task) const noexcept override;
  [[nodiscard]] Booked book_waiting(QueueId queue, TaskId head, TimeNs bound) noexcept override;
  [[nodiscard]] PathPlan earliest(RouteId route, std::uint32_t items) const noexcept;
  [[nodiscard]] PathPlan least_waiting(ModuleId module, TimeNs bound) const noexcept;

  const bool as_simulated_;
  ByModule<std::uint64_t> looked_at_;  // as simulated: 1 + the serial of the last head looked at
};

// Makes a scheduler that needs nothing but its settings.
template <class Scheduler, class Settings>
class FactoryOf final : public SchedulerFactory {
 public:
  explicit FactoryOf(const Settings& settings) : settings_(settings) {}
  [[nodiscard]] std::unique_ptr<ComponentScheduler> make(const Making& from) const override {
    return std::make_unique<Scheduler>(from, settings_);
  }

 private:
  const Settings settings_;
};

// The oldest of the highest class.
[[nodiscard]] inline TaskId oldest(const StateView& view, const TaskQueue& queue) noexcept {
  return queue.classes == 0 ? kNone : queue.arrivals[view.top_class(queue)].front();
}

// By when the task's module must be done with it, with the least times of what follows.
[[nodiscard]] inline TimeNs module_bound(const StateView& view, const Task& t) noexcept {
  return t.give_up_ns == kNever ? kNever : t.deadline_ns - view.model.module(t.module).min_after_ns;
}

}  // namespace leat::papers
