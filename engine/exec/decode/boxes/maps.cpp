// layout=maps [stride=8]: one output [4 + C, h, w] of float32. Every cell of stride x stride pixels has C logits, then
// the distances from its centre to the left, top, right and bottom sides, in cells (C first, so that a lone objectness
// is channel 0).
#include "engine/exec/decode/boxes/layout.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

class Maps final : public BoxLayout {
 public:
  static OpenedLayout open(const LayoutSetting& setting) {
    const ItemTensor& t = setting.first();
    if (t.rank != 3 || t.shape[0] < 5 || t.count() == 0 || t.dtype != LEAT_F32)
      return boxes_error("with layout=maps need an output [4 + classes, h, w] of float32, and the model's first is " +
                         t.text());
    auto out = std::make_unique<Maps>();
    out->stride_ = setting.spec.stride;
    out->classes_ = static_cast<std::size_t>(t.shape[0] - 4);
    out->max_boxes_ = static_cast<std::size_t>(t.shape[1] * t.shape[2]);
    return OpenedLayout(std::move(out));
  }

  void gather(const BoxesInput& in, Candidates& out) noexcept override {
    const ItemTensor& t = in.outputs[0];
    const auto* const logits = static_cast<const float*>(t.data);
    const auto columns = static_cast<std::size_t>(t.shape[2]), cells = static_cast<std::size_t>(t.shape[1]) * columns;
    const float* const sides = logits + classes_ * cells;
    const float min = min_logit(out.score_min());
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const Largest best = largest_of(0, classes_, [&](std::size_t c) { return logits[c * cells + cell]; });
      if (!out.reaches(best.value, min)) continue;
      const auto side = [&](std::size_t k) { return sides[k * cells + cell]; };
      const float x = static_cast<float>(cell % columns) + 0.5f, y = static_cast<float>(cell / columns) + 0.5f;
      const Box box{(x - side(0)) * stride_, (y - side(1)) * stride_, (x + side(2)) * stride_, (y + side(3)) * stride_};
      out.add_visible(box, sigmoid(best.value), best.place, cell);
    }
  }

 private:
  // Logits are compared before the sigmoid, which only the kept ones need.
  static float min_logit(float score_min) noexcept {
    if (score_min <= 0) return -1e30f;
    return score_min >= 1 ? 1e30f : std::log(score_min / (1 - score_min));
  }

  float stride_ = 8;
};

}  // namespace

void maps_words(SpecLine& words, BoxesSpec& spec) {
  spec.score_min = 0.3f, spec.iou_max = 0.6f;
  words.number("stride", 1, 1024, &spec.stride);
}
OpenedLayout open_maps(const LayoutSetting& setting) { return Maps::open(setting); }

}  // namespace leat::exec
