// The unseen frames that the accuracy of the application `shapes` is held on, and its modules as shapes.toml has them.
// The seed is used nowhere else; tools/models/train.py's are others.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tools/scene/scene.h"

namespace leat::tests {

inline constexpr std::uint64_t kUnseenSeed = 90210;
inline constexpr std::uint32_t kUnseenCameras = 20, kFramesEach = 25, kWidth = 1280, kHeight = 720;
inline constexpr std::uint32_t kUnseenFrames = kUnseenCameras * kFramesEach;

// Calls `use` with every unseen frame as tight NV12 (Y, then interleaved UV) and its ground truth.
inline void for_unseen_frames(
    std::uint64_t step,
    const std::function<void(std::span<const std::uint8_t> nv12, const std::vector<scene::Object>& truth)>& use) {
  for (std::uint32_t camera = 0; camera < kUnseenCameras; ++camera) {
    scene::Scene scene({.seed = kUnseenSeed, .camera = camera, .width = kWidth, .height = kHeight});
    std::vector<std::uint8_t> rgb(scene.rgb_bytes()), nv12(scene.nv12_bytes());
    for (std::uint32_t i = 0; i < kFramesEach; ++i) {
      const auto& truth = scene.render(i * step, rgb.data(), std::size_t{3} * kWidth);
      scene::to_nv12(rgb.data(), std::size_t{3} * kWidth, kWidth, kHeight, nv12.data());
      use(nv12, truth);
    }
  }
}

}  // namespace leat::tests
