// Reads a picture through a projection: bilinear between the four pixels (each plane's own) round the point that a
// target pixel's centre is taken to, the frame's edge repeated outside of it. The slow, general way beside resample.h's
// rows, for crops that are turned. Plain functions on plain data; any thread; no allocation.
#pragma once

#include <cstdint>

#include "engine/exec/frame_view.h"
#include "engine/exec/picture/geometry.h"
#include "engine/exec/picture/resample.h"

namespace leat::exec {

struct WarpJob {
  const FrameView* frame = nullptr;                // without a problem (problem_of)
  Projection to_frame;                             // from the source picture
  float x0 = 0, y0 = 0, scale_x = 1, scale_y = 1;  // target pixel (i, j) is at x0 + (i + .5) scale_x of the source
  const Colour* colour = nullptr;
  std::uint32_t channels = 3, width = 0, height = 0;  // of the target
  float* out[3] = {};                                 // first pixel of each plane
  std::uint32_t stride = 0;                           // values from row to row
};

void warp(const WarpJob& job) noexcept;

}  // namespace leat::exec
