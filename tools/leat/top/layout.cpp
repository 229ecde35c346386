#include "tools/leat/top/layout.h"

#include <algorithm>

namespace leat::tools {

TopLayout layout_top(int rows, const TopCounts& counts) {
  constexpr std::size_t kPanes = std::size(kTables) + 1;  // the tables, then the reasons
  TopLayout layout;
  int left = std::max(rows, 0);
  layout.head.height = std::min(left, kHeadLines);
  left -= layout.head.height;
  layout.foot.height = left > 0 ? 1 : 0;
  left -= layout.foot.height;

  int wanted[kPanes], given[kPanes] = {};
  for (std::size_t i = 0; i < std::size(kTables); ++i) wanted[i] = counts.tables[i] > 0 ? counts.tables[i] + 1 : 0;
  wanted[kPanes - 1] = counts.reasons > 0 ? counts.reasons + 1 : 0;
  // Every pane its title and a row while there is room, in order; then line by line to those that want more.
  for (std::size_t i = 0; i < kPanes; ++i) {
    if (wanted[i] == 0 || left < 2) continue;
    given[i] = 2;
    left -= 2;
  }
  for (bool moved = true; moved && left > 0;) {
    moved = false;
    for (std::size_t i = 0; i < kPanes && left > 0; ++i) {
      if (given[i] == 0 || given[i] >= wanted[i]) continue;
      ++given[i];
      --left;
      moved = true;
    }
  }
  int top = layout.head.height;
  for (std::size_t i = 0; i < kPanes; ++i) {
    Area& area = i + 1 == kPanes ? layout.reasons : layout.tables[i];
    area = {.top = top, .height = given[i]};
    top += given[i];
  }
  layout.foot.top = std::max(rows, 0) - layout.foot.height;
  return layout;
}

std::vector<std::size_t> fitting_columns(std::span<const Column> columns, int width, int* name_width) {
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].width > 0) shown.push_back(i);
  }
  const auto needed = [&] {
    int sum = 0;
    for (const std::size_t i : shown) sum += columns[i].width + 1;
    return sum - 1;
  };
  while (shown.size() > 1 && needed() > width) {
    // The highest rank goes; among equals, and among those that should never go, the rightmost.
    const auto goes = std::max_element(shown.begin() + 1, shown.end(), [&](std::size_t a, std::size_t b) {
      return columns[a].rank < columns[b].rank || (columns[a].rank == columns[b].rank && a < b);
    });
    shown.erase(goes);
  }
  const int spare = shown.empty() ? 0 : width - needed();
  *name_width = shown.empty() ? 0
                              : std::clamp(columns[shown.front()].width + spare, 0,
                                           std::max(kMaxName, columns[shown.front()].width));
  *name_width = std::min(*name_width, std::max(width, 0));
  return shown;
}

}  // namespace leat::tools
