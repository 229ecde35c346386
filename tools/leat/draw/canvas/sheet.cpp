#include "tools/leat/draw/canvas/sheet.h"

#include <cmath>

namespace leat::tools::draw {
namespace {

constexpr std::uint32_t kSmall = 240;     // a shorter side below that is small
constexpr std::uint32_t kShown = 320;     // as which a small picture's shorter side is shown
constexpr std::uint32_t kLongest = 1600;  // and no longer than that
constexpr std::uint32_t kMaxTimes = 8;    // times
constexpr std::uint32_t kColumn = 280, kStrip = 150;

std::uint32_t even(std::uint32_t v) { return std::max(2U, v + v % 2); }

}  // namespace

Sheet sheet_of(Size frame) {
  const std::uint32_t w = std::max(1U, frame.width), h = std::max(1U, frame.height);
  const auto whole = [](Size s) { return Rect{0, 0, static_cast<double>(s.width), static_cast<double>(s.height)}; };
  if (std::min(w, h) >= kSmall) {
    return {{w, h}, whole({w, h}), whole({w, h}), false};
  }
  const std::uint32_t wanted = (kShown + std::min(w, h) - 1) / std::min(w, h);
  const std::uint32_t times = std::clamp(std::min(wanted, kLongest / std::max(w, h)), 1U, kMaxTimes);
  const Size shown{w * times, h * times};
  const Rect picture = whole(shown);
  if (shown.width > 2 * shown.height) {
    const Size size{even(std::max(shown.width, kColumn)), even(shown.height + kStrip)};
    return {size, picture, {0, picture.y1, static_cast<double>(size.width), static_cast<double>(size.height)}, true};
  }
  const Size size{even(shown.width + kColumn), even(std::max(shown.height, kStrip))};
  return {size, picture, {picture.x1, 0, static_cast<double>(size.width), static_cast<double>(size.height)}, true};
}

Sheet tile_of(Size frame, Size max) {
  const double w = std::max(1U, frame.width), h = std::max(1U, frame.height);
  const double scale = std::min(max.width / w, max.height / h);
  const auto side = [&](double v, std::uint32_t limit) {
    return std::clamp(static_cast<std::uint32_t>(std::lround(v * scale)), 1U, std::max(1U, limit));
  };
  const Size size{side(w, max.width), side(h, max.height)};
  const Rect all{0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
  return {size, all, all, false};
}

}  // namespace leat::tools::draw
