#include "engine/exec/decode/points.h"

#include <algorithm>
#include <cmath>

#include "engine/exec/decode/activation.h"
#include "engine/exec/picture/preprocess.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

Largest largest(const ItemTensor& t, std::size_t from, std::size_t count) noexcept {
  return largest_of(0, count, [&](std::size_t i) { return t.at(from + i); });
}

}  // namespace

PointsSpec PointsPost::parse(SpecLine& words) {
  PointsSpec s;
  if (words.word("simcc"))
    s.layout = PointsLayout::simcc;
  else if (words.word("yxs"))
    s.layout = PointsLayout::yxs;
  else if (words.word("xy"))
    s.layout = PointsLayout::xy;
  else if (words.word("xyz"))
    s.layout = PointsLayout::xyz;
  else if (!words.word("heatmap"))
    words.fail("points needs heatmap, simcc, yxs, xy or xyz behind it");
  if (s.layout != PointsLayout::xy && s.layout != PointsLayout::xyz) return s;
  words.choice("unit", {"px", "one", "half"}, [&](std::size_t i) { s.unit = static_cast<PointsSpec::Unit>(i); });
  words.whole("last", 1, 10000, &s.last);
  return s;
}

Result<std::unique_ptr<PointsPost>> PointsPost::open(const PointsSpec& spec, const PostSetting& setting) {
  auto out = std::make_unique<PointsPost>();
  out->spec_ = spec;
  const std::uint32_t each = spec.layout == PointsLayout::xyz ? 3 : 2;
  const bool told = spec.layout == PointsLayout::xy || spec.layout == PointsLayout::xyz;
  const ItemTensor& t = setting.outputs[0];
  bool good = t.count() != 0;
  switch (spec.layout) {
    case PointsLayout::heatmap:
      good = good && t.rank == 3;
      break;
    case PointsLayout::yxs:
      good = good && t.rank >= 2 && t.last() == 3;
      break;
    case PointsLayout::simcc:
      good = good && t.rank == 2 && setting.outputs.size() > 1 && setting.outputs[1].rank == 2 &&
             setting.outputs[1].shape[0] == t.shape[0];
      break;
    case PointsLayout::xy:
    case PointsLayout::xyz:
      good = good && t.count() % each == 0 && t.count() / each >= std::max(spec.last, 1U) &&
             (t.last() == each || t.last() == static_cast<std::int64_t>(t.count()));
      break;
  }
  if (!good)
    return Error{
        "postprocess: points needs [K, h, w] (heatmap), [K, 2w] and [K, 2h] (simcc), [K, 3] (yxs), [2 K] (xy) or [3 K] "
        "(xyz), and the model's first is " +
        t.text()};
  const auto all = static_cast<std::uint32_t>(told ? t.count() / each : t.count() / 3);
  out->points_ = told && spec.last != 0                     ? spec.last
                 : told || spec.layout == PointsLayout::yxs ? all
                                                            : static_cast<std::uint32_t>(t.shape[0]);
  out->skipped_ = told ? all - out->points_ : 0;
  out->width_ = static_cast<float>(setting.input_width), out->height_ = static_cast<float>(setting.input_height);
  out->part_ = {.kind = LEAT_PART_keypoints, .rank = 2, .dims = {1, out->points_}};
  out->part_.bytes = std::uint64_t{out->points_} * sizeof(leat_keypoint), out->part_.name = "points";
  return out;
}

leat_keypoint PointsPost::told(const ItemTensor& t, std::uint32_t k, float width, float height) const noexcept {
  const std::size_t each = spec_.layout == PointsLayout::xyz ? 3 : 2, at = each * (std::size_t{skipped_} + k);
  const float x = t.at(at), y = t.at(at + 1);
  switch (spec_.unit) {
    case PointsSpec::Unit::one:
      return {x * width, y * height, 1};
    case PointsSpec::Unit::half:
      return {(x + 1) * width / 2, (y + 1) * height / 2, 1};
    case PointsSpec::Unit::px:
      break;
  }
  return {x, y, 1};
}

Answered PointsPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  if (target.parts == nullptr) return {};
  const auto row = static_cast<std::uint32_t>(std::max(target.detection, 0));
  auto* const to = reinterpret_cast<leat_keypoint*>(place_of(target.result, *target.parts, part_, row).array);
  if (to == nullptr) return {};
  const ItemTensor& t = outputs[0];
  std::uint32_t finite = 0;
  for (std::uint32_t k = 0; k < points_; ++k) {
    leat_keypoint q{};
    if (spec_.layout == PointsLayout::xy || spec_.layout == PointsLayout::xyz) {
      q = told(t, k, width_, height_);
    } else if (spec_.layout == PointsLayout::yxs) {
      q = {t.at(3 * k + 1) * width_, t.at(3 * k) * height_, t.at(3 * k + 2)};
    } else if (spec_.layout == PointsLayout::simcc) {
      const auto across = static_cast<std::size_t>(t.last()), down = static_cast<std::size_t>(outputs[1].last());
      const Largest x = largest(t, k * across, across), y = largest(outputs[1], k * down, down);
      q = {static_cast<float>(x.place) / 2, static_cast<float>(y.place) / 2, (x.value + y.value) / 2};
    } else {
      const auto h = static_cast<std::size_t>(t.shape[1]), w = static_cast<std::size_t>(t.shape[2]), from = k * h * w;
      const Largest largest_cell = largest(t, from, h * w);
      const std::size_t best = largest_cell.place, x = best % w, y = best / w;
      const auto shift = [&](std::size_t at, std::size_t size, std::size_t step) {
        if (at == 0 || at + 1 >= size) return 0.0f;
        const float d = t.at(from + best + step) - t.at(from + best - step);
        return d > 0 ? 0.25f : d < 0 ? -0.25f : 0.0f;
      };
      q = {(static_cast<float>(x) + shift(x, w, 1)) * width_ / static_cast<float>(w),
           (static_cast<float>(y) + shift(y, h, w)) * height_ / static_cast<float>(h), largest_cell.value};
    }
    if (std::isfinite(q.x + q.y + q.score))
      ++finite;
    else
      q = {};
    to[k] = {target.placement.offset_x + target.placement.scale_x * q.x,
             target.placement.offset_y + target.placement.scale_y * q.y, q.score};
  }
  wrote(*target.parts, 1, part_.bytes);
  return {.numbers = numbers_of(finite == points_, finite != 0)};
}

}  // namespace leat::exec
