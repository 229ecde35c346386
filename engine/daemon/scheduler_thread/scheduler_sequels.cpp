// What a worker goes on with by itself: it is told with a batch (Action::then), says at the batch's end that it has,
// and reports the results as those of a batch that the core makes of them meanwhile.
#include <algorithm>

#include "engine/daemon/scheduler_thread/scheduler_loop.h"

namespace leat::daemon {

void SchedulerLoop::say_sequel(const Batch& batch, worker::DispatchCell& cell) const noexcept {
  if (batch.then == core::kNone) return;
  const std::uint32_t session = batch.by->session_of[batch.partition()][batch.by->first_stage[batch.then]];
  if (session >= worker::kNoModule) return;
  cell.then = static_cast<std::uint8_t>(session);
  cell.then_cap =
      static_cast<std::uint8_t>(std::min<std::uint32_t>(batch.by->routes[batch.then].fan_out_cap, UINT8_MAX));
  cell.then_batch = static_cast<std::uint8_t>(std::min(batch.by->routes[batch.then].batch, worker::kMaxBatch));
}

// The batch has ended, its results are in. False: the worker was not to go on, or cannot have.
bool SchedulerLoop::begin_sequel(std::uint32_t p, const Batch& batch, std::int64_t since) noexcept {
  if (batch.then == core::kNone) return false;
  Sequel& sequel = partitions_[p].sequel;
  const PlanTables::RouteLimits& limits = batch.by->routes[batch.then];
  const std::uint32_t most = std::min(limits.batch, worker::kMaxBatch);
  sequel.batch = core::kNone;
  sequel.count = sequel.reported = 0;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    const Task& task = batch.tasks[i];
    const core::TaskResult& result = batch.results[task.position];
    const std::uint32_t found = result.ok ? std::min(result.fan_out, limits.fan_out_cap) : 0;
    if (sequel.count + found > most) return false;
    for (std::uint32_t item = 0; item < found; ++item)
      sequel.tasks[sequel.count++] = {.stream = task.stream, .slot = task.slot, .item = item, .position = core::kNone};
  }
  if (sequel.count == 0) return false;
  sequel.live = true;
  sequel.of_batch = static_cast<std::uint32_t>(&batch - batches_.data());
  sequel.of_generation = batch.generation;
  sequel.began_ns = since;
  for (const Task& t : std::span(sequel.tasks.data(), sequel.count))
    clients_[streams_[t.stream].client].port->hold(streams_[t.stream].index, t.slot);
  return true;
}

// The core's batch of those that are still wanted, in the same order.
void SchedulerLoop::join_sequel(std::uint32_t index, std::int64_t) noexcept {
  Batch& batch = batches_[index];
  Sequel& sequel = partitions_[batch.partition()].sequel;
  sequel.batch = index;
  batch.reported = 0;
  batch.next = core::kNone;
  batch.dispatched_ns = batch.began_ns = sequel.began_ns;
  std::uint32_t i = 0;
  for (Task& mine : std::span(sequel.tasks.data(), sequel.count)) {
    if (i == batch.count) break;
    const Task& wanted = batch.tasks[i];
    if (wanted.stream == mine.stream && wanted.slot == mine.slot && wanted.item == mine.item) mine.position = i++;
  }
}

// False: it has gone on with nothing, or the cell makes no sense.
bool SchedulerLoop::report_sequel(std::uint32_t p, const worker::ReportCell& cell, std::int64_t now) noexcept {
  Partition& partition = partitions_[p];
  Sequel& sequel = partition.sequel;
  if (!sequel.live || cell.batch != sequel.of_batch || cell.batch_generation != sequel.of_generation ||
      cell.count != sequel.count || cell.first != sequel.reported || cell.rows_copied != 0)
    return false;
  const std::uint32_t here = std::min(sequel.count - sequel.reported, worker::kResultsPerCell);
  for (std::uint32_t i = 0; i < here; ++i) {
    const worker::TaskReport& r = cell.results[i];
    if (r.reason >= kReasonCount) return false;
    const std::uint32_t position = sequel.tasks[sequel.reported + i].position;
    if (sequel.batch == core::kNone || position == core::kNone) continue;
    Batch& batch = batches_[sequel.batch];
    const auto reason = static_cast<Reason>(r.reason);
    batch.tasks[position].reason = reason;
    batch.results[position] = {.ok = reason == Reason::none, .reason = reason, .fan_out = r.fan_out};
  }
  sequel.reported += here;
  if (sequel.reported < sequel.count) return true;
  const std::uint32_t index = sequel.batch;
  let_sequel_go(partition);
  if (index != core::kNone) {
    count_end(batches_[index], cell, now);
    finish(index, now);
  } else {
    start_next(partition, now);
  }
  return true;
}

// Its worker touches the slots no more.
void SchedulerLoop::let_sequel_go(Partition& partition) noexcept {
  Sequel& sequel = partition.sequel;
  if (!sequel.live) return;
  sequel.live = false;
  for (const Task& t : std::span(sequel.tasks.data(), sequel.count)) {
    Client& client = clients_[streams_[t.stream].client];
    client.port->unhold(streams_[t.stream].index, t.slot);
    client.dirty = true;
  }
}

}  // namespace leat::daemon
