// Canaries: tasks that only an estimate condemns and that are run all the same, so that the estimate can be wrong for a
// moment but not for ever. An estimate that is too high would otherwise drop everything and never be corrected, since
// nothing would run.
//
// A canary runs alone, on a partition that holds nothing and for which nobody waits who could still be in time. What it
// took sets the latency scale of its module at once (load/far_off.h), so that where the estimate was wrong one is
// enough. Where it was right, canaries are few: none for a quarter of a second after a batch of the module, after each
// in a row twice as long, and none on a partition for twenty times as long as its last one took. Nothing is learned
// from users whose tasks run apart from others' (ledger/shares.h), so theirs are never canaries.
//
// Beside it, a smaller doubt: what only the forecast of later modules' queues condemns is let through ten times a
// second (PARD's rule needs it too).
#pragma once

#include "engine/core/policy/scheduler_interface.h"
#include "engine/core/snapshot.h"

namespace leat::core {

class Canaries {
 public:
  struct Found {
    ConsumerId consumer = kNone;
    TaskId task = kNone;  // kNone: nobody
  };

  Canaries(const StateView& view, const Component& component, const Policy& policy)
      : view_(view), enabled_(policy.canaries), modules_(view.model, component), partitions_(view.model, component) {}

  // Whether one of the module's tasks may be tried on that partition now, as far as it goes by what has run.
  [[nodiscard]] bool may(ModuleId module, PartitionId partition) const noexcept;
  // Whether the task is one whose run says something of others'.
  [[nodiscard]] bool tells(TaskId task) const noexcept { return view_.company(task) == Company::anybody; }

  // Whether this one, which the estimates condemn, is to be tried on that partition.
  [[nodiscard]] bool tries(TaskId task, PartitionId partition) const noexcept {
    const Task& t = view_.tasks[task];
    return t.give_up_ns > view_.now && tells(task) && may(t.module, partition);
  }

  // Who is to be tried on the partition, of its queues' tasks, on routes of one stage. late(consumer, task): the
  // estimates condemn it, though it has not expired. Nobody, where somebody waits who is not late.
  template <class Late>
  [[nodiscard]] Found on(PartitionId partition, Late&& late) const noexcept {
    Found found;
    if (!may_some(partition)) return found;
    for (ConsumerId s : view_.queues.of_partition(partition)) {
      const TaskQueue& queue = view_.queues[view_.queues.consumer(s).queue];
      if (queue.forming.tasks > 0) return {};
      for (std::uint32_t left = queue.classes; left != 0; left &= left - 1) {
        // The latest deadlines are the likeliest to be met.
        std::uint32_t looks = 0;
        const DeadlineQueue& waiting = queue.by_deadline[static_cast<std::size_t>(std::countr_zero(left))];
        for (TaskId t = waiting.back(); t != kNone && looks < kLooks; t = view_.tasks[t].before, ++looks) {
          if (view_.tasks[t].give_up_ns <= view_.now) continue;
          if (!late(s, t)) return {};
          if (found.task == kNone && fits(s, t) && tries(t, partition)) found = {s, t};
        }
      }
    }
    return found;
  }

  void sent(std::uint32_t batch) noexcept;                           // a canary
  void ended(std::uint32_t batch, TimeNs ran, bool usual) noexcept;  // any batch's stage

  // Only the forecast condemns the task: true now and then.
  [[nodiscard]] bool doubt_forecast(ModuleId module) noexcept;
  void visit_state(Snapshot& state) { state(modules_, partitions_); }

 private:
  static constexpr std::uint32_t kLooks = 16;
  struct OfModule {
    TimeNs last_ns = INT64_MIN / 2;   // when a batch of it ended that tells, or a canary was sent
    TimeNs doubt_ns = INT64_MIN / 2;  // when a forecast was last doubted
    std::uint32_t row = 0;            // canaries since another batch of it ended
  };
  [[nodiscard]] bool may_some(PartitionId partition) const noexcept;
  [[nodiscard]] bool fits(ConsumerId s, TaskId t) const noexcept {
    const RouteSpec& route = view_.route(view_.queues.consumer(s).route);
    return route.stages.size() == 1 && view_.tasks[t].items <= route.batch;
  }

  const StateView& view_;
  const bool enabled_;
  ByModule<OfModule> modules_;
  ByPartition<TimeNs> partitions_;  // no canary before
};

}  // namespace leat::core
