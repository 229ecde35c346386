// What a model's inputs are filled with: one takes the picture, the others constants that speak about it, or every
// input takes a tensor of the client's. Knows layouts (NCHW, NHWC, with or without a batch) and element types; the
// picture's geometry and colours are the preprocessor's.
//
// preprocess words that belong here:
//   tensors                the frames are tensors (format `tensors`): input i takes the client's tensor i
//   feed.NAME=wh|hw|ones|zeros    what another input of the model takes: the width and height of the model's picture
//   (or
//                          of the client's frame: frame_wh, frame_hw), ones or zeros
//
// Thread rule: one thread. Errors: open() one line. fill() allocates nothing; false: the item's own input is unusable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/exec/frame_view.h"
#include "engine/exec/picture/preprocess.h"
#include "leat/executor.h"
#include "leat/result.hpp"

namespace leat::exec {

inline constexpr std::uint32_t kMaxModelTensors = 16;

struct FreeBuffer {
  void operator()(std::byte* p) const { std::free(p); }
};
using AlignedBuffer = std::unique_ptr<std::byte, FreeBuffer>;
AlignedBuffer aligned_buffer(std::uint64_t bytes);  // zeroed, so that its pages are there; throws std::bad_alloc

class ModelInputs {
 public:
  // described: by the executor, at batch_max. May be opened for geometry alone (no inputs): placement() then works.
  static Result<ModelInputs> open(const PreprocessSpec& spec, std::span<const leat_tensor> described,
                                  std::uint32_t batch_max);

  // Where the size varies: of what an item shows, and what the rows that follow are filled with; all of a run have one.
  [[nodiscard]] bool varies() const noexcept { return spec_.sizes.varies() && picture_ != SIZE_MAX; }
  [[nodiscard]] Size size_of(const FrameView& frame, const Region& region) const noexcept {
    return preprocessor_.size_of(frame, region);
  }
  [[nodiscard]] Pieces pieces_of(const FrameView& frame, const Region& region) const noexcept {
    return preprocessor_.pieces_of(frame, region);
  }
  [[nodiscard]] bool splits() const noexcept { return varies() && spec_.sizes.wide == Wide::split; }
  void set_size(Size size) noexcept;
  // One for each cost class, smallest first; empty: the size is fixed.
  [[nodiscard]] std::vector<Size> sizes() const { return varies() ? spec_.sizes.sizes() : std::vector<Size>(); }

  // Row `row` of the next run.
  bool fill(const FrameView& frame, const Region& region, std::uint32_t row) noexcept;
  // Repeats row `from` in row `to`; returns the bytes copied.
  std::uint64_t repeat(std::uint32_t from, std::uint32_t to) noexcept;
  // The inputs of a run of `rows` items that were filled; valid until the next fill().
  std::span<const leat_tensor> tensors(std::uint32_t rows) noexcept;

  // The pages of all rows: those that no later run fills are not missed.
  void give_back() noexcept;

  [[nodiscard]] Placement placement(const FrameView& frame, const Region& region) const noexcept;
  [[nodiscard]] const CropSpec& cut() const noexcept { return spec_.cut; }
  [[nodiscard]] bool takes_tensors() const noexcept { return spec_.fit == Fit::tensors; }
  [[nodiscard]] std::uint32_t width() const noexcept { return width_; }
  [[nodiscard]] std::uint32_t height() const noexcept { return height_; }
  // What a client's tensors must be, one item: for calibration and for messages.
  [[nodiscard]] std::vector<leat_tensor_shape> shapes() const;
  [[nodiscard]] std::vector<std::string> names() const;  // the model's, of each of those

 private:
  enum class Role : std::uint8_t { picture, wh, hw, frame_wh, frame_hw, ones, zeros, tensor };
  struct Input {
    leat_tensor tensor{};  // shape of one item, dimension 0 the batch where it is batched
    Role role = Role::tensor;
    std::uint64_t row_bytes = 0;
    std::uint32_t height_at = UINT32_MAX, width_at = UINT32_MAX;  // dimensions that are the picture's, where it varies
    AlignedBuffer buffer;
  };
  Status assign_roles();
  Status settle_sizes(std::int64_t model_width, std::int64_t model_height);
  Status open_picture();
  void fit_to_picture(Input& in) const;
  bool fill_tensors(const FrameView& frame, std::uint32_t row) noexcept;
  void pack(const float* planar, const Input& in, std::byte* out) noexcept;
  void put_numbers(Input& in, std::uint32_t row, float first, float second) noexcept;

  PreprocessSpec spec_;
  std::vector<Input> inputs_;
  std::array<leat_tensor, kMaxModelTensors> now_{};
  std::uint32_t batch_max_ = 1;
  std::size_t picture_ = SIZE_MAX;
  bool nhwc_ = false;
  std::uint32_t width_ = 0, height_ = 0, channels_ = 0;  // of the picture; its largest sides where they vary
  Size size_;                                            // of the picture at present
  std::vector<float> planar_;                            // where the model does not take planes of float32 itself
  Preprocessor preprocessor_;
};

}  // namespace leat::exec
