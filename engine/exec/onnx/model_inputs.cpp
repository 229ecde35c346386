#include "engine/exec/onnx/model_inputs.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "engine/exec/decode/post.h"
#include "engine/exec/picture/half.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::exec {
namespace {

constexpr std::size_t kBufferAlignment = 64;

bool batched(const leat_tensor& t) { return t.rank > 0 && (t.flags & LEAT_TENSOR_UNBATCHED) == 0; }
std::uint32_t first_dim(const leat_tensor& t) { return batched(t) ? 1 : 0; }

// Whether three dimensions are those of a picture, and which way round.
bool picture_at(const leat_tensor& t, bool* nhwc) {
  const std::uint32_t first = first_dim(t);
  if (t.rank != first + 3) return false;
  const auto channels = [](std::int64_t n) { return n == 1 || n == 3 || n == 4; };
  const std::int64_t a = t.shape[first], c = t.shape[first + 2];
  *nhwc = !channels(a) && channels(c);
  return channels(a) || channels(c) || a < 1;
}

template <class T>
void store(std::byte* out, std::size_t i, float value) noexcept {
  const T v = static_cast<T>(value);
  std::memcpy(out + i * sizeof v, &v, sizeof v);
}

// One value in the element type of the input; whole types are rounded and kept in range.
void store(std::uint8_t dtype, std::byte* out, std::size_t i, float v) noexcept {
  switch (dtype) {
    case LEAT_F32:
      return store<float>(out, i, v);
    case LEAT_F64:
      return store<double>(out, i, v);
    case LEAT_F16: {
      const std::uint16_t bits = half_of_float(v);
      std::memcpy(out + i * 2, &bits, 2);
      return;
    }
    case LEAT_U8:
    case LEAT_BOOL:
      return store<std::uint8_t>(out, i, std::clamp(std::nearbyint(v), 0.0f, 255.0f));
    case LEAT_I8:
      return store<std::int8_t>(out, i, std::clamp(std::nearbyint(v), -128.0f, 127.0f));
    case LEAT_I32:
      return store<std::int32_t>(out, i, std::nearbyint(v));
    case LEAT_I64:
      return store<std::int64_t>(out, i, std::nearbyint(v));
    default:
      return;
  }
}
bool storable(std::uint8_t dtype) {
  switch (dtype) {
    case LEAT_F32:
    case LEAT_F64:
    case LEAT_F16:
    case LEAT_U8:
    case LEAT_BOOL:
    case LEAT_I8:
    case LEAT_I32:
    case LEAT_I64:
      return true;
    default:
      return false;
  }
}

std::string described_as(const leat_tensor& t) {
  return "'" + std::string(t.name != nullptr ? t.name : "?") + "' " + item_of(t, -1).text();
}

}  // namespace

AlignedBuffer aligned_buffer(std::uint64_t bytes) {
  const std::size_t rounded = (bytes + kBufferAlignment) / kBufferAlignment * kBufferAlignment;
  auto* p = static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, rounded));
  if (p == nullptr) throw std::bad_alloc();
  std::memset(p, 0, rounded);  // its pages are there before the first frame
  return AlignedBuffer(p);
}

Result<ModelInputs> ModelInputs::open(const PreprocessSpec& spec, std::span<const leat_tensor> described,
                                      std::uint32_t batch_max) {
  ModelInputs out;
  out.spec_ = spec;
  out.batch_max_ = batch_max;
  for (const leat_tensor& t : described) {
    Input in;
    in.tensor = t;
    in.row_bytes = item_of(t, -1).count() * leat_dtype_bytes(t.dtype);
    out.inputs_.push_back(std::move(in));
  }
  if (auto status = out.assign_roles(); !status) return Error{status.error()};
  if (auto status = out.open_picture(); !status) return Error{status.error()};
  for (Input& in : out.inputs_) {
    if (in.row_bytes == 0) out.fit_to_picture(in);
    if (in.row_bytes == 0)
      return Error{"the model's input " + described_as(in.tensor) +
                   " leaves dimensions open; fix them with size=WxH in "
                   "preprocess, or export the model with a fixed size"};
    in.buffer = aligned_buffer(in.row_bytes * (batched(in.tensor) ? batch_max : 1));
  }
  return out;
}

Status ModelInputs::assign_roles() {
  if (takes_tensors()) {
    if (!spec_.feeds.empty())
      return Error{"preprocess: feed. suits pictures; with 'tensors' the client fills every input"};
    if (inputs_.size() > LEAT_MAX_TENSORS)
      return Error{"preprocess: the model has " + std::to_string(inputs_.size()) + " inputs; tensors serves up to 8"};
    return Done{};
  }
  std::vector<bool> fed(inputs_.size(), false);
  for (const auto& [name, word] : spec_.feeds) {
    const auto at = std::find_if(inputs_.begin(), inputs_.end(),
                                 [&](const Input& in) { return in.tensor.name != nullptr && name == in.tensor.name; });
    if (at == inputs_.end()) {
      std::string known;
      for (const Input& in : inputs_) known += (known.empty() ? "" : ", ") + described_as(in.tensor);
      return Error{"preprocess: feed." + name + ": the model has no such input; it has " + known};
    }
    constexpr std::pair<std::string_view, Role> kWords[] = {
        {"wh", Role::wh},     {"hw", Role::hw},      {"frame_wh", Role::frame_wh}, {"frame_hw", Role::frame_hw},
        {"ones", Role::ones}, {"zeros", Role::zeros}};
    const auto role =
        std::find_if(std::begin(kWords), std::end(kWords), [&](const auto& w) { return w.first == word; });
    if (role == std::end(kWords))
      return Error{"preprocess: feed." + name + "=" + word +
                   " is not known; write wh, hw, frame_wh, frame_hw, ones or zeros"};
    const bool pair = role->second != Role::ones && role->second != Role::zeros;
    if (pair && item_of(at->tensor, -1).count() != 2)
      return Error{"preprocess: feed." + name + "=" + word + " gives two numbers, and the input is " +
                   described_as(at->tensor)};
    at->role = role->second;
    fed[static_cast<std::size_t>(at - inputs_.begin())] = true;
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (fed[i]) continue;
    if (picture_ == SIZE_MAX && picture_at(inputs_[i].tensor, &nhwc_)) {
      picture_ = i;
      inputs_[i].role = Role::picture;
    } else {
      return Error{"preprocess: nothing says what the model's input " + described_as(inputs_[i].tensor) +
                   " takes; write feed." +
                   std::string(inputs_[i].tensor.name != nullptr ? inputs_[i].tensor.name : "NAME") +
                   "=wh, hw, ones or zeros, or 'tensors' to fill every input yourself"};
    }
  }
  return picture_ == SIZE_MAX ? Status(Error{"preprocess: no input of the model takes the picture"}) : Status(Done{});
}

// A model that fixes a side that varies is refused, unless that is the only size there would be.
Status ModelInputs::settle_sizes(std::int64_t model_width, std::int64_t model_height) {
  SizeRule& rule = spec_.sizes;
  if (!rule.varies()) return Done{};
  const Size max = rule.largest();
  const bool one = rule.widths.size() == 1;
  const bool width_fits = model_width < 1 || (one && model_width == max.width);
  const bool height_fits = model_height < 1 || (rule.height != 0 && model_height == rule.height);
  if (!width_fits || !height_fits)
    return Error{"preprocess: longest=, height= and widths= let the picture's size vary, and the model's input " +
                 described_as(inputs_[picture_].tensor) +
                 " fixes it; leave them out, or export the model with open sizes"};
  spec_.width = max.width, spec_.height = max.height;
  return Done{};
}

Status ModelInputs::open_picture() {
  if (picture_ == SIZE_MAX) return Done{};
  Input& in = inputs_[picture_];
  const std::uint32_t first = first_dim(in.tensor);
  std::int64_t* const shape = in.tensor.shape + first;
  std::int64_t &c = shape[nhwc_ ? 2 : 0], &h = shape[nhwc_ ? 0 : 1], &w = shape[nhwc_ ? 1 : 2];
  if (auto status = settle_sizes(w, h); !status) return status;
  const auto fixed = [](std::int64_t model, std::uint32_t asked) {
    return model > 0 && asked != 0 && model != static_cast<std::int64_t>(asked);
  };
  if (fixed(w, spec_.width) || fixed(h, spec_.height))
    return Error{"preprocess: size=" + std::to_string(spec_.width) + "x" + std::to_string(spec_.height) +
                 " contradicts the model's input " + described_as(in.tensor)};
  if (w < 1 && spec_.width != 0) w = spec_.width;
  if (h < 1 && spec_.height != 0) h = spec_.height;
  if (c < 1) c = spec_.channels == Channels::gray ? 1 : spec_.channels == Channels::rgba ? 4 : 3;
  if (w < 1 || h < 1)
    return Error{"preprocess: the model's input " + described_as(in.tensor) +
                 " takes pictures of any size; say which "
                 "with size=WxH (the size it was trained for), or let it vary with longest= or height="};
  if (!storable(in.tensor.dtype))
    return Error{"preprocess: the model's input " + described_as(in.tensor) +
                 " is of a type that pictures are not made "
                 "in; use 'tensors'"};
  in.row_bytes = item_of(in.tensor, -1).count() * leat_dtype_bytes(in.tensor.dtype);
  width_ = static_cast<std::uint32_t>(w), height_ = static_cast<std::uint32_t>(h),
  channels_ = static_cast<std::uint32_t>(c);
  const bool alpha = spec_.channels == Channels::rgba;
  if (alpha != (channels_ == 4))
    return Error{"preprocess: the model's input " + described_as(in.tensor) + " has " + std::to_string(channels_) +
                 " channels; write 'rgba' for 4, 'gray' for 1, 'rgb' or 'bgr' for 3"};
  auto opened = Preprocessor::open(spec_, alpha ? 3 : channels_, width_, height_);
  if (!opened) return Error{opened.error()};
  preprocessor_ = std::move(*opened);
  const std::size_t pixels = std::size_t{width_} * height_;
  if (nhwc_ || alpha || in.tensor.dtype != LEAT_F32) planar_.resize(pixels * channels_);
  set_size({width_, height_});
  return Done{};
}

void ModelInputs::set_size(Size size) noexcept {
  if (size == size_) return;
  size_ = size;
  Input& in = inputs_[picture_];
  std::int64_t* const shape = in.tensor.shape + first_dim(in.tensor);
  shape[nhwc_ ? 0 : 1] = size.height, shape[nhwc_ ? 1 : 2] = size.width;
  in.row_bytes = size.pixels() * channels_ * leat_dtype_bytes(in.tensor.dtype);
  preprocessor_.set_size(size);
  for (Input& beside : inputs_) {
    if (beside.width_at == UINT32_MAX) continue;
    beside.tensor.shape[beside.height_at] = size.height, beside.tensor.shape[beside.width_at] = size.width;
    beside.row_bytes = item_of(beside.tensor, -1).count() * leat_dtype_bytes(beside.tensor.dtype);
  }
  if (spec_.channels == Channels::rgba)
    std::fill_n(planar_.begin() + static_cast<std::ptrdiff_t>(3 * size.pixels()), size.pixels(),
                (1 - spec_.mean[3]) / spec_.deviation[3]);
}

// A mask beside a picture is as large as the picture, where the model leaves both open.
void ModelInputs::fit_to_picture(Input& in) const {
  if (in.role != Role::ones && in.role != Role::zeros) return;
  const std::int64_t sides[] = {height_, width_};
  std::uint32_t* const at[] = {&in.height_at, &in.width_at};
  std::size_t next = 0;
  for (std::uint32_t d = first_dim(in.tensor); d < in.tensor.rank; ++d)
    if (in.tensor.shape[d] < 1 && next < std::size(sides)) *at[next] = d, in.tensor.shape[d] = sides[next++];
  in.row_bytes = item_of(in.tensor, -1).count() * leat_dtype_bytes(in.tensor.dtype);
}

void ModelInputs::pack(const float* planar, const Input& in, std::byte* out) noexcept {
  const std::size_t pixels = size_.pixels();
  for (std::uint32_t c = 0; c < channels_; ++c) {
    for (std::size_t p = 0; p < pixels; ++p)
      store(in.tensor.dtype, out, nhwc_ ? p * channels_ + c : c * pixels + p, planar[c * pixels + p]);
  }
}

void ModelInputs::put_numbers(Input& in, std::uint32_t row, float first, float second) noexcept {
  std::byte* const at = in.buffer.get() + (batched(in.tensor) ? row * in.row_bytes : 0);
  const std::size_t count = in.row_bytes / leat_dtype_bytes(in.tensor.dtype);
  for (std::size_t i = 0; i < count; ++i) store(in.tensor.dtype, at, i, i % 2 == 0 ? first : second);
}

bool ModelInputs::fill_tensors(const FrameView& frame, std::uint32_t row) noexcept {
  if (frame.format != LEAT_FORMAT_tensors || frame.tensor_count != inputs_.size()) return false;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    Input& in = inputs_[i];
    const ItemTensor item = item_of(in.tensor, -1);
    const leat_tensor_shape& given = frame.tensors[i];
    bool same =
        given.dtype == in.tensor.dtype && shm::tensor_bytes(given) == in.row_bytes && at + in.row_bytes <= frame.bytes;
    // With or without a leading batch of one, whichever the client prefers.
    const std::uint32_t skip = given.rank == item.rank + 1 && given.dims[0] == 1 ? 1 : 0;
    same = same && given.rank == item.rank + skip;
    for (std::uint32_t d = 0; same && d < item.rank; ++d) same = given.dims[skip + d] == item.shape[d];
    if (!same) return false;
    const std::uint8_t* const data = frame.planes[0] + at;
    if (row == 0) {
      now_[i].data = const_cast<std::uint8_t*>(data);  // the C ABI has one tensor type; inputs are only read
    } else {
      if (row == 1) std::memcpy(in.buffer.get(), now_[i].data, in.row_bytes);  // the first is not alone after all
      std::memcpy(in.buffer.get() + row * in.row_bytes, data, in.row_bytes);
      now_[i].data = in.buffer.get();
    }
    at += shm::round_up(in.row_bytes, shm::kLine);
  }
  return true;
}

bool ModelInputs::fill(const FrameView& frame, const Region& region, std::uint32_t row) noexcept {
  if (takes_tensors()) {
    if (fill_tensors(frame, row)) return true;
    if (row == 0)
      for (std::size_t i = 0; i < inputs_.size(); ++i) now_[i].data = inputs_[i].buffer.get();
    return false;
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    Input& in = inputs_[i];
    switch (in.role) {
      case Role::picture: {
        std::byte* const at = in.buffer.get() + (batched(in.tensor) ? row * in.row_bytes : 0);
        float* const planar = planar_.empty() ? reinterpret_cast<float*>(at) : planar_.data();
        if (!preprocessor_.run(frame, region, planar)) return false;
        if (!planar_.empty()) pack(planar, in, at);
        break;
      }
      case Role::wh:
        put_numbers(in, row, static_cast<float>(size_.width), static_cast<float>(size_.height));
        break;
      case Role::hw:
        put_numbers(in, row, static_cast<float>(size_.height), static_cast<float>(size_.width));
        break;
      case Role::frame_wh:
        put_numbers(in, row, static_cast<float>(frame.width), static_cast<float>(frame.height));
        break;
      case Role::frame_hw:
        put_numbers(in, row, static_cast<float>(frame.height), static_cast<float>(frame.width));
        break;
      case Role::ones:
        put_numbers(in, row, 1, 1);
        break;
      case Role::zeros:
      case Role::tensor:
        break;
    }
    now_[i].data = in.buffer.get();
  }
  return true;
}

std::uint64_t ModelInputs::repeat(std::uint32_t from, std::uint32_t to) noexcept {
  std::uint64_t copied = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    Input& in = inputs_[i];
    if (!batched(in.tensor)) continue;
    if (now_[i].data != in.buffer.get()) {
      std::memcpy(in.buffer.get() + from * in.row_bytes, now_[i].data, in.row_bytes);
      now_[i].data = in.buffer.get();
    }
    std::memcpy(in.buffer.get() + to * in.row_bytes, in.buffer.get() + from * in.row_bytes, in.row_bytes);
    copied += in.row_bytes;
  }
  return copied;
}

std::span<const leat_tensor> ModelInputs::tensors(std::uint32_t rows) noexcept {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    void* const data = now_[i].data != nullptr ? now_[i].data : inputs_[i].buffer.get();
    now_[i] = inputs_[i].tensor;
    now_[i].data = data;
    if (batched(now_[i])) now_[i].shape[0] = rows;
    now_[i].bytes = inputs_[i].row_bytes * (batched(now_[i]) ? rows : 1);
  }
  return {now_.data(), inputs_.size()};
}

// Every fill() writes the whole of its row, but for zeros, which fresh pages are.
void ModelInputs::give_back() noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const Input& in : inputs_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(in.buffer.get());
    const std::uintptr_t first = (begin + page - 1) / page * page;
    const std::uintptr_t end = (begin + in.row_bytes * (batched(in.tensor) ? batch_max_ : 1)) / page * page;
    if (end > first) (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
  }
}

Placement ModelInputs::placement(const FrameView& frame, const Region& region) const noexcept {
  if (picture_ == SIZE_MAX) return {};
  return preprocessor_.placement(frame, region);
}

std::vector<leat_tensor_shape> ModelInputs::shapes() const {
  std::vector<leat_tensor_shape> out;
  for (const Input& in : inputs_) {
    const ItemTensor item = item_of(in.tensor, -1);
    leat_tensor_shape s{.dtype = in.tensor.dtype, .rank = item.rank, .dims = {}};
    for (std::uint32_t d = 0; d < item.rank; ++d) s.dims[d] = static_cast<std::uint32_t>(item.shape[d]);
    out.push_back(s);
  }
  return out;
}

std::vector<std::string> ModelInputs::names() const {
  std::vector<std::string> out;
  for (const Input& in : inputs_) out.emplace_back(in.tensor.name != nullptr ? in.tensor.name : "");
  return out;
}

}  // namespace leat::exec
