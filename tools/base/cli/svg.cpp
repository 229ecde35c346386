#include "tools/base/cli/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace leat::cli {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string out = text;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string escaped(std::string_view words) {
  std::string out;
  for (const char c : words) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + escaped(value) + "\"";
}
std::string attribute(std::string_view name, double value) { return attribute(name, number(value)); }

std::string tick_text(double value) {
  char text[32];
  const double size = std::abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3))
    std::snprintf(text, sizeof text, "%.0e", value);
  else
    std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

struct Axis {
  bool log = false;
  double low = 0, high = 1;
  std::vector<double> ticks;

  double part(double value) const {
    return log ? (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low))
               : (value - low) / (high - low);
  }
};

Axis axis_over(double low, double high, bool log, bool from_zero) {
  Axis a{log, low, high, {}};
  if (!(low <= high)) a.low = log ? 0.1 : 0, a.high = 1;
  if (log) {
    a.low = std::pow(10, std::floor(std::log10(a.low) + 1e-9));
    a.high = std::pow(10, std::ceil(std::log10(a.high) - 1e-9));
    if (a.high <= a.low) a.high = a.low * 10;
    for (double t = a.low; t <= a.high * 1.001; t *= 10) a.ticks.push_back(t);
    return a;
  }
  if (from_zero) a.low = std::min(a.low, 0.0);
  if (a.high <= a.low) a.high = a.low + 1;
  const double raw = (a.high - a.low) / 5, scale = std::pow(10, std::floor(std::log10(raw)));
  const double step = scale * (raw / scale <= 1 ? 1 : raw / scale <= 2 ? 2 : raw / scale <= 5 ? 5 : 10);
  a.low = std::floor(a.low / step + 1e-9) * step;
  a.high = std::ceil(a.high / step - 1e-9) * step;
  for (double t = a.low; t <= a.high + step / 1000; t += step) a.ticks.push_back(std::abs(t) < step / 1000 ? 0 : t);
  return a;
}

bool shown(const Plot& plot, const std::pair<double, double>& p) {
  return std::isfinite(p.first) && std::isfinite(p.second) && (!plot.log_x || p.first > 0) &&
         (!plot.log_y || p.second > 0);
}

constexpr double kLegendWidth = 130;

// The frame of one picture: where its axes lie.
struct Area {
  double left, right, ceiling, floor;
};
Area area_of(double width, double height, double top, bool legend_beside) {
  return {70, width - 20 - (legend_beside ? kLegendWidth : 0), top + 34, top + height - 46};
}

void draw_y(Svg& svg, const Area& a, const Axis& y, std::string_view title, std::string_view label) {
  svg.text(a.left, a.ceiling - 14, title, 14, Svg::Anchor::start, "#222", true);
  for (const double t : y.ticks) {
    const double at = a.floor - (a.floor - a.ceiling) * y.part(t);
    svg.line(a.left, at, a.right, at, "#e4e4e4");
    svg.text(a.left - 6, at + 4, tick_text(t), 11, Svg::Anchor::end, "#555");
  }
  svg.line(a.left, a.floor, a.right, a.floor, "#555");
  svg.line(a.left, a.ceiling, a.left, a.floor, "#555");
  svg.text(16, (a.ceiling + a.floor) / 2, label, 12, Svg::Anchor::middle, "#222", false, -90);
}

void draw_name(Svg& svg, const Area& a, std::size_t row, std::string_view name, bool beside, bool dashed) {
  const double x = beside ? a.right + 10 : a.left + 10, y = a.ceiling + 14 + 16 * static_cast<double>(row);
  svg.line(x, y - 4, x + 22, y - 4, series_colour(row), 2, dashed ? "5 4" : "");
  svg.text(x + 28, y, name, 11);
}

void draw(Svg& svg, const Plot& plot, double top) {
  double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;
  for (const Series& s : plot.series) {
    for (const auto& p : s.points) {
      if (!shown(plot, p)) continue;
      x_low = std::min(x_low, p.first), x_high = std::max(x_high, p.first);
      y_low = std::min(y_low, p.second), y_high = std::max(y_high, p.second);
    }
  }
  const Axis x = axis_over(x_low, x_high, plot.log_x, false), y = axis_over(y_low, y_high, plot.log_y, plot.from_zero);
  const Area a = area_of(plot.width, plot.height, top, plot.legend_beside);
  const auto px = [&](double v) { return a.left + (a.right - a.left) * x.part(v); };
  const auto py = [&](double v) { return a.floor - (a.floor - a.ceiling) * y.part(v); };
  for (const double t : x.ticks) {
    svg.line(px(t), a.ceiling, px(t), a.floor, "#e4e4e4");
    svg.text(px(t), a.floor + 16, tick_text(t), 11, Svg::Anchor::middle, "#555");
  }
  draw_y(svg, a, y, plot.title, plot.y_label);
  svg.text((a.left + a.right) / 2, a.floor + 36, plot.x_label, 12, Svg::Anchor::middle);
  for (std::size_t k = 0; k < plot.series.size(); ++k) {
    const Series& s = plot.series[k];
    const std::string_view colour = series_colour(k);
    std::vector<std::pair<double, double>> piece;
    const auto flush = [&] {
      if (piece.size() > 1) svg.polyline(piece, colour, 1.8, s.dashed ? "5 4" : "");
      if (piece.size() <= 60) {
        for (const auto& p : piece) svg.dot(p.first, p.second, 2.5, colour);
      }
      piece.clear();
    };
    for (const auto& p : s.points) {
      if (shown(plot, p))
        piece.emplace_back(px(p.first), py(p.second));
      else
        flush();
    }
    flush();
    draw_name(svg, a, k, s.name, plot.legend_beside, s.dashed);
  }
}

}  // namespace

Svg::Svg(double width, double height) : width_(width), height_(height) {
  box(0, 0, width, height, "#ffffff", "none", 0);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view colour, double width,
               std::string_view dashes) {
  body_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) + attribute("y2", y2) +
           attribute("stroke", colour) + attribute("stroke-width", width) +
           (dashes.empty() ? "" : attribute("stroke-dasharray", dashes)) + "/>\n";
}

void Svg::arrow(double x1, double y1, double x2, double y2, std::string_view colour) {
  const double length = std::hypot(x2 - x1, y2 - y1);
  if (length <= 0) return;
  const double ux = (x2 - x1) / length, uy = (y2 - y1) / length;
  line(x1, y1, x2 - 6 * ux, y2 - 6 * uy, colour, 1.5);
  const std::string points = number(x2) + "," + number(y2) + " " + number(x2 - 8 * ux - 4 * uy) + "," +
                             number(y2 - 8 * uy + 4 * ux) + " " + number(x2 - 8 * ux + 4 * uy) + "," +
                             number(y2 - 8 * uy - 4 * ux);
  body_ += "<polygon" + attribute("points", points) + attribute("fill", colour) + "/>\n";
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, std::string_view colour, double width,
                   std::string_view dashes) {
  std::string text;
  for (const auto& [x, y] : points) text += (text.empty() ? "" : " ") + number(x) + "," + number(y);
  body_ += "<polyline" + attribute("points", text) + attribute("fill", "none") + attribute("stroke", colour) +
           attribute("stroke-width", width) + (dashes.empty() ? "" : attribute("stroke-dasharray", dashes)) + "/>\n";
}

void Svg::box(double x, double y, double width, double height, std::string_view fill, std::string_view edge,
              double corner) {
  body_ += "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) + attribute("height", height) +
           attribute("rx", corner) + attribute("fill", fill) + attribute("stroke", edge) + "/>\n";
}

void Svg::dot(double x, double y, double radius, std::string_view colour) {
  body_ +=
      "<circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) + attribute("fill", colour) + "/>\n";
}

void Svg::text(double x, double y, std::string_view words, double size, Anchor anchor, std::string_view colour,
               bool bold, double turned) {
  static constexpr std::array<std::string_view, 3> kAnchors = {"start", "middle", "end"};
  body_ += "<text" + attribute("x", x) + attribute("y", y) + attribute("font-size", size) + attribute("fill", colour) +
           attribute("text-anchor", kAnchors[static_cast<std::size_t>(anchor)]) +
           (bold ? attribute("font-weight", "bold") : "") +
           (turned != 0 ? attribute("transform", "rotate(" + number(turned) + " " + number(x) + " " + number(y) + ")")
                        : "") +
           ">" + escaped(words) + "</text>\n";
}

void Svg::cells(double x, double y, std::string_view words, double cell, std::string_view colour, bool bold) {
  const auto letters = std::count_if(words.begin(), words.end(),
                                     [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; });
  body_ += "<text" + attribute("x", x) + attribute("y", y) + attribute("font-size", cell / 0.6) +
           attribute("fill", colour) + attribute("font-family", "monospace") + attribute("xml:space", "preserve") +
           attribute("textLength", cell * static_cast<double>(letters)) +
           (bold ? attribute("font-weight", "bold") : "") + ">" + escaped(words) + "</text>\n";
}

std::string Svg::str() const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width_) + attribute("height", height_) +
         " font-family=\"sans-serif\">\n" + body_ + "</svg>\n";
}

std::string_view series_colour(std::size_t index) {
  static constexpr std::array<std::string_view, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                               "#7a5c00", "#56b4e9", "#e69f00", "#444444"};
  return kColours[index % kColours.size()];
}

std::string plot_svg(const Plot& plot) { return plots_svg({plot}); }

std::string plots_svg(const std::vector<Plot>& plots) {
  double width = 0, height = 0;
  for (const Plot& p : plots) width = std::max(width, p.width), height += p.height;
  Svg svg(width, height);
  double top = 0;
  for (const Plot& p : plots) {
    draw(svg, p, top);
    top += p.height;
  }
  return svg.str();
}

std::string bars_svg(const Bars& bars) {
  double high = 0;
  for (const auto& [name, values] : bars.bars) {
    for (const double v : values) high = std::max(high, std::isfinite(v) ? v : 0);
  }
  const Axis y = axis_over(0, high, false, true);
  const Area a = area_of(bars.width, bars.height, 0, true);
  Svg svg(bars.width, bars.height);
  draw_y(svg, a, y, bars.title, bars.y_label);
  const double group = (a.right - a.left) / static_cast<double>(std::max<std::size_t>(1, bars.groups.size()));
  const double bar = group * 0.8 / static_cast<double>(std::max<std::size_t>(1, bars.bars.size()));
  for (std::size_t i = 0; i < bars.groups.size(); ++i) {
    const double from = a.left + group * (static_cast<double>(i) + 0.1);
    svg.text(from + group * 0.4, a.floor + 16, bars.groups[i], 11, Svg::Anchor::middle, "#555");
    for (std::size_t k = 0; k < bars.bars.size(); ++k) {
      const double v = i < bars.bars[k].second.size() ? bars.bars[k].second[i] : 0,
                   height = (a.floor - a.ceiling) * y.part(std::isfinite(v) ? v : 0);
      if (height > 0)
        svg.box(from + bar * static_cast<double>(k), a.floor - height, bar, height, series_colour(k), "none", 0);
    }
  }
  for (std::size_t k = 0; k < bars.bars.size(); ++k) draw_name(svg, a, k, bars.bars[k].first, true, false);
  return svg.str();
}

}  // namespace leat::cli
