// What `leat top --once` prints: the tables as styled lines. A pure function of the figures and the size; what people
// watch is pages/page.cpp.
#pragma once

#include <string>
#include <vector>

#include "tools/leat/top/layout.h"

namespace leat::tools {

enum class Style : std::uint8_t { plain, title, chosen, good, warning, bad, dim };

struct Line {
  std::string text;  // at most the width asked for; ASCII
  Style style = Style::plain;
};

// Exactly max(rows, 0) lines, the last one empty.
[[nodiscard]] std::vector<Line> top_page(const Window& window, int rows, int columns);

}  // namespace leat::tools
