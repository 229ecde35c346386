// layout=dfl of boxes.h.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/exec/decode/boxes/boxes.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kMostBins = 32;

// The mean of 0, 1, .. bins - 1, each as probable as the softmax of its value.
float expected(const ItemTensor& t, std::size_t at, std::uint32_t bins) noexcept {
  float most = t.at(at), sum = 0, mean = 0;
  for (std::uint32_t i = 1; i < bins; ++i) most = std::max(most, t.at(at + i));
  for (std::uint32_t i = 0; i < bins; ++i) {
    const float p = std::exp(t.at(at + i) - most);
    sum += p, mean += p * static_cast<float>(i);
  }
  return mean / sum;
}

}  // namespace

Status BoxesPost::resolve_dfl(const PostSetting& setting) {
  const std::size_t n = setting.outputs.size(), sides = 4 * std::size_t{spec_.bins};
  const bool together = n == 1;
  const std::size_t levels = together ? 4 : n / 2;
  const ItemTensor& first = setting.outputs[0];
  const Error wrong{
      "postprocess: boxes layout=dfl needs one output [m, C + 4 bins], or scores [k, C] and sides [k, 4 bins] of each "
      "of "
      "strides 8, 16, 32 (and 64); the first is " +
      first.text()};
  if (spec_.bins > kMostBins || (!together && n != 6 && n != 8) || first.rank != 2) return wrong;
  const std::int64_t classes = first.last() - static_cast<std::int64_t>(together ? sides : 0);
  if (classes < 1) return wrong;
  classes_ = static_cast<std::size_t>(classes);
  std::size_t rows = 0;
  for (std::uint32_t l = 0; l < levels; ++l) {
    const std::uint32_t stride = 8U << l;
    Level level{.scores = together ? 0 : l,
                .boxes = together ? 0 : static_cast<std::uint32_t>(levels) + l,
                .stride = stride,
                .columns = (setting.input_width + stride - 1) / stride};
    const std::size_t cells = std::size_t{level.columns} * ((setting.input_height + stride - 1) / stride);
    level.first = static_cast<std::uint32_t>(rows), level.cells = static_cast<std::uint32_t>(cells);
    if (together) rows += cells;
    if (!together && (setting.outputs[level.scores].count() != cells * classes_ ||
                      setting.outputs[level.boxes].count() != cells * sides))
      return wrong;
    levels_.push_back(level);
  }
  if (together && first.shape[0] != static_cast<std::int64_t>(rows)) return wrong;
  return Done{};
}

void BoxesPost::gather_dfl(std::span<const ItemTensor> outputs) noexcept {
  for (const Level& level : levels_) {
    const bool together = level.scores == level.boxes;
    const std::size_t sides = 4 * std::size_t{spec_.bins}, wide = together ? classes_ + sides : classes_,
                      wide_box = together ? wide : sides;
    const ItemTensor &scores = outputs[level.scores], &boxes = outputs[level.boxes];
    const auto stride = static_cast<float>(level.stride);
    for (std::uint32_t cell = 0; cell < level.cells; ++cell) {
      const std::size_t row = level.first + cell;
      std::size_t best = 0;
      for (std::size_t c = 1; c < classes_; ++c)
        if (scores.at(row * wide + c) > scores.at(row * wide + best)) best = c;
      const float score = scores.at(row * wide + best);
      if (!(score >= spec_.score_least)) continue;
      std::array<float, 4> to{};  // left, top, right, bottom
      for (std::size_t k = 0; k < 4; ++k)
        to[k] = stride * expected(boxes, row * wide_box + (together ? classes_ : 0) + k * spec_.bins, spec_.bins);
      const float x = (static_cast<float>(cell % level.columns) + spec_.centre) * stride,
                  y = (static_cast<float>(cell / level.columns) + spec_.centre) * stride;
      add({x + (to[2] - to[0]) / 2, y + (to[3] - to[1]) / 2, to[0] + to[2], to[1] + to[3], 0, score,
           static_cast<std::int32_t>(best)});
    }
  }
}

}  // namespace leat::exec
