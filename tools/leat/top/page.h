// The screen of `leat top` as styled lines: a pure function of the figures, the size and what the user chose. The
// terminal only prints them; `--once` prints the same lines.
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

struct TopChoice {
  std::size_t table = 0;                      // which of kTables the keys act on
  std::size_t sort[std::size(kTables)] = {};  // column index
  bool descending[std::size(kTables)] = {};
  int first_row[std::size(kTables)] = {};  // scrolled by
  bool paused = false, help = false;
  std::string notice;  // shown instead of the keys: "leatd is gone, waiting for it"
};

// Exactly max(rows, 0) lines.
[[nodiscard]] std::vector<Line> top_page(const Window& window, const TopChoice& choice, int rows, int columns);

// The records of a table in the order chosen.
[[nodiscard]] std::vector<const shm::RecordSnapshot*> sorted_rows(const Window& window, const TopChoice& choice,
                                                                  std::size_t table);

// What a key does to the choice. False: the key asks to quit.
enum class Key : std::uint8_t {
  none,
  quit,
  help,
  next_table,
  next_column,
  previous_column,
  reverse,
  up,
  down,
  page_up,
  page_down,
  pause
};
[[nodiscard]] bool apply(Key key, const Window& window, TopChoice& choice);

}  // namespace leat::tools
