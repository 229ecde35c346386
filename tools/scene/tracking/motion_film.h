// The videos that trackers are measured on (motion.h) as pictures in colour with the street's ground truth (scene.h),
// for leat-scene: their ellipses are circles of the street, rim and all, so that what finds those finds them.
// Deterministic; any frame alone. Thread rule: one thread. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/scene/scene.h"
#include "tools/scene/tracking/motion.h"

namespace leat::scene {

class MotionFilm {
 public:
  // Camera 0 is the video that studies of the same seed use.
  MotionFilm(const MotionKind& kind, const SceneOptions& options);
  // As Scene::render.
  const std::vector<Object>& render(std::uint64_t index, std::uint8_t* rgb, std::size_t stride);
  [[nodiscard]] const SceneOptions& options() const { return options_; }

 private:
  SceneOptions options_;
  MotionScene scene_;
  std::vector<std::uint8_t> grey_;
  std::vector<Object> objects_;
};

}  // namespace leat::scene
