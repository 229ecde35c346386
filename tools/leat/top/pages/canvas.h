// A screen as cells: a sign, what it means, and how it stands out. Pages write it; a terminal, a text and a picture
// show it. What a colour says, a sign says too. Values; nothing that a client wrote can be more than a sign here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::tools::top {

// Five meanings, and none.
enum class Meaning : std::uint8_t { plain, good, late, dropped, failed, idle };
enum class Stress : std::uint8_t { none, strong, title, chosen };

struct Cell {
  char32_t sign = U' ';  // 0: the second column of the sign before
  Meaning meaning = Meaning::plain;
  Stress stress = Stress::none;
  bool operator==(const Cell&) const = default;
};

struct Ink {
  Meaning meaning = Meaning::plain;
  Stress stress = Stress::none;
};

class Canvas {
 public:
  Canvas(int rows, int columns);
  [[nodiscard]] int rows() const noexcept { return rows_; }
  [[nodiscard]] int columns() const noexcept { return columns_; }
  [[nodiscard]] const Cell& at(int row, int column) const;

  // Text from a column on, cut at `end` (the canvas's where it is left out) with '~'; what lies outside is left out.
  void put(int row, int column, std::string_view text, Ink ink = {}, int end = INT32_MAX);
  void put_sign(int row, int column, char32_t sign, Ink ink = {});
  // So that its last sign stands in the column before `end`.
  void put_right(int row, int end, std::string_view text, Ink ink = {});
  // What is there keeps its signs: for a row that is chosen.
  void stress(int row, int from, int end, Stress stress);
  // A rule with words in it: "NAME ── more ──".
  void rule(int row, int from, int end, std::string_view text, Stress stress = Stress::title);
  // Another canvas, in a place of this one.
  void paste(const Canvas& other, int row, int column);
  // The signs that a terminal shows that knows ASCII alone; cells stay where they are.
  void to_ascii();
  // Rows without blanks at their ends, each with a newline.
  [[nodiscard]] std::string text() const;
  // The same cells as letters of their meanings: " " plain, g l d f i, capitals where they stand out.
  [[nodiscard]] std::string meanings() const;

 private:
  int rows_, columns_;
  std::vector<Cell> cells_;
};

[[nodiscard]] int width_of(std::string_view text) noexcept;
void append_utf8(std::string* out, char32_t letter);
[[nodiscard]] char32_t ascii_of(char32_t sign) noexcept;

}  // namespace leat::tools::top
