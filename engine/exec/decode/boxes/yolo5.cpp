// layout=yolo5: one output [m, 5 + C]: cx, cy, w, h, objectness, C scores; score = objectness * class (YOLOv5, v6, v7).
// extra=points points=K: K pairs x, y behind the objectness (YOLOv5-face); extra=mask: K coefficients behind the scores
// (YOLOv5 seg).
// layout=yolox: the same, not decoded: centre = (p + cell) * stride, size = exp(p) * stride over strides 8, 16, 32
// (Megvii).
#include "engine/exec/decode/boxes/layout.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kStrides[] = {8, 16, 32};

class Yolo5 final : public BoxLayout {
 public:
  static OpenedLayout open(const LayoutSetting& s, bool decoded) {
    const ItemTensor& t = s.first();
    if (t.rank != 2 || t.shape[1] < 6 || t.shape[0] < t.shape[1])
      return boxes_error(
          "layout=yolo5 and yolox need an output [m, 5 + C] with more rows than columns, and the first is " + t.text());
    std::int64_t cells = 0;
    for (const auto stride : kStrides)
      cells += std::int64_t{s.post.input_width / stride} * (s.post.input_height / stride);
    if (!decoded && t.shape[0] != cells)
      return boxes_error("layout=yolox: " + std::to_string(cells) + " cells in strides 8, 16, 32, and the output is " +
                         t.text());
    const std::size_t beside = 2 * std::size_t{s.spec.points} + s.coefficients;
    if (t.shape[1] < static_cast<std::int64_t>(6 + beside))
      return boxes_error("layout=yolo5 with points= or extra= needs " + std::to_string(6 + beside) +
                         " columns at least, and the output is " + t.text());
    auto out = std::make_unique<Yolo5>();
    out->decoded_ = decoded, out->points_ = s.spec.points, out->coefficients_ = s.coefficients;
    out->classes_ = static_cast<std::size_t>(t.shape[1]) - 5 - beside;
    out->max_boxes_ = static_cast<std::size_t>(t.shape[0]);
    return OpenedLayout(std::move(out));
  }

  void gather(const BoxesInput& in, Candidates& out) noexcept override {
    const ItemTensor& t = in.outputs[0];
    if (decoded_) {
      for (std::size_t row = 0; row < static_cast<std::size_t>(t.shape[0]); ++row)
        if (Candidate c; scored(t, row, out, &c)) out.add(c);
      return;
    }
    std::size_t row = 0;
    for (const std::uint32_t stride : kStrides)
      for (std::uint32_t y = 0; y < static_cast<std::uint32_t>(in.height) / stride; ++y)
        for (std::uint32_t x = 0; x < static_cast<std::uint32_t>(in.width) / stride; ++x)
          if (Candidate c; scored(t, row++, out, &c)) {
            const auto s = static_cast<float>(stride);
            c.cx = (c.cx + static_cast<float>(x)) * s, c.cy = (c.cy + static_cast<float>(y)) * s;
            c.w = std::exp(c.w) * s, c.h = std::exp(c.h) * s;
            out.add(c);
          }
  }

  leat_keypoint point(const BoxesInput& in, const Candidate& c, std::uint32_t k) const noexcept override {
    const ItemTensor& t = in.outputs[0];
    const std::size_t at = c.source * static_cast<std::size_t>(t.shape[1]) + 5 + 2 * std::size_t{k};
    return {t.at(at), t.at(at + 1), c.score};
  }
  float coefficient(const BoxesInput& in, const Candidate& c, std::size_t k) const noexcept override {
    const ItemTensor& t = in.outputs[0];
    return t.at((c.source + std::size_t{1}) * static_cast<std::size_t>(t.shape[1]) - coefficients_ + k);
  }

 private:
  // A row as it stands there; false: its objectness alone is below the least.
  bool scored(const ItemTensor& t, std::size_t row, Candidates& out, Candidate* c) const noexcept {
    const std::size_t at = row * static_cast<std::size_t>(t.shape[1]);
    const float object = t.at(at + 4);
    if (!out.reaches(object)) return false;
    const std::size_t scores = at + 5 + 2 * std::size_t{points_};
    const Largest best = largest_of(0, classes_, [&](std::size_t i) { return t.at(scores + i); });
    *c = {t.at(at), t.at(at + 1), t.at(at + 2), t.at(at + 3)};
    c->score = object * best.value, c->class_id = static_cast<std::int32_t>(best.place);
    c->source = static_cast<std::uint32_t>(row);
    return true;
  }

  std::size_t coefficients_ = 0;
  bool decoded_ = true;
};

}  // namespace

OpenedLayout open_yolo5(const LayoutSetting& s) { return Yolo5::open(s, true); }
OpenedLayout open_yolox(const LayoutSetting& s) { return Yolo5::open(s, false); }

}  // namespace leat::exec
