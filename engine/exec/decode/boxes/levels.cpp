// layout=levels: scores [k, 1], boxes [k, 4], points [k, 2 * P] for each of strides 8, 16, 32, or 8 to 128: distances
// to the sides from the cell's corner in strides, two anchors a cell, or one (SCRFD); or cls_8, obj_8, bbox_8, kps_8 ..
// (YuNet): score = sqrt(cls * obj), centre = (cell + d) * stride, size = exp * stride.
#include <algorithm>

#include "engine/exec/decode/boxes/layout.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kLevelStrides[] = {8, 16, 32, 64, 128};

struct Level {  // outputs of one stride
  std::uint32_t scores = 0, objects = 0, boxes = 0, points = kNoOutput;
  std::uint32_t stride = 8, columns = 0, anchors = 1;

  // The corner of an anchor's cell, in cells.
  [[nodiscard]] float x(std::size_t i) const noexcept { return static_cast<float>(i / anchors % columns); }
  [[nodiscard]] float y(std::size_t i) const noexcept { return static_cast<float>(i / anchors / columns); }
};

class Levels final : public BoxLayout {
 public:
  static OpenedLayout open(const LayoutSetting& s) {
    auto out = std::make_unique<Levels>();
    out->yunet_ = s.named("cls_8") != kNoOutput, out->points_ = s.spec.points;
    // Scores, boxes and maybe points of three strides with two anchors a cell, or of five with one.
    const auto n = static_cast<std::uint32_t>(s.post.outputs.size());
    const std::uint32_t strides = out->yunet_ || (n != 10 && n != 15) ? 3 : 5;
    if (!out->yunet_ && n != 2 * strides && n != 3 * strides)
      return boxes_error(
          "layout=levels needs cls_8 .. kps_32, or scores, boxes and points of three or five strides; the model has " +
          s.outputs_text());
    for (std::uint32_t l = 0; l < strides; ++l) {
      Level level = out->yunet_ ? named_level(s, kLevelStrides[l])
                                : Level{.scores = l,
                                        .objects = l,
                                        .boxes = strides + l,
                                        .points = n == 3 * strides ? 2 * strides + l : kNoOutput,
                                        .stride = kLevelStrides[l]};
      if (auto status = out->add(s, level); !status) return Error{status.error()};
    }
    return OpenedLayout(std::move(out));
  }

  void gather(const BoxesInput& in, Candidates& out) noexcept override {
    for (std::uint32_t l = 0; l < levels_.size(); ++l)
      for (std::size_t i = 0; i < in.outputs[levels_[l].scores].count(); ++i) {
        Candidate c;
        c.score = score(in, levels_[l], i);
        if (!out.reaches(c.score)) continue;
        place(in, levels_[l], i, &c);
        c.output = l, c.source = static_cast<std::uint32_t>(i);
        out.add(c);
      }
  }

  leat_keypoint point(const BoxesInput& in, const Candidate& c, std::uint32_t k) const noexcept override {
    const Level& level = levels_[c.output];
    const ItemTensor& t = in.outputs[level.points];
    const std::size_t at = (std::size_t{c.source} * points_ + k) * 2;
    const auto stride = static_cast<float>(level.stride);
    return {(level.x(c.source) + t.at(at)) * stride, (level.y(c.source) + t.at(at + 1)) * stride, c.score};
  }

 private:
  static Level named_level(const LayoutSetting& s, std::uint32_t stride) {
    const std::string end = "_" + std::to_string(stride);
    return {.scores = s.named("cls" + end),
            .objects = s.named("obj" + end),
            .boxes = s.named("bbox" + end),
            .points = s.named("kps" + end),
            .stride = stride};
  }
  Status add(const LayoutSetting& s, Level level) {
    const std::span<const ItemTensor> outputs = s.post.outputs;
    if (std::max({level.scores, level.objects, level.boxes}) == kNoOutput)
      return boxes_error("layout=levels: an output of stride " + std::to_string(level.stride) + " is missing");
    const auto side = [&](std::uint32_t whole) { return (whole + level.stride - 1) / level.stride; };
    level.columns = side(s.post.input_width);
    const std::size_t cells = std::size_t{level.columns} * side(s.post.input_height);
    const std::size_t rows = outputs[level.scores].count();
    if (cells == 0 || rows % cells != 0 || outputs[level.boxes].count() != 4 * rows)
      return boxes_error("layout=levels contradicts the shapes " + s.outputs_text());
    level.anchors = static_cast<std::uint32_t>(rows / cells);
    if (level.points != kNoOutput) points_ = static_cast<std::uint32_t>(outputs[level.points].count() / rows / 2);
    max_boxes_ += rows;
    levels_.push_back(level);
    return Done{};
  }

  [[nodiscard]] float score(const BoxesInput& in, const Level& level, std::size_t i) const noexcept {
    const float score = in.outputs[level.scores].at(i);
    if (!yunet_) return score;
    const float object = in.outputs[level.objects].at(i);
    if (!std::isfinite(score + object)) return score + object;  // cut to 1, infinity would be certain
    return std::sqrt(std::clamp(score, 0.0f, 1.0f) * std::clamp(object, 0.0f, 1.0f));
  }
  void place(const BoxesInput& in, const Level& level, std::size_t i, Candidate* c) const noexcept {
    const ItemTensor& b = in.outputs[level.boxes];
    const float v[4] = {b.at(4 * i), b.at(4 * i + 1), b.at(4 * i + 2), b.at(4 * i + 3)};
    const auto stride = static_cast<float>(level.stride);
    const float x = level.x(i), y = level.y(i);
    if (yunet_) {
      c->cx = (x + v[0]) * stride, c->cy = (y + v[1]) * stride;
      c->w = std::exp(v[2]) * stride, c->h = std::exp(v[3]) * stride;
    } else {
      c->cx = (x + (v[2] - v[0]) / 2) * stride, c->cy = (y + (v[3] - v[1]) / 2) * stride;
      c->w = (v[0] + v[2]) * stride, c->h = (v[1] + v[3]) * stride;
    }
  }

  std::vector<Level> levels_;
  bool yunet_ = false;
};

}  // namespace

OpenedLayout open_levels(const LayoutSetting& s) { return Levels::open(s); }

}  // namespace leat::exec
