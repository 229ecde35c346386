#include "engine/exec/decode/boxes/boxes.h"

#include <algorithm>
#include <cmath>

#include "engine/exec/decode/boxes/layouts.h"
#include "engine/exec/decode/classes/class_names.h"
#include "engine/exec/picture/preprocess.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

constexpr std::size_t kMaxRowsFound = 1000;                  // of an output whose rows are known only after a run
constexpr std::uint32_t kMaxKept = 4 * LEAT_MAX_DETECTIONS;  // those that exceed the result are counted

// From pixels of the model's picture to those of the frame, and back.
leat_keypoint to_frame(const Placement& p, leat_keypoint k) noexcept {
  return {p.offset_x + p.scale_x * k.x, p.offset_y + p.scale_y * k.y, k.score};
}
Box to_frame(const Placement& p, const Box& b) noexcept {
  return {p.offset_x + p.scale_x * b.x0, p.offset_y + p.scale_y * b.y0, p.offset_x + p.scale_x * b.x1,
          p.offset_y + p.scale_y * b.y1};
}
Box from_frame(const Placement& p, const Box& b) noexcept {
  return {(b.x0 - p.offset_x) / p.scale_x, (b.y0 - p.offset_y) / p.scale_y, (b.x1 - p.offset_x) / p.scale_x,
          (b.y1 - p.offset_y) / p.scale_y};
}

// A turned box is known by the upright one around it, cut to the frame.
leat_detection detection_of(const Candidate& c, const Placement& p, const FrameView& frame) noexcept {
  const float cosine = std::abs(std::cos(c.angle)), sine = std::abs(std::sin(c.angle));
  const float half_w = (c.w * cosine + c.h * sine) / 2, half_h = (c.w * sine + c.h * cosine) / 2;
  const Box around = to_frame(p, {c.cx - half_w, c.cy - half_h, c.cx + half_w, c.cy + half_h});
  leat_detection d{};
  d.x0 = std::max(around.x0, 0.0f), d.x1 = std::min(around.x1, static_cast<float>(frame.width));
  d.y0 = std::max(around.y0, 0.0f), d.y1 = std::min(around.y1, static_cast<float>(frame.height));
  d.score = std::min(c.score, 1.0f), d.class_id = c.class_id;
  return d;
}

}  // namespace

BoxesSpec BoxesPost::parse(SpecLine& words) {
  BoxesSpec s;
  const std::string layout = words.text("layout").value_or(words.has("columns") ? "columns" : "maps");
  s.layout = find_layout(layout);
  if (s.layout == nullptr) {
    words.fail("layout=" + layout + " is not known; write one of " + layout_names() + ", or columns=");
    return s;
  }
  s.layout->words(words, s);
  words.number("score", 0, 1, &s.score_min);
  words.number("iou", 0, 1, &s.iou_max);
  return s;
}

Result<std::unique_ptr<BoxesPost>> BoxesPost::open(const BoxesSpec& spec, const PostSetting& setting) {
  auto out = std::make_unique<BoxesPost>();
  out->spec_ = spec;
  out->width_ = static_cast<float>(setting.input_width), out->height_ = static_cast<float>(setting.input_height);
  LayoutSetting layout{spec, setting};
  if (spec.mask) {
    if (!spec.layout->masks) return boxes_error("extra=mask suits the layouts " + layout_names(true));
    auto masks = Masks::open(setting.outputs, 0);
    if (!masks.ok()) return boxes_error(masks.error() + "; the model has " + layout.outputs_text());
    out->masks_ = std::move(*masks);
    layout.coefficients = out->masks_->coefficients();
  }
  auto opened = spec.layout->open(layout);
  if (!opened) return Error{opened.error()};
  out->layout_ = std::move(*opened);
  if (const std::size_t classes = out->layout_->classes(); classes != 0)
    if (auto status = fit(setting.labels, {&classes, 1}); !status) return Error{status.error()};
  std::size_t max = out->layout_->max_boxes();
  for (const ItemTensor& t : setting.outputs)
    if (out->layout_->max_boxes() == 0) max = std::max(max, t.count());
  out->candidates_.allocate(std::max(max, kMaxRowsFound), spec.score_min);
  out->declare_parts();
  return out;
}

void BoxesPost::declare_parts() {
  const auto declare = [&](PartSpec part) {
    parts_.push_back(std::move(part));
    return static_cast<std::int32_t>(parts_.size()) - 1;
  };
  if (spec_.angle)
    oriented_ = declare({.kind = LEAT_PART_oriented,
                         .rank = 1,
                         .dims = {LEAT_MAX_DETECTIONS},
                         .bytes = LEAT_MAX_DETECTIONS * sizeof(leat_oriented_box),
                         .name = "boxes"});
  if (const std::uint32_t points = layout_->points(); points != 0)
    points_ = declare({.kind = LEAT_PART_keypoints,
                       .rank = 2,
                       .dims = {LEAT_MAX_DETECTIONS, points},
                       .bytes = std::uint64_t{LEAT_MAX_DETECTIONS} * points * sizeof(leat_keypoint),
                       .name = "points"});
  if (masks_) mask_part_ = declare(masks_->part());
}

Answered BoxesPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  if (target.detection >= 0) return {};  // there is no room for boxes within a box
  const Placement& p = target.placement;
  if (p.input_width > 0) width_ = p.input_width, height_ = p.input_height;  // where it varies, this item's
  const BoxesInput in{outputs, width_, height_};
  candidates_.begin(
      from_frame(p, {0, 0, static_cast<float>(target.frame.width), static_cast<float>(target.frame.height)}));
  layout_->gather(in, candidates_);
  const std::uint32_t found =
      suppress(candidates_.found(), spec_.iou_max, kMaxKept, spec_.angle ? Overlap::turned : Overlap::upright);
  leat_part* const masks = entry(target, mask_part_);
  if (masks != nullptr) masks_->begin(target, *masks);
  std::uint32_t kept = 0, left_out = 0;
  bool finite = !candidates_.not_finite();
  for (const Candidate& c : candidates_.found().first(found)) {
    const leat_detection d = detection_of(c, p, target.frame);
    if (!(d.x1 > d.x0) || !(d.y1 > d.y0)) continue;
    if (kept == LEAT_MAX_DETECTIONS)
      ++left_out;
    else
      finite = write(in, target, c, d, kept++) && finite;
  }
  if (masks != nullptr) masks_->end();
  begin_answer(*target.result, LEAT_RESULT_DETECTIONS);
  target.result->detection_count = kept, target.result->detections_left_out = left_out;
  if (leat_part* const part = entry(target, oriented_)) wrote(*part, kept, kept * sizeof(leat_oriented_box));
  if (leat_part* const part = entry(target, points_))
    wrote(*part, kept, std::uint64_t{kept} * layout_->points() * sizeof(leat_keypoint));
  return {kept, numbers_of(finite, kept != 0)};
}

// A kept box with what belongs to it, at this place of the result. False: some of that is not finite.
bool BoxesPost::write(const BoxesInput& in, const PostTarget& target, const Candidate& c, leat_detection d,
                      std::uint32_t place) noexcept {
  const Placement& p = target.placement;
  bool finite = true;
  target.result->detections[place] = d;
  const auto array_of = [&](const leat_part& part, std::int32_t of) {
    return place_of(target.result, part, parts_[static_cast<std::size_t>(of)], 0).array;
  };
  if (const leat_part* const part = entry(target, oriented_))
    reinterpret_cast<leat_oriented_box*>(array_of(*part, oriented_))[place] = {p.offset_x + p.scale_x * c.cx,
                                                                               p.offset_y + p.scale_y * c.cy,
                                                                               p.scale_x * c.w,
                                                                               p.scale_y * c.h,
                                                                               c.angle,
                                                                               d.score,
                                                                               c.class_id,
                                                                               0};
  if (const leat_part* const part = entry(target, points_)) {
    auto* const to = reinterpret_cast<leat_keypoint*>(array_of(*part, points_)) + place * layout_->points();
    for (std::uint32_t k = 0; k < layout_->points(); ++k) {
      leat_keypoint point = layout_->point(in, c, k);
      if (!std::isfinite(point.x + point.y + point.score)) point = {}, finite = false;  // of score 0
      to[k] = to_frame(p, point);
    }
  }
  if (entry(target, mask_part_) != nullptr)
    finite = masks_->add(in.outputs, from_frame(p, {d.x0, d.y0, d.x1, d.y1}), in.width, in.height, [&](std::size_t k) {
      return layout_->coefficient(in, c, k);
    }) && finite;
  return finite;
}

}  // namespace leat::exec
