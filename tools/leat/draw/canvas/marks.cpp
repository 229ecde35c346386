#include "tools/leat/draw/canvas/marks.h"

#include <cmath>

#include "tools/leat/draw/canvas/labels.h"

namespace leat::tools::draw {
namespace {

constexpr Colour kGround{16, 18, 22};
constexpr double kNotesVeil = 0.72;  // opacity of the ground of banner and panel
constexpr double kMinFont = 9;
constexpr Colour kBar{92, 132, 196};

// Banner and panel, top and bottom of the sheet's room for notes.
struct Notes {
  Pen& pen;
  const Sheet& sheet;
  double font;

  [[nodiscard]] double pad() const { return font * 0.45; }
  [[nodiscard]] double veil() const { return sheet.beside ? 0 : kNotesVeil; }

  Rect banner(const std::string& text, Colour colour) const {
    if (text.empty()) return {};
    const Rect& n = sheet.notes;
    const double max = n.width() - 4 * pad();
    const Size size = pen.measure(text, font, max);
    const double x = n.x0 + pad(), y = n.y0 + pad();
    const Rect r{x, y, x + size.width + 2 * pad(), y + size.height + pad()};
    pen.fill(r, pad(), kGround, veil());
    pen.text({x + pad(), y + pad() / 2}, text, font, colour, max);
    return r;
  }

  [[nodiscard]] double width_of(const std::vector<Row>& rows) const {
    double width = 0;
    for (const Row& row : rows) {
      double w = pen.measure(row.text, font).width + (row.swatch ? 1.5 * font : 0);
      if (!row.value.empty()) w += pen.measure(row.value, font).width + 1.2 * font;
      if (row.bar >= 0) w = std::max(w, 11 * font);
      if (!row.strip.empty()) w = std::max(w, 14 * font);
      width = std::max(width, w);
    }
    return width;
  }

  void one(const Row& row, double x, double y, double width, double height) const {
    if (!row.strip.empty()) {
      const double cell = width / static_cast<double>(row.strip.size());
      for (std::size_t i = 0; i < row.strip.size(); ++i)
        pen.fill({std::floor(x + cell * static_cast<double>(i)), y + height * 0.15,
                  std::floor(x + cell * static_cast<double>(i + 1)), y + height * 0.85},
                 0, row.strip[i]);
      return;
    }
    if (row.bar >= 0)
      pen.fill({x, y + height * 0.08, x + std::max(2.0, width * std::clamp(row.bar, 0.0, 1.0)), y + height * 0.92},
               font / 5, kBar, 0.8);
    double text_x = x + (row.bar >= 0 ? font * 0.4 : 0), value_width = 0;
    const double text_y = y + (height - pen.measure("x", font).height) / 2;
    if (row.swatch) {
      pen.fill({text_x, y + height / 2 - font * 0.45, text_x + font * 0.9, y + height / 2 + font * 0.45}, font / 5,
               *row.swatch);
      text_x += font * 1.5;
    }
    if (!row.value.empty()) {
      const double max = width - std::min<double>(pen.measure(row.text, font).width, width * 0.4) - font;
      value_width = pen.measure(row.value, font, max).width;
      pen.text({x + width - value_width - (row.bar >= 0 ? font * 0.4 : 0), text_y}, row.value, font,
               row.bar >= 0 ? kWhite : kQuiet, max);
    }
    pen.text({text_x, text_y}, row.text, font, kWhite, x + width - text_x - value_width - font * 0.4);
  }

  // Rows that do not fit are left out, the last ones.
  Rect panel(const std::vector<Row>& rows, const Rect& below) const {
    if (rows.empty()) return {};
    const Rect& n = sheet.notes;
    const double height = std::ceil(1.55 * font), inner = 0.7 * font;
    const double max_wide = n.width() * (sheet.beside ? 1 : 0.6) - 2 * pad() - 2 * inner;
    const double width = std::min(width_of(rows), max_wide);
    const double top = below.y1 > 0 ? below.y1 : n.y0;
    const double room = n.y1 - top - 2 * pad() - inner;
    const auto count = std::min(rows.size(), static_cast<std::size_t>(std::max(1.0, room / height)));
    const double tall = static_cast<double>(count) * height + inner;
    const double x = n.x0 + pad(), y = sheet.beside ? top + pad() : n.y1 - pad() - tall;
    const Rect r{x, y, x + width + 2 * inner, y + tall};
    pen.fill(r, pad(), kGround, veil());
    for (std::size_t i = 0; i < count; ++i)
      one(rows[i], x + inner, y + inner / 2 + static_cast<double>(i) * height, width, height);
    return r;
  }
};

struct Attempt {
  double font = 0;
  std::vector<std::optional<Rect>> places;
  std::size_t left_out = 0;
};

Attempt attempt(Pen& pen, const Sheet& sheet, double font, const Marks& marks, std::span<const Rect> taken) {
  std::vector<LabelWish> wishes;
  for (const Label& label : marks.labels) {
    const Size size = pen.measure(label.text, font, sheet.picture.width() - font);
    wishes.push_back({label.of, size.width + 0.7 * font, static_cast<double>(size.height) + 1});
  }
  Attempt out{font, place_labels(wishes, sheet.picture, taken), 0};
  out.left_out = static_cast<std::size_t>(std::count(out.places.begin(), out.places.end(), std::nullopt));
  return out;
}

Point nearest(const Rect& r, const Rect& to) {
  return {std::clamp((to.x0 + to.x1) / 2, r.x0, r.x1), std::clamp((to.y0 + to.y1) / 2, r.y0, r.y1)};
}

}  // namespace

Placed draw_marks(Pen& pen, const Sheet& sheet, const Style& style, const Marks& marks) {
  Placed out;
  const Notes notes{pen, sheet, sheet.beside ? 13 : style.font};
  out.banner = notes.banner(marks.banner, marks.banner_colour);
  out.panel = notes.panel(marks.rows, out.banner);
  const Rect taken[] = {out.banner, out.panel};
  // Where it is crowded letters become smaller before a label is left out.
  Attempt best = attempt(pen, sheet, style.font, marks, taken);
  for (double font = style.font * 0.8; best.left_out > 0 && font >= kMinFont; font *= 0.8) {
    Attempt smaller = attempt(pen, sheet, font, marks, taken);
    if (smaller.left_out < best.left_out) best = std::move(smaller);
  }
  out.font = best.font, out.left_out = best.left_out;
  for (std::size_t i = 0; i < marks.labels.size(); ++i) {
    const Label& label = marks.labels[i];
    if (best.places[i] && apart(*best.places[i], label.of))
      pen.line(nearest(*best.places[i], label.of), nearest(label.of, *best.places[i]), style.line / 2, label.colour);
  }
  for (std::size_t i = 0; i < marks.labels.size(); ++i) {
    if (!best.places[i]) continue;
    const Label& label = marks.labels[i];
    const Rect& at = *best.places[i];
    pen.fill(at, best.font / 5, label.colour);
    pen.text({at.x0 + 0.35 * best.font, at.y0 + 0.5}, label.text, best.font, ink_on(label.colour),
             at.width() - 0.5 * best.font);
    out.labels.push_back({at, label.text});
  }
  return out;
}

}  // namespace leat::tools::draw
