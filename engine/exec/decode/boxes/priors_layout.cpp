// layout=priors set=NAME: priors.h says how each set reads.
#include "engine/exec/decode/boxes/priors.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

class PriorsLayout final : public BoxLayout {
 public:
  static OpenedLayout open(const LayoutSetting& s) {
    auto priors = Priors::open(s.spec.set, s);
    if (!priors.ok()) return Error{priors.error()};
    if (priors->classes() <= s.spec.first)
      return boxes_error("layout=priors: first=" + std::to_string(s.spec.first) + " leaves no class; write first=0");
    auto out = std::make_unique<PriorsLayout>();
    out->priors_ = std::move(*priors);
    out->act_ = s.spec.act, out->first_ = s.spec.first;
    out->points_ = out->priors_.points();
    out->classes_ = out->priors_.classes() - s.spec.first;
    return OpenedLayout(std::move(out));
  }

  void gather(const BoxesInput& in, Candidates& out) noexcept override {
    priors_.for_each(in.outputs, in.width, in.height, [&](const Priors::Prior& p) {
      const auto value = [&](std::size_t c) { return priors_.score(in.outputs, p, c); };
      const Largest best = largest_of(first_, priors_.classes(), value);
      const float score = score_of(act_, best.value, priors_.classes(), value);
      if (!out.reaches(score)) return;
      const Priors::CentredBox b = priors_.box(in.outputs, p);
      out.add({b.cx, b.cy, b.w, b.h, 0, score, static_cast<std::int32_t>(best.place - first_), p.level, p.row});
    });
  }

  leat_keypoint point(const BoxesInput& in, const Candidate& c, std::uint32_t k) const noexcept override {
    return priors_.point(in.outputs, priors_.prior(c.output, c.source, in.width, in.height), k, c.score);
  }

 private:
  Priors priors_;
  Activation act_ = Activation::none;
  std::size_t first_ = 0;
};

}  // namespace

void priors_words(SpecLine& words, BoxesSpec& spec) {
  bool said = false;
  words.choice("set", {"retinaface", "retinanet", "blazeface", "ultraface", "palm", "person"},
               [&](std::size_t i) { spec.set = static_cast<PriorSet>(i), said = true; });
  if (!said) words.fail("layout=priors needs set= one of retinaface, retinanet, blazeface, ultraface, palm or person");
  if (spec.set == PriorSet::retinaface || spec.set == PriorSet::ultraface) spec.first = 1;
  if (Priors::scores_are_logits(spec.set)) spec.act = Activation::sigmoid;
  shared_words(words, spec);
}
OpenedLayout open_priors(const LayoutSetting& s) { return PriorsLayout::open(s); }

}  // namespace leat::exec
