#include "engine/exec/decode/boxes/boxes.h"

#include <algorithm>
#include <cmath>

#include "engine/exec/picture/preprocess.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kStrides[] = {8, 16, 32};

float sigmoid(float v) noexcept { return 1 / (1 + std::exp(-v)); }

// Intersection over union of upright boxes, or of the Gaussians of turned ones.
template <class F>
float upright_overlap(const F& a, const F& b) noexcept {
  const float w = std::min(a.cx + a.w / 2, b.cx + b.w / 2) - std::max(a.cx - a.w / 2, b.cx - b.w / 2);
  const float h = std::min(a.cy + a.h / 2, b.cy + b.h / 2) - std::max(a.cy - a.h / 2, b.cy - b.h / 2);
  return w <= 0 || h <= 0 ? 0 : w * h / (a.w * a.h + b.w * b.h - w * h);
}
template <class F>
float gaussian_overlap(const F& p, const F& q) noexcept {
  constexpr double kTiny = 1e-7;
  const auto covariance = [](const F& f, double* a, double* b, double* c) {
    const double x = f.w * f.w / 12.0, y = f.h * f.h / 12.0, cosine = std::cos(f.angle), sine = std::sin(f.angle);
    *a = x * cosine * cosine + y * sine * sine;
    *b = x * sine * sine + y * cosine * cosine;
    *c = (x - y) * cosine * sine;
  };
  double a1, b1, c1, a2, b2, c2;
  covariance(p, &a1, &b1, &c1), covariance(q, &a2, &b2, &c2);
  const double a = a1 + a2, b = b1 + b2, c = c1 + c2, dx = p.cx - q.cx, dy = p.cy - q.cy, det = a * b - c * c + kTiny;
  const double t1 = (a * dy * dy + b * dx * dx) / det / 4, t2 = c * -dx * dy / det / 2;
  const double first = std::max(a1 * b1 - c1 * c1, 0.0), second = std::max(a2 * b2 - c2 * c2, 0.0);
  const double t3 = std::log((a * b - c * c) / (4 * std::sqrt(first * second) + kTiny) + kTiny) / 2;
  const double distance = std::clamp(t1 + t2 + t3, kTiny, 100.0);
  return static_cast<float>(1 - std::sqrt(1 - std::exp(-distance) + kTiny));
}

}  // namespace

void BoxesPost::add(Found f) noexcept {
  if (!(f.score >= spec_.score_least) || !(f.w > 0) || !(f.h > 0) || !std::isfinite(f.cx + f.cy + f.w + f.h + f.angle))
    return;
  if (found_count_ < found_.size()) found_[found_count_++] = f;
}

void BoxesPost::gather_yolo8(const ItemTensor& t) noexcept {
  const auto m = static_cast<std::size_t>(t.shape[1]), rows = static_cast<std::size_t>(t.shape[0]);
  const std::size_t classes = rows - 4 - rows_behind();
  for (std::size_t i = 0; i < m; ++i) {
    std::size_t best = 0;
    float score = t.at(4 * m + i);
    for (std::size_t c = 1; c < classes; ++c)
      if (const float v = t.at((4 + c) * m + i); v > score) best = c, score = v;
    if (!(score >= spec_.score_least)) continue;
    add({t.at(i), t.at(m + i), t.at(2 * m + i), t.at(3 * m + i), spec_.angle ? t.at((rows - 1) * m + i) : 0, score,
         static_cast<std::int32_t>(best), 0, static_cast<std::uint32_t>(i)});
  }
}

void BoxesPost::gather_rows(const ItemTensor& t) noexcept {
  const auto n = static_cast<std::size_t>(t.shape[1]);
  std::size_t row = 0;
  const auto take = [&](float stride, float x, float y) {
    const std::size_t at = row++ * n;
    const float object = t.at(at + 4);
    if (!(object >= spec_.score_least)) return;
    const std::size_t scores = at + 5 + 2 * spec_.points;
    std::size_t best = 0;
    for (std::size_t c = 1; c < classes_; ++c)
      if (t.at(scores + c) > t.at(scores + best)) best = c;
    Found f{t.at(at), t.at(at + 1), t.at(at + 2), t.at(at + 3)};
    if (stride > 0) f = {(f.cx + x) * stride, (f.cy + y) * stride, std::exp(f.w) * stride, std::exp(f.h) * stride};
    f.score = object * t.at(scores + best), f.class_id = static_cast<std::int32_t>(best);
    f.source = static_cast<std::uint32_t>(row - 1);
    add(f);
  };
  if (spec_.layout == BoxesLayout::yolo5) {
    while (row < static_cast<std::size_t>(t.shape[0])) take(0, 0, 0);
    return;
  }
  for (const std::uint32_t stride : kStrides)
    for (std::uint32_t y = 0; y < static_cast<std::uint32_t>(height_) / stride; ++y)
      for (std::uint32_t x = 0; x < static_cast<std::uint32_t>(width_) / stride; ++x)
        take(static_cast<float>(stride), static_cast<float>(x), static_cast<float>(y));
}

void BoxesPost::gather_columns(const ItemTensor& t) noexcept {
  const auto n = static_cast<std::size_t>(std::max<std::int64_t>(t.last(), 1));
  const float sx = spec_.unit_one ? width_ : 1, sy = spec_.unit_one ? height_ : 1;
  for (std::size_t row = 0; row < t.count() / n; ++row) {
    float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    bool centred = false;
    Found f;
    for (std::size_t c = 0; c < spec_.columns.size(); ++c) {
      const std::string& name = spec_.columns[c];
      const float v = t.at(row * n + c);
      if (name == "x0")
        x0 = v;
      else if (name == "y0")
        y0 = v;
      else if (name == "x1")
        x1 = v;
      else if (name == "y1")
        y1 = v;
      else if (name == "cx")
        f.cx = v, centred = true;
      else if (name == "cy")
        f.cy = v;
      else if (name == "w")
        f.w = v;
      else if (name == "h")
        f.h = v;
      else if (name == "a")
        f.angle = v;
      else if (name == "s")
        f.score = v;
      else if (name == "c")
        f.class_id = static_cast<std::int32_t>(std::isfinite(v) ? v : 0) - static_cast<std::int32_t>(spec_.first);
    }
    if (!(f.score > 0)) continue;
    f.source = static_cast<std::uint32_t>(row);
    if (!centred) f.cx = (x0 + x1) / 2, f.cy = (y0 + y1) / 2, f.w = x1 - x0, f.h = y1 - y0;
    f.cx *= sx, f.w *= sx, f.cy *= sy, f.h *= sy;
    add(f);
  }
}

void BoxesPost::gather_split(std::span<const ItemTensor> outputs) noexcept {
  const ItemTensor &boxes = outputs[boxes_], &scores = outputs[scores_];
  const auto n = static_cast<std::size_t>(boxes.last());
  std::size_t rows = boxes.count() / n;
  if (scores_ != boxes_) rows = std::min(rows, scores.count());
  if (count_ != UINT32_MAX && outputs[count_].count() > 0)
    rows = std::min(rows, static_cast<std::size_t>(std::max(outputs[count_].at(0), 0.0f)));
  const float sx = spec_.unit_one ? width_ : 1, sy = spec_.unit_one ? height_ : 1;
  for (std::size_t i = 0; i < rows; ++i) {
    float v[4];
    for (std::size_t k = 0; k < 4; ++k) v[k] = boxes.at(i * n + k);
    if (spec_.order == BoxOrder::yxyx) std::swap(v[0], v[1]), std::swap(v[2], v[3]);
    Found f{(v[0] + v[2]) / 2, (v[1] + v[3]) / 2, v[2] - v[0], v[3] - v[1]};
    if (spec_.order == BoxOrder::cxcywh) f = {v[0], v[1], v[2], v[3]};
    f.cx *= sx, f.w *= sx, f.cy *= sy, f.h *= sy;
    f.score = scores_ == boxes_ ? boxes.at(i * n + 4) : scores.at(i);
    if (spec_.act == Activation::sigmoid) f.score = sigmoid(f.score);
    if (labels_ != UINT32_MAX && i < outputs[labels_].count())
      f.class_id = static_cast<std::int32_t>(outputs[labels_].at(i)) - static_cast<std::int32_t>(spec_.first);
    add(f);
  }
}

void BoxesPost::gather_query(std::span<const ItemTensor> outputs) noexcept {
  const ItemTensor &boxes = outputs[boxes_], &scores = outputs[scores_];
  const std::size_t together = boxes_ == scores_ ? 4 : 0,
                    width = together == 0 ? 4 : static_cast<std::size_t>(boxes.last());
  const auto all = static_cast<std::size_t>(scores.last()), classes = all - together;
  const float sx = spec_.unit_one ? width_ : 1, sy = spec_.unit_one ? height_ : 1;
  for (std::size_t i = 0; i < boxes.count() / width && i < scores.count() / all; ++i) {
    const std::size_t at = i * all + together, used = spec_.act == Activation::softmax ? classes - 1 : classes;
    float sum = 0, most = scores.at(at);
    std::size_t best = spec_.first;
    for (std::size_t c = 0; c < classes; ++c) {
      most = std::max(most, scores.at(at + c));
      if (c >= spec_.first && c < used && scores.at(at + c) > scores.at(at + best)) best = c;
    }
    float score = scores.at(at + best);
    if (spec_.act == Activation::softmax) {
      for (std::size_t c = 0; c < classes; ++c) sum += std::exp(scores.at(at + c) - most);
      score = std::exp(score - most) / sum;
    } else if (spec_.act == Activation::sigmoid) {
      score = sigmoid(score);
    }
    float v[4];
    for (std::size_t k = 0; k < 4; ++k) v[k] = boxes.at(width * i + k);
    Found f{v[0] * sx, v[1] * sy, v[2] * sx, v[3] * sy};
    if (spec_.order == BoxOrder::xyxy)
      f = {(v[0] + v[2]) / 2 * sx, (v[1] + v[3]) / 2 * sy, (v[2] - v[0]) * sx, (v[3] - v[1]) * sy};
    f.score = score, f.class_id = static_cast<std::int32_t>(best) - static_cast<std::int32_t>(spec_.first);
    add(f);
  }
}

void BoxesPost::gather_levels(std::span<const ItemTensor> outputs) noexcept {
  for (std::uint32_t l = 0; l < levels_.size(); ++l) {
    const Level& level = levels_[l];
    const auto stride = static_cast<float>(level.stride);
    const std::size_t rows = outputs[level.scores].count();
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t cell = i / level.anchors;
      const float x = static_cast<float>(cell % level.columns), y = static_cast<float>(cell / level.columns);
      Found f;
      f.score = outputs[level.scores].at(i);
      if (yunet_)
        f.score = std::sqrt(std::clamp(f.score, 0.0f, 1.0f) * std::clamp(outputs[level.objects].at(i), 0.0f, 1.0f));
      if (!(f.score >= spec_.score_least)) continue;
      const ItemTensor& b = outputs[level.boxes];
      const float v[4] = {b.at(4 * i), b.at(4 * i + 1), b.at(4 * i + 2), b.at(4 * i + 3)};
      if (yunet_) {
        f.cx = (x + v[0]) * stride, f.cy = (y + v[1]) * stride, f.w = std::exp(v[2]) * stride,
        f.h = std::exp(v[3]) * stride;
      } else {
        f.cx = (x + (v[2] - v[0]) / 2) * stride, f.cy = (y + (v[3] - v[1]) / 2) * stride;
        f.w = (v[0] + v[2]) * stride, f.h = (v[1] + v[3]) * stride;
      }
      f.output = l, f.source = static_cast<std::uint32_t>(i);
      add(f);
    }
  }
}

void BoxesPost::gather_priors(std::span<const ItemTensor> outputs) noexcept {
  priors_->for_each(outputs, width_, height_, [&](const Priors::Prior& p) {
    const std::size_t classes = priors_->classes();
    std::size_t best = spec_.first;
    float score = priors_->score(outputs, p, best), most = score;
    for (std::size_t c = 0; c < classes; ++c) {
      const float v = priors_->score(outputs, p, c);
      most = std::max(most, v);
      if (c > spec_.first && v > score) best = c, score = v;
    }
    if (spec_.act == Activation::sigmoid) {
      score = sigmoid(score);
    } else if (spec_.act == Activation::softmax) {
      float sum = 0;
      for (std::size_t c = 0; c < classes; ++c) sum += std::exp(priors_->score(outputs, p, c) - most);
      score = std::exp(score - most) / sum;
    }
    if (!(score >= spec_.score_least)) return;
    const Priors::Box b = priors_->box(outputs, p);
    add({b.cx, b.cy, b.w, b.h, 0, score, static_cast<std::int32_t>(best) - static_cast<std::int32_t>(spec_.first),
         p.level, p.row});
  });
}

float BoxesPost::behind(const ItemTensor& t, const Found& f, std::size_t from_end) const noexcept {
  if (spec_.layout == BoxesLayout::columns) {
    const std::size_t first = spec_.columns.size() + 3 * spec_.points + masks_->coefficients() - from_end;
    return t.at(f.source * static_cast<std::size_t>(t.last()) + first);
  }
  const auto rows = static_cast<std::size_t>(t.shape[0]), columns = static_cast<std::size_t>(t.shape[1]);
  if (spec_.layout == BoxesLayout::yolo5) return t.at((f.source + std::size_t{1}) * columns - from_end);
  return t.at((rows - from_end) * columns + f.source);
}

leat_keypoint BoxesPost::point(std::span<const ItemTensor> outputs, const Found& f, std::uint32_t p) const noexcept {
  if (spec_.layout == BoxesLayout::yolo8) {
    const ItemTensor& t = outputs[0];
    const auto m = static_cast<std::size_t>(t.shape[1]);
    const std::size_t row = static_cast<std::size_t>(t.shape[0]) - 3 * spec_.points + 3 * p;
    return {t.at(row * m + f.source), t.at((row + 1) * m + f.source), t.at((row + 2) * m + f.source)};
  }
  if (spec_.layout == BoxesLayout::columns) {
    const ItemTensor& t = outputs[0];
    const float sx = spec_.unit_one ? width_ : 1, sy = spec_.unit_one ? height_ : 1;
    const std::size_t at = f.source * static_cast<std::size_t>(t.last()) + spec_.columns.size() + 3 * p;
    return {t.at(at) * sx, t.at(at + 1) * sy, t.at(at + 2)};
  }
  if (spec_.layout == BoxesLayout::yolo5) {
    const std::size_t at = f.source * static_cast<std::size_t>(outputs[0].shape[1]) + 5 + 2 * std::size_t{p};
    return {outputs[0].at(at), outputs[0].at(at + 1), f.score};
  }
  if (spec_.layout == BoxesLayout::priors)
    return priors_->point(outputs, priors_->prior(f.output, f.source, width_, height_), p, f.score);
  if (spec_.layout != BoxesLayout::levels) return {};
  const Level& level = levels_[f.output];
  const ItemTensor& t = outputs[level.points];
  const std::size_t cell = f.source / level.anchors, at = (std::size_t{f.source} * spec_.points + p) * 2;
  const auto stride = static_cast<float>(level.stride);
  return {(static_cast<float>(cell % level.columns) + t.at(at)) * stride,
          (static_cast<float>(cell / level.columns) + t.at(at + 1)) * stride, f.score};
}

void BoxesPost::gather(std::span<const ItemTensor> outputs) noexcept {
  found_count_ = 0;
  switch (spec_.layout) {
    case BoxesLayout::yolo8:
      return gather_yolo8(outputs[0]);
    case BoxesLayout::yolo5:
    case BoxesLayout::yolox:
      return gather_rows(outputs[0]);
    case BoxesLayout::columns:
      return gather_columns(outputs[0]);
    case BoxesLayout::split:
      return gather_split(outputs);
    case BoxesLayout::query:
      return gather_query(outputs);
    case BoxesLayout::levels:
      return gather_levels(outputs);
    case BoxesLayout::dfl:
      return gather_dfl(outputs);
    case BoxesLayout::priors:
      return gather_priors(outputs);
  }
}

void BoxesPost::suppress() noexcept {
  const auto end = found_.begin() + static_cast<std::ptrdiff_t>(found_count_);
  std::sort(found_.begin(), end, [](const Found& a, const Found& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.output != b.output ? a.output < b.output : a.source < b.source;
  });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < found_count_ && kept < 4 * LEAT_MAX_DETECTIONS; ++i) {
    const Found f = found_[i];
    const bool hidden =
        spec_.overlap_most < 1 &&
        std::any_of(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(kept), [&](const Found& k) {
          return k.class_id == f.class_id &&
                 (spec_.angle ? gaussian_overlap(k, f) : upright_overlap(k, f)) > spec_.overlap_most;
        });
    if (!hidden) found_[kept++] = f;
  }
  found_count_ = kept;
}

std::uint32_t BoxesPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  const Placement& p = target.placement;
  if (p.input_width > 0) width_ = p.input_width, height_ = p.input_height;  // where it varies, this item's
  gather(outputs);
  suppress();
  const float w = static_cast<float>(target.frame.width), h = static_cast<float>(target.frame.height);
  leat_part* const oriented = spec_.angle && target.parts != nullptr ? target.parts : nullptr;
  leat_part* const points =
      spec_.points != 0 && target.parts != nullptr ? target.parts + (spec_.angle ? 1 : 0) : nullptr;
  leat_part* const masks = masks_ && target.parts != nullptr ? target.parts + parts_.size() - 1 : nullptr;
  if (masks != nullptr) masks_->begin(target, *masks);
  std::uint32_t kept = 0, left_out = 0;
  for (std::size_t i = 0; i < found_count_; ++i) {
    const Found& f = found_[i];
    // A turned box is known by the upright one around it.
    const float cosine = std::abs(std::cos(f.angle)), sine = std::abs(std::sin(f.angle));
    const float half_w = (f.w * cosine + f.h * sine) / 2, half_h = (f.w * sine + f.h * cosine) / 2;
    leat_detection d{};
    d.x0 = std::max(p.offset_x + p.scale_x * (f.cx - half_w), 0.0f),
    d.x1 = std::min(p.offset_x + p.scale_x * (f.cx + half_w), w);
    d.y0 = std::max(p.offset_y + p.scale_y * (f.cy - half_h), 0.0f),
    d.y1 = std::min(p.offset_y + p.scale_y * (f.cy + half_h), h);
    if (!(d.x1 > d.x0) || !(d.y1 > d.y0)) continue;
    if (kept == LEAT_MAX_DETECTIONS) {
      ++left_out;
      continue;
    }
    d.score = std::min(f.score, 1.0f), d.class_id = f.class_id;
    target.result->detections[kept] = d;
    if (oriented != nullptr) {
      const leat_oriented_box o{p.offset_x + p.scale_x * f.cx,
                                p.offset_y + p.scale_y * f.cy,
                                p.scale_x * f.w,
                                p.scale_y * f.h,
                                f.angle,
                                d.score,
                                f.class_id,
                                0};
      reinterpret_cast<leat_oriented_box*>(place_of(target.result, *oriented, parts_[0], 0).array)[kept] = o;
    }
    for (std::uint32_t k = 0; points != nullptr && k < spec_.points; ++k) {
      leat_keypoint q = point(outputs, f, k);
      q.x = p.offset_x + p.scale_x * q.x, q.y = p.offset_y + p.scale_y * q.y;
      reinterpret_cast<leat_keypoint*>(
          place_of(target.result, *points, parts_[spec_.angle ? 1 : 0], 0).array)[kept * spec_.points + k] = q;
    }
    if (masks != nullptr) {
      const Box box{(d.x0 - p.offset_x) / p.scale_x, (d.y0 - p.offset_y) / p.scale_y, (d.x1 - p.offset_x) / p.scale_x,
                    (d.y1 - p.offset_y) / p.scale_y};
      const std::size_t k = masks_->coefficients();
      masks_->add(outputs, box, width_, height_, [&](std::size_t n) { return behind(outputs[0], f, k - n); });
    }
    ++kept;
  }
  if (masks != nullptr) masks_->end();
  target.result->kind = LEAT_RESULT_DETECTIONS;
  target.result->detection_count = kept, target.result->detections_left_out = left_out;
  if (oriented != nullptr) wrote(*oriented, kept, kept * sizeof(leat_oriented_box));
  if (points != nullptr) wrote(*points, kept, std::uint64_t{kept} * spec_.points * sizeof(leat_keypoint));
  return kept;
}

}  // namespace leat::exec
