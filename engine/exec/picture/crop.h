// What one item shows of its frame: the frame itself, a detection's box, a detection's four corners, or a face known by
// five points. What an earlier module found is read from the result slot, which no client can write.
//
// preprocess words that belong here:
//   quad          behind a module that finds turned boxes (a part `oriented`, as `lines` and extra=angle give): the
//                 turned rectangle, made upright; a quarter turn counter-clockwise where it is taller than 1.5 times
//                 its width, as PP-OCR reads columns. Without such a part, the box's corners
//   flip, flip=S  behind a module that says whether what it sees is upside down (its class 1): half a turn where its
//                 score for that is above S, by default .9, PP-OCR's own least score: one that is unsure turns nothing
//   align=face5   behind a module that finds eyes, nose and corners of the mouth (a part `keypoints` of five): the
//                 similarity that takes them to where faces of 112 x 112 pixels have them (Deng, Guo, Xue and
//                 Zafeiriou, "ArcFace", 2019; the published code's template)
#pragma once

#include <array>
#include <cstdint>

#include "engine/exec/frame_view.h"
#include "engine/exec/picture/box.h"
#include "engine/exec/picture/geometry.h"
#include "engine/exec/picture/sizes.h"
#include "leat/result_types.h"

namespace leat::exec {

inline constexpr float kFlipScore = 0.9f;

struct CropSpec {
  bool quad = false, face = false;
  float flip = 2;  // above 1: never
  [[nodiscard]] bool projected() const noexcept { return quad || face; }
};

struct Region {
  bool whole = true;  // the frame; else box
  Box box;
  bool projected = false;  // read through to_frame from a picture of these sides, instead of box
  float width = 0, height = 0;
  Projection to_frame;
  Piece piece;  // what is shown of it
  // Its corners in the frame, from the picture's top left on.
  [[nodiscard]] Quad corners() const noexcept;
};

// Detection `detection` of a result, or the frame where that is below 0. False: there is none such, or nothing of what
// the spec needs was found for it. slot_bytes: of the result's slot, for who does not trust those that write it.
bool region_of(const leat_result* result, std::int32_t detection, const CropSpec& spec, Region* out,
               std::uint64_t slot_bytes = UINT64_MAX) noexcept;

}  // namespace leat::exec
