// Pictures as SVG text: a canvas of a few shapes, and line plots on it. Pure functions of their data: the same data,
// the same bytes. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::cli {

// Coordinates are pixels from the top left corner. Text is escaped.
class Svg {
 public:
  Svg(double width, double height);
  void line(double x1, double y1, double x2, double y2, std::string_view colour, double width = 1,
            std::string_view dashes = {});
  void arrow(double x1, double y1, double x2, double y2, std::string_view colour);
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view colour, double width = 1.5,
                std::string_view dashes = {});
  void box(double x, double y, double width, double height, std::string_view fill, std::string_view edge,
           double corner = 4);
  void dot(double x, double y, double radius, std::string_view colour);
  enum class Anchor { start, middle, end };
  void text(double x, double y, std::string_view words, double size = 12, Anchor anchor = Anchor::start,
            std::string_view colour = "#222", bool bold = false, double turned = 0);
  // A line of a terminal: every character as wide as every other, blanks kept; `cell` is that width.
  void cells(double x, double y, std::string_view words, double cell, std::string_view colour, bool bold = false);
  // The whole document.
  [[nodiscard]] std::string str() const;

 private:
  double width_, height_;
  std::string body_;
};

// Distinct, readable on white, and told apart by most colour-blind readers; repeats after eight.
[[nodiscard]] std::string_view series_colour(std::size_t index);

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // drawn in this order; NaN breaks the line
  bool dashed = false;
};

struct Plot {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;  // points that are not positive are left out
  bool from_zero = false;             // linear y axes begin at 0
  std::vector<Series> series;
  double width = 640, height = 400;
  bool legend_beside = false;  // right of the lines instead of over them
};

// Groups of bars side by side: bars[k].second[i] is series k in group i.
struct Bars {
  std::string title, y_label;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::vector<double>>> bars;
  double width = 640, height = 400;
};

// One plot, or several under each other in one picture.
[[nodiscard]] std::string plot_svg(const Plot& plot);
[[nodiscard]] std::string plots_svg(const std::vector<Plot>& plots);
[[nodiscard]] std::string bars_svg(const Bars& bars);

}  // namespace leat::cli
