// A frame as pre-processing and raw executors see it: pixels in a client's slot, mapped read-only.
//
// The geometry (format, size, strides, bytes) is the daemon's own record and trusted; the pixels are hostile: the
// client may rewrite them while we read. They are only ever data, never an index or a length, so a race costs that
// frame its result and nothing else. Plain data; any thread.
#pragma once

#include <cstdint>

#include "leat/frame_format.h"
#include "leat/tensor_types.h"
#include "shm/src/protocol/color.h"

namespace leat::exec {

struct FrameView {
  const std::uint8_t* planes[LEAT_MAX_PLANES] = {};  // planes[0] is the first byte of the slot
  std::uint32_t strides[LEAT_MAX_PLANES] = {};       // bytes from row to row
  std::uint32_t format = 0;                          // leat_format
  std::uint32_t width = 0, height = 0;               // pixels
  shm::Color color;                                  // of nv12, i420 and gray8; unspecified: the default rule
  std::uint64_t bytes = 0;                           // from planes[0]: all planes and their padding
  const leat_tensor_shape* tensors = nullptr;        // format tensors: their shapes; the pool's
  std::uint32_t tensor_count = 0;
  bool on_device = false;  // the planes are in the memory of the module's device: a decoded picture
};

}  // namespace leat::exec
