// Colours of values from least to most (depth, heat): from dark violet over blue and green to yellow, equally many
// steps of lightness for equal steps of the value, so that the eye, a grey printer and every colour vision see the same
// order.
//   Lightness, hue and chroma are joined through control points in Oklab (B. Ottosson, "A perceptual color space for
//   image processing", 2020), lightness by one straight line; chroma gives way where sRGB ends.
// Pure functions.
#pragma once

#include "tools/leat/draw/canvas/picture.h"

namespace leat::tools::draw {

// t: 0..1, clamped; no number: 0.
[[nodiscard]] Colour ramp(double t) noexcept;

}  // namespace leat::tools::draw
