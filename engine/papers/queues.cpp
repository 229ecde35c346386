#include "engine/papers/queues.h"

#include <algorithm>
#include <bit>

#include "engine/core/policy/by_urgency.h"
#include "engine/core/policy/path.h"

namespace leat::papers {

Queues::Queues(const Making& from, const std::function<Rules(Site&)>& rules)
    : ComponentScheduler(from.view, from.core, from.component),
      site_{view_, core_, component_, ByModule<ModulePlan>(view_.model, component_), from.policy.seed},
      rules_(rules(site_)) {
  make_queues(from.queues);
  make_plans();
  rules_.dispatch->plan();
  rules_.drop->estimates({});
}

// Each module's consumers, in order of preference, in one queue or in one each.
void Queues::make_queues(TaskQueues& queues) {
  for (ModuleId id : component_.modules) {
    std::vector<QueueConsumer> consumers = consumers_of(view_.topology(), id);
    std::ranges::stable_sort(
        consumers, [&](const QueueConsumer& a, const QueueConsumer& b) { return rules_.dispatch->before(a, b); });
    for (const QueueConsumer& s : consumers) {
      if (rules_.early) queues.add(view_.model, id, {&s, 1});
    }
    if (!rules_.early) queues.add(view_.model, id, consumers);
  }
}

void Queues::make_plans() {
  for (ModuleId m : component_.modules) {
    TimeNs sum = 0, consumers = 0;
    double rate = 0;
    site_.each_consumer(m, [&](ConsumerId v) {
      const QueueConsumer& s = site_.consumer(v);
      const RouteSpec& route = view_.route(s.route);
      // The busiest stage bounds a pipelined route; its pool is shared by all consumers of the route.
      double slowest = 0;
      for (const StageSpec& stage : route.stages)
        slowest = std::max(slowest, static_cast<double>(stage.latency.p50_ns[route.batch - 1]) /
                                        static_cast<double>(stage.pool.size()));
      rate += route.batch / (slowest * static_cast<double>(route.stages.front().pool.size())) /
              static_cast<double>(view_.queues.of_partition(s.partition).size());
      sum += s.run_ns[route.batch];
      ++consumers;
    });
    site_.plans[m] = {.run_ns = sum / consumers, .capacity_mhz = static_cast<std::int64_t>(rate * 1e12)};
  }
}

// ---- tasks come and go ----

QueueId Queues::enqueue(TaskId id) noexcept {
  const Task& t = site_.task(id);
  rules_.order->arrived(t);
  const QueueId at = view_.queues.count(t.module) == 1 ? view_.queues.first(t.module)
                                                       : holding(rules_.dispatch->place(t.module, t), t);
  if (rules_.early) rules_.dispatch->joined(at, t);
  return at;
}

void Queues::left(TaskId id) noexcept {
  if (rules_.early) rules_.dispatch->left(site_.task(id).queue, site_.task(id));
}

// The same place, or, where it cannot hold so many items, one that can: the next that is up, or else any.
QueueId Queues::holding(QueueId chosen, const Task& t) const noexcept {
  const QueueId first = view_.queues.first(t.module), count = view_.queues.count(t.module);
  QueueId any = chosen;
  for (QueueId i = 0; i < count; ++i) {
    const QueueId l = first + (chosen - first + i) % count;
    if (site_.cap(site_.consumer_of(l)) < t.items) continue;
    if (i == 0 || site_.up(l)) return l;
    any = l;
  }
  return any;
}

// ---- partitions ask ----

bool Queues::next(PartitionId id) noexcept {
  if (!view_.idle(id) || view_.machine.batches_left() == 0) return false;
  return by_urgency(
      view_, id, [](std::uint8_t level) { return level; }, [&](ConsumerId s) { return try_consumer(s); });
}

void Queues::leftover(QueueId id, ConsumerId) noexcept {
  if (rules_.form_ahead && site_.queue(id).tasks > 0) collect_ahead(id);
}

bool Queues::try_consumer(ConsumerId id) noexcept {
  const QueueConsumer& s = site_.consumer(id);
  const TaskQueue& l = site_.queue(s.queue);
  if (l.tasks == 0 && l.forming.tasks == 0) return false;
  const Partition& p = view_.machine.partition(s.partition);
  const TimeNs start = std::max(view_.now, p.held > 0 ? p.free_ns : view_.now);
  const std::uint32_t target = batch_target(s.queue, s);
  if (target == 0) return false;
  form(l, s, start, target);
  const std::uint32_t items = l.forming.items;
  if (l.forming.tasks == 0) return false;
  core_.start(s.queue, id, start, choose_path(view_, s.route, s.partition, items, start));
  rules_.dispatch->launched(s.queue, id, items);
  if (rules_.form_ahead && l.tasks > 0) collect_ahead(s.queue);
  return true;
}

// PARD, figure 3b: while a batch runs, its worker already takes requests into the next one.
void Queues::collect_ahead(QueueId id) noexcept {
  const TaskQueue& l = site_.queue(id);
  const QueueConsumer& s = site_.consumer_of(id);
  const Partition& p = view_.machine.partition(s.partition);
  if (!p.up || p.held == 0 || l.forming.items >= site_.cap(s)) return;
  form(l, s, std::max(view_.now, p.free_ns), site_.cap(s));
}

// ---- a batch ----

// Items; 0: not now.
std::uint32_t Queues::batch_target(QueueId id, const QueueConsumer& s) noexcept {
  const TaskQueue& l = site_.queue(id);
  const std::uint32_t waiting = l.items + l.forming.items, cap = site_.cap(s);
  if (rules_.batching == Batching::single) return 1;
  if (rules_.batching == Batching::greedy || waiting >= cap) return std::min(waiting, cap);
  // The last moment at which a batch with one item more may start so that the earliest deadline here is met.
  TimeNs earliest = kNever;
  for (std::uint32_t left = l.classes; left != 0; left &= left - 1) {
    const DeadlineQueue& ordered = l.by_deadline[static_cast<std::size_t>(std::countr_zero(left))];
    earliest = std::min(earliest, site_.task(ordered.front()).deadline_ns);
  }
  const TimeNs safe = earliest - s.run_ns[std::clamp(waiting + 1, 1u, cap)] - view_.model.module(l.module).min_after_ns;
  if (safe <= view_.now) return waiting;
  core_.wake(id, safe);
  return 0;
}

// Every test is made when the task is about to enter a batch; besides, what waits past the moment at which it is
// worthless is answered then by the core.
Reason Queues::judge(const Task& t, TimeNs start, TimeNs d) const noexcept {
  if (t.give_up_ns == kNever) return Reason::none;
  if (start >= t.give_up_ns) return Reason::expired;
  return rules_.drop->judge(t, start, d);
}

// Takes up to `target` items into the queue's next batch, dropping what the rule condemns on the way.
void Queues::form(const TaskQueue& l, const QueueConsumer& s, TimeNs start, std::uint32_t target) noexcept {
  const Order::First first = rules_.order->of(l.module);
  const TimeNs d = s.run_ns[site_.cap(s)];
  rules_.drop->look_over(l, s, start);
  while (l.forming.items < target && l.classes != 0) {
    const std::uint8_t top = view_.top_class(l);
    const TaskId id = first == Order::First::oldest         ? l.arrivals[top].front()
                      : first == Order::First::least_budget ? l.by_deadline[top].front()
                                                            : l.by_deadline[top].back();
    const Task& t = site_.task(id);
    if (l.forming.items + t.items > site_.cap(s) || view_.apart(l, id)) break;
    const Reason reason = judge(t, start, d);
    if (reason != Reason::none && !rules_.drop->spares(t, start, d)) {
      core_.drop(id, reason);
      continue;
    }
    core_.take(id);
  }
  if (first == Order::First::largest_budget) purge_low_end(l, start, d);
}

// With the largest budget first, the hopeless ones gather at the other end, where nobody looks.
void Queues::purge_low_end(const TaskQueue& l, TimeNs start, TimeNs d) noexcept {
  for (std::uint32_t left = l.classes; left != 0; left &= left - 1) {
    const DeadlineQueue& ordered = l.by_deadline[static_cast<std::size_t>(std::countr_zero(left))];
    while (!ordered.empty()) {
      const Reason reason = judge(site_.task(ordered.front()), start, d);
      if (reason == Reason::none) break;
      core_.drop(ordered.front(), reason);
    }
  }
}

}  // namespace leat::papers
