// What a partition goes on with by itself: the next module of the same requests, where it serves that too and it is so
// short that asking would be a good part of it. It is said with the batch, and told with its end; here it becomes a
// batch like any other, which runs already.
//
// Only where a module's one successor waits for nothing else, so that what its results make is known to whoever has
// them, and where its tasks are of one size, so that it is known how many are one batch; and for requests that may ride
// with others, be it of their own user alone. A batch beside which another can run goes on only where none does: while
// work waits, its partition gains more by overlapping than by not asking, and what follows the answer is sent before it
// is free.
#include <algorithm>

#include "engine/core/core.h"

namespace leat::core {

// By consumer, kNone: it asks. Part of a plan's making.
std::vector<ConsumerId> find_sequels(const Model& model, const TaskQueues& queues, TimeNs within_ns) {
  const Topology& t = model.topology();
  std::vector<ConsumerId> out(queues.consumers(), kNone);
  for (ConsumerId c = 0; c < out.size() && within_ns > 0; ++c) {
    const QueueConsumer& mine = queues.consumer(c);
    const ModuleSpec& module = t.modules[queues[mine.queue].module];
    if (module.after.size() != 1 || module.fan_out_cap > 1 || t.routes[mine.route].stages.size() != 1) continue;
    const ModuleId next = module.after.front();
    if (t.modules[next].before.size() != 1 || model.module(next).branch_permille < 1000) continue;
    if (t.modules[next].differs_in_size) continue;
    for (ConsumerId other : queues.of_partition(mine.partition)) {
      const QueueConsumer& s = queues.consumer(other);
      const RouteSpec& route = t.routes[s.route];
      const std::uint32_t most = std::min(route.batch, t.modules[next].fan_out_cap);
      if (queues[s.queue].module == next && route.stages.size() == 1 && s.run_ns[most] <= within_ns) out[c] = other;
    }
  }
  return out;
}

RouteId Scheduler::State::sequel(const Batch& b, ConsumerId consumer) const noexcept {
  const ConsumerId next = plan->sequels[consumer];
  if (next == kNone) return kNone;
  const bool overlaps = plan->model.topology().routes[b.route].stages[0].overlap_permille != 0;
  const auto waits = [&](ConsumerId c) { return plan->queues[plan->queues.consumer(c).queue].tasks != 0; };
  if (overlaps &&
      (machine.partition(b.path[0]).held != 0 || std::ranges::any_of(plan->queues.of_partition(b.path[0]), waits)))
    return kNone;
  for (TaskId t = b.list.first; t != kNone; t = tasks[t].next_in_batch) {
    const Request& r = ledger.request(tasks[t].request);
    if (r.company == Company::nobody || r.deaths > 0 || r.gated || r.dear) return kNone;
  }
  return plan->queues.consumer(next).route;
}

// The tasks that the batch's results have made, in the order of its tasks and of their items. They are all there, or
// their request is gone.
void Scheduler::State::go_on(RouteId then, PartitionId partition, TimeNs since) noexcept {
  const ModuleId module = plan->model.topology().routes[then].module;
  const std::vector<ConsumerId>& mine = plan->queues.of_partition(partition);
  const auto found = std::ranges::find(mine, then, [&](ConsumerId c) { return plan->queues.consumer(c).route; });
  if (found == mine.end() || !machine.partition(partition).up || machine.batches_left() == 0) return;
  const QueueConsumer& consumer = plan->queues.consumer(*found);
  const TaskQueue& queue = plan->queues[consumer.queue];
  check(queue.forming.tasks == 0, "a partition goes on while a batch forms");
  for (const std::uint32_t request : scratch.requests) {
    std::array<TaskId, kMaxBatch> made{};
    std::size_t n = 0;
    for (TaskId t = ledger.request(request).tasks; t != kNone && n < made.size(); t = tasks[t].next_of_request) {
      if (tasks[t].module == module && tasks[t].state == TaskState::queued) made[n++] = t;
    }
    std::ranges::sort(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(n), {},
                      [&](TaskId t) { return tasks[t].item; });
    const std::uint32_t most = plan->model.topology().routes[then].batch;
    for (std::size_t i = 0; i < n && queue.forming.items + tasks[made[i]].items <= most; ++i) take(made[i]);
  }
  if (queue.forming.tasks == 0) return;
  const TimeNs run = consumer.run_ns[queue.forming.items];
  const TimeNs behind = std::max<TimeNs>(0, machine.partition(partition).free_ns - now);  // what waits there already
  Path path;
  path.partition[0] = partition;
  path.end_ns[0] = since + run;
  const std::uint32_t id = send_forming(consumer.queue, *found, now, path);
  Batch& b = machine.change_batch(id);
  b.went_on = b.begun = true;
  b.started_ns = since;
  b.then = kNone;
  machine.change(partition).free_ns = std::max(now, since + run) + behind;
  set_idle(partition);
}

}  // namespace leat::core
