#include <array>
#include <cstdio>

#include "tools/leat/draw/canvas/ramp.h"
#include "tools/leat/draw/kinds/cells.h"
#include "tools/leat/draw/kinds/kinds.h"

namespace leat::tools::draw {
namespace {

constexpr double kClassVeil = 0.6;
constexpr std::size_t kLegend = 8;     // classes, the largest first
constexpr std::uint32_t kChecker = 8;  // pixels of the drawing
constexpr Colour kLightSquare{214, 216, 220}, kDarkSquare{176, 179, 186};
constexpr std::size_t kScaleCells = 64;

struct Layer {
  Rect area;
  std::size_t columns, rows;
  const std::byte* data;
};

// Each of a part's maps with the area that it covers: the frame, or a detection's box.
template <class F>
void each_layer(const Work& work, const leat_part_view& part, F&& draw) {
  if (part.rank < 2 || part.count == 0) return;
  const std::size_t rows = part.dims[part.rank - 2], columns = part.dims[part.rank - 1];
  const std::uint64_t layer_bytes = leat_dtype_bytes(part.dtype) * rows * columns,
                      layers = part.count / (rows * columns);
  const bool each = part.item == LEAT_ITEM_EACH;
  for (std::uint64_t i = 0; i < (each ? std::min<std::uint64_t>(layers, work.detections()) : 1); ++i) {
    Rect area = work.sheet.picture;
    if (each) {
      const leat_detection& d = work.answer.result->detections[i];
      area = work.view.rect(d.x0, d.y0, d.x1, d.y1);
    }
    draw(Layer{area, columns, rows, static_cast<const std::byte*>(part.data) + i * layer_bytes});
  }
}

std::uint8_t byte_at(const Layer& layer, std::size_t i) { return std::to_integer<std::uint8_t>(layer.data[i]); }
float float_at(const Layer& layer, std::size_t i) {
  float v;
  std::memcpy(&v, layer.data + i * sizeof v, sizeof v);
  return v;
}

// A map of bytes is one of classes or a matte, and does not say which. Classes with names are classes; of others, a
// matte is what has more different values than a model has classes, or reaches further.
bool is_matte(const Work& work, const Layer& layer) {
  if (!work.name_of(0, 0).empty() || !work.name_of(0, 1).empty()) return false;
  std::array<bool, 256> seen{};
  for (std::size_t i = 0; i < layer.columns * layer.rows; ++i) seen[byte_at(layer, i)] = true;
  const auto different = std::count(seen.begin(), seen.end(), true);
  return different > 64 || std::any_of(seen.begin() + 200, seen.end(), [](bool s) { return s; });
}

bool is_ground(const Work& work, std::int32_t id) {
  const std::string name = work.name_of(0, id);
  if (name.empty()) return id == 0 && work.name_of(0, 1).empty();
  return name == "background" || name == "__background__" || name == "_background_" || name == "bg";
}

void draw_classes(Work& work, const Layer& layer) {
  std::array<std::uint64_t, 256> cells_of{};
  for (std::size_t i = 0; i < layer.columns * layer.rows; ++i) ++cells_of[byte_at(layer, i)];
  std::array<Colour, 256> colours{};
  std::array<bool, 256> ground{};
  std::vector<std::int32_t> found;
  for (std::int32_t id = 0; id < 256; ++id) {
    const auto at = static_cast<std::size_t>(id);
    if (cells_of[at] == 0) continue;
    colours[at] = colour_of_class(id, work.name_of(0, id)), ground[at] = is_ground(work, id);
    if (!ground[at]) found.push_back(id);
  }
  const Cells cells{layer.area, layer.columns, layer.rows,
                    [&](std::size_t x, std::size_t y) { return byte_at(layer, y * layer.columns + x); }};
  const PixelRange r(layer.area, work.on.size);
  for (std::uint32_t y = r.y0; y < r.y1; ++y) {
    for (std::uint32_t x = r.x0; x < r.x1; ++x) {
      const std::uint8_t id = cells.nearest(x, y);
      if (!ground[id]) work.on.at(x, y) = blend(work.on.at(x, y), colours[id], kClassVeil);
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](std::int32_t a, std::int32_t b) {
    return cells_of[static_cast<std::size_t>(a)] > cells_of[static_cast<std::size_t>(b)];
  });
  for (std::size_t k = 0; k < std::min(found.size(), kLegend); ++k) {
    const auto at = static_cast<std::size_t>(found[k]);
    const double share = static_cast<double>(cells_of[at]) / static_cast<double>(layer.columns * layer.rows);
    work.marks.rows.push_back({.text = work.name_or_number(0, found[k]),
                               .value = share < 0.005 ? "<1%" : percent(static_cast<float>(share)),
                               .swatch = colours[at]});
  }
  if (found.size() > kLegend)
    work.marks.rows.push_back({.text = "and " + std::to_string(found.size() - kLegend) + " more"});
}

// What the matte keeps stays; the rest gives way to a chequered ground, as in programs for pictures.
void draw_matte(Work& work, const Layer& layer) {
  const Cells cells{layer.area, layer.columns, layer.rows,
                    [&](std::size_t x, std::size_t y) { return byte_at(layer, y * layer.columns + x); }};
  const PixelRange r(layer.area, work.on.size);
  const auto square = std::max(kChecker, static_cast<std::uint32_t>(work.style.font));
  for (std::uint32_t y = r.y0; y < r.y1; ++y) {
    for (std::uint32_t x = r.x0; x < r.x1; ++x) {
      const Colour ground = (x / square + y / square) % 2 == 0 ? kLightSquare : kDarkSquare;
      work.on.at(x, y) = blend(work.on.at(x, y), ground, 1 - cells.smooth(x, y) / 255);
    }
  }
}

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", v);
  return text;
}

// From the second to the last but second hundredth of the values: single outliers do not flatten all others.
void draw_values(Work& work, const Layer& layer) {
  std::vector<float> values;
  for (std::size_t i = 0; i < layer.columns * layer.rows; ++i)
    if (const float v = float_at(layer, i); std::isfinite(v)) values.push_back(v);
  if (values.empty()) {
    work.marks.rows.push_back({.text = "a map without one number"});
    return;
  }
  std::sort(values.begin(), values.end());
  const double low = static_cast<double>(values[values.size() / 50]),
               high = static_cast<double>(values[values.size() - 1 - values.size() / 50]);
  const double range = high > low ? high - low : 1;
  const Cells cells{layer.area, layer.columns, layer.rows,
                    [&](std::size_t x, std::size_t y) { return float_at(layer, y * layer.columns + x); }};
  const PixelRange r(layer.area, work.on.size);
  for (std::uint32_t y = r.y0; y < r.y1; ++y) {
    for (std::uint32_t x = r.x0; x < r.x1; ++x) {
      const double v = cells.smooth(x, y);
      work.on.at(x, y) = std::isfinite(v) ? pixel_of(ramp((v - low) / range)) : pixel_of({0, 0, 0});
    }
  }
  std::vector<Colour> scale;
  for (std::size_t i = 0; i < kScaleCells; ++i)
    scale.push_back(ramp(static_cast<double>(i) / static_cast<double>(kScaleCells - 1)));
  work.marks.rows.push_back({.strip = std::move(scale)});
  work.marks.rows.push_back({.text = number(low), .value = number(high)});
}

}  // namespace

void draw_map(Work& work, const leat_part_view& part) {
  each_layer(work, part, [&](const Layer& layer) {
    if (part.dtype == LEAT_F32)
      draw_values(work, layer);
    else if (part.dtype == LEAT_U8 && is_matte(work, layer))
      draw_matte(work, layer);
    else if (part.dtype == LEAT_U8)
      draw_classes(work, layer);
  });
}

}  // namespace leat::tools::draw
