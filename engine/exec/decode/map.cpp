#include "engine/exec/decode/map.h"

#include <algorithm>
#include <cmath>

#include "engine/exec/decode/activation.h"
#include "engine/exec/picture/preprocess.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

// [h, w, 1], as TensorFlow's models answer, is [h, w].
ItemTensor without_last(ItemTensor t) noexcept {
  if (t.rank == 3 && t.last() == 1 && t.shape[0] != 1) t.rank = 2;
  return t;
}

}  // namespace

MapSpec MapPost::parse(SpecLine& words) {
  MapSpec s;
  if (words.word("value"))
    s.what = MapSpec::What::value;
  else if (words.word("matte"))
    s.what = MapSpec::What::matte;
  else if (!words.word("argmax"))
    words.fail("map needs argmax, value or matte behind it");
  words.choice("act", {"none", "sigmoid"}, [&](std::size_t i) { s.sigmoid = i == 1; });
  return s;
}

Result<std::unique_ptr<MapPost>> MapPost::open(const MapSpec& spec, const PostSetting& setting) {
  const ItemTensor t = without_last(setting.outputs[0]);
  const bool layers = t.rank == 3 && t.shape[0] > 1;
  const bool grows = t.rank >= 2 && (t.last() < 1 || t.shape[t.rank - 2] < 1);  // with its picture: at most as large
  const bool known = grows ? setting.input_width != 0 && (t.rank == 2 || t.shape[0] > 0) : t.count() != 0;
  if (t.rank < 2 || t.rank > 3 || !known || (layers && spec.what != MapSpec::What::argmax) ||
      (layers && t.shape[0] > 256))
    return Error{
        "postprocess: map needs an output [h, w], or [C, h, w] of at most 256 classes for argmax, and the "
        "model's first is " +
        t.text()};
  auto out = std::make_unique<MapPost>();
  out->spec_ = spec;
  out->classes_ = layers ? static_cast<std::size_t>(t.shape[0]) : 1;
  out->height_ = grows ? setting.input_height : static_cast<std::size_t>(t.shape[t.rank - 2]);
  out->width_ = grows ? setting.input_width : static_cast<std::size_t>(t.last());
  out->input_width_ = static_cast<float>(setting.input_width),
  out->input_height_ = static_cast<float>(setting.input_height);
  const bool value = spec.what == MapSpec::What::value;
  out->part_ = {.kind = LEAT_PART_map,
                .dtype = static_cast<std::uint32_t>(value ? LEAT_F32 : LEAT_U8),
                .rank = 2,
                .dims = {static_cast<std::uint32_t>(out->height_), static_cast<std::uint32_t>(out->width_)}};
  out->part_.bytes = out->height_ * out->width_ * (value ? 4 : 1), out->part_.name = t.name;
  return out;
}

Answered MapPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  if (target.parts == nullptr) return {};
  const auto row = static_cast<std::uint32_t>(std::max(target.detection, 0));
  std::byte* const to = place_of(target.result, *target.parts, part_, row).array;
  if (to == nullptr) return {};
  const ItemTensor t = without_last(outputs[0]);
  if (t.rank < 2) return {};  // open() saw to it
  const auto width = static_cast<std::size_t>(t.last()), height = static_cast<std::size_t>(t.shape[t.rank - 2]);
  if (width == 0 || height == 0 || width > width_ || height > height_) return {};  // larger than its picture
  // The cells that the frame covers: all but what a letterbox filled.
  const Placement& p = target.placement;
  const auto range = [](float offset, float scale, float frame, float input, std::size_t cells, std::size_t* first) {
    const float a = -offset / scale / input * static_cast<float>(cells),
                b = (frame - offset) / scale / input * static_cast<float>(cells);
    *first = static_cast<std::size_t>(std::clamp(std::round(a), 0.0f, static_cast<float>(cells - 1)));
    const auto end =
        static_cast<std::size_t>(std::clamp(std::round(b), static_cast<float>(*first + 1), static_cast<float>(cells)));
    return end - *first;
  };
  std::size_t left = 0, top = 0, w = width, h = height;
  const bool own = p.input_width > 0;
  if (target.detection < 0 && input_width_ > 0) {
    w = range(p.offset_x, p.scale_x, static_cast<float>(target.frame.width), own ? p.input_width : input_width_, width,
              &left);
    h = range(p.offset_y, p.scale_y, static_cast<float>(target.frame.height), own ? p.input_height : input_height_,
              height, &top);
  }
  if (target.parts->item == LEAT_ITEM_EACH && (w != width_ || h != height_)) return {};  // rows are of one size
  float low = 0, max = 1;
  if (spec_.what == MapSpec::What::matte && !spec_.sigmoid) {
    low = INFINITY, max = -INFINITY;
    for (std::size_t i = 0; i < width * height; ++i)
      if (const float v = t.at(i); std::isfinite(v)) low = std::min(low, v), max = std::max(max, v);
  }
  const float undecided = spec_.what == MapSpec::What::argmax && classes_ < 256 ? 255 : 0;
  std::size_t finite = 0;
  for (std::size_t y = 0; y < h; ++y) {
    for (std::size_t x = 0; x < w; ++x) {
      const std::size_t at = (top + y) * width + left + x, out = y * w + x;
      float v = t.at(at);
      if (spec_.what == MapSpec::What::value) {
        finite += std::isfinite(v) ? 1 : 0;
        reinterpret_cast<float*>(to)[out] = v;
        continue;
      }
      if (spec_.what == MapSpec::What::argmax) {
        const Largest best = largest_of(0, classes_, [&](std::size_t c) { return t.at(c * width * height + at); });
        v = classes_ > 1 && std::isfinite(best.value) ? static_cast<float>(best.place) : best.value;
      } else if (spec_.sigmoid) {
        v = 255 * sigmoid(v);
      } else if (std::isfinite(v)) {
        v = max > low ? 255 * (v - low) / (max - low) : 0;
      }
      finite += std::isfinite(v) ? 1 : 0;
      to[out] = static_cast<std::byte>(std::isfinite(v) ? std::clamp(std::nearbyint(v), 0.0f, 255.0f) : undecided);
    }
  }
  leat_part& part = *target.parts;
  wrote(part, static_cast<std::uint32_t>(h), w * h * (spec_.what == MapSpec::What::value ? 4 : 1));
  if (part.item == LEAT_ITEM_FRAME) part.dims[1] = static_cast<std::uint32_t>(w);
  return {.numbers = numbers_of(finite == w * h, finite != 0)};
}

}  // namespace leat::exec
