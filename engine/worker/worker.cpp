#include "engine/worker/worker.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>

#include "shm/src/protocol/control_protocol.h"
#include "shm/src/rings/clock.h"
#include "tools/base/cores/cores.h"

namespace leat::worker {

// ---- control ----

bool Worker::read_control(bool wait) {
  const ControlLink::Got got = control_.receive(wait);
  if (got == ControlLink::Got::message) handle_message();
  if (got == ControlLink::Got::gone) ending_ = true;
  return got == ControlLink::Got::message;
}

void Worker::handle_message() {
  const std::vector<std::byte>& packet = control_.packet;
  const auto type = type_of(packet);
  Status status =
      Error{"leatd sent a message this worker does not understand; install leatd and leat-worker of one release"};
  if (!type.ok()) return complain(status.error());
  if (*type == ControlType::stop) {
    ending_ = true;
    status = Done{};
  } else if (*type == ControlType::add_pool) {
    const auto add = decode_add_pool(packet);
    status = add.ok() ? pools_.add(*add, control_.descriptors, device_.get()) : Status(Error{add.error()});
    report_memory();
  } else if (*type == ControlType::forget_pool) {
    if (const auto what = decode_forget_pool(packet); what.ok()) {
      pools_.forget(*what, device_.get());
      status = Done{};
      report_memory();
    }
  } else if (*type == ControlType::measure) {
    const auto what = decode_measure(packet);
    status = what.ok() ? begin_measuring(*what) : Status(Error{what.error()});
  }
  if (!status.ok()) complain(status.error());
}

void Worker::report_memory() {
  DeviceMemory memory;
  if (device_.get() != nullptr && device_.memory_changed(&memory))
    (void)control_.tell(encode(memory));  // leatd gone: the loop notices
}

void Worker::complain(std::string_view text) {
  const std::string line = complaints_.line(shm::monotonic_ns(), std::string(text));
  if (!line.empty()) std::fprintf(stderr, "leat-worker %s: %s\n", setup_.partition.c_str(), line.c_str());
}

// ---- batches ----

void Worker::run() {
  shm::WaitPolicy policy;
  policy.mode = setup_.yields != 0 ? shm::WaitMode::yield : shm::WaitMode::park;
  policy.yields = setup_.yields;
  shm::Waiter waiter(policy);
  while (!ending_) {
    if (take_batch()) {
      if (measuring_ != nullptr) give_up_measuring(100);
      waiter.reset();
    } else if (measuring_ != nullptr) {
      measure_on();
      waiter.reset();
    } else if (waiter.should_park(false)) {
      park();
      waiter.reset();
    }
  }
}

bool Worker::take_batch() {
  std::array<DispatchCell, kMaxBatch> cells;
  if (!channel_.dispatches.pop(cells[0])) return false;
  const std::uint32_t count = cells[0].count;
  // The daemon publishes a batch's cells one after the other; the rest is there or about to be.
  for (std::uint32_t i = 1; i < count; ++i)
    while (!channel_.dispatches.pop(cells[i])) {
    }
  while (!ending_ && static_cast<std::int32_t>(cells[0].control - control_.messages()) > 0) (void)read_control(true);
  if (ending_) return true;
  if (cells[0].kind == CellKind::access_unit)
    decode(cells[0]);
  else
    run_batch(std::span(cells.data(), count));
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

// What a task is to its module; why it cannot be run.
Reason Worker::prepare(const DispatchCell& cell, exec::Item& item) {
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

void Worker::run_batch(std::span<const DispatchCell> cells) {
  const BatchNumbers numbers = compute(cells);
  if (ending_) return;
  const std::span<const DispatchCell> sequel = sequel_of(cells);
  send_report(cells, numbers, sequel.empty() ? ReportKind::batch : ReportKind::goes_on);
  // Nobody is woken yet, unless somebody's answer is there.
  const bool all =
      std::ranges::all_of(batch_.tasks.begin(), batch_.tasks.begin() + static_cast<std::ptrdiff_t>(cells.size()),
                          [](const TaskReport& t) { return t.reason == 0 && t.fan_out > 0; });
  if (sequel.empty() || !all) wake_daemon();
  if (sequel.empty()) return;
  const BatchNumbers rest = compute(sequel);
  if (ending_) return;
  send_report(sequel, rest, ReportKind::sequel);
  wake_daemon();
}

// One task for each thing that the batch in hand has found, up to the cap; none where leatd has not said so, or where
// they are too many for one batch.
std::span<const DispatchCell> Worker::sequel_of(std::span<const DispatchCell> cells) {
  const DispatchCell& first = cells[0];
  if (first.then == kNoModule) return {};
  std::size_t n = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const TaskReport& task = batch_.tasks[i];
    const std::uint32_t found = task.reason != 0 ? 0 : std::min(task.fan_out, first.then_cap);
    if (n + found > first.then_batch) return {};
    for (std::uint32_t item = 0; item < found; ++item) {
      DispatchCell& cell = batch_.sequel[n++] = cells[i];
      cell.module = first.then;
      cell.item = item;
      cell.items = 1;
      cell.then = kNoModule;
    }
  }
  return {batch_.sequel.data(), n};
}

Worker::BatchNumbers Worker::compute(std::span<const DispatchCell> cells) {
  BatchNumbers numbers{.started_ns = shm::monotonic_ns()};
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < cells.size(); ++i) {
    const Reason why = prepare(cells[i], batch_.items[count]);
    batch_.tasks[i] = {static_cast<std::uint8_t>(why), 0};
    // Where rows are fixed it stays, without a picture, so that it fails alone.
    if (why != Reason::none && !(why == Reason::undecodable && modules_[cells[0].module].features.any())) continue;
    batch_.reports[count] = {};
    batch_.task_of[count++] = static_cast<std::uint16_t>(i);
  }
  Served& served = modules_[cells[0].module];
  if (served.features.any() &&
      count < cells.size()) {  // rows are fixed, so that one task missing would shift the others
    for (TaskReport& r : batch_.tasks) r.reason = static_cast<std::uint8_t>(Reason::partition_lost);
    count = 0;
  }
  if (count != 0) {
    const std::span items(batch_.items.data(), count);
    const std::span reports(batch_.reports.data(), count);
    if (!served.module->run(items, reports, served.features.input(cells, &numbers.rows_copied),
                            served.features.output(cells)))
      complain(served.module->error());
    if (device_.lost()) {  // this batch is answered when leatd sees how the process ended
      ending_ = true;
      return numbers;
    }
    for (std::uint32_t i = 0; i < count; ++i) note_answer(cells[0].module, i, numbers);
  }
  numbers.ended_ns = shm::monotonic_ns();
  return numbers;
}

// Item i of the batch in hand has run.
void Worker::note_answer(std::uint32_t module, std::uint32_t i, BatchNumbers& numbers) {
  const ModuleSetup& setup = setup_.modules[module];
  const exec::Item& item = batch_.items[i];
  const exec::ItemReport& report = batch_.reports[i];
  numbers.pixel_bytes_copied += report.pixel_bytes_copied;
  if (report.squeezed != 0) {
    ++numbers.squeezed;
    say_squeezed(module, report.squeezed);
  }
  // Workers of modules side by side may write the same at once.
  if (item.detection < 0 && setup.edge_out == kNoEdge)
    shm::atomic_ref(item.result->model_version).store(setup.version, std::memory_order_relaxed);
  const bool detections = item.result->kind == LEAT_RESULT_DETECTIONS && item.detection < 0;
  TaskReport& task = batch_.tasks[batch_.task_of[i]];
  if (task.reason != 0) return;  // it had no picture
  task = {static_cast<std::uint8_t>(report.reason),
          static_cast<std::uint8_t>(detections ? std::min(report.fan_out, 255u) : 1u)};
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

void Worker::send_report(std::span<const DispatchCell> cells, const BatchNumbers& numbers, ReportKind kind) {
  ReportCell cell;
  cell.kind = kind;
  cell.batch = cells[0].batch;
  cell.batch_generation = cells[0].batch_generation;
  cell.stage = cells[0].stage;
  cell.count = static_cast<std::uint16_t>(cells.size());
  cell.started_ns = numbers.started_ns;
  cell.ended_ns = numbers.ended_ns;
  cell.pixel_bytes_copied = numbers.pixel_bytes_copied;
  cell.rows_copied = numbers.rows_copied;
  cell.squeezed = static_cast<std::uint16_t>(numbers.squeezed);
  for (std::uint32_t first = 0; first < cells.size(); first += kResultsPerCell) {
    cell.first = static_cast<std::uint16_t>(first);
    const auto here = std::min<std::size_t>(kResultsPerCell, cells.size() - first);
    std::copy_n(batch_.tasks.begin() + first, here, cell.results);
    push_report(cell);
  }
}

void Worker::push_report(const ReportCell& cell) {
  while (!ending_ && !channel_.reports.push(cell)) {  // never full by its size (channel.h) while leatd lives
    if (channel_.reports.corrupt()) return;
    (void)read_control(false);
  }
}

void Worker::wake_daemon() {
  if (channel_.daemon_waker.should_ring()) channel_.bell.ring();
}

void Worker::park() {
  const auto announce = [this] {
    channel_.dispatches.publish();
    shm::announce_sleep(*channel_.sleep);
  };
  bool message = false;
  if (shm::may_sleep(announce, [this] { return channel_.dispatches.empty(); })) {
    const bool unsent = !answer_.empty();
    pollfd fds[2] = {{channel_.bell.fd(), POLLIN, 0},
                     {control_.fd(), static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), 0}};
    (void)poll(fds, 2, -1);
    if (fds[0].revents != 0 && channel_.bell.drain() != shm::Drained::rings) ending_ = true;  // leatd is gone
    if ((fds[1].revents & POLLOUT) != 0) send_answer();
    message = (fds[1].revents & ~POLLOUT) != 0;
  }
  shm::announce_awake(*channel_.sleep);
  if (message) (void)read_control(false);
}

}  // namespace leat::worker
