#include "tools/leat/draw/kinds/cells.h"
#include "tools/leat/draw/kinds/kinds.h"

namespace leat::tools::draw {
namespace {

constexpr double kMaskVeil = 0.45, kMaskEdge = 0.95;  // opacity within, and along the edge

}  // namespace

// A veil in the object's colour and a line along its edge, which parts objects of one class that touch.
void draw_masks(Work& work, const leat_part_view& part) {
  const bool each = part.count == work.detections();
  std::vector<std::uint8_t> covered;
  for (std::uint32_t i = 0; i < part.count; ++i) {
    leat_mask mask;
    const std::uint8_t* const bits = leat_mask_at(&part, i, &mask);
    if (bits == nullptr || mask.width == 0 || mask.height == 0 || !(mask.x1 > mask.x0) || !(mask.y1 > mask.y0))
      continue;
    const Colour colour = each ? colour_of_detection(work, work.answer.result->detections[i])
                               : colour_of_class(static_cast<std::int32_t>(i));
    const std::size_t row_bytes = (mask.width + 7) / 8;
    const Cells cells{work.view.rect(mask.x0, mask.y0, mask.x1, mask.y1), mask.width, mask.height,
                      [&](std::size_t x, std::size_t y) { return bits[y * row_bytes + x / 8] >> x % 8 & 1; }};
    const PixelRange r(cells.area, work.on.size);
    const std::size_t width = r.x1 - r.x0;
    covered.assign(width * (r.y1 - r.y0), 0);
    for (std::uint32_t y = r.y0; y < r.y1; ++y)
      for (std::uint32_t x = r.x0; x < r.x1; ++x) covered[(y - r.y0) * width + x - r.x0] = cells.smooth(x, y) >= 0.5;
    const auto is_in = [&](std::uint32_t x, std::uint32_t y) {
      return x >= r.x0 && x < r.x1 && y >= r.y0 && y < r.y1 && covered[(y - r.y0) * width + x - r.x0] != 0;
    };
    const auto reach = static_cast<std::uint32_t>(std::max(1.0, work.style.line / 2));
    for (std::uint32_t y = r.y0; y < r.y1; ++y) {
      for (std::uint32_t x = r.x0; x < r.x1; ++x) {
        if (!is_in(x, y)) continue;
        const bool edge = !is_in(x - reach, y) || !is_in(x + reach, y) || !is_in(x, y - reach) || !is_in(x, y + reach);
        work.on.at(x, y) = blend(work.on.at(x, y), colour, edge ? kMaskEdge : kMaskVeil);
      }
    }
  }
}

}  // namespace leat::tools::draw
