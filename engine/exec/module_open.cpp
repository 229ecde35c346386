#include <algorithm>

#include "engine/exec/executor_module.h"

namespace leat::exec {
namespace {

bool open_shape(const leat_tensor& t) {
  return std::any_of(t.shape, t.shape + t.rank, [](std::int64_t n) { return n < 0; });
}

std::string_view what_is_wrong_with(const ModuleSpec& s) {
  if (s.batch_max < 1 || s.batch_max > kMaxRows) return "batch must be 1..64";
  if (s.threads < 1) return "threads must be 1 or more";
  if (s.sets < 1 || s.sets > kSets) return "sets of buffers must be 1 or 2";
  if (s.first_block >= s.end_block) return "a stage needs at least one block";
  return {};
}

}  // namespace

Status ExecutorModule::open_input() {
  const leat_tensor& in = session_.inputs()[0];
  takes_frames_ = in.dtype == LEAT_U8 && in.rank == 2 && in.shape[1] == 0;
  if (takes_frames_)
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
    if (session_.inputs().size() != 1)
      return Error{spec_.model_path + ": has " + std::to_string(session_.inputs().size()) +
                   " inputs; a device serves models of one"};
    leat_picture_target target{};
    if (auto status = device_->open_pictures(session_.inputs()[0], spec_.model_path, spec->resize, &target); !status)
      return status;
    auto opened = Preprocessor::open(*spec, target.channels, target.width, target.height);
    if (!opened) return Error{opened.error()};
    preprocessor_ = std::move(*opened);
    return Done{};
  }
  std::vector<leat_tensor> inputs(session_.inputs().begin(), session_.inputs().end());
  if (!spec_.first_stage) {  // features come in; the picture's geometry is what the whole model takes
    if (spec_.picture_width == 0) return Done{};
    leat_tensor picture{};
    picture.rank = 4;
    picture.shape[0] = 1, picture.shape[1] = spec->channels == Channels::gray ? 1 : 3;
    picture.shape[2] = spec_.picture_height, picture.shape[3] = spec_.picture_width;
    inputs = {picture};
  } else if (!spec_.last_stage && session_.inputs().size() != 1) {
    return Error{spec_.model_path + ": has " + std::to_string(session_.inputs().size()) +
                 " inputs; a model that is cut into stages has one"};
  }
  for (const auto& room : rooms_) {
    auto opened = ModelInputs::open(*spec, inputs, spec_.first_stage ? spec_.batch_max : 1);
    if (!opened) return Error{spec_.model_path + ": " + opened.error()};
    room->inputs = std::move(*opened);
  }
  return Done{};
}

bool ExecutorModule::try_size(Size size, std::uint32_t rows, std::span<leat_tensor> outputs) noexcept {
  BatchRoom& room = *rooms_.front();
  if (room.inputs.varies()) room.inputs.set_size(size);
  room.run_inputs = room.inputs.tensors(rows);
  room.rows = rows;
  std::ranges::copy(session_.outputs(), room.run_outputs.begin());
  execute(room);
  std::ranges::copy_n(room.run_outputs.begin(), static_cast<std::ptrdiff_t>(session_.outputs().size()),
                      outputs.begin());
  return room.code == 0;
}

// Runs on nothing where the model leaves its picture's size open: it works from the smallest size to the largest, its
// memory is there before the first frame, and the shapes that do not depend on the size are known. Items run together
// if every output has a row for each of two.
Status ExecutorModule::learn_open_sizes() {
  const auto is_open = [](const leat_tensor& t) { return open_shape(t); };
  open_size_ = !takes_frames_ && device_ == nullptr && spec_.first_stage && spec_.last_stage &&
               !inputs().takes_tensors() && std::any_of(session_.inputs().begin(), session_.inputs().end(), is_open);
  if (!open_size_) return Done{};
  const std::vector<Size> sizes = inputs().sizes();
  const Size low = sizes.empty() ? Size{inputs().width(), inputs().height()} : sizes.front(),
             high = sizes.empty() ? low : sizes.back();
  std::array<leat_tensor, kMaxModelTensors> once, twice, max;
  for (const auto& [size, out] : {std::pair{low, &once}, std::pair{high, &max}}) {
    if (!try_size(size, 1, *out))
      return Error{spec_.model_path + ": cannot be run on a picture of " + std::to_string(size.width) + "x" +
                   std::to_string(size.height) + " (" + rooms_.front()->error.data() +
                   "); write another size in preprocess"};
  }
  const auto unbatched = [](const leat_tensor& t) { return (t.flags & LEAT_TENSOR_UNBATCHED) != 0; };
  const bool together = spec_.batch_max > 1 && try_size(low, 2, twice) &&
                        std::none_of(once.begin(), once.begin() + session_.outputs().size(), unbatched) &&
                        std::none_of(twice.begin(), twice.begin() + session_.outputs().size(), unbatched);
  one_item_a_run_ = !together;
  for (std::uint32_t i = 0; i < session_.outputs().size(); ++i) {
    leat_tensor& t = session_.outputs()[i];
    const leat_tensor &a = once[i], &b = max[i];
    t.rank = a.rank, t.flags = a.flags;
    for (std::uint32_t d = 0; d < a.rank; ++d)
      t.shape[d] = a.rank == b.rank && a.shape[d] == b.shape[d] && a.shape[d] > 0 ? a.shape[d] : -1;
    if (!unbatched(t)) t.shape[0] = spec_.batch_max;
  }
  return Done{};
}

Status ExecutorModule::open_output() {
  if (!spec_.last_stage) {
    if (session_.outputs().size() != 1)
      return Error{spec_.model_path + ": a stage that hands features on has one output"};
    return device_ != nullptr && spec_.host_features_out ? device_->open_features(session_.outputs()[0])
                                                         : Status(Done{});
  }
  const auto spec = parse_postprocess(spec_.postprocess);
  if (!spec) return Error{spec.error()};
  const auto open = [&] {
    return Postprocessor::open(*spec, session_.outputs(), spec_.labels, spec_.first_head, inputs().width(),
                               inputs().height(), spec_.model_path);
  };
  auto opened = open();
  if (!opened && !recognised_.labels.words.empty()) {  // names that do not fit are nobody's fault
    recognised_.labels = {}, spec_.labels.clear();
    opened = open();
  }
  if (!opened) return Error{opened.error()};
  postprocessor_ = std::move(*opened);
  if (inputs().splits() && !postprocessor_.joins())
    return Error{"preprocess: wide=split reads a line of text in pieces, and suits 'text ctc' alone; leave it out"};
  if (cut_.projected()) {
    for (const PartSpec& part : postprocessor_.parts())
      if (part.kind == LEAT_PART_keypoints || part.kind == LEAT_PART_oriented || part.kind == LEAT_PART_map)
        return Error{
            "postprocess: places in a crop made by quad or align= are not taken back to the frame; cut out the "
            "upright box instead"};
  }
  if (device_ != nullptr) return device_->open_outputs(session_.outputs());
  one_item_a_run_ = one_item_a_run_ || postprocessor_.tensors() != nullptr;
  for (std::uint32_t i = 0; i < session_.inputs().size() && !takes_frames_; ++i)
    one_item_a_run_ = one_item_a_run_ || (i == 0 && (session_.inputs()[i].flags & LEAT_TENSOR_UNBATCHED) != 0);
  for (std::uint32_t i = 0; i < session_.outputs().size() && !open_size_; ++i)
    one_item_a_run_ = one_item_a_run_ || open_shape(session_.outputs()[i]) ||
                      (session_.outputs()[i].flags & LEAT_TENSOR_UNBATCHED) != 0;
  for (const auto& room : rooms_) open_buffers(*room);
  return Done{};
}

void ExecutorModule::open_buffers(BatchRoom& room) const {
  for (std::uint32_t i = 0; i < session_.outputs().size(); ++i) {
    const leat_tensor& out = session_.outputs()[i];
    if (open_size_ || open_shape(out)) continue;
    const bool batched = (out.flags & LEAT_TENSOR_UNBATCHED) == 0;
    room.output_buffers.push_back(aligned_buffer(one_item_a_run_ && batched ? row_bytes(out) : out.bytes));
    room.output_data[i] = room.output_buffers.back().get();
  }
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
  if (auto status = session_.open(spec_); !status) return status;
  const std::uint32_t sets = session_.may_run_beside() ? spec_.sets : 1;
  if (session_.on_device()) device_ = std::make_unique<ModuleDevice>(spec_.device, sets);
  for (std::uint32_t set = 0; set < sets; ++set) rooms_.push_back(std::make_unique<BatchRoom>(this, set));
  for (const auto step :
       {&ExecutorModule::open_input, &ExecutorModule::learn_open_sizes, &ExecutorModule::open_output}) {
    if (const auto status = (this->*step)(); !status) return status;
  }
  if (inputs().varies() || one_item_a_run_) keep_one_set();
  return Done{};
}

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
