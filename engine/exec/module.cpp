#include "engine/exec/module.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "engine/exec/executor.h"
#include "engine/exec/onnx_split.h"
#include "engine/exec/postprocess.h"
#include "engine/exec/preprocess.h"
#include "engine/exec/registry.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kMaxTensors = 16;
constexpr std::size_t kBufferAlignment = 64;
constexpr std::size_t kErrorBytes = 512;

struct FreeBuffer {
  void operator()(std::byte* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::byte, FreeBuffer>;
Buffer buffer_of(std::uint64_t bytes) {
  const std::size_t rounded = (bytes + kBufferAlignment) / kBufferAlignment * kBufferAlignment;
  auto* p = static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, rounded));
  if (p == nullptr) throw std::bad_alloc();
  std::memset(p, 0, rounded);  // its pages are there before the first frame
  return Buffer(p);
}

struct SessionCloser {
  const leat_executor* executor;
  void operator()(leat_session* s) const { executor->close(s); }
};

std::uint64_t row_bytes(const leat_tensor& t) { return t.bytes / static_cast<std::uint64_t>(t.shape[0]); }

class ExecutorModule final : public Module {
 public:
  explicit ExecutorModule(const ModuleSpec& spec) : spec_(spec) {}
  Status open();

  bool run(std::span<const Item> items, std::span<ItemReport> reports, const std::byte* features_in, std::byte* features_out) noexcept override;
  std::uint64_t feature_bytes_in() const noexcept override { return spec_.first_stage ? 0 : row_bytes(inputs_[0]); }
  std::uint64_t feature_bytes_out() const noexcept override { return spec_.last_stage ? 0 : row_bytes(outputs_[0]); }
  std::string_view error() const noexcept override { return error_; }
  const ModuleSpec& spec() const noexcept override { return spec_; }

 private:
  Status open_session();
  Status open_input();
  Status open_output();
  bool fill_input(const Item& item, std::uint32_t row, ItemReport& report) noexcept;
  bool fail_all(std::span<ItemReport> reports, std::string_view why) noexcept;

  ModuleSpec spec_;
  const leat_executor* executor_ = nullptr;
  std::unique_ptr<leat_session, SessionCloser> session_{nullptr, {nullptr}};
  bool raw_ = false;  // the executor takes the frames where they are
  leat_tensor inputs_[kMaxTensors] = {}, outputs_[kMaxTensors] = {};  // at batch_max rows
  std::uint32_t output_count_ = 0;
  Buffer input_buffer_;
  std::vector<Buffer> output_buffers_;
  leat_tensor raw_items_[kMaxRows] = {};
  Preprocessor preprocessor_;
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
    for (std::size_t i = 0; i < spec_.emulated_ns.size(); ++i) extra += (i == 0 ? "" : ",") + std::to_string(spec_.emulated_ns[i]);
    extra += '\n';
  }
  for (const auto& [key, bytes] : {std::pair{"bytes_in=", spec_.emulated_in}, std::pair{"bytes_out=", spec_.emulated_out}})
    if (bytes != 0) extra += key + std::to_string(bytes) + '\n';
  if (!spec_.cuts.empty()) extra += "cuts=" + join_cuts(spec_.cuts) + "\n";
  for (const auto& [key, value] : spec_.extra) extra += key + "=" + value + "\n";
  const leat_session_options options{.model_path = spec_.model_path.c_str(), .first_block = spec_.first_block, .end_block = spec_.end_block,
                                     .batch_max = spec_.batch_max, .threads = spec_.threads, .extra = extra.c_str()};
  leat_session* session = nullptr;
  if (executor_->open(&options, &session, error_, sizeof error_) != 0) return Error{error_};
  session_ = {session, SessionCloser{executor_}};
  std::uint32_t input_count = kMaxTensors;
  output_count_ = kMaxTensors;
  if (executor_->describe(session, spec_.batch_max, inputs_, &input_count, outputs_, &output_count_, error_, sizeof error_) != 0) return Error{error_};
  if (input_count != 1) return Error{spec_.model_path + ": has " + std::to_string(input_count) + " inputs; a module's model has one"};
  for (std::uint32_t i = 0; i < output_count_; ++i) {
    if (inputs_[0].memory != LEAT_MEMORY_HOST || outputs_[i].memory != LEAT_MEMORY_HOST) return Error{"executor '" + spec_.executor + "' wants device memory; only host memory is served"};
  }
  return Done{};
}

Status ExecutorModule::open_input() {
  const leat_tensor& in = inputs_[0];
  raw_ = in.dtype == LEAT_U8 && in.rank == 2 && in.shape[1] == 0;
  if (raw_) return spec_.first_stage ? Status(Done{}) : Status(Error{spec_.model_path + ": its first block cannot start from features"});
  const auto spec = parse_preprocess(spec_.preprocess);
  if (!spec) return Error{spec.error()};
  if (spec->fit == Fit::raw) return Error{"preprocess: 'raw' suits the executor 'emulated' only; write 'letterbox' or 'stretch' for a model"};
  if (!spec_.first_stage) {
    if (spec_.picture_width == 0) return Done{};
    auto geometry = Preprocessor::open(*spec, spec->channels == Channels::gray ? 1 : 3, spec_.picture_width, spec_.picture_height);
    if (!geometry) return Error{geometry.error()};
    preprocessor_ = std::move(*geometry);
    return Done{};
  }
  if (in.dtype != LEAT_F32 || in.rank != 4) return Error{spec_.model_path + ": its input is not float32 [n, channels, height, width]; export it so"};
  auto opened = Preprocessor::open(*spec, static_cast<std::uint32_t>(in.shape[1]), static_cast<std::uint32_t>(in.shape[3]), static_cast<std::uint32_t>(in.shape[2]));
  if (!opened) return Error{opened.error()};
  preprocessor_ = std::move(*opened);
  input_buffer_ = buffer_of(in.bytes);
  inputs_[0].data = input_buffer_.get();
  return Done{};
}

Status ExecutorModule::open_output() {
  if (!spec_.last_stage) return output_count_ == 1 ? Status(Done{}) : Status(Error{spec_.model_path + ": a stage that hands features on has one output"});
  for (std::uint32_t i = 0; i < output_count_; ++i) {
    output_buffers_.push_back(buffer_of(outputs_[i].bytes));
    outputs_[i].data = output_buffers_.back().get();
  }
  const auto spec = parse_postprocess(spec_.postprocess);
  if (!spec) return Error{spec.error()};
  auto opened = Postprocessor::open(*spec, {outputs_, output_count_}, spec_.labels);
  if (!opened) return Error{opened.error()};
  postprocessor_ = std::move(*opened);
  return Done{};
}

Status ExecutorModule::open() {
  if (const std::string_view wrong = what_is_wrong_with(spec_); !wrong.empty()) return Error{std::string(wrong)};
  for (const auto step : {&ExecutorModule::open_session, &ExecutorModule::open_input, &ExecutorModule::open_output}) {
    if (const auto status = (this->*step)(); !status) return status;
  }
  return Done{};
}

// False: the item's own frame or box is unusable.
bool ExecutorModule::fill_input(const Item& item, std::uint32_t row, ItemReport& report) noexcept {
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
  Box box;
  if (item.detection >= 0) {
    if (item.result == nullptr || item.detection >= LEAT_MAX_DETECTIONS || static_cast<std::uint32_t>(item.detection) >= item.result->detection_count) return false;
    const leat_detection& d = item.result->detections[item.detection];
    box = {d.x0, d.y0, d.x1, d.y1};
  }
  const std::uint64_t bytes = row_bytes(inputs_[0]);
  std::byte* const at = input_buffer_.get() + row * bytes;
  if (!preprocessor_.run(item.frame, item.detection >= 0 ? &box : nullptr, reinterpret_cast<float*>(at))) return false;
  for (std::uint32_t r = 1; r < item.rows; ++r) {
    std::memcpy(at + r * bytes, at, bytes);
    report.pixel_bytes_copied += bytes;
  }
  return true;
}

bool ExecutorModule::fail_all(std::span<ItemReport> reports, std::string_view why) noexcept {
  if (!why.empty()) error_[why.copy(error_, kErrorBytes - 1)] = '\0';
  std::fill(reports.begin(), reports.end(), ItemReport{.reason = Reason::model_error});
  return false;
}

bool ExecutorModule::run(std::span<const Item> items, std::span<ItemReport> reports, const std::byte* features_in, std::byte* features_out) noexcept {
  std::uint32_t rows = 0;
  for (const Item& item : items) rows += item.rows;
  if (rows == 0 || rows > spec_.batch_max || reports.size() < items.size()) return fail_all(reports, "the batch is empty or larger than this module's batch");
  if ((features_in == nullptr) != spec_.first_stage || (features_out == nullptr) != spec_.last_stage) return fail_all(reports, "features were given to a stage that has none, or none to one that has");

  std::uint32_t row = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    reports[i] = {};
    if (spec_.first_stage && !fill_input(items[i], row, reports[i])) reports[i].reason = Reason::bad_frame;
    row += items[i].rows;
  }
  leat_tensor input = inputs_[0], outputs[kMaxTensors];
  if (!spec_.first_stage) input.data = const_cast<std::byte*>(features_in);
  input.shape[0] = rows;
  std::copy_n(outputs_, output_count_, outputs);
  for (std::uint32_t i = 0; i < output_count_; ++i) outputs[i].shape[0] = rows;
  if (!spec_.last_stage) outputs[0].data = features_out;
  if (executor_->run(session_.get(), rows, raw_ ? raw_items_ : &input, raw_ ? rows : 1, outputs, output_count_, error_, sizeof error_) != 0) return fail_all(reports, {});
  if (!spec_.last_stage) return true;

  row = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    if (reports[i].reason == Reason::none && item.result != nullptr) {
      const Placement placement = raw_ || item.detection >= 0 ? Placement{} : preprocessor_.placement(item.frame, nullptr);
      reports[i].fan_out = postprocessor_.run({outputs, output_count_}, row, placement, item.frame, item.detection, spec_.fan_out_cap, item.result);
    }
    row += item.rows;
  }
  return true;
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
