// lines [threshold=0.3] [score=0.6] [grow=1.5] [side=3] [act=none|sigmoid]: regions of text in a map of probabilities
// [1, h, w] or [h, w] that covers the model's picture, as PP-OCR's detectors answer (Liao, Wan, Yao, Chen and Bai,
// "Real-time Scene Text Detection with Differentiable Binarization", 2020, section 3.4):
//   0. act=sigmoid: the values are logits, of which the sigmoid is the probability (docTR)
//   1. cells above `threshold` that touch, also at corners, are one region;
//   2. the smallest rectangle round the centres of its cells; dropped if a side is below `side` cells;
//   3. score = mean probability of the cells within it; dropped if below `score`;
//   4. grown by d = area * grow / perimeter to each side, undoing the shrinking that the model was trained with. The
//      smallest rectangle round a rectangle grown by d is that rectangle with both sides longer by 2 d, so that no
//      polygon is clipped; dropped if a side is then below `side` + 2 cells.
// Rectangles are found in frame pixels, so that they stay rectangles where the picture was stretched. Results, best
// first: detections (the upright boxes round them, class 0) and a part `lines` of oriented boxes, row by row the same.
// An oriented box's width leads in the reading direction of text that is less than a quarter turn from upright.
#pragma once

#include "engine/exec/decode/post.h"
#include "engine/exec/picture/geometry.h"

namespace leat::exec {

struct LinesSpec {
  float threshold = 0.3f, score_min = 0.6f, grow = 1.5f, side = 3;
  bool sigmoid = false;
};

class LinesPost final : public Post {
 public:
  static LinesSpec parse(SpecLine& words);
  static Result<std::unique_ptr<LinesPost>> open(const LinesSpec& spec, const PostSetting& setting);
  [[nodiscard]] std::vector<PartSpec> parts() const override { return {part_}; }
  Answered run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override;

 private:
  struct Map {  // one item's, and where its cells lie in the frame
    const float* cells = nullptr;
    std::uint32_t width = 0, height = 0;
    float x0 = 0, y0 = 0, across = 1, down = 1;
    [[nodiscard]] Point centre(std::uint32_t x, std::uint32_t y) const noexcept {
      return {x0 + across * (static_cast<float>(x) + 0.5f), y0 + down * (static_cast<float>(y) + 0.5f)};
    }
  };
  [[nodiscard]] bool map_of(const ItemTensor& t, const PostTarget& target, Map* out) noexcept;
  void take_region(const Map& map, std::uint32_t first) noexcept;
  [[nodiscard]] float mean_within(const Map& map, const leat_oriented_box& box) const noexcept;

  LinesSpec spec_;
  float input_width_ = 0, input_height_ = 0;
  PartSpec part_;
  // Room for the largest map.
  std::vector<float> scratch_;
  std::vector<std::uint8_t> seen_;
  std::vector<std::uint32_t> waiting_;               // cells of the present region whose neighbours are to be looked at
  std::vector<std::uint32_t> leftmost_, rightmost_;  // [row] of the present region
  std::vector<Point> edge_, hull_;
  std::vector<leat_oriented_box> found_;
  std::size_t found_count_ = 0;
};

}  // namespace leat::exec
