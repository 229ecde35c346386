#include "tools/leat/draw/canvas/palette.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace leat::tools::draw {
namespace {

// Ordered so that the first few lie far apart in lightness too.
constexpr Colour kHues[] = {{230, 159, 0}, {86, 180, 233},  {0, 158, 115}, {240, 228, 66},
                            {213, 94, 0},  {204, 121, 167}, {0, 114, 178}};

struct Named {
  std::string_view name;
  Colour colour;
};
constexpr Named kNamed[] = {{"red", {235, 70, 60}},     {"green", {60, 190, 80}},    {"blue", {80, 120, 245}},
                            {"yellow", {240, 220, 60}}, {"magenta", {230, 80, 225}}, {"cyan", {60, 215, 225}},
                            {"orange", {240, 150, 40}}, {"white", {245, 245, 245}},  {"black", {40, 40, 44}},
                            {"grey", {150, 152, 156}},  {"gray", {150, 152, 156}}};

double linear(std::uint8_t v) {
  const double s = v / 255.0;
  return s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4);
}

}  // namespace

Colour colour_of_class(std::int32_t id, std::string_view name) noexcept {
  for (const Named& n : kNamed)
    if (n.name == name) return n.colour;
  const auto index = static_cast<std::uint32_t>(std::max(id, 0));
  const Colour hue = kHues[index % std::size(kHues)];
  const std::size_t round = index / std::size(kHues) % 3;
  return round == 0 ? hue : colour_of(blend(pixel_of(hue), round == 1 ? kWhite : Colour{0, 0, 0}, 0.4));
}

bool is_colour(std::string_view name) noexcept {
  return std::any_of(std::begin(kNamed), std::end(kNamed), [&](const Named& n) { return n.name == name; });
}

double luminance(Colour c) noexcept { return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b); }

double contrast(Colour a, Colour b) noexcept {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

Colour ink_on(Colour ground) noexcept { return contrast(ground, kInk) >= contrast(ground, kWhite) ? kInk : kWhite; }

}  // namespace leat::tools::draw
