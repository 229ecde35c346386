#include "engine/exec/decode/boxes/layout.h"

#include <algorithm>
#include <cmath>

#include "engine/exec/spec_line.h"

namespace leat::exec {

void Candidates::add(const Candidate& c) noexcept {
  if (!reaches(c.score)) return;
  if (!std::isfinite(c.cx + c.cy + c.w + c.h + c.angle)) return note_not_finite();
  if (!(c.w > 0) || !(c.h > 0)) return;
  if (count_ < all_.size()) all_[count_++] = c;
}

void Candidates::add_visible(Box box, float score, std::size_t class_id, std::size_t source) noexcept {
  // Cut to the frame, an infinite side would be the frame's.
  if (reaches(score) && !std::isfinite(box.x0 + box.y0 + box.x1 + box.y1)) return note_not_finite();
  const float x0 = std::max(box.x0, visible_.x0), x1 = std::min(box.x1, visible_.x1);
  const float y0 = std::max(box.y0, visible_.y0), y1 = std::min(box.y1, visible_.y1);
  add({(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0, 0, score, static_cast<std::int32_t>(class_id), 0,
       static_cast<std::uint32_t>(source)});
}

bool Candidates::take_class(float named, std::uint32_t first, Candidate& c) noexcept {
  constexpr float kLimit = 1e9F;  // no list of classes is as long, and an int32_t holds it
  if (!(std::abs(named) < kLimit)) return note_not_finite(), false;
  c.class_id = static_cast<std::int32_t>(named) - static_cast<std::int32_t>(first);
  return true;
}

std::uint32_t LayoutSetting::named(std::string_view name) const noexcept {
  for (std::uint32_t i = 0; i < post.outputs.size(); ++i)
    if (post.outputs[i].name == name) return i;
  return kNoOutput;
}

std::string LayoutSetting::outputs_text() const {
  std::string out;
  for (const ItemTensor& t : post.outputs) out += (out.empty() ? "" : ", ") + std::string(t.name) + " " + t.text();
  return out;
}

void shared_words(SpecLine& words, BoxesSpec& s) {
  words.choice("unit", {"px", "one"}, [&](std::size_t i) { s.unit_one = i == 1; });
  words.choice("order", {"xyxy", "yxyx", "cxcywh"}, [&](std::size_t i) { s.order = static_cast<BoxOrder>(i); });
  words.choice("act", {"none", "sigmoid", "softmax"}, [&](std::size_t i) { s.act = static_cast<Activation>(i); });
  words.choice("extra", {"angle", "points", "mask"}, [&](std::size_t i) { s.angle = i == 0, s.mask = i == 2; });
  words.whole("first", 0, 1, &s.first);
  words.whole("points", 1, 200, &s.points);
}

}  // namespace leat::exec
