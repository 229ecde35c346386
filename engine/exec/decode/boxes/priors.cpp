#include "engine/exec/decode/boxes/priors.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace leat::exec {
namespace {

constexpr std::uint32_t kRetinaNetAnchors = 9;
constexpr std::uint32_t kUltraSizes[4][3] = {{10, 16, 24}, {32, 48}, {64, 96}, {128, 192, 256}};
constexpr std::uint32_t kUltraAnchors[4] = {3, 2, 2, 3};
constexpr std::uint32_t kPersonAnchors[3] = {2, 2, 6};

Error no(const std::string& what, const LayoutSetting& setting) {
  return boxes_error("layout=priors " + what + "; the model has " + setting.outputs_text());
}

}  // namespace

std::uint32_t Priors::levels() const noexcept {
  switch (set_) {
    case PriorSet::retinanet:
      return 5;
    case PriorSet::ultraface:
      return 4;
    case PriorSet::retinaface:
    case PriorSet::person:
      return 3;
    case PriorSet::blazeface:
    case PriorSet::palm:
      break;
  }
  return 2;
}

std::uint32_t Priors::numbers() const noexcept {
  return set_ == PriorSet::blazeface ? 16 : set_ == PriorSet::palm ? 18 : set_ == PriorSet::person ? 12 : 4;
}

Priors::Grid Priors::grid(std::uint32_t level, float width, float height) const noexcept {
  Grid g{};
  for (std::uint32_t l = 0; l <= level; ++l) {
    g.first += l == 0 || set_ == PriorSet::retinanet ? 0 : g.cells() * g.anchors;
    g.stride = set_ == PriorSet::blazeface ? width / static_cast<float>(l == 0 ? 16 : 8) : static_cast<float>(8U << l);
    g.anchors = set_ == PriorSet::retinanet              ? kRetinaNetAnchors
                : set_ == PriorSet::ultraface            ? kUltraAnchors[l]
                : set_ == PriorSet::person               ? kPersonAnchors[l]
                : set_ == PriorSet::retinaface || l == 0 ? 2
                                                         : 6;
    g.columns = static_cast<std::uint32_t>(std::ceil(width / g.stride));
    g.rows = static_cast<std::uint32_t>(std::ceil(height / g.stride));
  }
  g.down = g.stride;
  if (set_ == PriorSet::ultraface)
    g.stride = width / static_cast<float>(g.columns), g.down = height / static_cast<float>(g.rows);
  return g;
}

Priors::Prior Priors::at(const Grid& g, std::uint32_t level, std::uint32_t cell, std::uint32_t anchor) const noexcept {
  const float x = (static_cast<float>(cell % g.columns) + 0.5f) * g.stride;
  const float y = (static_cast<float>(cell / g.columns) + 0.5f) * g.down;
  if (set_ == PriorSet::retinanet) {
    constexpr float kTallness[] = {1, 2, 0.5f};
    const float size = 4 * g.stride * std::exp2(static_cast<float>(anchor / 3) / 3);
    const float w = size / std::sqrt(kTallness[anchor % 3]);
    return {x + 0.5f, y + 0.5f, w + 1, w * kTallness[anchor % 3] + 1, level, anchor * g.cells() + cell};
  }
  const std::uint32_t row = g.first + cell * g.anchors + anchor;
  if (blaze()) return {x, y, 1, 1, level, row};
  if (set_ == PriorSet::ultraface) {
    const auto size = static_cast<float>(kUltraSizes[level][anchor]);
    const float width = g.stride * static_cast<float>(g.columns), height = g.down * static_cast<float>(g.rows);
    return {x, y, std::min(size, width), std::min(size, height), level, row};
  }
  const float size = static_cast<float>((16U << (2 * level)) << anchor);
  return {x, y, size, size, level, row};
}

Priors::Prior Priors::prior(std::uint32_t level, std::uint32_t row, float width, float height) const noexcept {
  const Grid g = grid(level, width, height);
  if (set_ == PriorSet::retinanet) return at(g, level, row % g.cells(), row / g.cells());
  return at(g, level, (row - g.first) / g.anchors, (row - g.first) % g.anchors);
}

Result<Priors> Priors::open(PriorSet set, const LayoutSetting& setting) {
  Priors out;
  out.set_ = set;
  const auto status = set == PriorSet::retinanet ? find_retinanet(out, setting) : out.find_rows(setting);
  if (!status) return Error{status.error()};
  return out;
}

Status Priors::find_retinanet(Priors& out, const LayoutSetting& setting) {
  const auto w = static_cast<float>(setting.post.input_width), h = static_cast<float>(setting.post.input_height);
  out.by_level_ = true;
  std::uint32_t scores = 0, boxes = 0;
  for (std::uint32_t i = 0; i < setting.post.outputs.size(); ++i) {
    const ItemTensor& t = setting.post.outputs[i];
    if (t.rank != 3 || t.shape[0] <= 0 || t.shape[0] % kRetinaNetAnchors != 0) continue;
    const bool box = t.shape[0] == 4 * kRetinaNetAnchors && scores >= out.levels();  // four classes are as wide
    if (box && boxes < out.levels())
      out.boxes_[boxes++] = i;
    else if (!box && scores < out.levels())
      out.scores_[scores++] = i;
  }
  if (scores != out.levels() || boxes != out.levels())
    return no("set=retinanet needs five outputs [9 C, h, w] and five [36, h, w]", setting);
  out.classes_ = static_cast<std::size_t>(setting.post.outputs[out.scores_[0]].shape[0]) / kRetinaNetAnchors;
  for (std::uint32_t l = 0; l < out.levels(); ++l) {
    const ItemTensor &s = setting.post.outputs[out.scores_[l]], &b = setting.post.outputs[out.boxes_[l]];
    const std::size_t cells = w > 0 ? out.grid(l, w, h).cells() : b.count() / 4 / kRetinaNetAnchors;
    if (b.count() == 0) continue;  // known only after a run
    if (b.count() != 4 * kRetinaNetAnchors * cells || s.count() != out.classes_ * kRetinaNetAnchors * cells)
      return no("set=retinanet contradicts the shapes", setting);
  }
  return Done{};
}

// The sets that number their priors row by row: one output of boxes and one of scores, or one of each for every grid.
Status Priors::find_rows(const LayoutSetting& setting) {
  const auto w = static_cast<float>(setting.post.input_width), h = static_cast<float>(setting.post.input_height);
  std::vector<std::uint32_t> boxes, scores;
  for (std::uint32_t i = 0; i < setting.post.outputs.size(); ++i) {
    const ItemTensor& t = setting.post.outputs[i];
    if (t.rank != 2) continue;
    if (t.last() == numbers())
      boxes.push_back(i);
    else if (set_ == PriorSet::retinaface && t.last() == 10 && marks_ == kNoOutput)
      marks_ = i;
    else
      scores.push_back(i);
  }
  if (boxes.empty() || scores.empty())
    return no("needs outputs [n, " + std::to_string(numbers()) + "] and scores [n, C]", setting);
  by_level_ = blaze() && boxes.size() == levels() && scores.size() == levels();
  boxes_[0] = boxes[0], scores_[0] = scores[0];
  classes_ = static_cast<std::size_t>(std::max<std::int64_t>(setting.post.outputs[scores[0]].last(), 1));
  points_ = blaze() ? (numbers() - 4) / 2 : marks_ != kNoOutput ? 5 : 0;
  if (setting.post.outputs[boxes[0]].count() == 0 || w <= 0)
    return by_level_ ? Status(no("of several outputs needs a picture of fixed size", setting)) : Status(Done{});
  const Grid last = grid(levels() - 1, w, h);
  const std::size_t rows = last.first + last.cells() * last.anchors;
  const auto rows_of = [&](std::uint32_t o) { return static_cast<std::size_t>(setting.post.outputs[o].shape[0]); };
  const Error wrong = no("makes " + std::to_string(rows) + " boxes of an input of " +
                             std::to_string(setting.post.input_width) + "x" + std::to_string(setting.post.input_height),
                         setting);
  if (!by_level_) return rows_of(boxes[0]) == rows && rows_of(scores[0]) == rows ? Status(Done{}) : Status(wrong);
  for (std::uint32_t l = 0; l < levels(); ++l) {
    const Grid g = grid(l, w, h);
    const auto of_level = [&](std::uint32_t o) { return rows_of(o) == g.cells() * g.anchors; };
    const auto b = std::find_if(boxes.begin(), boxes.end(), of_level),
               s = std::find_if(scores.begin(), scores.end(), of_level);
    if (b == boxes.end() || s == scores.end()) return wrong;
    boxes_[l] = *b, scores_[l] = *s, first_[l] = g.first;
  }
  return Done{};
}

Priors::Place Priors::place_of(const Prior& p) const noexcept {
  return by_level_ ? Place{p.level, p.row - first_[p.level]} : Place{0, p.row};
}

float Priors::score(std::span<const ItemTensor> outputs, const Prior& p, std::size_t class_id) const noexcept {
  if (set_ != PriorSet::retinanet) {
    const Place place = place_of(p);
    const ItemTensor& t = outputs[scores_[place.tensor]];
    const std::size_t i = place.row * classes_ + class_id;
    return i < t.count() ? t.at(i) : 0;
  }
  const ItemTensor& t = outputs[scores_[p.level]];
  const auto cells = static_cast<std::size_t>(t.shape[1] * t.shape[2]);
  const std::size_t anchor = p.row / cells, i = (anchor * classes_ + class_id) * cells + p.row % cells;
  return i < t.count() ? t.at(i) : 0;
}

Priors::CentredBox Priors::box(std::span<const ItemTensor> outputs, const Prior& p) const noexcept {
  float d[4];
  if (set_ == PriorSet::retinanet) {
    const ItemTensor& t = outputs[boxes_[p.level]];
    const auto cells = static_cast<std::size_t>(t.shape[1] * t.shape[2]);
    for (std::size_t k = 0; k < 4; ++k) d[k] = t.at((p.row / cells * 4 + k) * cells + p.row % cells);
    // The last pixel is within the box: its end stands a pixel before its width.
    return {p.cx + d[0] * p.w - 0.5f, p.cy + d[1] * p.h - 0.5f, p.w * std::exp(d[2]) - 1, p.h * std::exp(d[3]) - 1};
  }
  const Place place = place_of(p);
  const ItemTensor& t = outputs[boxes_[place.tensor]];
  const std::size_t at = place.row * numbers();
  for (std::size_t k = 0; k < 4; ++k) d[k] = t.at(at + k);
  if (blaze()) return {p.cx + d[0], p.cy + d[1], d[2], d[3]};
  return {p.cx + 0.1f * d[0] * p.w, p.cy + 0.1f * d[1] * p.h, p.w * std::exp(0.2f * d[2]), p.h * std::exp(0.2f * d[3])};
}

leat_keypoint Priors::point(std::span<const ItemTensor> outputs, const Prior& p, std::uint32_t k,
                            float score) const noexcept {
  if (blaze()) {
    const Place place = place_of(p);
    const ItemTensor& t = outputs[boxes_[place.tensor]];
    const std::size_t at = place.row * numbers() + 4 + 2 * std::size_t{k};
    return {p.cx + t.at(at), p.cy + t.at(at + 1), score};
  }
  const ItemTensor& t = outputs[marks_];
  const std::size_t at = std::size_t{p.row} * 10 + 2 * std::size_t{k};
  if (at + 1 >= t.count()) return {};
  return {p.cx + 0.1f * t.at(at) * p.w, p.cy + 0.1f * t.at(at + 1) * p.h, score};
}

}  // namespace leat::exec
