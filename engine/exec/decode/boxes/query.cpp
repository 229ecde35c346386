// layout=query: two outputs [k, 4] and [k, C]: boxes cx, cy, w, h and class scores or logits (DETR, RF-DETR); or one
// [k, 4 + C] (RT-DETR as Ultralytics exports it). act=softmax drops the last class ("nothing"); the columns before
// first= are no class.
#include <algorithm>

#include "engine/exec/decode/boxes/layout.h"

namespace leat::exec {
namespace {

class Query final : public BoxLayout {
 public:
  static OpenedLayout open(const LayoutSetting& s) {
    auto out = std::make_unique<Query>();
    out->spec_ = s.spec;
    const std::span<const ItemTensor> outputs = s.post.outputs;
    if (outputs.size() == 1 && s.first().rank == 2 && s.first().last() > 4) {
      out->boxes_ = out->scores_ = 0;
      out->classes_ = static_cast<std::size_t>(s.first().last() - 4);
      return OpenedLayout(std::move(out));
    }
    out->find(outputs);
    if (out->boxes_ == kNoOutput || out->scores_ == kNoOutput ||
        outputs[out->boxes_].shape[0] != outputs[out->scores_].shape[0])
      return boxes_error("layout=query needs boxes [k, 4] and scores [k, C], or [k, 4 + C]; the model has " +
                         s.outputs_text());
    out->classes_ = static_cast<std::size_t>(outputs[out->scores_].last());
    out->classes_ -= std::min<std::size_t>(out->classes_, s.spec.act == Activation::softmax ? 1 : s.spec.first);
    return OpenedLayout(std::move(out));
  }

  void gather(const BoxesInput& in, Candidates& out) noexcept override {
    const ItemTensor &boxes = in.outputs[boxes_], &scores = in.outputs[scores_];
    const bool together = boxes_ == scores_;
    const std::size_t before = together ? 4 : 0, width = together ? static_cast<std::size_t>(boxes.last()) : 4;
    const auto all = static_cast<std::size_t>(scores.last());
    const std::size_t columns = all - before, used = spec_.act == Activation::softmax ? columns - 1 : columns;
    for (std::size_t i = 0; i < boxes.count() / width && i < scores.count() / all; ++i) {
      const auto value = [&](std::size_t c) { return scores.at(i * all + before + c); };
      const Largest best = largest_of(spec_.first, used, value);
      float v[4];
      for (std::size_t k = 0; k < 4; ++k) v[k] = boxes.at(width * i + k);
      const float sx = in.across(spec_), sy = in.down(spec_);
      Candidate c{v[0] * sx, v[1] * sy, v[2] * sx, v[3] * sy};
      if (spec_.order == BoxOrder::xyxy)
        c = {(v[0] + v[2]) / 2 * sx, (v[1] + v[3]) / 2 * sy, (v[2] - v[0]) * sx, (v[3] - v[1]) * sy};
      if (!out.reaches(best.value, -INFINITY)) continue;
      c.score = score_of(spec_.act, best.value, columns, value);
      c.class_id = static_cast<std::int32_t>(best.place) - static_cast<std::int32_t>(spec_.first);
      c.source = static_cast<std::uint32_t>(i);
      out.add(c);
    }
  }

 private:
  // Three classes and "nothing" make scores as wide as boxes: the name decides before the width.
  void find(std::span<const ItemTensor> outputs) {
    const auto as_wide = [](const ItemTensor& t) { return t.rank == 2 && t.last() == 4; };
    const auto named = [](const ItemTensor& t) {
      return t.name.find("box") != std::string_view::npos || t.name == "dets";
    };
    for (const bool by_name : {true, false})
      for (std::uint32_t i = 0; i < outputs.size() && boxes_ == kNoOutput; ++i)
        if (as_wide(outputs[i]) && (named(outputs[i]) || !by_name)) boxes_ = i;
    for (std::uint32_t i = 0; i < outputs.size() && scores_ == kNoOutput; ++i)
      if (outputs[i].rank == 2 && i != boxes_) scores_ = i;
  }

  BoxesSpec spec_;
  std::uint32_t boxes_ = kNoOutput, scores_ = kNoOutput;  // outputs
};

}  // namespace

void query_words(SpecLine& words, BoxesSpec& spec) {
  spec.iou_max = 1, spec.unit_one = true, spec.order = BoxOrder::cxcywh;
  shared_words(words, spec);
}
OpenedLayout open_query(const LayoutSetting& s) { return Query::open(s); }

}  // namespace leat::exec
