#include "engine/exec/picture/sizes.h"

#include <algorithm>
#include <cmath>

namespace leat::exec {
namespace {

std::uint32_t rounded(float side, std::uint32_t multiple, bool up, std::uint32_t max) noexcept {
  const auto m = static_cast<float>(multiple);
  const float steps = up ? std::ceil(side / m - 1e-4f) : std::nearbyint(side / m);
  const std::uint32_t max_steps = std::max(max / multiple, 1u);
  return static_cast<std::uint32_t>(std::clamp(steps, 1.0f, static_cast<float>(max_steps))) * multiple;
}

}  // namespace

Size SizeRule::size_of(float width, float height_of_picture, std::uint32_t* content) const noexcept {
  if (!(width > 0) || !(height_of_picture > 0) || !std::isfinite(width) || !std::isfinite(height_of_picture)) return {};
  if (height != 0) {
    const std::uint32_t max = largest().width;
    const float exact = std::ceil(static_cast<float>(height) * width / height_of_picture - 1e-3f);
    const auto filled = static_cast<std::uint32_t>(std::clamp(exact, 1.0f, static_cast<float>(max)));
    if (content != nullptr) *content = filled;
    if (widths.empty()) return {rounded(static_cast<float>(filled), multiple, true, longest), height};
    return {*std::find_if(widths.begin(), widths.end() - 1, [&](std::uint32_t w) { return w >= filled; }), height};
  }
  float scale = 1;
  const float low = std::min(width, height_of_picture), high = std::max(width, height_of_picture);
  if (edge != 0) {
    scale = std::min(static_cast<float>(edge) / low, static_cast<float>(longest) / high);
    const std::uint32_t less = rounded(scale * low, multiple, false, longest),
                        more = rounded(std::floor(scale * high + 1e-3f), multiple, false, longest);
    return width < height_of_picture ? Size{less, more} : Size{more, less};
  }
  if (shortest != 0 && low < static_cast<float>(shortest)) scale = static_cast<float>(shortest) / low;
  if (scale * high > static_cast<float>(longest)) scale = static_cast<float>(longest) / high;
  return {rounded(scale * width, multiple, !fill, longest),
          rounded(scale * height_of_picture, multiple, !fill, longest)};
}

// Pieces begin at the same columns whatever a picture's width, so that a model that answers for every few columns has
// its steps at the same places in two pieces that overlap.
Pieces SizeRule::pieces_of(float width, float height_of_picture) const noexcept {
  Pieces out;
  const auto widest = static_cast<float>(largest().width);
  float columns = static_cast<float>(height) * width / height_of_picture;
  if (height == 0 || !(width > 0) || !(height_of_picture > 0) || !std::isfinite(columns)) return out;
  if (columns <= widest + 1e-3f) return out;
  if (wide == Wide::start) {
    out.width = widest / columns;
    return out;
  }
  const std::uint32_t max = wide == Wide::split ? kMaxPieces : 1;
  const float step = widest - static_cast<float>(std::min(2 * height, largest().width / 2)),
              room = widest + static_cast<float>(max - 1) * step;
  if (columns > room + 1e-3f) {
    out.squeezed = static_cast<std::uint32_t>(std::min(std::ceil(columns), 4e9f));
    columns = room;
  }
  if (max == 1) return out;
  out.count = std::min(max, 1 + static_cast<std::uint32_t>(std::ceil((columns - widest - 1e-3f) / step)));
  out.width = widest / columns, out.step = step / columns, out.step_columns = step;
  return out;
}

Piece Pieces::at(std::uint32_t index) const noexcept {
  const auto i = static_cast<float>(index);
  const float from = i * step;
  return {.index = index,
          .count = count,
          .from = from,
          .to = count > 1 && index + 1 == count ? 1 : std::min(from + width, 1.0f),
          .start = i * step_columns};
}

Size SizeRule::largest() const noexcept {
  if (!widths.empty()) return {widths.back(), height};
  const std::uint32_t side = std::max(longest / multiple, 1u) * multiple;
  return {side, height != 0 ? height : side};
}

std::vector<Size> SizeRule::sizes() const {
  std::vector<Size> out;
  const Size max = largest();
  if (!widths.empty()) {
    for (const std::uint32_t w : widths) out.push_back({w, height});
  } else if (height != 0) {
    for (const std::uint32_t part : {8u, 4u, 2u, 1u})
      out.push_back({rounded(static_cast<float>(max.width / part), multiple, true, longest), height});
  } else {
    for (const float part : {0.25f, 0.5f, 0.5625f, 0.75f, 1.0f})
      out.push_back({max.width, rounded(part * static_cast<float>(max.width), multiple, true, longest)});
  }
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

SizeRule parse_sizes(SpecLine& words, bool letterbox) {
  SizeRule rule;
  rule.fill = !letterbox;
  words.whole("longest", 1, kMaxSide, &rule.longest);
  words.whole("shortest", 1, kMaxSide, &rule.shortest);
  words.whole("edge", 1, kMaxSide, &rule.edge);
  words.whole("multiple", 1, 1024, &rule.multiple);
  words.whole("height", 1, kMaxSide, &rule.height);
  const bool wide = words.has("wide");
  words.choice("wide", {"squeeze", "split", "start"}, [&](std::size_t i) { rule.wide = static_cast<Wide>(i); });
  if (wide && rule.height == 0) words.fail("wide= needs height= beside it");
  if (const auto list = words.text("widths")) {
    bool good = true;
    for (std::size_t at = 0; at <= list->size() && good;) {
      const std::size_t comma = std::min(list->find(',', at), list->size());
      const std::string one = list->substr(at, comma - at);
      const bool digits = !one.empty() && one.size() < 6 && one.find_first_not_of("0123456789") == std::string::npos;
      const unsigned long width = digits ? std::stoul(one) : 0;
      good = width >= 1 && width <= kMaxSide && (rule.widths.empty() || width > rule.widths.back());
      rule.widths.push_back(static_cast<std::uint32_t>(width));
      at = comma + 1;
    }
    if (!good || rule.widths.size() > kMaxSizeClasses)
      words.fail("widths=" + *list + " is not a list of up to 16 growing widths in pixels, like widths=160,320,640");
    if (rule.height == 0) words.fail("widths= needs height= beside it");
    if (rule.longest != 0) words.fail("widths= and longest= contradict each other; the last width is the longest");
    if (!good) rule.widths.clear();
  }
  if (rule.height != 0 && rule.longest == 0 && rule.widths.empty())
    words.fail("height= needs widths=A,B,... or longest= beside it, so that the largest picture is known");
  if (rule.height == 0 && rule.longest == 0 && (rule.shortest != 0 || rule.edge != 0 || rule.multiple != 1))
    words.fail("shortest=, edge= and multiple= need longest= beside them, so that the largest picture is known");
  if (rule.edge != 0 && (rule.shortest != 0 || rule.height != 0))
    words.fail("edge= says the shorter side; shortest= and height= contradict it");
  return rule;
}

std::uint32_t class_of(const std::vector<Size>& sizes, Size size) noexcept {
  std::uint32_t i = 0;
  while (i + 1 < sizes.size() && sizes[i].pixels() < size.pixels()) ++i;
  return i;
}

}  // namespace leat::exec
