// For tests: a generated video (motion.h) frame by frame, with the boxes of what is at least half visible.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "leat/tracking.hpp"
#include "tools/scene/tracking/motion.h"

namespace leat::scene {

struct Video {
  explicit Video(std::string_view name) : scene(*motion_kind(name), {.seed = 5}), pixels(320 * 180) {}
  std::vector<TrackedBox> frame(std::uint64_t index) {
    std::vector<TrackedBox> out;
    for (const MovingObject& o : scene.render(index, pixels.data(), 320))
      if (o.visible >= 0.5f) out.push_back({o.x0, o.y0, o.x1, o.y1, o.id});
    return out;
  }
  [[nodiscard]] GreyFrame grey() const { return {pixels.data(), 320, 180, 320}; }
  MotionScene scene;
  std::vector<std::uint8_t> pixels;
};

}  // namespace leat::scene
