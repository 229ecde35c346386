// columns=A,B,...: one output [k, n] with these columns: x0 y0 x1 y1, or cx cy w h; s score, c class, b the item within
// the batch, - ignored, a angle. Rows whose score is 0 fill up. extra=points: K * 3 columns behind them; extra=mask: K
// coefficients behind those.
#include <algorithm>

#include "engine/exec/decode/boxes/layout.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

// What a column can mean, in the order of a row's values.
enum Meaning : std::size_t { kX0, kY0, kX1, kY1, kCx, kCy, kW, kH, kAngle, kScore, kClass, kMeanings };
constexpr std::string_view kNames[kMeanings] = {"x0", "y0", "x1", "y1", "cx", "cy", "w", "h", "a", "s", "c"};

class Columns final : public BoxLayout {
 public:
  static OpenedLayout open(const LayoutSetting& setting) {
    const BoxesSpec& spec = setting.spec;
    const ItemTensor& t = setting.first();
    const auto needed =
        static_cast<std::int64_t>(spec.columns.size() + 3 * std::size_t{spec.points} + setting.coefficients);
    if (t.rank != 2 || t.shape[1] < needed)
      return boxes_error("columns=, points= and extra= need " + std::to_string(needed) +
                         " columns, and the output is " + t.text());
    auto out = std::make_unique<Columns>();
    out->spec_ = spec, out->points_ = spec.points;
    for (const std::string& name : spec.columns)
      out->meaning_.push_back(static_cast<Meaning>(std::ranges::find(kNames, name) - kNames));
    const auto has = [&](std::initializer_list<Meaning> all) {
      return std::all_of(all.begin(), all.end(), [&](Meaning m) { return std::ranges::count(out->meaning_, m) != 0; });
    };
    if (!has({kScore}) || !(has({kX0, kY0, kX1, kY1}) || has({kCx, kCy, kW, kH})))
      return boxes_error("columns= needs s and x0, y0, x1, y1 or cx, cy, w, h; known: b x0 y0 x1 y1 cx cy w h s c a -");
    out->centred_ = has({kCx}), out->classed_ = has({kClass});
    return OpenedLayout(std::move(out));
  }

  void gather(const BoxesInput& in, Candidates& out) noexcept override {
    const ItemTensor& t = in.outputs[0];
    const auto n = static_cast<std::size_t>(std::max<std::int64_t>(t.last(), 1));
    for (std::size_t row = 0; row < t.count() / n; ++row) {
      float v[kMeanings + 1] = {};  // the last takes what is ignored
      for (std::size_t i = 0; i < meaning_.size(); ++i) v[meaning_[i]] = t.at(row * n + i);
      if (v[kScore] <= 0 || !out.reaches(v[kScore])) continue;
      Candidate f{v[kCx], v[kCy], v[kW], v[kH], v[kAngle], v[kScore]};
      if (!centred_)
        f.cx = (v[kX0] + v[kX1]) / 2, f.cy = (v[kY0] + v[kY1]) / 2, f.w = v[kX1] - v[kX0], f.h = v[kY1] - v[kY0];
      f.cx *= in.across(spec_), f.w *= in.across(spec_), f.cy *= in.down(spec_), f.h *= in.down(spec_);
      if (classed_ && !out.take_class(v[kClass], spec_.first, f)) continue;
      f.source = static_cast<std::uint32_t>(row);
      out.add(f);
    }
  }

  leat_keypoint point(const BoxesInput& in, const Candidate& f, std::uint32_t k) const noexcept override {
    const std::size_t at = behind(in, f) + 3 * std::size_t{k};
    const ItemTensor& t = in.outputs[0];
    return {t.at(at) * in.across(spec_), t.at(at + 1) * in.down(spec_), t.at(at + 2)};
  }
  float coefficient(const BoxesInput& in, const Candidate& f, std::size_t k) const noexcept override {
    return in.outputs[0].at(behind(in, f) + 3 * std::size_t{points_} + k);
  }

 private:
  // Where a row's points and coefficients begin.
  [[nodiscard]] std::size_t behind(const BoxesInput& in, const Candidate& f) const noexcept {
    return f.source * static_cast<std::size_t>(in.outputs[0].last()) + meaning_.size();
  }

  BoxesSpec spec_;
  std::vector<Meaning> meaning_;  // [column]; kMeanings: ignored
  bool centred_ = false, classed_ = false;
};

}  // namespace

void columns_words(SpecLine& words, BoxesSpec& spec) {
  spec.iou_max = 1;
  spec.columns = words.list("columns");
  shared_words(words, spec);
  spec.angle = spec.angle || std::ranges::count(spec.columns, "a") != 0;
}
OpenedLayout open_columns(const LayoutSetting& s) { return Columns::open(s); }

}  // namespace leat::exec
