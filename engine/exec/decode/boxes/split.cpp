// layout=split: outputs by name or type: boxes [k, 4], scores [k], labels [k] (classes), count (optional). Boxes of
// five columns have their score in the last.
#include <algorithm>

#include "engine/exec/decode/boxes/layout.h"

namespace leat::exec {
namespace {

class Split final : public BoxLayout {
 public:
  static OpenedLayout open(const LayoutSetting& s) {
    auto out = std::make_unique<Split>();
    out->spec_ = s.spec;
    for (std::uint32_t i = 0; i < s.post.outputs.size(); ++i) out->take(s.post.outputs[i], i);
    if (out->boxes_ == kNoOutput || out->scores_ == kNoOutput)
      return boxes_error("layout=split needs boxes [k, 4] and scores [k]; the model has " + s.outputs_text());
    return OpenedLayout(std::move(out));
  }

  void gather(const BoxesInput& in, Candidates& out) noexcept override {
    const ItemTensor &boxes = in.outputs[boxes_], &scores = in.outputs[scores_];
    const std::size_t n = static_cast<std::size_t>(boxes.last()), count = rows(in, out);
    for (std::size_t i = 0; i < count; ++i) {
      float v[4];
      for (std::size_t k = 0; k < 4; ++k) v[k] = boxes.at(i * n + k);
      if (spec_.order == BoxOrder::yxyx) std::swap(v[0], v[1]), std::swap(v[2], v[3]);
      Candidate c{(v[0] + v[2]) / 2, (v[1] + v[3]) / 2, v[2] - v[0], v[3] - v[1]};
      if (spec_.order == BoxOrder::cxcywh) c = {v[0], v[1], v[2], v[3]};
      c.cx *= in.across(spec_), c.w *= in.across(spec_), c.cy *= in.down(spec_), c.h *= in.down(spec_);
      c.score = scores_ == boxes_ ? boxes.at(i * n + 4) : scores.at(i);
      if (spec_.act == Activation::sigmoid) c.score = sigmoid(c.score);
      if (!out.reaches(c.score)) continue;
      if (labels_ != kNoOutput && i < in.outputs[labels_].count() &&
          !out.take_class(in.outputs[labels_].at(i), spec_.first, c))
        continue;
      c.source = static_cast<std::uint32_t>(i);
      out.add(c);
    }
  }

 private:
  // What an output is, by its name where that says it, else by its shape and type.
  void take(const ItemTensor& t, std::uint32_t place) {
    const auto says = [&](const char* word) { return t.name.find(word) != std::string_view::npos; };
    if (says("raw_")) return;
    if (says("num") || says("count")) {
      count_ = place;
    } else if (t.rank >= 2 && t.last() == 4) {
      boxes_ = place;
    } else if (t.rank == 2 && t.last() == 5) {
      boxes_ = scores_ = place;
    } else if (says("label") || says("class") || t.dtype == LEAT_I64 || t.dtype == LEAT_I32) {
      labels_ = place;
    } else if (t.rank <= 2) {
      scores_ = place;
    }
  }
  [[nodiscard]] std::size_t rows(const BoxesInput& in, Candidates& out) const noexcept {
    const ItemTensor& boxes = in.outputs[boxes_];
    std::size_t rows = boxes.count() / static_cast<std::size_t>(boxes.last());
    if (scores_ != boxes_) rows = std::min(rows, in.outputs[scores_].count());
    if (count_ == kNoOutput || in.outputs[count_].count() == 0) return rows;
    const float said = in.outputs[count_].at(0);
    if (!std::isfinite(said)) return out.note_not_finite(), 0;
    return std::min(rows, static_cast<std::size_t>(std::clamp(said, 0.0F, static_cast<float>(rows))));
  }

  BoxesSpec spec_;
  std::uint32_t boxes_ = kNoOutput, scores_ = kNoOutput, labels_ = kNoOutput, count_ = kNoOutput;  // outputs
};

}  // namespace

void split_words(SpecLine& words, BoxesSpec& spec) {
  spec.iou_max = 1;
  shared_words(words, spec);
}
OpenedLayout open_split(const LayoutSetting& s) { return Split::open(s); }

}  // namespace leat::exec
