// The sheet that a picture is drawn on: the picture, so large that text on it can be read, and where it is small beside
// or below it room for what is said of the whole of it, so that nothing covers a small picture. A sheet's size follows
// from the picture's alone: a video has one size whatever is found in it. Pure.
#pragma once

#include "tools/leat/draw/canvas/geometry.h"

namespace leat::tools::draw {

struct Sheet {
  Size size;     // that of a picture that is not small, else even
  Rect picture;  // where the picture lies
  Rect notes;    // where the banner and the panel go: the picture itself, or the room beside it
  bool beside = false;
  [[nodiscard]] View view(Size frame) const noexcept {
    return {frame.width > 0 ? picture.width() / frame.width : 1, frame.height > 0 ? picture.height() / frame.height : 1,
            picture.x0, picture.y0};
  }
};

[[nodiscard]] Sheet sheet_of(Size frame);
// The picture alone, as large as fits into `most`: a tile of a grid.
[[nodiscard]] Sheet tile_of(Size frame, Size max);

}  // namespace leat::tools::draw
