#include "engine/exec/post/priors.h"

#include <cmath>

namespace leat::exec {
namespace {

constexpr std::uint32_t kRetinaNetAnchors = 9, kBlazeNumbers = 16;

Error no(const std::string& what, const PostSetting& setting) {
  std::string all;
  for (const ItemTensor& t : setting.outputs) all += (all.empty() ? "" : ", ") + std::string(t.name) + " " + t.text();
  return Error{"layout=priors " + what + "; the model has " + all};
}

}  // namespace

std::uint32_t Priors::levels() const noexcept {
  return set_ == PriorSet::retinanet ? 5 : set_ == PriorSet::retinaface ? 3 : 2;
}

Priors::Grid Priors::grid(std::uint32_t level, float width, float height) const noexcept {
  Grid g{};
  for (std::uint32_t l = 0; l <= level; ++l) {
    g.first += l == 0 || set_ == PriorSet::retinanet ? 0 : g.cells() * g.anchors;
    g.stride = set_ == PriorSet::blazeface ? width / static_cast<float>(l == 0 ? 16 : 8) : static_cast<float>(8U << l);
    g.anchors = set_ == PriorSet::retinanet ? kRetinaNetAnchors : set_ == PriorSet::retinaface || l == 0 ? 2 : 6;
    g.columns = static_cast<std::uint32_t>(std::ceil(width / g.stride));
    g.rows = static_cast<std::uint32_t>(std::ceil(height / g.stride));
  }
  return g;
}

Priors::Prior Priors::at(const Grid& g, std::uint32_t level, std::uint32_t cell, std::uint32_t anchor) const noexcept {
  const float x = (static_cast<float>(cell % g.columns) + 0.5f) * g.stride;
  const float y = (static_cast<float>(cell / g.columns) + 0.5f) * g.stride;
  if (set_ == PriorSet::retinanet) {
    constexpr float kTallness[] = {1, 2, 0.5f};
    const float size = 4 * g.stride * std::exp2(static_cast<float>(anchor / 3) / 3);
    const float w = size / std::sqrt(kTallness[anchor % 3]);
    return {x + 0.5f, y + 0.5f, w + 1, w * kTallness[anchor % 3] + 1, level, anchor * g.cells() + cell};
  }
  const std::uint32_t row = g.first + cell * g.anchors + anchor;
  if (set_ == PriorSet::blazeface) return {x, y, 1, 1, level, row};
  const float size = static_cast<float>((16U << (2 * level)) << anchor);
  return {x, y, size, size, level, row};
}

Priors::Prior Priors::prior(std::uint32_t level, std::uint32_t row, float width, float height) const noexcept {
  const Grid g = grid(level, width, height);
  if (set_ == PriorSet::retinanet) return at(g, level, row % g.cells(), row / g.cells());
  return at(g, level, (row - g.first) / g.anchors, (row - g.first) % g.anchors);
}

Result<Priors> Priors::open(PriorSet set, const PostSetting& setting) {
  Priors out;
  out.set_ = set;
  const auto outputs = static_cast<std::uint32_t>(setting.outputs.size());
  const auto w = static_cast<float>(setting.input_width), h = static_cast<float>(setting.input_height);
  if (set == PriorSet::retinanet) {
    std::uint32_t scores = 0, boxes = 0;
    for (std::uint32_t i = 0; i < outputs; ++i) {
      const ItemTensor& t = setting.outputs[i];
      if (t.rank != 3 || t.shape[0] <= 0 || t.shape[0] % kRetinaNetAnchors != 0) continue;
      const bool box = t.shape[0] == 4 * kRetinaNetAnchors && scores >= out.levels();  // four classes are as wide
      if (box && boxes < out.levels())
        out.boxes_[boxes++] = i;
      else if (!box && scores < out.levels())
        out.scores_[scores++] = i;
    }
    if (scores != out.levels() || boxes != out.levels())
      return no("set=retinanet needs five outputs [9 C, h, w] and five [36, h, w]", setting);
    out.classes_ = static_cast<std::size_t>(setting.outputs[out.scores_[0]].shape[0]) / kRetinaNetAnchors;
    for (std::uint32_t l = 0; l < out.levels(); ++l) {
      const ItemTensor &s = setting.outputs[out.scores_[l]], &b = setting.outputs[out.boxes_[l]];
      const std::size_t cells = w > 0 ? out.grid(l, w, h).cells() : b.count() / 4 / kRetinaNetAnchors;
      if (b.count() == 0) continue;  // known only after a run
      if (b.count() != 4 * kRetinaNetAnchors * cells || s.count() != out.classes_ * kRetinaNetAnchors * cells)
        return no("set=retinanet contradicts the shapes", setting);
    }
    return out;
  }
  const bool faces = set == PriorSet::retinaface;
  out.scores_[0] = out.boxes_[0] = UINT32_MAX;
  for (std::uint32_t i = 0; i < outputs; ++i) {
    const ItemTensor& t = setting.outputs[i];
    if (t.rank != 2) continue;
    std::uint32_t* place = t.last() == (faces ? 4 : kBlazeNumbers) ? &out.boxes_[0]
                           : faces && t.last() == 10               ? &out.marks_
                                                                   : &out.scores_[0];
    if (*place == UINT32_MAX) *place = i;
  }
  if (out.boxes_[0] == UINT32_MAX || out.scores_[0] == UINT32_MAX)
    return no(faces ? "set=retinaface needs outputs [n, 4], [n, C] and maybe [n, 10]"
                    : "set=blazeface needs outputs [n, 16] and [n, 1]",
              setting);
  const ItemTensor &b = setting.outputs[out.boxes_[0]], &s = setting.outputs[out.scores_[0]];
  out.points_ = !faces ? (kBlazeNumbers - 4) / 2 : out.marks_ != UINT32_MAX ? 5 : 0;
  out.classes_ = static_cast<std::size_t>(std::max<std::int64_t>(s.last(), 1));
  if (b.count() > 0 && w > 0) {
    const Grid last = out.grid(out.levels() - 1, w, h);
    const std::size_t rows = last.first + last.cells() * last.anchors;
    if (b.shape[0] != static_cast<std::int64_t>(rows) || s.shape[0] != b.shape[0])
      return no("makes " + std::to_string(rows) + " boxes of an input of " + std::to_string(setting.input_width) + "x" +
                    std::to_string(setting.input_height),
                setting);
  }
  return out;
}

float Priors::score(std::span<const ItemTensor> outputs, const Prior& p, std::size_t class_id) const noexcept {
  if (set_ != PriorSet::retinanet) {
    const ItemTensor& t = outputs[scores_[0]];
    const std::size_t i = p.row * classes_ + class_id;
    return i < t.count() ? t.at(i) : 0;
  }
  const ItemTensor& t = outputs[scores_[p.level]];
  const auto cells = static_cast<std::size_t>(t.shape[1] * t.shape[2]);
  const std::size_t anchor = p.row / cells, i = (anchor * classes_ + class_id) * cells + p.row % cells;
  return i < t.count() ? t.at(i) : 0;
}

Priors::Box Priors::box(std::span<const ItemTensor> outputs, const Prior& p) const noexcept {
  float d[4];
  if (set_ == PriorSet::retinanet) {
    const ItemTensor& t = outputs[boxes_[p.level]];
    const auto cells = static_cast<std::size_t>(t.shape[1] * t.shape[2]);
    for (std::size_t k = 0; k < 4; ++k) d[k] = t.at((p.row / cells * 4 + k) * cells + p.row % cells);
    // The last pixel is within the box: its end stands a pixel before its width.
    return {p.cx + d[0] * p.w - 0.5f, p.cy + d[1] * p.h - 0.5f, p.w * std::exp(d[2]) - 1, p.h * std::exp(d[3]) - 1};
  }
  const ItemTensor& t = outputs[boxes_[0]];
  const std::size_t at = std::size_t{p.row} * static_cast<std::size_t>(t.last());
  for (std::size_t k = 0; k < 4; ++k) d[k] = t.at(at + k);
  if (set_ == PriorSet::blazeface) return {p.cx + d[0], p.cy + d[1], d[2], d[3]};
  return {p.cx + 0.1f * d[0] * p.w, p.cy + 0.1f * d[1] * p.h, p.w * std::exp(0.2f * d[2]), p.h * std::exp(0.2f * d[3])};
}

leat_keypoint Priors::point(std::span<const ItemTensor> outputs, const Prior& p, std::uint32_t k,
                            float score) const noexcept {
  if (set_ == PriorSet::blazeface) {
    const ItemTensor& t = outputs[boxes_[0]];
    const std::size_t at = std::size_t{p.row} * kBlazeNumbers + 4 + 2 * std::size_t{k};
    return {p.cx + t.at(at), p.cy + t.at(at + 1), score};
  }
  const ItemTensor& t = outputs[marks_];
  const std::size_t at = std::size_t{p.row} * 10 + 2 * std::size_t{k};
  if (at + 1 >= t.count()) return {};
  return {p.cx + 0.1f * t.at(at) * p.w, p.cy + 0.1f * t.at(at + 1) * p.h, score};
}

}  // namespace leat::exec
