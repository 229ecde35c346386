#include "tools/leat/draw/canvas/ramp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace leat::tools::draw {
namespace {

constexpr double kDarkest = 0.26, kLightest = 0.93;

struct Control {
  double at, hue, chroma;  // 0..1, degrees, Oklab's
};
constexpr Control kControls[] = {{0.00, 305, 0.14}, {0.22, 282, 0.15}, {0.42, 238, 0.12},
                                 {0.60, 185, 0.12}, {0.80, 145, 0.18}, {1.00, 106, 0.19}};

std::array<double, 3> linear_of(double lightness, double chroma, double degrees) {
  const double h = degrees * std::acos(-1.0) / 180, a = chroma * std::cos(h), b = chroma * std::sin(h);
  const auto cube = [](double v) { return v * v * v; };
  const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b),
               m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b),
               s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

bool within(const std::array<double, 3>& c) {
  return std::all_of(c.begin(), c.end(), [](double v) { return v >= 0 && v <= 1; });
}

std::uint8_t byte_of(double linear) {
  const double s = linear <= 0.0031308 ? 12.92 * linear : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(255 * std::clamp(s, 0.0, 1.0)));
}

Colour computed(double t) {
  const auto* next =
      std::find_if(std::begin(kControls), std::end(kControls) - 1, [t](const Control& c) { return c.at >= t; });
  const Control& b = *next;
  const Control& a = next == std::begin(kControls) ? b : *(next - 1);
  const double part = b.at > a.at ? (t - a.at) / (b.at - a.at) : 0;
  const double hue = a.hue + part * (b.hue - a.hue), lightness = kDarkest + t * (kLightest - kDarkest);
  double chroma = a.chroma + part * (b.chroma - a.chroma);
  auto c = linear_of(lightness, chroma, hue);
  while (!within(c) && chroma > 0) c = linear_of(lightness, chroma -= 0.002, hue);
  return {byte_of(c[0]), byte_of(c[1]), byte_of(c[2])};
}

}  // namespace

Colour ramp(double t) noexcept {
  static const std::array<Colour, 256> table = [] {
    std::array<Colour, 256> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = computed(static_cast<double>(i) / 255);
    return out;
  }();
  return table[t == t ? static_cast<std::size_t>(std::lround(255 * std::clamp(t, 0.0, 1.0))) : 0];
}

}  // namespace leat::tools::draw
