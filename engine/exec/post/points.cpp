#include "engine/exec/post/points.h"

#include <algorithm>

#include "engine/exec/preprocess.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

std::size_t largest(const ItemTensor& t, std::size_t from, std::size_t count) noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < count; ++i)
    if (t.at(from + i) > t.at(from + best)) best = i;
  return best;
}

}  // namespace

PointsLayout PointsPost::parse(SpecLine& words) {
  if (words.word("simcc")) return PointsLayout::simcc;
  if (words.word("yxs")) return PointsLayout::yxs;
  if (!words.word("heatmap")) words.fail("points needs heatmap, simcc or yxs behind it");
  return PointsLayout::heatmap;
}

Result<std::unique_ptr<PointsPost>> PointsPost::open(PointsLayout layout, const PostSetting& setting) {
  const ItemTensor& t = setting.outputs[0];
  const bool good = layout == PointsLayout::heatmap ? t.rank == 3
                    : layout == PointsLayout::yxs
                        ? t.rank >= 2 && t.last() == 3
                        : t.rank == 2 && setting.outputs.size() > 1 && setting.outputs[1].rank == 2 &&
                              setting.outputs[1].shape[0] == t.shape[0];
  if (!good || t.count() == 0)
    return Error{
        "postprocess: points needs [K, h, w] (heatmap), [K, 2w] and [K, 2h] (simcc) or [K, 3] (yxs), and the "
        "model's first output is " +
        t.text()};
  auto out = std::make_unique<PointsPost>();
  out->layout_ = layout;
  out->points_ = static_cast<std::uint32_t>(layout == PointsLayout::yxs ? t.count() / 3 : t.shape[0]);
  out->width_ = static_cast<float>(setting.input_width), out->height_ = static_cast<float>(setting.input_height);
  out->part_ = {.kind = LEAT_PART_keypoints, .rank = 2, .dims = {1, out->points_}};
  out->part_.bytes = std::uint64_t{out->points_} * sizeof(leat_keypoint), out->part_.name = "points";
  return out;
}

std::uint32_t PointsPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  if (target.parts == nullptr) return 0;
  const auto row = static_cast<std::uint32_t>(std::max(target.detection, 0));
  auto* const to = reinterpret_cast<leat_keypoint*>(place_of(target.result, *target.parts, part_, row).array);
  if (to == nullptr) return 0;
  const ItemTensor& t = outputs[0];
  for (std::uint32_t k = 0; k < points_; ++k) {
    leat_keypoint q{};
    if (layout_ == PointsLayout::yxs) {
      q = {t.at(3 * k + 1) * width_, t.at(3 * k) * height_, t.at(3 * k + 2)};
    } else if (layout_ == PointsLayout::simcc) {
      const auto across = static_cast<std::size_t>(t.last()), down = static_cast<std::size_t>(outputs[1].last());
      const std::size_t x = largest(t, k * across, across), y = largest(outputs[1], k * down, down);
      q = {static_cast<float>(x) / 2, static_cast<float>(y) / 2,
           (t.at(k * across + x) + outputs[1].at(k * down + y)) / 2};
    } else {
      const auto h = static_cast<std::size_t>(t.shape[1]), w = static_cast<std::size_t>(t.shape[2]), from = k * h * w;
      const std::size_t best = largest(t, from, h * w), x = best % w, y = best / w;
      const auto shift = [&](std::size_t at, std::size_t size, std::size_t step) {
        if (at == 0 || at + 1 >= size) return 0.0f;
        const float d = t.at(from + best + step) - t.at(from + best - step);
        return d > 0 ? 0.25f : d < 0 ? -0.25f : 0.0f;
      };
      q = {(static_cast<float>(x) + shift(x, w, 1)) * width_ / static_cast<float>(w),
           (static_cast<float>(y) + shift(y, h, w)) * height_ / static_cast<float>(h), t.at(from + best)};
    }
    to[k] = {target.placement.offset_x + target.placement.scale_x * q.x,
             target.placement.offset_y + target.placement.scale_y * q.y, q.score};
  }
  wrote(*target.parts, 1, part_.bytes);
  return 0;
}

}  // namespace leat::exec
