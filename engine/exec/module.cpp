#include "engine/exec/module.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "engine/exec/decode/postprocess.h"
#include "engine/exec/module_device.h"
#include "engine/exec/onnx/model_inputs.h"
#include "engine/exec/onnx/onnx_graphs.h"
#include "engine/exec/onnx/onnx_split.h"
#include "engine/exec/picture/preprocess.h"
#include "engine/exec/registry.h"
#include "leat/executor.h"

namespace leat::exec {
namespace {

constexpr std::size_t kErrorBytes = 512;

struct SessionCloser {
  const leat_executor* executor;
  void operator()(leat_session* s) const { executor->close(s); }
};

std::uint64_t row_bytes(const leat_tensor& t) { return t.bytes / static_cast<std::uint64_t>(t.shape[0]); }
bool open_shape(const leat_tensor& t) {
  return std::any_of(t.shape, t.shape + t.rank, [](std::int64_t n) { return n < 0; });
}

class ExecutorModule final : public Module {
 public:
  explicit ExecutorModule(const ModuleSpec& spec) : spec_(spec) {}
  Status open();

  bool run(std::span<const Item> items, std::span<ItemReport> reports, const std::byte* features_in,
           std::byte* features_out) noexcept override;
  std::uint64_t feature_bytes_in() const noexcept override { return spec_.first_stage ? 0 : row_bytes(inputs_[0]); }
  std::uint64_t feature_bytes_out() const noexcept override { return spec_.last_stage ? 0 : row_bytes(outputs_[0]); }
  bool on_device() const noexcept override { return device_ != nullptr; }
  GraphReport graphs() const override {
    const bool known = device_ != nullptr && executor_ == onnx_executor();
    return known ? onnx_graph_report(session_.get()) : GraphReport{};
  }
  std::vector<PartSpec> parts() const override { return postprocessor_.parts(); }
  std::vector<leat_tensor_shape> tensor_shapes() const override {
    return model_inputs_.takes_tensors() ? model_inputs_.shapes() : std::vector<leat_tensor_shape>();
  }
  std::vector<Size> sizes() const override { return model_inputs_.sizes(); }
  std::string_view error() const noexcept override { return error_; }
  const ModuleSpec& spec() const noexcept override { return spec_; }
  const Recognised& recognised() const noexcept override { return recognised_; }

 private:
  Status ask_model();
  Status open_session();
  Status open_input();
  Status open_output();
  Status learn_open_sizes();
  bool try_size(Size size, std::uint32_t rows, std::span<leat_tensor> outputs) noexcept;
  bool fill_input(const Item& item, const Region& region, std::uint32_t row, ItemReport& report) noexcept;
  using Chosen = std::span<const std::uint8_t>;  // places of items that run together
  bool run_together(std::span<const Item> items, std::span<ItemReport> reports, std::span<const Region> regions,
                    Chosen chosen, const std::byte* features_in, std::byte* features_out) noexcept;
  bool run_by_size(std::span<const Item> items, std::span<ItemReport> reports) noexcept;
  bool run_in_pieces(const Item& item, const Region& region, const Pieces& pieces, ItemReport& report) noexcept;
  void answer(const Item& item, const Region& region, std::span<const leat_tensor> outputs, std::uint32_t row,
              ItemReport& report) noexcept;
  int execute(std::span<const leat_tensor> inputs, std::span<leat_tensor> outputs, std::uint32_t rows,
              std::byte* features_out) noexcept;
  bool fail_all(std::span<ItemReport> reports, std::string_view why) noexcept;

  ModuleSpec spec_;
  Recognised recognised_;
  const leat_executor* executor_ = nullptr;
  std::unique_ptr<ModuleDevice> device_;  // where the session runs; null: here
  std::unique_ptr<leat_session, SessionCloser> session_{nullptr, {nullptr}};
  bool raw_ = false;       // the executor takes the frames where they are
  bool open_ = false;      // the model leaves its picture's size open; its outputs lie where the executor lends them
  bool together_ = false;  // where it does: several items of one size run as a batch
  bool alone_ = false;     // one item a run: rows that only a run tells, or outputs that go where each item wants them
  leat_tensor inputs_[kMaxModelTensors] = {}, outputs_[kMaxModelTensors] = {};  // at batch_max rows
  std::uint32_t input_count_ = 0, output_count_ = 0;
  std::vector<AlignedBuffer> output_buffers_;  // none where the executor lends
  leat_tensor raw_items_[kMaxRows] = {};
  std::array<Region, kMaxRows> regions_;  // of the items of a batch
  ModelInputs model_inputs_;
  CropSpec cut_;
  Preprocessor preprocessor_;  // on a device: it fills the input itself
  Postprocessor postprocessor_;
  char error_[kErrorBytes] = {};
};

std::string_view what_is_wrong_with(const ModuleSpec& s) {
  if (s.batch_max < 1 || s.batch_max > kMaxRows) return "batch must be 1..64";
  if (s.threads < 1) return "threads must be 1 or more";
  if (s.first_block >= s.end_block) return "a stage needs at least one block";
  return {};
}

Status ExecutorModule::open_session() {
  auto executor = find_executor(spec_.executor);
  if (!executor) return Error{executor.error()};
  executor_ = *executor;
  std::string extra;
  if (!spec_.emulated_ns.empty()) {
    extra = "latency_ns=";
    for (std::size_t i = 0; i < spec_.emulated_ns.size(); ++i)
      extra += (i == 0 ? "" : ",") + std::to_string(spec_.emulated_ns[i]);
    extra += '\n';
  }
  for (const auto& [key, bytes] :
       {std::pair{"bytes_in=", spec_.emulated_in}, std::pair{"bytes_out=", spec_.emulated_out}})
    if (bytes != 0) extra += key + std::to_string(bytes) + '\n';
  if (!spec_.cuts.empty()) extra += "cuts=" + join_cuts(spec_.cuts) + "\n";
  for (const auto& [key, value] : spec_.extra) extra += key + "=" + value + "\n";
  if (spec_.device != nullptr && spec_.executor == "onnx") {  // rows of an edge move from batch to batch
    const bool moves_out = !spec_.last_stage && !spec_.host_features_out;
    if (!spec_.first_stage) extra += "moving_inputs=1\n";
    if (moves_out) extra += "moving_outputs=1\n";
    if (spec_.first_stage && !moves_out) extra += "fixed_buffers=1\n";
  }
  const leat_session_options options{.model_path = spec_.model_path.c_str(),
                                     .first_block = spec_.first_block,
                                     .end_block = spec_.end_block,
                                     .batch_max = spec_.batch_max,
                                     .threads = spec_.threads,
                                     .extra = extra.c_str(),
                                     .device_api = spec_.device != nullptr ? spec_.device->api() : nullptr,
                                     .device = spec_.device != nullptr ? spec_.device->handle() : nullptr};
  leat_session* session = nullptr;
  if (executor_->open(&options, &session, error_, sizeof error_) != 0) return Error{error_};
  session_ = {session, SessionCloser{executor_}};
  input_count_ = output_count_ = kMaxModelTensors;
  if (executor_->describe(session, spec_.batch_max, inputs_, &input_count_, outputs_, &output_count_, error_,
                          sizeof error_) != 0)
    return Error{error_};
  const std::uint8_t memory = inputs_[0].memory;
  for (std::uint32_t i = 0; i < output_count_; ++i) {
    if (outputs_[i].memory != memory || (memory != LEAT_MEMORY_HOST && spec_.device == nullptr))
      return Error{"executor '" + spec_.executor + "' wants device memory, and this partition has none"};
  }
  if (memory != LEAT_MEMORY_HOST) device_ = std::make_unique<ModuleDevice>(spec_.device);
  return Done{};
}

Status ExecutorModule::open_input() {
  const leat_tensor& in = inputs_[0];
  raw_ = in.dtype == LEAT_U8 && in.rank == 2 && in.shape[1] == 0;
  if (raw_)
    return spec_.first_stage ? Status(Done{})
                             : Status(Error{spec_.model_path + ": its first block cannot start from features"});
  const auto spec = parse_preprocess(spec_.preprocess);
  if (!spec) return Error{spec.error()};
  if (spec->fit == Fit::raw)
    return Error{"preprocess: 'raw' suits the executor 'emulated' only; write 'letterbox' or 'stretch' for a model"};
  cut_ = spec->cut;
  if (device_ != nullptr && (spec->cut.projected() || spec->sizes.varies()))
    return Error{"preprocess: quad, align=, longest= and height= are not served on a device; use a partition of cores"};
  if (spec->sizes.varies() && !(spec_.first_stage && spec_.last_stage))
    return Error{"preprocess: longest= and height= need the whole model on one partition; leave it uncut"};
  if (device_ != nullptr && spec_.first_stage) {
    if (input_count_ != 1)
      return Error{spec_.model_path + ": has " + std::to_string(input_count_) +
                   " inputs; a device serves models of one"};
    leat_picture_target target{};
    if (auto status = device_->open_pictures(inputs_[0], spec_.model_path, &target); !status) return status;
    auto opened = Preprocessor::open(*spec, target.channels, target.width, target.height);
    if (!opened) return Error{opened.error()};
    preprocessor_ = std::move(*opened);
    return Done{};
  }
  std::vector<leat_tensor> inputs(inputs_, inputs_ + input_count_);
  if (!spec_.first_stage) {  // features come in; the picture's geometry is what the whole model takes
    if (spec_.picture_width == 0) return Done{};
    leat_tensor picture{};
    picture.rank = 4;
    picture.shape[0] = 1, picture.shape[1] = spec->channels == Channels::gray ? 1 : 3;
    picture.shape[2] = spec_.picture_height, picture.shape[3] = spec_.picture_width;
    inputs = {picture};
  } else if (!spec_.last_stage && input_count_ != 1) {
    return Error{spec_.model_path + ": has " + std::to_string(input_count_) +
                 " inputs; a model that is cut into stages has one"};
  }
  auto opened = ModelInputs::open(*spec, inputs, spec_.first_stage ? spec_.batch_max : 1);
  if (!opened) return Error{spec_.model_path + ": " + opened.error()};
  model_inputs_ = std::move(*opened);
  return Done{};
}

bool ExecutorModule::try_size(Size size, std::uint32_t rows, std::span<leat_tensor> outputs) noexcept {
  if (model_inputs_.varies()) model_inputs_.set_size(size);
  std::copy_n(outputs_, output_count_, outputs.begin());
  return execute(model_inputs_.tensors(rows), outputs, rows, nullptr) == 0;
}

// Runs on nothing where the model leaves its picture's size open: it works from the smallest size to the largest, its
// memory is there before the first frame, and the shapes that do not depend on the size are known. Items run together
// if every output has a row for each of two.
Status ExecutorModule::learn_open_sizes() {
  const auto is_open = [](const leat_tensor& t) { return open_shape(t); };
  open_ = !raw_ && device_ == nullptr && spec_.first_stage && spec_.last_stage && !model_inputs_.takes_tensors() &&
          std::any_of(inputs_, inputs_ + input_count_, is_open);
  if (!open_) return Done{};
  const std::vector<Size> sizes = model_inputs_.sizes();
  const Size low = sizes.empty() ? Size{model_inputs_.width(), model_inputs_.height()} : sizes.front(),
             high = sizes.empty() ? low : sizes.back();
  std::array<leat_tensor, kMaxModelTensors> once, twice, most;
  for (const auto& [size, out] : {std::pair{low, &once}, std::pair{high, &most}}) {
    if (!try_size(size, 1, *out))
      return Error{spec_.model_path + ": cannot be run on a picture of " + std::to_string(size.width) + "x" +
                   std::to_string(size.height) + " (" + error_ + "); write another size in preprocess"};
  }
  const auto unbatched = [](const leat_tensor& t) { return (t.flags & LEAT_TENSOR_UNBATCHED) != 0; };
  together_ = spec_.batch_max > 1 && try_size(low, 2, twice) &&
              std::none_of(once.begin(), once.begin() + output_count_, unbatched) &&
              std::none_of(twice.begin(), twice.begin() + output_count_, unbatched);
  for (std::uint32_t i = 0; i < output_count_; ++i) {
    leat_tensor& t = outputs_[i];
    const leat_tensor &a = once[i], &b = most[i];
    t.rank = a.rank, t.flags = a.flags;
    for (std::uint32_t d = 0; d < a.rank; ++d)
      t.shape[d] = a.rank == b.rank && a.shape[d] == b.shape[d] && a.shape[d] > 0 ? a.shape[d] : -1;
    if (!unbatched(t)) t.shape[0] = spec_.batch_max;
  }
  return Done{};
}

Status ExecutorModule::open_output() {
  if (!spec_.last_stage) {
    if (output_count_ != 1) return Error{spec_.model_path + ": a stage that hands features on has one output"};
    return device_ != nullptr && spec_.host_features_out ? device_->open_features(outputs_[0]) : Status(Done{});
  }
  const auto spec = parse_postprocess(spec_.postprocess);
  if (!spec) return Error{spec.error()};
  const auto open = [&] {
    return Postprocessor::open(*spec, {outputs_, output_count_}, spec_.labels, spec_.first_head, model_inputs_.width(),
                               model_inputs_.height(), spec_.model_path);
  };
  auto opened = open();
  if (!opened && !recognised_.labels.words.empty()) {  // names that do not fit are nobody's fault
    recognised_.labels = {}, spec_.labels.clear();
    opened = open();
  }
  if (!opened) return Error{opened.error()};
  postprocessor_ = std::move(*opened);
  if (model_inputs_.splits() && !postprocessor_.joins())
    return Error{"preprocess: wide=split reads a line of text in pieces, and suits 'text ctc' alone; leave it out"};
  if (cut_.projected()) {
    for (const PartSpec& part : postprocessor_.parts())
      if (part.kind == LEAT_PART_keypoints || part.kind == LEAT_PART_oriented || part.kind == LEAT_PART_map)
        return Error{
            "postprocess: places in a crop made by quad or align= are not taken back to the frame; cut out the "
            "upright box instead"};
  }
  if (device_ != nullptr) return device_->open_outputs({outputs_, output_count_});
  alone_ = postprocessor_.tensors() != nullptr || (open_ && !together_);
  for (std::uint32_t i = 0; i < input_count_ && !raw_; ++i)
    alone_ = alone_ || (i == 0 && (inputs_[i].flags & LEAT_TENSOR_UNBATCHED) != 0);
  for (std::uint32_t i = 0; i < output_count_ && !open_; ++i)
    alone_ = alone_ || open_shape(outputs_[i]) || (outputs_[i].flags & LEAT_TENSOR_UNBATCHED) != 0;
  for (std::uint32_t i = 0; i < output_count_; ++i) {
    if (open_ || open_shape(outputs_[i])) {
      output_buffers_.emplace_back();
      continue;
    }
    const bool batched = (outputs_[i].flags & LEAT_TENSOR_UNBATCHED) == 0;
    output_buffers_.push_back(aligned_buffer(alone_ && batched ? row_bytes(outputs_[i]) : outputs_[i].bytes));
    outputs_[i].data = output_buffers_.back().get();
  }
  return Done{};
}

// Whatever the configuration does not say. A stage that writes features needs no answer, but the same picture.
Status ExecutorModule::ask_model() {
  recognised_.preprocess.words = spec_.preprocess, recognised_.postprocess.words = spec_.postprocess;
  const bool pictured = !spec_.preprocess.empty() || !spec_.first_stage;
  const bool answered = !spec_.postprocess.empty() && !spec_.labels.empty();
  if (spec_.executor != "onnx" || (spec_.as.empty() && pictured && (answered || !spec_.last_stage))) return Done{};
  auto known = recognise(spec_.model_path, {spec_.preprocess, spec_.postprocess, !spec_.labels.empty(), spec_.as});
  if (!known) return Error{(spec_.as.empty() ? "" : "as: ") + known.error()};
  recognised_ = std::move(*known);
  spec_.preprocess = recognised_.preprocess.words, spec_.postprocess = recognised_.postprocess.words;
  if (!recognised_.labels.words.empty()) spec_.labels = {recognised_.labels.words};
  return Done{};
}

Status ExecutorModule::open() {
  if (const std::string_view wrong = what_is_wrong_with(spec_); !wrong.empty()) return Error{std::string(wrong)};
  if (auto status = ask_model(); !status) return status;
  for (const auto step : {&ExecutorModule::open_session, &ExecutorModule::open_input, &ExecutorModule::learn_open_sizes,
                          &ExecutorModule::open_output}) {
    if (const auto status = (this->*step)(); !status) return status;
  }
  return Done{};
}

// False: the item's own frame or box is unusable.
bool ExecutorModule::fill_input(const Item& item, const Region& region, std::uint32_t row,
                                ItemReport& report) noexcept {
  if (raw_) {
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
    const std::uint64_t bytes = row_bytes(inputs_[0]);
    for (std::uint32_t r = row; r < row + item.rows; ++r)
      device_->add(job, static_cast<std::byte*>(inputs_[0].data) + r * bytes);
    return true;
  }
  if (!model_inputs_.fill(item.frame, region, row)) return false;
  for (std::uint32_t r = 1; r < item.rows && !alone_; ++r)
    report.pixel_bytes_copied += model_inputs_.repeat(row, row + r);
  return true;
}

// The executor's part: what its run() returns. On a device everything is put on its stream, and one wait ends it:
// before that nothing that it reads or writes may change hands.
int ExecutorModule::execute(std::span<const leat_tensor> inputs, std::span<leat_tensor> outputs, std::uint32_t rows,
                            std::byte* features_out) noexcept {
  const bool bounced = device_ != nullptr && !spec_.last_stage && spec_.host_features_out;
  if (!spec_.last_stage && !bounced) outputs[0].data = features_out;
  const auto run = [&] {
    return executor_->run(session_.get(), rows, inputs.data(), static_cast<std::uint32_t>(inputs.size()),
                          outputs.data(), output_count_, error_, sizeof error_);
  };
  if (device_ == nullptr) return run();
  bool good = device_->launch();
  const bool ran = good && run() == 0;
  if (ran && spec_.last_stage) good = device_->download(outputs, rows);
  if (ran && bounced) good = device_->copy(features_out, outputs[0].data, rows * row_bytes(outputs_[0]));
  good = device_->wait() && good;  // also where something failed: the rest is over then
  if (!good) error_[std::string_view(device_->error()).copy(error_, kErrorBytes - 1)] = '\0';
  const bool finished = executor_->finish == nullptr || executor_->finish(session_.get(), error_, sizeof error_) == 0;
  return good && ran && finished ? 0 : 1;
}

bool ExecutorModule::fail_all(std::span<ItemReport> reports, std::string_view why) noexcept {
  error_[why.copy(error_, kErrorBytes - 1)] = '\0';
  std::fill(reports.begin(), reports.end(), ItemReport{.reason = Reason::model_error});
  return false;
}

bool ExecutorModule::run(std::span<const Item> items, std::span<ItemReport> reports, const std::byte* features_in,
                         std::byte* features_out) noexcept {
  std::uint32_t rows = 0;
  for (const Item& item : items) rows += item.rows;
  // Where sizes vary more small pictures come than large ones; those of a size run batch_max at a time.
  const std::uint32_t most = model_inputs_.varies() ? kMaxRows : spec_.batch_max;
  if (rows == 0 || rows > most || reports.size() < items.size())
    return fail_all(reports, "the batch is empty or larger than this module's batch");
  if ((features_in == nullptr) != spec_.first_stage || (features_out == nullptr) != spec_.last_stage)
    return fail_all(reports, "features were given to a stage that has none, or none to one that has");
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool there = region_of(items[i].result, items[i].detection, cut_, &regions_[i]);
    reports[i] = {.reason = there || raw_ || !spec_.first_stage ? Reason::none : Reason::bad_frame};
  }
  if (model_inputs_.varies()) return run_by_size(items, reports);
  std::array<std::uint8_t, kMaxRows> all;
  std::iota(all.begin(), all.end(), std::uint8_t{0});
  const Chosen chosen(all.data(), items.size());
  if (!alone_ || features_in != nullptr)
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
    if (!alone_ && items[i].rows > spec_.batch_max) sizes[i] = {};
    if (sizes[i] == Size{}) reports[i].reason = Reason::bad_frame;
  }
  for (std::size_t first = 0; first < items.size(); ++first) {
    const Size size = sizes[first];
    if (size == Size{}) continue;  // unusable, or has run with another
    std::array<std::uint8_t, kMaxRows> together;
    std::size_t count = 0;
    std::uint32_t rows = 0;
    for (std::size_t i = first; i < items.size(); ++i) {
      if (sizes[i] != size || (alone_ ? count == 1 : rows + items[i].rows > spec_.batch_max)) continue;
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
  const std::size_t most = alone_ ? 1 : spec_.batch_max;
  for (std::size_t first = 0, count = 0; first < pieces.count && report.reason == Reason::none; first += count) {
    for (count = 1; count < most && first + count < pieces.count && sizes[first + count] == sizes[first];) ++count;
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
    rows += alone_ ? 1 : items[i].rows;
  }
  const Item& lead = items[chosen[0]];
  if (alone_ && reports[chosen[0]].reason != Reason::none) return true;
  leat_tensor features = inputs_[0], outputs[kMaxModelTensors];
  std::span<const leat_tensor> inputs(&features, 1);
  if (!spec_.first_stage) {
    features.data = const_cast<std::byte*>(features_in);
    features.shape[0] = rows;
  } else if (device_ != nullptr) {
    features.shape[0] = rows;
  } else {
    inputs = raw_ ? std::span<const leat_tensor>(raw_items_, rows) : model_inputs_.tensors(rows);
  }
  const TensorsPost* const tensors = postprocessor_.tensors();
  const Placement none;
  for (std::uint32_t i = 0; i < output_count_; ++i) {
    outputs[i] = outputs_[i];
    if ((outputs[i].flags & LEAT_TENSOR_UNBATCHED) == 0 && outputs[i].rank > 0) outputs[i].shape[0] = rows;
    if (tensors == nullptr || device_ != nullptr || lead.result == nullptr) continue;
    std::uint64_t room = 0;
    const PostTarget target{none, lead.frame, lead.detection, lead.result, nullptr, lead.parts};
    if (std::byte* const at = tensors->place(i, target, &room); at != nullptr)
      outputs[i].data = at, outputs[i].bytes = room;
  }
  if (const int code = execute(inputs, {outputs, output_count_}, rows, features_out); code != 0) {
    for (const std::uint8_t i : chosen)
      reports[i] = {.reason = code == LEAT_RUN_TOO_LARGE ? Reason::result_too_large : Reason::model_error};
    return false;
  }
  if (!spec_.last_stage) return true;
  std::uint32_t row = 0;
  for (const std::uint8_t i : chosen) {
    if (reports[i].reason == Reason::none && items[i].result != nullptr)
      answer(items[i], regions[i], {outputs, output_count_}, row, reports[i]);
    row += items[i].rows;
  }
  return true;
}

void ExecutorModule::answer(const Item& item, const Region& region, std::span<const leat_tensor> outputs,
                            std::uint32_t row, ItemReport& report) noexcept {
  const Placement placement = raw_                                      ? Placement{}
                              : device_ != nullptr && spec_.first_stage ? preprocessor_.placement(item.frame, region)
                                                                        : model_inputs_.placement(item.frame, region);
  const Quad corners = region.projected ? region.corners() : Quad{};
  report.fan_out = postprocessor_.run(outputs, row, placement, item.frame, item.detection, item.result, item.parts,
                                      region.projected ? &corners : nullptr, region.piece);
}

}  // namespace

Result<std::unique_ptr<Module>> Module::open(const ModuleSpec& spec) {
  auto module = std::make_unique<ExecutorModule>(spec);
  try {
    const auto status = module->open();
    if (!status) return Error{"module '" + spec.name + "': " + status.error()};
  } catch (const std::bad_alloc&) {
    return Error{"module '" + spec.name + "': no memory for its buffers; lower its batch"};
  }
  return std::unique_ptr<Module>(std::move(module));
}

}  // namespace leat::exec
