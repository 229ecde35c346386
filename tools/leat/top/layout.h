// Where the panes of `leat top` stand, and which columns fit: pure functions of sizes and counts.
// Every pane that is shown lies inside the screen, none overlaps another, and a shown table has its title and one row.
#pragma once

#include <span>
#include <vector>

#include "tools/leat/top/columns.h"

namespace leat::tools {

struct Area {
  int top = 0, height = 0;  // lines; height 0: not shown
};

struct TopLayout {
  Area head;                        // daemon and total
  Area tables[std::size(kTables)];  // in the order of kTables; the first line is the title
  Area reasons;                     // one line a reason, with a title
  Area foot;                        // the keys
};

struct TopCounts {
  int tables[std::size(kTables)] = {};  // rows each table would like to show
  int reasons = 0;
};

inline constexpr int kHeadLines = 4;

[[nodiscard]] TopLayout layout_top(int rows, const TopCounts& counts);

// The columns shown, by index, left to right: those of the highest rank give way first until the rest fits into
// `width`. The first column is always there and takes what is left over, up to kMaxName; its width is *name_width.
inline constexpr int kMaxName = 40;
[[nodiscard]] std::vector<std::size_t> fitting_columns(std::span<const Column> columns, int width, int* name_width);

}  // namespace leat::tools
