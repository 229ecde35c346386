// The still picture behind a scene's objects: sky, houses with windows, trees, road with marks, grain. Its colours are
// muted, so that hue and saturation tell an object from it and nothing else does. Private to tools/scene.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/scene/random.h"

namespace leat::scene {

// RGB24, tight rows.
std::vector<std::uint8_t> paint_background(std::uint32_t width, std::uint32_t height, Random random);

}  // namespace leat::scene
