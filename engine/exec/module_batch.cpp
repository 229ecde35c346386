// Items that run together, from their pictures to their answers.
#include <algorithm>
#include <atomic>

#include "engine/exec/decode/finite.h"
#include "engine/exec/executor_module.h"

namespace leat::exec {

// False: the item's own frame or box is unusable.
bool ExecutorModule::fill_input(BatchRoom& room, const Item& item, const Region& region, std::uint32_t row,
                                ItemReport& report) noexcept {
  if (takes_frames_) {
    const bool usable = problem_of(item.frame).empty();
    for (std::uint32_t r = row; r < row + item.rows; ++r) {
      leat_tensor& t = room.raw_items[r];
      t = {};
      t.data = const_cast<std::uint8_t*>(item.frame.planes[0]);  // the C ABI has one tensor type; inputs are only read
      t.bytes = usable ? item.frame.bytes : 0;
      t.shape[0] = static_cast<std::int64_t>(t.bytes);
      t.rank = 1;
      t.dtype = LEAT_U8;
    }
    return usable;
  }
  if (device_ != nullptr) {
    leat_picture_job job;
    if (!preprocessor_.job(item.frame, region.whole ? nullptr : &region.box, &job)) return false;
    const std::uint64_t bytes = row_bytes(session_.inputs()[0]);
    for (std::uint32_t r = row; r < row + item.rows; ++r)
      device_->add(job, static_cast<std::byte*>(session_.inputs()[0].data) + r * bytes);
    return true;
  }
  if (!room.inputs.fill(item.frame, region, row)) return false;
  for (std::uint32_t r = 1; r < item.rows && !one_item_a_run_; ++r)
    report.pixel_bytes_copied += room.inputs.repeat(row, row + r);
  return true;
}

bool ExecutorModule::prepare(const Together& batch, const std::byte* features_in, std::byte* features_out,
                             const Pause& pause) noexcept {
  BatchRoom& room = batch.room;
  std::uint32_t rows = 0;
  if (device_ != nullptr) device_->begin_jobs();
  for (const std::uint8_t i : batch.chosen) {
    ItemReport& report = batch.reports[i];
    if (spec_.first_stage && report.reason == Reason::none &&
        !fill_input(room, batch.items[i], batch.regions[i], rows, report))
      report.reason = Reason::bad_frame;
    rows += one_item_a_run_ ? 1 : batch.items[i].rows;
    if (pause) pause();
  }
  const Item& lead = batch.items[batch.chosen[0]];
  if (one_item_a_run_ && batch.reports[batch.chosen[0]].reason != Reason::none) return false;
  room.rows = rows;
  room.features_out = features_out;
  room.features = session_.inputs()[0];
  room.features.shape[0] = rows;
  room.run_inputs = {&room.features, 1};
  if (!spec_.first_stage) {
    room.features.data = const_cast<std::byte*>(features_in);
  } else if (device_ == nullptr) {
    room.run_inputs =
        takes_frames_ ? std::span<const leat_tensor>(room.raw_items).first(rows) : room.inputs.tensors(rows);
  }
  const TensorsPost* const tensors = postprocessor_.tensors();
  const Placement none;
  for (std::uint32_t i = 0; i < session_.outputs().size(); ++i) {
    leat_tensor& out = room.run_outputs[i] = session_.outputs()[i];
    if (device_ == nullptr) out.data = room.output_data[i];
    if ((out.flags & LEAT_TENSOR_UNBATCHED) == 0 && out.rank > 0) out.shape[0] = rows;
    if (tensors == nullptr || device_ != nullptr || lead.result == nullptr) continue;
    std::uint64_t free = 0;
    const PostTarget target{none, lead.frame, lead.detection, lead.result, nullptr, lead.parts};
    if (std::byte* const at = tensors->place(i, target, &free); at != nullptr) out.data = at, out.bytes = free;
  }
  return true;
}

// The executor's part.
void ExecutorModule::execute(BatchRoom& room) noexcept {
  if (device_ == nullptr) {
    if (!spec_.last_stage) room.run_outputs[0].data = room.features_out;
    room.code =
        session_.run(room.run_inputs, {room.run_outputs.data(), session_.outputs().size()}, room.rows, room.error);
    return;
  }
  const bool put = put_on_device(room);
  const bool waited = device_->wait();  // also where something failed: the rest is over then
  if (!waited) room.set_error(device_->error());
  settle_on_device(room, put && waited);
}

// Everything is put on the device's stream, and one wait ends it: before that nothing that it reads or writes may
// change hands.
bool ExecutorModule::put_on_device(BatchRoom& room) noexcept {
  const std::span<leat_tensor> outputs(room.run_outputs.data(), session_.outputs().size());
  const bool bounced = !spec_.last_stage && spec_.host_features_out;
  if (!spec_.last_stage && !bounced) outputs[0].data = room.features_out;
  bool good = device_->ready(room.rows, room.set);
  room.ran = good;
  if (good && session_.run(room.run_inputs, outputs, room.rows, *device_, room.error) != 0) return false;
  if (good) device_->downloaded(outputs);
  if (good && bounced)
    good = device_->copy(room.features_out, outputs[0].data, room.rows * row_bytes(session_.outputs()[0]));
  if (!good) room.set_error(device_->error());
  return good;
}

// Its work is over: how it went.
void ExecutorModule::settle_on_device(BatchRoom& room, bool good) noexcept {
  const bool finished = !room.ran || session_.finish(room.error);
  room.code = good && finished ? 0 : 1;
}

bool ExecutorModule::tell(const Together& batch) noexcept {
  const BatchRoom& room = batch.room;
  if (room.code != 0) {
    session_.set_error(room.error.data());
    for (const std::uint8_t i : batch.chosen)
      batch.reports[i] = {.reason = room.code == LEAT_RUN_TOO_LARGE ? Reason::result_too_large : Reason::model_error};
    return false;
  }
  if (!spec_.last_stage) return true;
  std::uint32_t row = 0;
  for (const std::uint8_t i : batch.chosen) {
    if (batch.reports[i].reason == Reason::none && batch.items[i].result != nullptr) {
      look_for_numbers(room, row);
      answer(batch, i, row);
    }
    row += batch.items[i].rows;
  }
  return true;
}

// Each item at first, which is when a version may be on trial, and few of them later: outputs can be megabytes. Of the
// first such value on it is known, and nothing is looked at any more.
void ExecutorModule::look_for_numbers(const BatchRoom& room, std::uint32_t row) noexcept {
  constexpr std::uint64_t kEachOf = 1024, kOneOf = 32;
  if (const std::uint64_t item = items_seen_++; item >= kEachOf && item % kOneOf != 0) return;
  for (std::size_t i = 0; i < session_.outputs().size() && !not_finite_; ++i)
    not_finite_ = !all_finite(item_of(room.run_outputs[i], static_cast<std::int32_t>(row)));
}

void ExecutorModule::answer(const Together& batch, std::uint8_t i, std::uint32_t row) noexcept {
  const BatchRoom& room = batch.room;
  const Item& item = batch.items[i];
  const Region& region = batch.regions[i];
  const Placement placement = takes_frames_                             ? Placement{}
                              : device_ != nullptr && spec_.first_stage ? preprocessor_.placement(item.frame, region)
                                                                        : room.inputs.placement(item.frame, region);
  const Quad corners = region.projected ? region.corners() : Quad{};
  const std::span<const leat_tensor> outputs(room.run_outputs.data(), session_.outputs().size());
  const Answered answered = postprocessor_.run(outputs, row, placement, item.frame, item.detection, item.result,
                                               item.parts, region.projected ? &corners : nullptr, region.piece);
  ItemReport& report = batch.reports[i];
  report.fan_out = answered.found;
  if (answered.numbers == Numbers::all) return;
  not_finite_ = report.not_finite = true;
  // What a detector has found answers, whatever is wrong with what is told of one of its boxes.
  if (answered.numbers == Numbers::none && item.detection < 0) report.reason = Reason::not_finite;
  // Workers of modules side by side may set it at once.
  std::atomic_ref(item.result->flags).fetch_or(LEAT_RESULT_NOT_FINITE, std::memory_order_relaxed);
}

// ---- in two halves ----

void ExecutorModule::execute_on_stream(void* argument) noexcept {
  auto& room = *static_cast<BatchRoom*>(argument);
  room.module->execute(room);
}

void ExecutorModule::wait_on_stream(void* argument) noexcept {
  auto& room = *static_cast<BatchRoom*>(argument);
  room.waited = room.module->device_->wait_for(room.set, room.wait_error);
}

void ExecutorModule::begin(std::uint32_t set, HostStream& stream, std::span<const Item> items,
                           const std::byte* features_in, std::byte* features_out, const Pause& pause) noexcept {
  BatchRoom& room = *rooms_[set];
  room.stream = &stream;
  room.ticket = 0;
  room.items = items;
  room.wrong = wrong_with(items, features_in, features_out);
  if (room.wrong != nullptr) return;
  look_at(items, room.regions, room.reports);
  const Together batch{room, items, room.reports, room.regions, Chosen(kAll).first(items.size())};
  (void)prepare(batch, features_in, features_out, pause);
  if (device_ == nullptr) {
    room.ticket = stream.give(execute_on_stream, &room);
    return;
  }
  room.ran = false;
  room.put = put_on_device(room);
  // Also behind what failed half-way: the rest is over then.
  if (device_->mark(set)) {
    room.ticket = stream.give(wait_on_stream, &room);
  } else {
    room.waited = LEAT_DEVICE_LOST;
    room.set_error(device_->error());
  }
}

bool ExecutorModule::ended(std::uint32_t set) const noexcept {
  const BatchRoom& room = *rooms_[set];
  return room.ticket == 0 || room.stream->ended(room.ticket);
}

bool ExecutorModule::finish(std::uint32_t set, std::span<ItemReport> reports) noexcept {
  BatchRoom& room = *rooms_[set];
  if (room.wrong != nullptr) return fail_all(reports, room.wrong);
  room.stream->wait(room.ticket);
  if (device_ != nullptr) {
    device_->note(room.waited);
    if (room.ticket != 0 && room.waited != LEAT_DEVICE_OK) room.set_error(room.wait_error.data());
    settle_on_device(room, room.put && room.waited == LEAT_DEVICE_OK);
  }
  std::copy_n(room.reports.begin(), room.items.size(), reports.begin());
  return tell({room, room.items, reports, room.regions, Chosen(kAll).first(room.items.size())});
}

}  // namespace leat::exec
