// points heatmap|simcc|yxs|xy|xyz: one object's keypoints, of the picture or of the detection that was cut out.
//   heatmap  [K, h, w]: the largest value, moved a quarter of a cell towards its larger neighbour (Sun, Xiao, Liu and
//            Wang, "Deep High-Resolution Representation Learning for Human Pose Estimation", 2019)
//   simcc    [K, 2 w] and [K, 2 h]: the largest value of each, halved; score their mean (Li et al., "SimCC", 2022)
//   yxs      [K, 3]: y, x as parts of the picture, score (MoveNet)
//   xy, xyz  [2 K] or [K, 2], [3 K] or [K, 3]: places that the model tells as they are; the third number is depth and
//            left out, the score is 1. unit=px|one|half: pixels of the model's picture (default), parts of it, or -1 to
//            1 across it, (v + 1) * side / 2 (InsightFace). last=K: the last K points only (3d68)
// A point whose numbers are not finite has the score 0.
#pragma once

#include "engine/exec/decode/post.h"

namespace leat::exec {

enum class PointsLayout : std::uint8_t { heatmap, simcc, yxs, xy, xyz };

struct PointsSpec {
  PointsLayout layout = PointsLayout::heatmap;
  enum class Unit : std::uint8_t { px, one, half } unit = Unit::px;
  std::uint32_t last = 0;  // 0: all
};

class PointsPost final : public Post {
 public:
  static PointsSpec parse(SpecLine& words);
  static Result<std::unique_ptr<PointsPost>> open(const PointsSpec& spec, const PostSetting& setting);
  [[nodiscard]] std::vector<PartSpec> parts() const override { return {part_}; }
  Answered run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override;

 private:
  // Point k of `xy` and `xyz`, in pixels of the model's picture.
  [[nodiscard]] leat_keypoint told(const ItemTensor& t, std::uint32_t k, float width, float height) const noexcept;

  PointsSpec spec_;
  std::uint32_t points_ = 0, skipped_ = 0;  // skipped: points before the first that is taken
  float width_ = 0, height_ = 0;
  PartSpec part_;
};

}  // namespace leat::exec
