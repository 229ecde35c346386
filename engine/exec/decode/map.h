// map argmax|value|matte [act=none|sigmoid]: one value a cell, of the part of the picture that the frame covers.
//   argmax  [C, h, w] scores, or [h, w] classes already: the class of each cell, uint8
//   value   [h, w] or [h, w, 1]: the values as they are, float32 (depth)
//   matte   [h, w] or [h, w, 1]: 0..255, uint8; without act stretched from the least to the most (U2-Net's own code),
//   with
//           act=sigmoid of the value itself
// A cell that is not finite is 255 with argmax, as data sets write "no class" (0 where there are 256 classes), 0 with
// matte, and stays as it is with value.
// Where the model leaves h and w open, they are at most the picture's; behind a detector they must be as large as it.
#pragma once

#include "engine/exec/decode/post.h"

namespace leat::exec {

struct MapSpec {
  enum class What : std::uint8_t { argmax, value, matte } what = What::argmax;
  bool sigmoid = false;
};

class MapPost final : public Post {
 public:
  static MapSpec parse(SpecLine& words);
  static Result<std::unique_ptr<MapPost>> open(const MapSpec& spec, const PostSetting& setting);
  [[nodiscard]] std::vector<PartSpec> parts() const override { return {part_}; }
  Answered run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override;

 private:
  MapSpec spec_;
  std::size_t classes_ = 1, width_ = 0, height_ = 0;
  float input_width_ = 0, input_height_ = 0;
  PartSpec part_;
};

}  // namespace leat::exec
