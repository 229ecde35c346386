#include "engine/core/policy/queues/queue_scheduler.h"

#include <algorithm>

#include "engine/core/policy/by_urgency.h"
#include "engine/core/policy/path.h"

namespace leat::core {

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
    std::vector<QueueConsumer> consumers;
    for (RouteId route : t.modules[id].routes) {
      for (PartitionId p : t.routes[route].stages.front().pool) consumers.push_back({.partition = p, .route = route});
    }
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
  const Partition& p = view_.machine.partition(s.partition);
  const TimeNs start = std::max(view_.now, p.held > 0 ? p.free_ns : view_.now);
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
