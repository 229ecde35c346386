// Batches on their way: sent to a worker, started, reported, moved on to the next stage, over.
//
// Two ways lead through a route of several stages. With reservations the core sends each stage on its own, and may
// split a batch or gather several: the features of a stage that has ended wait in their request's chain
// (feature_ledger.h). Without, one batch goes over its whole path and takes its features along.
#include <algorithm>
#include <utility>

#include "engine/daemon/scheduler_thread/scheduler_loop.h"

namespace leat::daemon {

using shm::EdgeCounter;
using shm::EventKind;
using shm::RecordKind;

namespace {

constexpr std::int64_t kTurnNs = 1'000'000;  // a report may be younger than the turn that takes it

}  // namespace

// ---- sending ----

void SchedulerLoop::dispatch(const core::Action& action, std::int64_t now) noexcept {
  Batch& batch = batches_[action.batch.index];
  batch.live = true;
  batch.generation = action.batch.generation;
  batch.by = plans_.in_force;
  batch.route = action.route;
  batch.module = action.module;
  batch.then = action.then;
  batch.alone = action.alone;
  batch.stage = action.first_stage;
  batch.last_stage = action.first_stage + static_cast<std::uint32_t>(action.path.size()) - 1;
  std::copy(action.path.begin(), action.path.end(), batch.path.begin() + action.first_stage);
  batch.count = static_cast<std::uint32_t>(action.tasks.size());
  batch.items = 0;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    const core::TaskRef& task = action.tasks[i];
    const auto s = static_cast<std::uint32_t>(task.token >> kSlotBits);
    const auto slot = static_cast<std::uint32_t>(task.token & ((1u << kSlotBits) - 1));
    Stream& stream = streams_[s];
    Slot& record = stream.slots[slot];
    if (!record.dispatched) {
      record.dispatched = true;
      record.dispatched_ns = now;
      metrics_.first_dispatch(stream.granted.pool, now - record.submitted_ns);
    }
    clients_[stream.client].port->hold(stream.index, slot);
    batch.tasks[i] = {.stream = s, .slot = slot, .item = task.item, .items = task.items, .position = i};
    batch.items += task.items;
  }
  metrics_.of(RecordKind::module, action.module).add(shm::ModuleCounter::running, batch.count);
  if (batch.stage > 0) {
    find_features(batch);
  } else if (edges_of(batch).out !=
             core::kNone) {  // a task whose way was lost starts again: what it had made is forgotten
    for (const Task& t : std::span(batch.tasks.data(), batch.count))
      features_.forget(streams_[t.stream].slots[t.slot].features, batch.module, t.item);
  }
  if (action.went_on) return join_sequel(action.batch.index, now);
  reach(action.batch.index, now);
}

// In the order of the rows, so that a batch that lies together is read in place whatever order the core gave it.
void SchedulerLoop::find_features(Batch& batch) noexcept {
  const std::span tasks(batch.tasks.data(), batch.count);
  for (Task& t : tasks) {
    const Features f = features_.find(streams_[t.stream].slots[t.slot].features, batch.module, t.item);
    t.row_in = f.row;
    t.reason = f.reason;
  }
  std::sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.row_in < b.row_in; });
}

// A batch has come to its partition: into the ring, or behind it while that is full.
void SchedulerLoop::reach(std::uint32_t index, std::int64_t now) noexcept {
  Batch& batch = batches_[index];
  Partition& partition = partitions_[batch.partition()];
  batch.reported = 0;
  batch.dispatched_ns = now;
  batch.next = core::kNone;
  if (partition.queued < worker::kMaxQueuedBatches) return send(index, now);
  (partition.last_waiting == core::kNone ? partition.first_waiting : batches_[partition.last_waiting].next) = index;
  partition.last_waiting = index;
}

void SchedulerLoop::send(std::uint32_t index, std::int64_t now) noexcept {
  Batch& batch = batches_[index];
  const core::PartitionId p = batch.partition();
  Partition& partition = partitions_[p];
  const std::uint32_t edge_out = edges_of(batch).out;
  std::uint32_t row = worker::kNoRow;
  bool scrap = false;
  if (edge_out != core::kNone) {
    row = features_.take(edge_out, batch.items);
    scrap = features_.scrap(edge_out, row);
  }
  std::array<worker::DispatchCell, worker::kMaxBatch> cells;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    Task& task = batch.tasks[i];
    const Stream& stream = streams_[task.stream];
    task.row_out = row;
    if (row != worker::kNoRow) row += task.items;
    if (scrap && task.reason == Reason::none) task.reason = Reason::no_feature_slot;
    worker::DispatchCell& cell = cells[i];
    cell.batch = index;
    cell.batch_generation = batch.generation;
    cell.module = static_cast<std::uint16_t>(batch.by->session_of[p][batch.by->first_stage[batch.route] + batch.stage]);
    cell.stage = static_cast<std::uint8_t>(batch.stage);
    cell.position = static_cast<std::uint16_t>(i);
    cell.count = static_cast<std::uint16_t>(batch.count);
    cell.pool = stream.granted.pool;
    cell.pool_generation = stream.granted.pool_generation;
    cell.slot = task.slot;
    cell.item = task.item;
    cell.items = static_cast<std::uint16_t>(task.items);
    cell.color = stream.slots[task.slot].color;
    cell.row_in = task.row_in;
    cell.row_out = task.row_out;
    say_sequel(batch, cell);
    cell.alone = batch.alone ? 1 : 0;
    cell.dispatched_ns = batch.dispatched_ns;
  }
  const Task& first = batch.tasks[0];
  metrics_.event(EventKind::dispatched, now, UINT32_MAX, std::uint64_t{first.stream} << kSlotBits | first.slot, index,
                 p, batch.module);
  const bool pushed =
      partition.port != nullptr && !partition.broken && partition.port->push(std::span(cells.data(), batch.count));
  partition.dirty = true;
  if (!pushed) return give_up(p);
  partition.order[partition.queued++] = index;
  metrics_.of(RecordKind::partition, p).set(shm::PartitionCounter::queued, partition.queued);
  if (partition.queued == 1) start_next(partition, now);
}

// The oldest batch of a partition has begun: at its dispatch when the worker was free, else when the one before it
// ended.
void SchedulerLoop::start_next(Partition& partition, std::int64_t now) noexcept {
  const bool runs = partition.queued != 0 || partition.sequel.live;
  partition.hangs_at_ns = runs ? now + options_.batch_limit_ns : core::kNever;
  partition.excused = false;
  if (!runs) return;
  next_look_ns_ = std::min(next_look_ns_, partition.hangs_at_ns);
  if (partition.sequel.live) return;  // it has begun by itself
  const std::uint32_t index = partition.order[0];
  Batch& batch = batches_[index];
  batch.began_ns = now;
  shm::Record record = metrics_.of(RecordKind::partition, batch.partition());
  record.set(shm::PartitionCounter::running_since_ns, static_cast<std::uint64_t>(now));
  record.set(shm::PartitionCounter::running_module, batch.module);
  core_->stage_started(now, {index, batch.generation}, batch.stage);
}

void SchedulerLoop::give_up(std::uint32_t p) noexcept {
  Partition& partition = partitions_[p];
  if (!partition.broken) control_.notify({.kind = SchedulerEvent::Kind::worker_broken, .partition = p});
  partition.broken = true;
  partition.hangs_at_ns = core::kNever;
  unwatch_worker(p);
}

std::uint32_t SchedulerLoop::look_for_hung(std::int64_t now) noexcept {
  std::uint32_t found = 0;
  next_look_ns_ = core::kNever;
  for (std::uint32_t p = 0; p < used_partitions_; ++p) {
    Partition& partition = partitions_[p];
    if (partition.hangs_at_ns <= now) {
      // Where this look itself comes late the host stood still, and held up the worker like leatd.
      const bool late = now - partition.hangs_at_ns > options_.batch_limit_ns / 8;
      if (late && !std::exchange(partition.excused, true)) {
        partition.hangs_at_ns = now + options_.batch_limit_ns;
      } else {
        give_up(p);
        ++found;
      }
    }
    next_look_ns_ = std::min(next_look_ns_, partition.hangs_at_ns);
  }
  return found;
}

// ---- reports ----

std::uint32_t SchedulerLoop::take_reports(std::int64_t now) noexcept {
  std::uint32_t done = 0;
  std::array<worker::ReportCell, kReportsPerTurn> cells;
  for (std::uint32_t p = 0; p < used_partitions_; ++p) {
    Partition& partition = partitions_[p];
    if (partition.port == nullptr || partition.broken || !partition.port->has_reports()) continue;
    const std::uint32_t count = partition.port->take(cells);
    done += count;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (report(p, cells[i], now)) continue;
      give_up(p);
      break;
    }
  }
  return done;
}

// False: the cell names no batch that runs there, or makes no sense.
bool SchedulerLoop::report(std::uint32_t p, const worker::ReportCell& cell, std::int64_t now) noexcept {
  if (cell.kind == worker::ReportKind::sequel) return report_sequel(p, cell, now);
  if (cell.kind == worker::ReportKind::decoded) return decoded(partitions_[p], cell.count);
  if (cell.kind == worker::ReportKind::beside) return began_beside(partitions_[p], cell, now);
  const Partition& partition = partitions_[p];
  if (partition.sequel.live || partition.queued == 0 || cell.batch != partition.order[0]) return false;
  Batch& batch = batches_[cell.batch];
  if (cell.batch_generation != batch.generation || cell.count != batch.count || cell.first != batch.reported ||
      cell.stage != batch.stage)
    return false;
  if (cell.rows_copied > batch.items) return false;
  const std::uint32_t here = std::min(batch.count - batch.reported, worker::kResultsPerCell);
  for (std::uint32_t i = 0; i < here; ++i) {
    const worker::TaskReport& r = cell.results[i];
    if (r.reason >= kReasonCount) return false;
    Task& task = batch.tasks[batch.reported + i];
    if (task.reason == Reason::none) task.reason = static_cast<Reason>(r.reason);
    batch.results[task.position] = {.ok = task.reason == Reason::none, .reason = task.reason, .fan_out = r.fan_out};
  }
  batch.reported += here;
  if (batch.reported < batch.count) return true;
  const bool goes_on = cell.kind == worker::ReportKind::goes_on;
  // As the worker says, within what we have seen ourselves.
  const std::int64_t ended = std::clamp(cell.ended_ns, batch.began_ns, now);
  if (goes_on && !begin_sequel(p, batch, ended)) return false;
  count_end(batch, cell, now);
  finish(cell.batch, now, goes_on ? ended : 0);
  return true;
}

// The second of those that the worker has.
bool SchedulerLoop::began_beside(const Partition& partition, const worker::ReportCell& cell,
                                 std::int64_t now) noexcept {
  if (partition.sequel.live || partition.queued < 2 || cell.batch != partition.order[1]) return false;
  const Batch& batch = batches_[cell.batch];
  if (cell.batch_generation != batch.generation || batch.alone) return false;
  core_->stage_beside(now, {cell.batch, batch.generation}, batch.stage);
  return true;
}

void SchedulerLoop::count_end(const Batch& batch, const worker::ReportCell& cell, std::int64_t now) noexcept {
  metrics_.copied(std::min(cell.pixel_bytes_copied, batch.items * shm::kMaxTensorBytes));
  // As the worker says, within what we have seen ourselves.
  const std::int64_t latest = std::max(now, batch.dispatched_ns) + kTurnNs;
  const std::int64_t started = std::clamp(cell.started_ns, batch.dispatched_ns, latest);
  const std::int64_t ran = std::clamp(cell.ended_ns, started, latest) - started;
  shm::Record partition = metrics_.of(RecordKind::partition, batch.partition());
  std::int64_t& last_ended_ns = partitions_[batch.partition()].last_ended_ns;
  // Where batches overlap, one begins before the one before it has ended, and the partition is busy once.
  if (last_ended_ns != 0) partition.observe(shm::Which::second, std::max<std::int64_t>(0, started - last_ended_ns));
  const std::int64_t ended = started + ran;
  const std::int64_t busy = std::max<std::int64_t>(0, ended - std::max(started, last_ended_ns));
  last_ended_ns = std::max(ended, last_ended_ns);
  partition.observe(shm::Which::first, ran);
  partition.add(shm::PartitionCounter::busy_ns, static_cast<std::uint64_t>(busy));
  partition.add(shm::PartitionCounter::overhead_ns,
                static_cast<std::uint64_t>(std::max<std::int64_t>(0, now - batch.began_ns - busy)));
  partition.add(shm::PartitionCounter::batches);
  partition.add(shm::PartitionCounter::items, batch.items);
  partition.cause(batch.module, static_cast<std::uint64_t>(busy));
  for (const Task& t : std::span(batch.tasks.data(), batch.count)) {
    const GrantedStream& of = streams_[t.stream].granted;
    metrics_.took(of.pool, of.owner.record, busy * t.items / std::max<std::uint32_t>(batch.items, 1));
  }
  shm::Record module = metrics_.of(RecordKind::module, batch.module);
  module.observe(shm::Which::first, started - batch.dispatched_ns);
  module.observe(shm::Which::second, ran);
  const PlanTables::StageEdges& edges = edges_of(batch);
  if (edges.out == core::kNone) {  // the module's last stage
    module.add(shm::ModuleCounter::tasks, batch.count);
    module.add(shm::ModuleCounter::batches);
    module.add(shm::ModuleCounter::squeezed, std::min<std::uint32_t>(cell.squeezed, batch.count));
    module.add(shm::ModuleCounter::not_finite, std::min<std::uint32_t>(cell.not_finite, batch.count));
  }
  if (edges.in == core::kNone) return;
  shm::Record edge = metrics_.of(RecordKind::edge, edges.in);
  const std::uint64_t row_bytes = row_bytes_[edges.in];
  edge.add(EdgeCounter::transfers);
  edge.add(EdgeCounter::bytes_in_place, (batch.items - cell.rows_copied) * row_bytes);
  edge.add(EdgeCounter::bytes_copied, cell.rows_copied * row_bytes);
}

// A stage has ended, or so the worker says that ran it: nobody reads its features any more.
void SchedulerLoop::finish(std::uint32_t index, std::int64_t now, std::int64_t went_on_ns) noexcept {
  Batch& batch = batches_[index];
  const core::PartitionId p = batch.partition();
  Partition& partition = partitions_[p];
  if (partition.queued > 0 && partition.order[0] == index) {  // else the worker began it by itself
    --partition.queued;
    std::copy(partition.order.begin() + 1, partition.order.begin() + 1 + partition.queued, partition.order.begin());
  }
  shm::Record record = metrics_.of(RecordKind::partition, p);
  record.set(shm::PartitionCounter::queued, partition.queued);
  if (partition.queued == 0) record.set(shm::PartitionCounter::running_since_ns, 0);
  metrics_.event(EventKind::stage_finished, now, UINT32_MAX, 0, index, p, batch.stage);
  const PlanTables::StageEdges& edges = edges_of(batch);
  give_rows(batch, &Task::row_in, edges.in);
  const std::uint32_t stage = batch.stage, generation = batch.generation;
  const bool over = stage == batch.last_stage;
  if (over) {
    if (edges.out != core::kNone) keep_features(batch);
    release(batch);
  }
  start_next(partition, now);  // before the core may send more: the next in its queue runs already
  if (const std::uint32_t waiting = partition.first_waiting; waiting != core::kNone) {
    partition.first_waiting = batches_[waiting].next;
    if (partition.first_waiting == core::kNone) partition.last_waiting = core::kNone;
    send(waiting, now);
  }
  const bool goes_on = core_->stage_finished(now, {index, generation}, stage,
                                             edges.out == core::kNone
                                                 ? std::span<const core::TaskResult>(batch.results.data(), batch.count)
                                                 : std::span<const core::TaskResult>(),
                                             went_on_ns);
  if (goes_on) {
    for (Task& t : std::span(batch.tasks.data(), batch.count)) t.row_in = std::exchange(t.row_out, worker::kNoRow);
    ++batch.stage;
    reach(index, now);
  } else if (!over) {
    release(batch);  // a partition of its path was lost: the core has taken its tasks back
  }
  drain_actions(now);
}

// The core will send the next stage on its own.
void SchedulerLoop::keep_features(Batch& batch) noexcept {
  const std::uint32_t edge = edges_of(batch).out;
  for (Task& t : std::span(batch.tasks.data(), batch.count)) {
    Slot& slot = streams_[t.stream].slots[t.slot];
    if (slot.answered)
      features_.give(edge, t.row_out, t.items);
    else
      features_.keep(slot.features, {.module = batch.module,
                                     .item = t.item,
                                     .edge = edge,
                                     .row = t.row_out,
                                     .items = t.items,
                                     .reason = t.reason});
    t.row_out = worker::kNoRow;
  }
}

void SchedulerLoop::give_rows(Batch& batch, std::uint32_t Task::*row, std::uint32_t edge) noexcept {
  for (Task& t : std::span(batch.tasks.data(), batch.count)) {
    if (t.*row != worker::kNoRow) features_.give(edge, t.*row, t.items);
    t.*row = worker::kNoRow;
  }
}

// No worker touches the batch's slots and features any more.
void SchedulerLoop::release(Batch& batch) noexcept {
  give_rows(batch, &Task::row_in, edges_of(batch).in);
  give_rows(batch, &Task::row_out, edges_of(batch).out);
  for (const Task& t : std::span(batch.tasks.data(), batch.count)) {
    Stream& stream = streams_[t.stream];
    Client& client = clients_[stream.client];
    client.port->unhold(stream.index, t.slot);
    client.dirty = true;  // an answer kept back until now may have become visible
  }
  metrics_.of(RecordKind::module, batch.module).add(shm::ModuleCounter::running, 0 - std::uint64_t{batch.count});
  batch.live = false;
}

}  // namespace leat::daemon
