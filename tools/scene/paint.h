// What objects of both kinds of scene look like: saturated colours, and a dark rim.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace leat::scene {

inline constexpr double kInner = 0.86;  // the part of an object inside its dark rim
inline constexpr double kRimLight = 0.55;

struct Rgb {  // 0..255
  double r, g, b;
};
// colour: index into kColours; hue_shift in degrees; the others 0..1.
inline Rgb rgb_of(std::int32_t colour, double hue_shift, double saturation, double value) {
  constexpr double kHues[] = {0, 120, 225, 55, 305, 180};
  const double h = std::fmod(kHues[colour] + hue_shift + 360, 360) / 60, c = value * saturation, m = value - c;
  const double x = c * (1 - std::abs(std::fmod(h, 2) - 1));
  const Rgb sextants[] = {{c, x, 0}, {x, c, 0}, {0, c, x}, {0, x, c}, {x, 0, c}, {c, 0, x}};
  const Rgb s = sextants[static_cast<int>(h) % 6];
  return {255 * (s.r + m), 255 * (s.g + m), 255 * (s.b + m)};
}

inline std::uint8_t byte(double v) { return static_cast<std::uint8_t>(std::clamp(v, 0.0, 255.0)); }

}  // namespace leat::scene
