#include "tools/leat/top/picture.h"

#include <algorithm>

#include "tools/base/cli/svg.h"

namespace leat::tools {
namespace {

constexpr double kCell = 6.6, kRow = 15, kMargin = 10;

struct Ink {
  const char* colour;
  bool bold;
};
Ink ink_of(Style style) {
  switch (style) {
    case Style::good:
      return {"#7fd88f", true};
    case Style::warning:
      return {"#e6c15c", false};
    case Style::bad:
      return {"#ff7b72", true};
    case Style::dim:
      return {"#8a919c", false};
    case Style::title:
    case Style::chosen:
      return {"#ffffff", true};
    case Style::plain:
      break;
  }
  return {"#d6dae0", false};
}

}  // namespace

std::string top_picture(const std::vector<Line>& lines) {
  std::size_t columns = 1;
  for (const Line& line : lines) columns = std::max(columns, line.text.find_last_not_of(' ') + 1);
  const double width = 2 * kMargin + kCell * static_cast<double>(columns),
               height = 2 * kMargin + kRow * static_cast<double>(lines.size());
  cli::Svg svg(width, height);
  svg.box(0, 0, width, height, "#1b1f24", "#1b1f24", 6);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double top = kMargin + kRow * static_cast<double>(i);
    const Style style = lines[i].style;
    if (style == Style::title || style == Style::chosen)
      svg.box(kMargin, top, width - 2 * kMargin, kRow, style == Style::chosen ? "#3d5a80" : "#3a404a", "none", 0);
    const std::size_t end = lines[i].text.find_last_not_of(' ');
    if (end == std::string::npos) continue;
    const Ink ink = ink_of(style);
    svg.cells(kMargin, top + 11.5, lines[i].text.substr(0, end + 1), kCell, ink.colour, ink.bold);
  }
  return svg.str();
}

}  // namespace leat::tools
