#include "tools/leat/top/pages/picture.h"

#include <algorithm>
#include <vector>

#include "tools/base/cli/svg.h"

namespace leat::tools::top {
namespace {

constexpr double kCellWidth = 7.2, kCellHeight = 16, kBorder = 10, kBaseline = 12;
constexpr const char *kGround = "#1b1f24", *kText = "#d6dae0", *kBright = "#ffffff";

struct Colours {
  const char* front;
  const char* back;  // null: the ground
};

Colours colours_of(const Cell& cell) {
  Colours out{cell.stress == Stress::none ? kText : kBright, nullptr};
  switch (cell.meaning) {
    case Meaning::plain:
      break;
    case Meaning::good:
      out.front = "#5fafd7";
      break;
    case Meaning::late:
      out.front = "#ffd75f";
      break;
    case Meaning::dropped:
      out.front = "#ff8700";
      break;
    case Meaning::failed:
      out = {kBright, "#d70000"};
      break;
    case Meaning::idle:
      out.front = "#8a919c";
      break;
  }
  if (cell.stress == Stress::chosen) return {kGround, cell.meaning == Meaning::plain ? kText : out.front};
  return out;
}

struct Part {
  double x, y, width, height;  // of a cell
};
// Lines and blocks are drawn, so that they meet whatever the font is. Empty: a letter.
std::vector<Part> parts_of(char32_t sign) {
  if (sign >= U'▁' && sign <= U'█') {
    const double height = (static_cast<double>(sign - U'▁') + 1) / 8;
    return {{0, 1 - height, 1, height}};
  }
  switch (sign) {
    case U'─':
      return {{0, 0.47, 1, 0.06}};
    case U'╌':
      return {{0.05, 0.47, 0.35, 0.06}, {0.55, 0.47, 0.35, 0.06}};
    case U'━':
      return {{0, 0.40, 1, 0.2}};
    case U'╸':
      return {{0, 0.40, 0.5, 0.2}};
    case U'│':
      return {{0.44, 0, 0.12, 1}};
    case U'┤':
      return {{0.44, 0, 0.12, 1}, {0, 0.47, 0.5, 0.06}};
    case U'└':
      return {{0.44, 0, 0.12, 0.5}, {0.44, 0.47, 0.56, 0.06}};
    case U'░':
      return {{0, 0, 1, 0.18}, {0, 0.34, 1, 0.18}, {0, 0.68, 1, 0.18}};
    default:
      return {};
  }
}

void draw_run(cli::Svg& svg, const Canvas& canvas, int row, int from, int end) {
  const Cell& first = canvas.at(row, from);
  const Colours colours = colours_of(first);
  const double x = kBorder + kCellWidth * from, y = kBorder + kCellHeight * row;
  if (colours.back != nullptr) svg.box(x, y, kCellWidth * (end - from), kCellHeight, colours.back, "none", 0);
  if (const auto parts = parts_of(first.sign); !parts.empty()) {
    // One sign, repeated: parts that reach from side to side are one box.
    for (const Part& part : parts) {
      if (part.x == 0 && part.width == 1) {
        svg.box(x, y + part.y * kCellHeight, kCellWidth * (end - from), part.height * kCellHeight, colours.front,
                "none", 0);
        continue;
      }
      for (int c = from; c < end; ++c)
        svg.box(kBorder + kCellWidth * (c + part.x), y + part.y * kCellHeight, part.width * kCellWidth,
                part.height * kCellHeight, colours.front, "none", 0);
    }
    return;
  }
  std::string text;
  for (int c = from; c < end; ++c)
    if (canvas.at(row, c).sign != 0) append_utf8(&text, canvas.at(row, c).sign);
  svg.cells(x, y + kBaseline, text, kCellWidth, colours.front,
            first.stress == Stress::strong || first.stress == Stress::title);
}

bool blank(const Cell& cell) { return cell.sign == U' ' && colours_of(cell).back == nullptr; }

}  // namespace

std::string picture_of(const Canvas& canvas) {
  const double width = 2 * kBorder + kCellWidth * canvas.columns(), height = 2 * kBorder + kCellHeight * canvas.rows();
  cli::Svg svg(width, height);
  svg.box(0, 0, width, height, kGround, kGround, 6);
  for (int row = 0; row < canvas.rows(); ++row) {
    for (int column = 0; column < canvas.columns();) {
      const Cell& first = canvas.at(row, column);
      if (blank(first)) {
        ++column;
        continue;
      }
      const bool drawn = !parts_of(first.sign).empty();
      int end = column + 1;
      // A run has one ink; of drawn signs, one sign; a gap of one blank is part of a text.
      const auto goes_on = [&](int c) {
        const Cell& cell = canvas.at(row, c);
        if (cell.meaning != first.meaning || cell.stress != first.stress) return false;
        return drawn ? cell.sign == first.sign : parts_of(cell.sign).empty();
      };
      while (end < canvas.columns() && goes_on(end) &&
             (!blank(canvas.at(row, end)) ||
              (end + 1 < canvas.columns() && !blank(canvas.at(row, end + 1)) && goes_on(end + 1))))
        ++end;
      draw_run(svg, canvas, row, column, end);
      column = end;
    }
  }
  return svg.str();
}

}  // namespace leat::tools::top
