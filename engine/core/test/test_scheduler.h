// A scheduler for tests of what is around schedulers: a queue a module, whoever is next goes with as many as wait, up
// to the plan's batch, and what has expired is given up. It knows nothing of latency scales, later modules or users.
#pragma once

#include <algorithm>
#include <memory>

#include "engine/core/policy/by_urgency.h"
#include "engine/core/policy/path.h"
#include "engine/core/policy/registry.h"

namespace leat::core::test {

struct Plain {
  bool oldest_first = false;  // instead of the earliest deadline
  bool drops = true;          // what has expired
  bool foresees = false;      // and what a full batch would end too late for
};

class PlainQueues final : public ComponentScheduler {
 public:
  PlainQueues(const Making& from, const Plain& rules)
      : ComponentScheduler(from.view, from.core, from.component), rules_(rules) {
    add_plain_queues(from);
  }
  [[nodiscard]] bool keeps_late() const noexcept override { return !rules_.drops; }
  bool next(PartitionId p) noexcept override {
    if (!view_.idle(p) || view_.machine.batches_left() == 0) return false;
    return by_urgency(
        view_, p, [](std::uint8_t level) { return level; }, [&](ConsumerId s) { return serve(s); });
  }

 private:
  bool serve(ConsumerId id) noexcept {
    const QueueConsumer& s = view_.queues.consumer(id);
    const TaskQueue& l = view_.queues[s.queue];
    const Partition& p = view_.machine.partition(s.partition);
    const TimeNs start = std::max(view_.now, p.held > 0 ? p.free_ns : view_.now);
    const std::uint32_t batch = view_.route(s.route).batch, target = std::min(l.items, batch);
    while (l.forming.items < target && l.classes != 0) {
      const std::uint8_t top = view_.top_class(l);
      const TaskId id_next = rules_.oldest_first ? l.arrivals[top].front() : l.by_deadline[top].front();
      const Task& t = view_.tasks[id_next];
      if (l.forming.items + t.items > batch || view_.apart(l, id_next)) break;
      if (t.give_up_ns != kNever && start >= t.give_up_ns) {
        core_.drop(id_next, Reason::expired);
      } else if (rules_.foresees && t.give_up_ns != kNever && start + s.run_ns[batch] > t.give_up_ns) {
        core_.drop(id_next, Reason::unreachable);
      } else {
        core_.take(id_next);
      }
    }
    if (l.forming.tasks == 0) return false;
    (void)core_.start(s.queue, id, start, choose_path(view_, s.route, s.partition, l.forming.items, start));
    return true;
  }

  const Plain rules_;
};

class PlainFactory final : public SchedulerFactory {
 public:
  explicit PlainFactory(const Plain& rules) : rules_(rules) {}
  [[nodiscard]] std::unique_ptr<ComponentScheduler> make(const Making& from) const override {
    return std::make_unique<PlainQueues>(from, rules_);
  }

 private:
  const Plain rules_;
};

[[nodiscard]] inline Policy plain(const Plain& rules = {}) {
  Policy policy;
  policy.scheduler = std::make_shared<PlainFactory>(rules);
  return policy;
}

}  // namespace leat::core::test
