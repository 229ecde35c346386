// layout=yolo8: one output [4 + C, m]: cx, cy, w, h, then C scores (Ultralytics v8 to 12, YOLOv9). extra=angle: the
// last row is an angle (obb); extra=points: K * 3 rows of x, y, score behind the scores (pose, with points=K);
// extra=mask: K coefficients behind the scores, and prototypes (masks.h; seg). layout=rows: the same without extras,
// for as few boxes as one likes, and cut to the frame before they are compared.
#include "engine/exec/decode/boxes/layout.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

class Yolo8 final : public BoxLayout {
 public:
  static std::unique_ptr<BoxLayout> of(const LayoutSetting& s, std::int64_t behind, bool cut) {
    auto out = std::make_unique<Yolo8>();
    out->angle_ = s.spec.angle, out->cut_ = cut;
    out->points_ = s.spec.points, out->coefficients_ = s.coefficients;
    out->classes_ = static_cast<std::size_t>(s.first().shape[0] - 4 - behind);
    out->max_boxes_ = static_cast<std::size_t>(std::max<std::int64_t>(s.first().shape[1], 0));
    return out;
  }

  void gather(const BoxesInput& in, Candidates& out) noexcept override {
    const ItemTensor& t = in.outputs[0];
    const auto m = static_cast<std::size_t>(t.shape[1]), rows = static_cast<std::size_t>(t.shape[0]);
    for (std::size_t i = 0; i < m; ++i) {
      const auto row = [&](std::size_t r) { return t.at(r * m + i); };
      const Largest best = largest_of(0, classes_, [&](std::size_t c) { return row(4 + c); });
      if (!out.reaches(best.value)) continue;
      Candidate c{row(0), row(1), row(2), row(3), angle_ ? row(rows - 1) : 0, best.value};
      if (cut_) {
        out.add_visible(c.corners(), best.value, best.place, i);
        continue;
      }
      c.class_id = static_cast<std::int32_t>(best.place), c.source = static_cast<std::uint32_t>(i);
      out.add(c);
    }
  }

  leat_keypoint point(const BoxesInput& in, const Candidate& c, std::uint32_t k) const noexcept override {
    const std::size_t end = 3 * std::size_t{points_} - 3 * std::size_t{k};
    return {behind(in, c, end), behind(in, c, end - 1), behind(in, c, end - 2)};
  }
  float coefficient(const BoxesInput& in, const Candidate& c, std::size_t k) const noexcept override {
    return behind(in, c, coefficients_ - k);
  }

 private:
  // What stands with a box behind its scores, counted from the last row.
  static float behind(const BoxesInput& in, const Candidate& c, std::size_t from_end) noexcept {
    const ItemTensor& t = in.outputs[0];
    return t.at((static_cast<std::size_t>(t.shape[0]) - from_end) * static_cast<std::size_t>(t.shape[1]) + c.source);
  }

  std::size_t coefficients_ = 0;
  bool angle_ = false, cut_ = false;
};

}  // namespace

OpenedLayout open_yolo8(const LayoutSetting& s) {
  const ItemTensor& t = s.first();
  const auto behind = static_cast<std::int64_t>(3 * s.spec.points + (s.spec.angle ? 1 : 0) + s.coefficients);
  if (t.rank != 2 || t.shape[0] < 5 + behind || t.shape[1] < t.shape[0])
    return boxes_error("layout=yolo8 needs an output [4 + C, m] with more columns than rows, and the first is " +
                       t.text());
  return Yolo8::of(s, behind, false);
}

void rows_words(SpecLine&, BoxesSpec& spec) { spec.score_min = 0.3f, spec.iou_max = 0.6f; }
OpenedLayout open_rows(const LayoutSetting& s) {
  const ItemTensor& t = s.first();
  if (t.rank != 2 || t.shape[0] < 5)
    return boxes_error("with layout=rows need an output [4 + classes, m], and the model's first is " + t.text());
  return Yolo8::of(s, 0, true);
}

}  // namespace leat::exec
