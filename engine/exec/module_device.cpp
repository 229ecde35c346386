#include "engine/exec/module_device.h"

namespace leat::exec {

Status ModuleDevice::open_pictures(leat_tensor& in, const std::string& model, std::uint32_t resize,
                                   leat_picture_target* target) {
  const auto channels = [&](int dimension) { return in.shape[dimension] == 1 || in.shape[dimension] == 3; };
  if (in.rank != 4 || (!channels(1) && !channels(3)) ||
      (in.dtype != LEAT_F32 && in.dtype != LEAT_F16 && in.dtype != LEAT_U8))
    return Error{model +
                 ": its input is no picture: float32, float16 or uint8, [n, channels, height, width] or "
                 "[n, height, width, channels] with 1 or 3 channels; export it so"};
  const bool planar = channels(1);
  const auto side = [&](int dimension) { return static_cast<std::uint32_t>(in.shape[dimension]); };
  target_ = {.width = side(planar ? 3 : 2),
             .height = side(planar ? 2 : 1),
             .channels = side(planar ? 1 : 3),
             .dtype = in.dtype,
             .layout = static_cast<std::uint32_t>(planar ? LEAT_NCHW : LEAT_NHWC),
             .resize = resize};
  auto buffer = device_.allocate(in.bytes);
  if (!buffer.ok()) return Error{buffer.error()};
  input_ = std::move(*buffer);
  in.data = input_.data();
  *target = target_;
  return Done{};
}

Status ModuleDevice::open_outputs(std::span<leat_tensor> outputs) {
  pinned_.resize(sets_);
  for (leat_tensor& t : outputs) {
    auto there = device_.allocate(t.bytes);
    if (!there.ok()) return Error{there.error()};
    for (std::vector<PinnedBuffer>& set : pinned_) {
      auto here = device_.pinned(t.bytes);
      if (!here.ok()) return Error{here.error()};
      set.push_back(std::move(*here));
    }
    outputs_.push_back(std::move(*there));
    row_bytes_.push_back(t.bytes / static_cast<std::uint64_t>(t.shape[0]));
    t.data = outputs_.back().data();
  }
  return Done{};
}

Status ModuleDevice::open_features(leat_tensor& output) {
  auto there = device_.allocate(output.bytes);
  if (!there.ok()) return Error{there.error()};
  outputs_.push_back(std::move(*there));
  output.data = outputs_.back().data();
  return Done{};
}

void ModuleDevice::add(const leat_picture_job& job, void* out) noexcept {
  job_list_[jobs_] = job;
  job_list_[jobs_++].out = out;
}

bool ModuleDevice::ready(std::uint32_t rows, std::uint32_t set) noexcept {
  rows_ = rows, set_ = set;
  return device_.use_set(set) && (jobs_ == 0 || device_.ready_pictures({job_list_.data(), jobs_}));
}

bool ModuleDevice::before(std::uint32_t set) noexcept {
  return jobs_ == 0 || device_.put_pictures(set, target_, jobs_);
}

bool ModuleDevice::behind(std::uint32_t set) noexcept {
  for (std::size_t i = 0; i < row_bytes_.size(); ++i)
    if (!device_.copy(pinned_[set][i].data(), outputs_[i].data(), row_bytes_[i] * rows_)) return false;
  return true;
}

void ModuleDevice::downloaded(std::span<leat_tensor> outputs) const noexcept {
  for (std::size_t i = 0; i < row_bytes_.size(); ++i) {
    outputs[i].data = pinned_[set_][i].data();
    outputs[i].memory = LEAT_MEMORY_HOST;
  }
}

}  // namespace leat::exec
