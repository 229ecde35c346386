// points heatmap|simcc|yxs: one object's keypoints, of the picture or of the detection that was cut out.
//   heatmap  [K, h, w]: the largest value, moved a quarter of a cell towards its larger neighbour (Sun, Xiao, Liu and
//            Wang, "Deep High-Resolution Representation Learning for Human Pose Estimation", 2019)
//   simcc    [K, 2 w] and [K, 2 h]: the largest value of each, halved; score their mean (Li et al., "SimCC", 2022)
//   yxs      [K, 3]: y, x as parts of the picture, score (MoveNet)
#pragma once

#include "engine/exec/post/post.h"

namespace leat::exec {

enum class PointsLayout : std::uint8_t { heatmap, simcc, yxs };

class PointsPost final : public Post {
 public:
  static PointsLayout parse(SpecLine& words);
  static Result<std::unique_ptr<PointsPost>> open(PointsLayout layout, const PostSetting& setting);
  [[nodiscard]] std::vector<PartSpec> parts() const override { return {part_}; }
  std::uint32_t run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override;

 private:
  PointsLayout layout_ = PointsLayout::heatmap;
  std::uint32_t points_ = 0;
  float width_ = 0, height_ = 0;
  PartSpec part_;
};

}  // namespace leat::exec
