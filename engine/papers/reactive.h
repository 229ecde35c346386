// PPipe's ablation (section 7.4), a Clockwork-like reactive scheduler for each pool: it batches by itself and nothing
// is reserved ahead. A task is booked for one stage at a time, when its features are made; links are not looked at, so
// that features may come later than the batch is due.
//
// A pool's own objective: its part of the SLO, in proportion to the planned times of the route's stages and hand-overs.
// The largest batch that keeps it for each of its members is run.
#pragma once

#include "engine/papers/ppipe.h"

namespace leat::papers {

struct Reactive {
  bool append_only = false;
};
extern const std::span<const Key<Reactive>> kReactiveKeys;
void use(const Reactive& settings, Policy& out);

class ReactivePools final : public Reservations {
 public:
  ReactivePools(const Making& from, const Reactive& settings)
      : Reservations(from, {.append_only = settings.append_only}) {}

 private:
  [[nodiscard]] TaskId next_task(const TaskQueue& queue) const noexcept override;
  [[nodiscard]] TimeNs bound_of(ModuleId module, TaskId task) const noexcept override;
  [[nodiscard]] Booked book_waiting(QueueId queue, TaskId task, TimeNs until) noexcept override;
  [[nodiscard]] bool book_next(TaskId task, const Batch& batch) noexcept override;
  [[nodiscard]] TimeNs stage_bound(RouteId route, std::size_t k, TimeNs from, TimeNs until) const noexcept;
  [[nodiscard]] LegPlan earliest_batch(RouteId route, std::size_t k, TaskId task, TimeNs ready,
                                       TimeNs bound) const noexcept;
};

}  // namespace leat::papers
