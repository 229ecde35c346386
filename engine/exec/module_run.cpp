#include <algorithm>
#include <numeric>

#include "engine/exec/executor_module.h"

namespace leat::exec {

// False: the item's own frame or box is unusable.
bool ExecutorModule::fill_input(const Item& item, const Region& region, std::uint32_t row,
                                ItemReport& report) noexcept {
  if (takes_frames_) {
    const bool usable = problem_of(item.frame).empty();
    for (std::uint32_t r = row; r < row + item.rows; ++r) {
      leat_tensor& t = raw_items_[r];
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
  if (!model_inputs_.fill(item.frame, region, row)) return false;
  for (std::uint32_t r = 1; r < item.rows && !one_item_a_run_; ++r)
    report.pixel_bytes_copied += model_inputs_.repeat(row, row + r);
  return true;
}

// The executor's part: what its run() returns. On a device everything is put on its stream, and one wait ends it:
// before that nothing that it reads or writes may change hands.
int ExecutorModule::execute(std::span<const leat_tensor> inputs, std::span<leat_tensor> outputs, std::uint32_t rows,
                            std::byte* features_out) noexcept {
  const bool bounced = device_ != nullptr && !spec_.last_stage && spec_.host_features_out;
  if (!spec_.last_stage && !bounced) outputs[0].data = features_out;
  if (device_ == nullptr) return session_.run(inputs, outputs, rows);
  bool good = device_->launch();
  const bool ran = good && session_.run(inputs, outputs, rows) == 0;
  if (ran && spec_.last_stage) good = device_->download(outputs, rows);
  if (ran && bounced) good = device_->copy(features_out, outputs[0].data, rows * row_bytes(session_.outputs()[0]));
  good = device_->wait() && good;  // also where something failed: the rest is over then
  if (!good) session_.set_error(device_->error());
  const bool finished = session_.finish();
  return good && ran && finished ? 0 : 1;
}

bool ExecutorModule::fail_all(std::span<ItemReport> reports, std::string_view why) noexcept {
  session_.set_error(why);
  std::fill(reports.begin(), reports.end(), ItemReport{.reason = Reason::model_error});
  return false;
}

bool ExecutorModule::run(std::span<const Item> items, std::span<ItemReport> reports, const std::byte* features_in,
                         std::byte* features_out) noexcept {
  std::uint32_t rows = 0;
  for (const Item& item : items) rows += item.rows;
  // Where sizes vary more small pictures come than large ones; those of a size run batch_max at a time.
  const std::uint32_t max = model_inputs_.varies() ? kMaxRows : spec_.batch_max;
  if (rows == 0 || rows > max || reports.size() < items.size())
    return fail_all(reports, "the batch is empty or larger than this module's batch");
  if ((features_in == nullptr) != spec_.first_stage || (features_out == nullptr) != spec_.last_stage)
    return fail_all(reports, "features were given to a stage that has none, or none to one that has");
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool there = region_of(items[i].result, items[i].detection, cut_, &regions_[i]);
    reports[i] = {.reason = there || takes_frames_ || !spec_.first_stage ? Reason::none : Reason::bad_frame};
  }
  if (model_inputs_.varies()) return run_by_size(items, reports);
  std::array<std::uint8_t, kMaxRows> all;
  std::iota(all.begin(), all.end(), std::uint8_t{0});
  const Chosen chosen(all.data(), items.size());
  if (!one_item_a_run_ || features_in != nullptr)
    return run_together(items, reports, regions_, chosen, features_in, features_out);
  bool good = true;  // an item that fails does so alone
  for (std::size_t i = 0; i < items.size(); ++i)
    good = run_together(items, reports, regions_, chosen.subspan(i, 1), features_in, features_out) && good;
  return good;
}

// Items of one size together, in the order of each size's first.
bool ExecutorModule::run_by_size(std::span<const Item> items, std::span<ItemReport> reports) noexcept {
  std::array<Size, kMaxRows> sizes;
  bool good = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (reports[i].reason == Reason::none) {
      const Pieces pieces = model_inputs_.pieces_of(items[i].frame, regions_[i]);
      reports[i].squeezed = pieces.squeezed;
      if (pieces.count > 1) {
        good = run_in_pieces(items[i], regions_[i], pieces, reports[i]) && good;
        continue;
      }
      regions_[i].piece = pieces.at(0);
      sizes[i] = model_inputs_.size_of(items[i].frame, regions_[i]);
    }
    if (!one_item_a_run_ && items[i].rows > spec_.batch_max) sizes[i] = {};
    if (sizes[i] == Size{}) reports[i].reason = Reason::bad_frame;
  }
  for (std::size_t first = 0; first < items.size(); ++first) {
    const Size size = sizes[first];
    if (size == Size{}) continue;  // unusable, or has run with another
    std::array<std::uint8_t, kMaxRows> together;
    std::size_t count = 0;
    std::uint32_t rows = 0;
    for (std::size_t i = first; i < items.size(); ++i) {
      if (sizes[i] != size || (one_item_a_run_ ? count == 1 : rows + items[i].rows > spec_.batch_max)) continue;
      together[count++] = static_cast<std::uint8_t>(i);
      rows += items[i].rows;
      sizes[i] = {};
    }
    model_inputs_.set_size(size);
    good = run_together(items, reports, regions_, {together.data(), count}, nullptr, nullptr) && good;
  }
  return good;
}

// A wide item: its pieces are the rows of batches, one size after the other, and its answer comes with the last.
bool ExecutorModule::run_in_pieces(const Item& item, const Region& region, const Pieces& pieces,
                                   ItemReport& report) noexcept {
  std::array<Item, kMaxPieces> items;
  std::array<ItemReport, kMaxPieces> reports;
  std::array<Region, kMaxPieces> regions;
  std::array<std::uint8_t, kMaxPieces> places;
  std::array<Size, kMaxPieces> sizes;
  for (std::uint32_t i = 0; i < pieces.count; ++i) {
    places[i] = static_cast<std::uint8_t>(i);
    items[i] = item, items[i].rows = 1;
    regions[i] = region, regions[i].piece = pieces.at(i);
    sizes[i] = model_inputs_.size_of(item.frame, regions[i]);
    if (sizes[i] == Size{}) report.reason = Reason::bad_frame;
  }
  const std::size_t max = one_item_a_run_ ? 1 : spec_.batch_max;
  for (std::size_t first = 0, count = 0; first < pieces.count && report.reason == Reason::none; first += count) {
    for (count = 1; count < max && first + count < pieces.count && sizes[first + count] == sizes[first];) ++count;
    model_inputs_.set_size(sizes[first]);
    const bool good = run_together(std::span(items).first(pieces.count), reports, regions,
                                   Chosen(places).subspan(first, count), nullptr, nullptr);
    for (std::size_t i = first; i < first + count; ++i)
      if (reports[i].reason != Reason::none) report.reason = reports[i].reason;
    if (!good) return false;
  }
  return true;
}

bool ExecutorModule::run_together(std::span<const Item> items, std::span<ItemReport> reports,
                                  std::span<const Region> regions, Chosen chosen, const std::byte* features_in,
                                  std::byte* features_out) noexcept {
  std::uint32_t rows = 0;
  if (device_ != nullptr) device_->begin();
  for (const std::uint8_t i : chosen) {
    if (spec_.first_stage && reports[i].reason == Reason::none && !fill_input(items[i], regions[i], rows, reports[i]))
      reports[i].reason = Reason::bad_frame;
    rows += one_item_a_run_ ? 1 : items[i].rows;
  }
  const Item& lead = items[chosen[0]];
  if (one_item_a_run_ && reports[chosen[0]].reason != Reason::none) return true;
  leat_tensor features = session_.inputs()[0], outputs[kMaxModelTensors];
  std::span<const leat_tensor> inputs(&features, 1);
  if (!spec_.first_stage) {
    features.data = const_cast<std::byte*>(features_in);
    features.shape[0] = rows;
  } else if (device_ != nullptr) {
    features.shape[0] = rows;
  } else {
    inputs = takes_frames_ ? std::span<const leat_tensor>(raw_items_, rows) : model_inputs_.tensors(rows);
  }
  const TensorsPost* const tensors = postprocessor_.tensors();
  const Placement none;
  for (std::uint32_t i = 0; i < session_.outputs().size(); ++i) {
    outputs[i] = session_.outputs()[i];
    if ((outputs[i].flags & LEAT_TENSOR_UNBATCHED) == 0 && outputs[i].rank > 0) outputs[i].shape[0] = rows;
    if (tensors == nullptr || device_ != nullptr || lead.result == nullptr) continue;
    std::uint64_t room = 0;
    const PostTarget target{none, lead.frame, lead.detection, lead.result, nullptr, lead.parts};
    if (std::byte* const at = tensors->place(i, target, &room); at != nullptr)
      outputs[i].data = at, outputs[i].bytes = room;
  }
  if (const int code = execute(inputs, {outputs, session_.outputs().size()}, rows, features_out); code != 0) {
    for (const std::uint8_t i : chosen)
      reports[i] = {.reason = code == LEAT_RUN_TOO_LARGE ? Reason::result_too_large : Reason::model_error};
    return false;
  }
  if (!spec_.last_stage) return true;
  std::uint32_t row = 0;
  for (const std::uint8_t i : chosen) {
    if (reports[i].reason == Reason::none && items[i].result != nullptr)
      answer(items[i], regions[i], {outputs, session_.outputs().size()}, row, reports[i]);
    row += items[i].rows;
  }
  return true;
}

void ExecutorModule::answer(const Item& item, const Region& region, std::span<const leat_tensor> outputs,
                            std::uint32_t row, ItemReport& report) noexcept {
  const Placement placement = takes_frames_                             ? Placement{}
                              : device_ != nullptr && spec_.first_stage ? preprocessor_.placement(item.frame, region)
                                                                        : model_inputs_.placement(item.frame, region);
  const Quad corners = region.projected ? region.corners() : Quad{};
  report.fan_out = postprocessor_.run(outputs, row, placement, item.frame, item.detection, item.result, item.parts,
                                      region.projected ? &corners : nullptr, region.piece);
}

}  // namespace leat::exec
