#include "tools/leat/draw/canvas/pen.h"

#include <pango/pangocairo.h>

#include <cmath>
#include <memory>

namespace leat::tools::draw {
namespace {

constexpr double kRim = 0.5;  // opacity of the dark rim

void set(cairo_t* cairo, Colour c, double opacity = 1) {
  cairo_set_source_rgba(cairo, c.r / 255.0, c.g / 255.0, c.b / 255.0, opacity);
}

struct Freed {
  void operator()(cairo_font_options_t* o) const { cairo_font_options_destroy(o); }
  void operator()(PangoFontDescription* d) const { pango_font_description_free(d); }
  void operator()(gchar* text) const { g_free(text); }
};

}  // namespace

Pen::Pen(Picture& on)
    : surface_(cairo_image_surface_create_for_data(
          reinterpret_cast<unsigned char*>(on.pixels.data()), CAIRO_FORMAT_RGB24, static_cast<int>(on.size.width),
          static_cast<int>(on.size.height), static_cast<int>(on.size.width * 4))),
      cairo_(cairo_create(surface_)),
      layout_(pango_cairo_create_layout(cairo_)) {
  // A desktop's settings (sub-pixels, hinting, resolution, language) change nothing here.
  PangoContext* const context = pango_layout_get_context(layout_);
  const std::unique_ptr<cairo_font_options_t, Freed> options(cairo_font_options_create());
  cairo_font_options_set_antialias(options.get(), CAIRO_ANTIALIAS_GRAY);
  cairo_font_options_set_hint_style(options.get(), CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options.get(), CAIRO_HINT_METRICS_OFF);
  pango_cairo_context_set_font_options(context, options.get());
  pango_context_set_language(context, pango_language_from_string("en"));
  pango_layout_set_single_paragraph_mode(layout_, TRUE);
  pango_layout_set_ellipsize(layout_, PANGO_ELLIPSIZE_END);
  cairo_set_line_join(cairo_, CAIRO_LINE_JOIN_ROUND);
  cairo_set_line_cap(cairo_, CAIRO_LINE_CAP_ROUND);
}

Pen::~Pen() {
  g_object_unref(layout_);
  cairo_destroy(cairo_);
  cairo_surface_finish(surface_);
  cairo_surface_destroy(surface_);
}

void Pen::stroke(double thickness, Colour colour) {
  cairo_set_line_width(cairo_, thickness + std::max(1.0, thickness / 2));
  set(cairo_, {0, 0, 0}, kRim);
  cairo_stroke_preserve(cairo_);
  cairo_set_line_width(cairo_, thickness);
  set(cairo_, colour);
  cairo_stroke(cairo_);
}

void Pen::outline(const Rect& r, double thickness, Colour colour) {
  const double in = thickness / 2;
  if (r.width() <= thickness || r.height() <= thickness) {
    fill({r.x0, r.y0, std::max(r.x1, r.x0 + thickness), std::max(r.y1, r.y0 + thickness)}, 0, colour);
    return;
  }
  cairo_rectangle(cairo_, r.x0 + in, r.y0 + in, r.width() - thickness, r.height() - thickness);
  stroke(thickness, colour);
}

void Pen::outline(std::span<const Point> corners, double thickness, Colour colour, bool closed) {
  for (const Point& p : corners) cairo_line_to(cairo_, p.x, p.y);
  if (closed) cairo_close_path(cairo_);
  stroke(thickness, colour);
}

void Pen::line(Point a, Point b, double thickness, Colour colour) {
  cairo_move_to(cairo_, a.x, a.y);
  cairo_line_to(cairo_, b.x, b.y);
  stroke(thickness, colour);
}

void Pen::disc(Point middle, double radius, Colour colour) {
  cairo_new_sub_path(cairo_);
  cairo_arc(cairo_, middle.x, middle.y, radius, 0, 2 * std::acos(-1.0));
  cairo_set_line_width(cairo_, radius / 2);
  set(cairo_, {0, 0, 0}, kRim);
  cairo_stroke_preserve(cairo_);
  set(cairo_, colour);
  cairo_fill(cairo_);
}

void Pen::fill(const Rect& r, double corner, Colour colour, double opacity) {
  if (r.width() <= 0 || r.height() <= 0) return;
  const double c = std::min({corner, r.width() / 2, r.height() / 2}), quarter = std::acos(-1.0) / 2;
  if (c <= 0) {
    cairo_rectangle(cairo_, r.x0, r.y0, r.width(), r.height());
  } else {
    cairo_new_sub_path(cairo_);
    cairo_arc(cairo_, r.x1 - c, r.y0 + c, c, -quarter, 0);
    cairo_arc(cairo_, r.x1 - c, r.y1 - c, c, 0, quarter);
    cairo_arc(cairo_, r.x0 + c, r.y1 - c, c, quarter, 2 * quarter);
    cairo_arc(cairo_, r.x0 + c, r.y0 + c, c, 2 * quarter, 3 * quarter);
    cairo_close_path(cairo_);
  }
  set(cairo_, colour, opacity);
  cairo_fill(cairo_);
}

void Pen::lay_out(std::string_view text, double font, double max_width) {
  const std::unique_ptr<PangoFontDescription, Freed> description(
      pango_font_description_from_string("DejaVu Sans, sans-serif"));
  pango_font_description_set_absolute_size(description.get(), font * PANGO_SCALE);
  pango_layout_set_font_description(layout_, description.get());
  pango_layout_set_width(layout_,
                         max_width < kAnyWidth ? static_cast<int>(std::max(max_width, 1.0) * PANGO_SCALE) : -1);
  const std::unique_ptr<gchar, Freed> valid(g_utf8_make_valid(text.data(), static_cast<gssize>(text.size())));
  pango_layout_set_text(layout_, valid.get(), -1);
}

Size Pen::measure(std::string_view text, double font, double max_width) {
  lay_out(text, font, max_width);
  PangoRectangle logical;
  pango_layout_get_extents(layout_, nullptr, &logical);
  const auto up = [](int units) { return static_cast<std::uint32_t>((units + PANGO_SCALE - 1) / PANGO_SCALE); };
  return {up(logical.width), up(logical.height)};
}

void Pen::text(Point at, std::string_view text, double font, Colour colour, double max_width) {
  lay_out(text, font, max_width);
  PangoRectangle logical;
  pango_layout_get_extents(layout_, nullptr, &logical);
  cairo_move_to(cairo_, at.x - static_cast<double>(logical.x) / PANGO_SCALE,
                at.y - static_cast<double>(logical.y) / PANGO_SCALE);
  set(cairo_, colour);
  pango_cairo_show_layout(cairo_, layout_);
}

bool Pen::has_letters_for(std::string_view text) {
  lay_out(text, 14, kAnyWidth);
  return pango_layout_get_unknown_glyphs_count(layout_) == 0;
}

}  // namespace leat::tools::draw
