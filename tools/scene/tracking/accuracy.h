// How right a run's answers were, against a scene's ground truth.
//
// Matching, per frame, in order of falling score: a detection takes the not yet taken counting object with which its
// intersection over union is largest, if that is at least 0.5: right. Otherwise, if at least half of its area lies in
// an object that does not count (Object::ignore): neither right nor wrong. Otherwise: wrong. Every counting object not
// taken is missed. Average precision: area under the precision-recall curve, precision made monotone from the right,
// every point used.
//   detection_ap50: all objects are one class.
//   map50: the mean over the shapes that occur of the average precision of each, where a detection's class is the shape
//   it
//          was labelled with, matched among objects of that shape; an unlabelled detection is of no class, so its
//          object is missed.
//   classification: of the detections right by the first matching, the share labelled with the right shape and the
//   right colour.
// Thread rule: one thread. Errors: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "leat/result_types.h"
#include "tools/scene/scene.h"

namespace leat::scene {

struct Found {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // frame pixels
  float score = 0;
  std::int32_t shape = -1, colour = -1;  // -1: not labelled
};

struct Accuracy {
  double map50 = 0, detection_ap50 = 0, classification = 0;       // 0..1
  std::uint64_t frames = 0, objects = 0, found = 0, matched = 0;  // objects: those that count
};

inline constexpr std::uint32_t kShapeHead = 0, kColourHead = 1;  // of application `shapes`

class AccuracyMeter {
 public:
  void add(std::span<const Object> truth, std::span<const Found> found);
  void add(std::span<const Object> truth, const leat_result& result);  // labels of heads kShapeHead and kColourHead
  [[nodiscard]] Accuracy accuracy() const;

 private:
  struct Scored {
    float score;
    bool right;
  };
  static double average_precision(std::vector<Scored> scored, std::uint64_t objects);
  std::vector<Scored> any_;
  std::vector<Scored> by_shape_[kShapes.size()];
  std::uint64_t objects_by_shape_[kShapes.size()] = {};
  std::uint64_t frames_ = 0, found_ = 0, matched_ = 0, labelled_right_ = 0;
};

}  // namespace leat::scene
