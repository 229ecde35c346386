#include "engine/core/policy/queues/queue_scheduler.h"

#include <algorithm>
#include <bit>

#include "engine/core/policy/by_urgency.h"
#include "engine/core/policy/freshest.h"
#include "engine/core/policy/path.h"

namespace leat::core {
namespace {

// Behind the entry a batch is cut to no less than this part of its cap rather than lose a task that has been worked on:
// 1.1 % of the work for nothing without it, .3 with it (docs/internals/policies.md).
constexpr std::uint32_t kMinPartPermille = 700;
// In a burst a backlog counts in proportion to its age until that is so many SLOs (docs/research/studies.md, bursts of
// Azure's LLM traces; chosen on PARD's series).
constexpr TimeNs kYoungSlos = 3;

}  // namespace

QueueScheduler::QueueScheduler(const Making& from)
    : ComponentScheduler(from.view, from.core, from.component),
      latency_share_permille_(from.policy.batch_latency_share_permille),
      variant_(from.policy.variant),
      periodic_(view_, core_, component_, from.policy),
      canaries_(view_, component_, from.policy),
      modules_(view_.model, component_),
      first_consumer_(static_cast<ConsumerId>(from.queues.consumers())),
      applications_(component_.applications.size()) {
  make_queues(from.queues);
  for (std::uint32_t a : component_.applications) plan_caps(a);
}

const QueueScheduler::ApplicationRules& QueueScheduler::rules_of(std::uint32_t application) const noexcept {
  const auto& list = component_.applications;
  return applications_[static_cast<std::size_t>(std::ranges::lower_bound(list, application) - list.begin())];
}

// One for each module; its consumers slowest first (fit.cpp).
void QueueScheduler::make_queues(TaskQueues& queues) {
  const Topology& t = view_.topology();
  for (ModuleId id : component_.modules) {
    std::vector<QueueConsumer> consumers = consumers_of(t, id);
    const auto min_ns = [&](const QueueConsumer& s) { return view_.model.run_ns(s.route)[1]; };
    if (variant_.fits) std::ranges::stable_sort(consumers, std::greater{}, min_ns);
    for (const QueueConsumer& s : consumers) caps_.push_back(t.routes[s.route].batch);
    modules_[id].consumer_count = static_cast<std::int64_t>(consumers.size());
    modules_[id].mixed = variant_.fits && min_ns(consumers.front()) != min_ns(consumers.back());
    queues.add(view_.model, id, consumers);
  }
}

// ---- partitions ask ----

void QueueScheduler::leftover(QueueId id, ConsumerId refused) noexcept {
  // `refused` leaves its partition idle, perhaps on purpose: another idle one may see it otherwise.
  const TaskQueue& l = queue(id);
  if (refused == kNone || (!modules_[l.module].mixed && !periodic_.active())) return;
  for (ConsumerId s = l.first_consumer; s < l.first_consumer + l.consumers && l.tasks > 0; ++s) {
    if (s != refused && view_.idle(consumer(s).partition)) (void)next(consumer(s).partition);
  }
}

bool QueueScheduler::next(PartitionId id) noexcept {
  if (!view_.idle(id) || view_.machine.batches_left() == 0) return false;
  if (periodic_.active()) {
    const Turn turn = periodic_.serve(id, *this);
    if (turn == Turn::idle && view_.machine.partition(id).deferred_until_ns == 0) return try_canary(id);
    if (turn != Turn::not_shared) return turn == Turn::started;
  }
  if (try_canary(id)) return true;
  return by_urgency(
      view_, id, [&](std::uint8_t level) { return periodic_.rank_of(level); },
      [&](ConsumerId s) { return try_consumer(s); });
}

bool QueueScheduler::try_consumer(ConsumerId id) noexcept {
  const QueueConsumer& s = consumer(id);
  const TaskQueue& l = queue(s.queue);
  if (l.tasks == 0) return false;
  const TimeNs start = view_.start_ns(s.partition);
  ModuleRules& m = modules_[l.module];
  ramp(fixed(l.module).application);
  const std::uint32_t target = variant_.one_request ? 1 : std::min(l.items, cap_of(id));
  m.after_ns = forecast(l.module, target, start - view_.now + scaled(l.module, s.run_ns[std::min(target, cap_of(id))]));
  if (m.mixed || (variant_.fits && l.items > l.tasks)) {  // unequal partitions, or unequal requests
    form_fitting(l, id, start, target);
  } else {
    form(l, id, start, latency_share_permille_ > 0 ? shrink(l, id, start, target) : target);
  }
  if (l.forming.tasks == 0) return false;
  launch(s.queue, id, start);
  return true;
}

// Look-ahead has chosen: a batch that `lead` begins.
void QueueScheduler::start_chosen(ConsumerId id, TaskId lead, std::uint32_t requests) noexcept {
  const QueueConsumer& s = consumer(id);
  const TaskQueue& l = queue(s.queue);
  const std::uint32_t target = std::min(own_cap(id), std::max(requests, task(lead).items));
  modules_[l.module].after_ns = forecast(l.module, target, s.run_ns[target]);
  const TimeNs alone = s.run_ns[task(lead).items];
  const Reason reason = judge(task(lead), view_.now, alone);
  if (reason != Reason::none && !doubted(task(lead), view_.now, alone)) {
    if (!canaries_.tries(lead, s.partition)) return core_.drop(lead, reason);
    core_.take(lead);
    return launch(s.queue, id, view_.now, true);
  }
  core_.take(lead);
  if (l.forming.items < target) form(l, id, view_.now, target);
  launch(s.queue, id, view_.now);
}

// ---- who is next, how large a batch is, what goes into it ----

// The freshest come first where the time to drain the queue exceeds what the freshest could spend waiting here; in an
// overload the oldest would all be late by little. Else the oldest come first.
bool QueueScheduler::largest_budget_first(const TaskQueue& l, ConsumerId s) const noexcept {
  if (l.classes == 0) return false;
  const ModuleRules& m = modules_[l.module];
  const TimeNs budget = task(l.by_deadline[view_.top_class(l)].back()).deadline_ns - view_.now -
                        scaled(l.module, consumer(s).run_ns[cap_of(s)]) - m.after_ns;
  const TimeNs drain = static_cast<TimeNs>(l.items) * scaled(l.module, m.ns_per_item);
  // Largest first gives up the old for the sake of the fresh: right while the overload lasts. When it ends soon, the
  // fresh could have waited until then, and a young backlog may end soon.
  std::int64_t believed = 1000;
  const std::uint32_t a = fixed(l.module).application;
  const ApplicationLoad& seen = view_.load.application(a);
  const ApplicationRules& rules = rules_of(a);
  if (variant_.ages && rules.burst && rules.burst_from_ns == seen.backlog_ns) {
    const TimeNs grown = application(l.module).slo_ns / 1000 * (1000 * kYoungSlos);
    believed = std::min<std::int64_t>(1000, (view_.now - seen.backlog_ns) * 1000 / std::max<TimeNs>(1, grown));
  }
  return drain * believed > budget * 1000;
}

// What has been worked on upstream is not given up for the sake of a full batch: the largest batch, at least a part of
// the target, with which the earliest deadline here is still met. Entry modules keep the target.
std::uint32_t QueueScheduler::shrink(const TaskQueue& l, ConsumerId s, TimeNs start,
                                     std::uint32_t target) const noexcept {
  if (l.classes == 0 || view_.topology().modules[l.module].before.empty()) return target;
  const std::uint32_t min = std::max(1u, target * kMinPartPermille / 1000);
  const TimeNs after = modules_[l.module].after_ns;
  const auto run = [&](std::uint32_t n) { return scaled(l.module, consumer(s).run_ns[std::min(n, own_cap(s))]); };
  for (TaskId t = l.by_deadline[view_.top_class(l)].front(); t != kNone; t = task(t).after) {
    const TimeNs room = task(t).give_up_ns == kNever ? kNever : task(t).give_up_ns - start - after;
    if (room < run(min)) continue;  // lost in any case
    std::uint32_t n = target;
    while (n > min && run(n) > room) --n;
    return n;
  }
  return target;
}

// Takes up to `target` items into the queue's next batch, dropping what is condemned on the way. The highest class with
// tasks comes first, and in it what brings its stream furthest on, where deadlines do not decide.
void QueueScheduler::form(const TaskQueue& l, ConsumerId s, TimeNs start, std::uint32_t target) noexcept {
  const bool largest_first = largest_budget_first(l, s);
  const TimeNs d = scaled(l.module, consumer(s).run_ns[std::clamp(target, 1u, own_cap(s))]);
  const ModuleRules& m = modules_[l.module];
  const Pace pace{.start_ns = start, .run_ns = d + m.after_ns, .each_ns = scaled(l.module, m.ns_per_item)};
  while (l.forming.items < target && l.classes != 0) {
    const std::uint8_t top = view_.top_class(l);
    const TaskId fresh = freshest(view_, l, top, pace);
    const TaskId end = largest_first ? l.by_deadline[top].back() : l.by_deadline[top].front();
    const TaskId id = fresh != kNone ? fresh : end;
    if (l.forming.items + task(id).items > room(consumer(s)) || view_.apart(l, id)) break;
    const Reason reason = judge(task(id), start, d);
    if (reason != Reason::none && !doubted(task(id), start, d)) {
      core_.drop(id, reason);
      continue;
    }
    core_.take(id);
  }
  if (largest_first) purge_low_end(l, start, d);
}

// ---- when a waiting task is given up ----
//
// Every test is made when the task is about to enter a batch; besides, what waits past the moment at which it is
// worthless is answered then by the core.

// Reason::none: keep. `start` is when its batch would start (t_e), `d` what the batch is expected to take. As PARD's
// equation 3, with the forecast in place of averages: (t_e - t_s) + d + L_sub > SLO.
Reason QueueScheduler::judge(const Task& t, TimeNs start, TimeNs d) const noexcept {
  if (t.give_up_ns == kNever) return Reason::none;
  if (start >= t.give_up_ns) return Reason::expired;
  if (!variant_.foresees || start + d + modules_[t.module].after_ns <= t.give_up_ns) return Reason::none;
  return t.give_up_ns > t.deadline_ns ? Reason::stale : Reason::unreachable;
}

// A task that only the forecast of what comes after its module condemns is let through now and then, when its module
// has nothing better to do.
bool QueueScheduler::doubted(const Task& t, TimeNs start, TimeNs d) noexcept {
  if (!variant_.foresees || start > view_.now) return false;
  if (start + d + fixed(t.module).min_after_ns > t.give_up_ns) return false;
  return canaries_.doubt_forecast(t.module);
}

// By the estimates the task, alone on the fastest consumer of its queue, would not be in time.
bool QueueScheduler::late(ConsumerId id, TaskId t) noexcept {
  const TaskQueue& l = queue(consumer(id).queue);
  const QueueConsumer& s = consumer(modules_[l.module].mixed ? l.first_consumer + l.consumers - 1 : id);
  const std::uint32_t items = std::min(task(t).items, room(s));
  const TimeNs d = scaled(l.module, s.run_ns[items]);
  modules_[l.module].after_ns = forecast(l.module, items, d);
  return judge(task(t), view_.now, d) != Reason::none;
}

bool QueueScheduler::try_canary(PartitionId p) noexcept {
  const Canaries::Found found = canaries_.on(p, [this](ConsumerId s, TaskId t) { return late(s, t); });
  if (found.task == kNone) return false;
  core_.take(found.task);
  launch(consumer(found.consumer).queue, found.consumer, view_.now, true);
  return true;
}

// With the largest budget first, the hopeless ones gather at the other end, where nobody looks.
void QueueScheduler::purge_low_end(const TaskQueue& l, TimeNs start, TimeNs d) noexcept {
  for (std::uint32_t left = l.classes; left != 0; left &= left - 1) {
    const DeadlineQueue& waiting = l.by_deadline[static_cast<std::size_t>(std::countr_zero(left))];
    while (!waiting.empty()) {
      const Reason reason = judge(task(waiting.front()), start, d);
      if (reason == Reason::none) break;
      core_.drop(waiting.front(), reason);
    }
  }
}

// ---- a batch goes, and comes back ----

void QueueScheduler::launch(QueueId queue_id, ConsumerId id, TimeNs start, bool canary) noexcept {
  const QueueConsumer& s = consumer(id);
  const std::uint32_t items = queue(queue_id).forming.items;
  const std::uint32_t batch = core_.start(queue_id, id, start, choose_path(view_, s.route, s.partition, items, start));
  if (canary) {
    core_.canary(batch);
    canaries_.sent(batch);
  }
  periodic_.promised(id, items, start);
}

void QueueScheduler::started(std::uint32_t batch) noexcept {
  const Batch& b = view_.machine.batch(batch);
  if (class_of(b.level) == 0)
    periodic_.spend_background(view_.model.run_ns(b.route)[std::min(b.list.items, view_.route(b.route).batch)]);
}

void QueueScheduler::ended(std::uint32_t batch, TimeNs ran, bool usual) noexcept {
  periodic_.learn(view_.machine.batch(batch), ran, usual);
  canaries_.ended(batch, ran, usual);
}

}  // namespace leat::core
