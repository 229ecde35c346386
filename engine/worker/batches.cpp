// A batch from the channel to its report.
#include <algorithm>
#include <cstdio>

#include "engine/worker/worker.h"
#include "shm/src/protocol/control_protocol.h"
#include "shm/src/rings/clock.h"

namespace leat::worker {

bool Worker::take_batch() {
  Batch& batch = batches_[(first_ + begun_) % batches_.size()];
  auto& cells = batch.cells;
  if (!channel_.dispatches.pop(cells[0])) return false;
  batch.count = cells[0].count;
  // The daemon publishes a batch's cells one after the other; the rest is there or about to be.
  for (std::uint32_t i = 1; i < batch.count; ++i)
    while (!channel_.dispatches.pop(cells[i])) {
    }
  while (!ending_ && static_cast<std::int32_t>(cells[0].control - control_.messages()) > 0) (void)read_control(true);
  if (ending_) return true;
  if (cells[0].kind == CellKind::access_unit)
    decode(cells[0]);
  else
    run_batch(batch);
  return true;
}

// A frame that was dropped meanwhile is answered when its slot is free.
void Worker::decode(const DispatchCell& cell) {
  if (!pools_.decode(cell) && !device_.lost())
    complain("stream " + std::to_string(cell.pool) + ": " + device_.get()->error());
  if (device_.lost()) {
    ending_ = true;
    return;
  }
  push_report({.kind = ReportKind::decoded, .count = 1});
  if (channel_.dispatches.empty()) wake_daemon();
}

void Worker::run_batch(Batch& batch) {
  if (goes_beside(batch)) return begin(batch);
  finish_all();
  if (!ending_) run_alone(batch);
}

void Worker::run_alone(Batch& batch) {
  compute(batch);
  if (ending_) return;
  const bool goes_on = find_sequel(batch);
  send_report(batch, goes_on ? ReportKind::goes_on : ReportKind::batch);
  // Nobody is woken yet, unless somebody's answer is there.
  const bool all =
      std::ranges::all_of(batch.tasks.begin(), batch.tasks.begin() + static_cast<std::ptrdiff_t>(batch.count),
                          [](const TaskReport& t) { return t.reason == 0 && t.fan_out > 0; });
  if (!goes_on || !all) wake_daemon();
  if (!goes_on) return;
  compute(sequel_);
  if (ending_) return;
  send_report(sequel_, ReportKind::sequel);
  wake_daemon();
}

// One task for each thing that the batch has found, up to the cap; none where leatd has not said so, or where they are
// too many for one batch.
bool Worker::find_sequel(const Batch& batch) {
  const DispatchCell& first = batch.cells[0];
  sequel_.count = 0;
  if (first.then == kNoModule) return false;
  for (std::size_t i = 0; i < batch.count; ++i) {
    const TaskReport& task = batch.tasks[i];
    const std::uint32_t found = task.reason != 0 ? 0 : std::min(task.fan_out, first.then_cap);
    if (sequel_.count + found > first.then_batch) return false;
    for (std::uint32_t item = 0; item < found; ++item) {
      DispatchCell& cell = sequel_.cells[sequel_.count++] = batch.cells[i];
      cell.module = first.then;
      cell.item = item;
      cell.items = 1;
      cell.then = kNoModule;
    }
  }
  return sequel_.count != 0;
}

// What a task is to its module; why it cannot be run.
Reason Worker::find_item(const DispatchCell& cell, exec::Item& item) {
  const ModuleSetup& module = setup_.modules[cell.module];
  bool has_parts = false;
  if (const Reason why = pools_.find(cell, &item, &has_parts); why != Reason::none) return why;
  if (item.frame.on_device && !modules_[cell.module].module->on_device()) return Reason::bad_frame;
  if (has_parts && modules_[cell.module].has_parts) item.parts = exec::parts_of(item.result, module.index);
  item.rows = cell.items;
  // Behind a detector an item is one of its detections; behind anything else it is the frame again.
  const bool crop = module.after_fan_out && item.result->kind == LEAT_RESULT_DETECTIONS;
  item.detection = crop ? static_cast<std::int32_t>(cell.item) : -1;
  return Reason::none;
}

void Worker::find_items(Batch& batch) {
  batch.started_ns = shm::monotonic_ns();
  batch.pixel_bytes_copied = 0;
  batch.rows_copied = batch.squeezed = batch.not_finite = 0;
  std::uint32_t count = 0;
  const bool stage = modules_[batch.cells[0].module].features.any();
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    const Reason why = find_item(batch.cells[i], batch.items[count]);
    batch.tasks[i] = {static_cast<std::uint8_t>(why), 0};
    // Where rows are fixed it stays, without a picture, so that it fails alone.
    if (why != Reason::none && !(why == Reason::undecodable && stage)) continue;
    batch.reports[count] = {};
    batch.task_of[count++] = static_cast<std::uint16_t>(i);
  }
  if (stage && count < batch.count) {  // rows are fixed, so that one task missing would shift the others
    for (TaskReport& r : batch.tasks) r.reason = static_cast<std::uint8_t>(Reason::partition_lost);
    count = 0;
  }
  batch.item_count = count;
}

// tasks then has what became of each.
void Worker::compute(Batch& batch) {
  find_items(batch);
  Served& served = modules_[batch.cells[0].module];
  if (batch.item_count != 0 && !served.module->run(batch.all_items(), std::span(batch.reports.data(), batch.item_count),
                                                   served.features.input(batch.all_cells(), &batch.rows_copied),
                                                   served.features.output(batch.all_cells())))
    complain(served.module->error());
  note_answers(batch);
}

// Its items have run.
void Worker::note_answers(Batch& batch) {
  if (device_.lost()) {  // this batch is answered when leatd sees how the process ended
    ending_ = true;
    return;
  }
  for (std::uint32_t i = 0; i < batch.item_count; ++i) note_answer(batch, i);
  tell_not_finite(batch.cells[0].module);
  batch.ended_ns = last_ended_ns_ = shm::monotonic_ns();
}

void Worker::note_answer(Batch& batch, std::uint32_t i) {
  const std::uint32_t module = batch.cells[0].module;
  const ModuleSetup& setup = setup_.modules[module];
  const exec::Item& item = batch.items[i];
  const exec::ItemReport& report = batch.reports[i];
  batch.pixel_bytes_copied += report.pixel_bytes_copied;
  if (report.squeezed != 0) {
    ++batch.squeezed;
    say_squeezed(module, report.squeezed);
  }
  if (report.not_finite) ++batch.not_finite;
  // Workers of modules side by side may write the same at once.
  if (item.detection < 0 && setup.edge_out == kNoEdge)
    shm::atomic_ref(item.result->model_version).store(setup.version, std::memory_order_relaxed);
  const bool detections = item.result->kind == LEAT_RESULT_DETECTIONS && item.detection < 0;
  TaskReport& task = batch.tasks[batch.task_of[i]];
  if (task.reason != 0) return;  // it had no picture
  task = {static_cast<std::uint8_t>(report.reason),
          static_cast<std::uint8_t>(detections ? std::min(report.fan_out, 255u) : 1u)};
}

// Once for each module: leatd may have put this version of it on trial.
void Worker::tell_not_finite(std::uint32_t module) {
  Served& served = modules_[module];
  if (served.told_not_finite || !served.module->not_finite()) return;
  if (!control_.told(encode_not_finite(module))) return;
  served.told_not_finite = true;
  const ModuleSetup& m = setup_.modules[module];
  std::fprintf(stderr,
               "leat-worker %s: warning: %s/%s: the model answers values that are infinite or no numbers; check the "
               "range of its input and its precision (answers that they spoil are counted: not_finite in leat top)\n",
               setup_.partition.c_str(), m.application.c_str(), m.name.c_str());
}

// Once for each module, since from then on the counter tells.
void Worker::say_squeezed(std::uint32_t module, std::uint32_t width) {
  if (modules_[module].said_squeezed) return;
  modules_[module].said_squeezed = true;
  const ModuleSetup& m = setup_.modules[module];
  const std::uint32_t widest = modules_[module].module->sizes().back().width;
  std::fprintf(
      stderr,
      "leat-worker %s: warning: %s/%s: a picture that is %u pixels wide at its model's height was squeezed into "
      "%u, the widest that preprocess allows, and may be read wrongly; write wide=split for text, wide=start for "
      "a model that says which way up it is, or more widths= (further ones are counted: squeezed in leat top)\n",
      setup_.partition.c_str(), m.application.c_str(), m.name.c_str(), width, widest);
}

void Worker::send_report(const Batch& batch, ReportKind kind) {
  ReportCell cell;
  cell.kind = kind;
  cell.batch = batch.cells[0].batch;
  cell.batch_generation = batch.cells[0].batch_generation;
  cell.stage = batch.cells[0].stage;
  cell.count = static_cast<std::uint16_t>(batch.count);
  cell.started_ns = batch.started_ns;
  cell.ended_ns = batch.ended_ns;
  cell.pixel_bytes_copied = batch.pixel_bytes_copied;
  cell.rows_copied = batch.rows_copied;
  cell.squeezed = static_cast<std::uint8_t>(batch.squeezed);
  cell.not_finite = static_cast<std::uint8_t>(batch.not_finite);
  for (std::uint32_t first = 0; first < batch.count; first += kResultsPerCell) {
    cell.first = static_cast<std::uint16_t>(first);
    const auto here = std::min<std::size_t>(kResultsPerCell, batch.count - first);
    std::copy_n(batch.tasks.begin() + first, here, cell.results);
    push_report(cell);
  }
}

void Worker::push_report(const ReportCell& cell) {
  while (!ending_ && !channel_.reports.push(cell)) {  // never full by its size (channel.h) while leatd lives
    if (channel_.reports.corrupt()) return;
    (void)read_control(false);
  }
}

}  // namespace leat::worker
