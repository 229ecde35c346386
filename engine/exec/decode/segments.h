// segments [score=0.1] [length=20]: straight lines, each told by the cell that its middle lies in, as M-LSD answers
// (Gu, Ko, Go, Lee, Lee and Shin, "Towards Light-weight and Real-time Line Segment Detection", 2021, section 3.1). Two
// outputs, channels last: displacements [h, w, 4] and scores [h, w, 1], of which only local maxima are left:
//   kept where score > `score`; ends (x + d0, y + d1) and (x + d2, y + d3), in cells of the map; dropped where they are
//   not further apart than `length` cells. A cell is input / map pixels wide: 2.
// Results, best first, at most 200 (the authors' own): a part `segments` of keypoints, two a segment, with its score.
#pragma once

#include "engine/exec/decode/post.h"

namespace leat::exec {

struct SegmentsSpec {
  float score_min = 0.1f, length_min = 20;
};

class SegmentsPost final : public Post {
 public:
  static SegmentsSpec parse(SpecLine& words);
  static Result<std::unique_ptr<SegmentsPost>> open(const SegmentsSpec& spec, const PostSetting& setting);
  [[nodiscard]] std::vector<PartSpec> parts() const override { return {part_}; }
  Answered run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override;

 private:
  struct Found {
    float score;
    std::uint32_t cell;
  };
  SegmentsSpec spec_;
  std::uint32_t displacements_ = 0, scores_ = 0;  // outputs
  std::uint32_t width_ = 0, height_ = 0;          // of the map
  float across_ = 1, down_ = 1;                   // input pixels of a cell
  PartSpec part_;
  std::vector<Found> found_;  // room for every cell
};

}  // namespace leat::exec
