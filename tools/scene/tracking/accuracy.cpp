#include "tools/scene/tracking/accuracy.h"

#include <algorithm>
#include <numeric>

#include "engine/exec/picture/box.h"

namespace leat::scene {
namespace {

constexpr float kIouMin = 0.5f;
constexpr int kWrong = -1, kNeither = -2;

// For every detection (in falling order of score) the index of the object it takes, kWrong or kNeither.
std::vector<int> match(std::span<const Object> truth, std::span<const Found* const> found, std::int32_t shape) {
  std::vector<bool> taken(truth.size());
  std::vector<int> out;
  for (const Found* f : found) {
    int best = kWrong;
    float best_iou = kIouMin;
    bool forgiven = false;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      if (truth[i].ignore) {
        const float all = exec::area(*f);
        forgiven = forgiven || (all > 0 && exec::intersection(*f, truth[i]) >= kIouMin * all);
        continue;
      }
      if (taken[i] || (shape >= 0 && truth[i].shape != shape)) continue;
      const float iou = exec::iou(*f, truth[i]);
      if (iou >= best_iou) best_iou = iou, best = static_cast<int>(i);
    }
    if (best >= 0) taken[static_cast<std::size_t>(best)] = true;
    out.push_back(best >= 0 ? best : forgiven ? kNeither : kWrong);
  }
  return out;
}

}  // namespace

void AccuracyMeter::add(std::span<const Object> truth, std::span<const Found> found) {
  ++frames_;
  std::vector<const Found*> order(found.size());
  std::transform(found.begin(), found.end(), order.begin(), [](const Found& f) { return &f; });
  std::stable_sort(order.begin(), order.end(), [](const Found* a, const Found* b) { return a->score > b->score; });
  found_ += found.size();
  for (const Object& o : truth) objects_by_shape_[static_cast<std::size_t>(o.shape)] += !o.ignore;
  const auto any = match(truth, order, -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (any[i] == kNeither) continue;
    any_.push_back({order[i]->score, any[i] >= 0});
    if (any[i] < 0) continue;
    const Object& o = truth[static_cast<std::size_t>(any[i])];
    ++matched_;
    labelled_right_ += order[i]->shape == o.shape && order[i]->colour == o.colour;
  }
  for (std::size_t shape = 0; shape < kShapes.size(); ++shape) {
    std::vector<const Found*> mine;
    std::copy_if(order.begin(), order.end(), std::back_inserter(mine),
                 [&](const Found* f) { return f->shape == static_cast<std::int32_t>(shape); });
    const auto matches = match(truth, mine, static_cast<std::int32_t>(shape));
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (matches[i] != kNeither) by_shape_[shape].push_back({mine[i]->score, matches[i] >= 0});
    }
  }
}

void AccuracyMeter::add(std::span<const Object> truth, const leat_result& result) {
  std::vector<Found> found;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(result.detection_count, LEAT_MAX_DETECTIONS); ++i) {
    const leat_detection& d = result.detections[i];
    Found f{d.x0, d.y0, d.x1, d.y1, d.score, -1, -1};
    for (std::uint32_t k = 0; k < std::min<std::uint32_t>(d.label_count, LEAT_MAX_LABELS); ++k) {
      if (d.labels[k].head == kShapeHead) f.shape = d.labels[k].class_id;
      if (d.labels[k].head == kColourHead) f.colour = d.labels[k].class_id;
    }
    found.push_back(f);
  }
  add(truth, found);
}

double AccuracyMeter::average_precision(std::vector<Scored> scored, std::uint64_t objects) {
  if (objects == 0) return 0;
  std::stable_sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) { return a.score > b.score; });
  std::vector<double> precision;
  double right = 0;
  for (std::size_t i = 0; i < scored.size(); ++i) {
    right += scored[i].right;
    precision.push_back(right / static_cast<double>(i + 1));
  }
  for (std::size_t i = precision.size(); i-- > 1;) precision[i - 1] = std::max(precision[i - 1], precision[i]);
  double area = 0;
  for (std::size_t i = 0; i < scored.size(); ++i) area += scored[i].right ? precision[i] : 0;
  return area / static_cast<double>(objects);
}

Accuracy AccuracyMeter::accuracy() const {
  Accuracy out;
  out.frames = frames_, out.found = found_, out.matched = matched_;
  out.objects = std::accumulate(std::begin(objects_by_shape_), std::end(objects_by_shape_), std::uint64_t{0});
  out.detection_ap50 = average_precision(any_, out.objects);
  out.classification = matched_ > 0 ? static_cast<double>(labelled_right_) / static_cast<double>(matched_) : 0;
  double sum = 0;
  int shapes = 0;
  for (std::size_t shape = 0; shape < kShapes.size(); ++shape) {
    if (objects_by_shape_[shape] == 0) continue;
    sum += average_precision(by_shape_[shape], objects_by_shape_[shape]);
    ++shapes;
  }
  out.map50 = shapes > 0 ? sum / shapes : 0;
  return out;
}

}  // namespace leat::scene
