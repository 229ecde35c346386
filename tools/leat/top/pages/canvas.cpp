#include "tools/leat/top/pages/canvas.h"

#include <algorithm>

#include "tools/leat/top/facts/text.h"

namespace leat::tools::top {

Canvas::Canvas(int rows, int columns)
    : rows_(std::max(rows, 0)),
      columns_(std::max(columns, 0)),
      cells_(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(columns_)) {}

const Cell& Canvas::at(int row, int column) const {
  return cells_[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(column)];
}

void Canvas::put_sign(int row, int column, char32_t sign, Ink ink) {
  if (row < 0 || row >= rows_ || column < 0 || column >= columns_) return;
  cells_[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(column)] = {
      sign, ink.meaning, ink.stress};
}

void Canvas::put(int row, int column, std::string_view text, Ink ink, int end) {
  end = std::min(end, columns_);
  const bool cut = column + width_of(text) > end;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t letter = next_letter(text, &at);
    const int width = columns_of(letter);
    if (column + std::max(width, 1) > end - (cut ? 1 : 0)) {
      if (cut && column < end) put_sign(row, column, U'~', ink);
      return;
    }
    put_sign(row, column, width == 0 ? U'?' : letter, ink);
    if (width == 2) put_sign(row, column + 1, 0, ink);
    column += std::max(width, 1);
  }
}

void Canvas::put_right(int row, int end, std::string_view text, Ink ink) {
  put(row, end - width_of(text), text, ink, end);
}

void Canvas::stress(int row, int from, int end, Stress stress) {
  if (row < 0 || row >= rows_) return;
  for (int column = std::max(from, 0); column < std::min(end, columns_); ++column) {
    Cell cell = at(row, column);
    put_sign(row, column, cell.sign, {cell.meaning, stress});
  }
}

void Canvas::rule(int row, int from, int end, std::string_view text, Stress stress) {
  end = std::min(end, columns_);
  put(row, from, text, {Meaning::plain, stress}, end);
  for (int column = from + width_of(text); column < end; ++column)
    put_sign(row, column, column + 1 == end ? U' ' : U'─', {Meaning::plain, stress});
}

void Canvas::paste(const Canvas& other, int row, int column) {
  for (int r = 0; r < other.rows(); ++r)
    for (int c = 0; c < other.columns(); ++c) {
      const Cell& cell = other.at(r, c);
      put_sign(row + r, column + c, cell.sign, {cell.meaning, cell.stress});
    }
}

char32_t ascii_of(char32_t sign) noexcept {
  if (sign < 0x80) return sign;
  switch (sign) {
    case U'─':
    case U'╌':
    case U'╶':
      return U'-';
    case U'━':
    case U'╸':
    case U'▄':
      return U'=';
    case U'│':
      return U'|';
    case U'▁':
      return U'_';
    case U'▂':
      return U'.';
    case U'▃':
      return U':';
    case U'▅':
    case U'┤':
    case U'├':
    case U'└':
    case U'┬':
    case U'┴':
    case U'▸':
      return U'+';
    case U'▆':
      return U'*';
    case U'▇':
    case U'█':
      return U'#';
    case U'░':
      return U'%';
    case U'▾':
      return U'-';
    case U'▼':
      return U'D';
    case U'▲':
      return U'L';
    case U'×':
      return U'F';
    case U'·':
      return U'.';
    case U'»':
      return U'>';
    case U'▴':
      return U'^';
    default:
      return U'?';
  }
}

void Canvas::to_ascii() {
  for (Cell& cell : cells_)
    if (cell.sign != 0)
      cell.sign = ascii_of(cell.sign);
    else
      cell.sign = U' ';
}

void append_utf8(std::string* out, char32_t c) {
  const auto put = [&](char32_t byte) { *out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

int width_of(std::string_view text) noexcept {
  int width = 0;
  for (std::size_t at = 0; at < text.size();) width += std::max(1, columns_of(next_letter(text, &at)));
  return width;
}

std::string Canvas::text() const {
  std::string out;
  for (int row = 0; row < rows_; ++row) {
    int end = columns_;
    while (end > 0 && at(row, end - 1).sign == U' ') --end;
    for (int column = 0; column < end; ++column)
      if (const char32_t sign = at(row, column).sign; sign != 0) append_utf8(&out, sign);
    out += '\n';
  }
  return out;
}

std::string Canvas::meanings() const {
  std::string out;
  for (int row = 0; row < rows_; ++row) {
    std::string line;
    for (int column = 0; column < columns_; ++column) {
      const Cell& cell = at(row, column);
      const char letter = " gldfi"[static_cast<std::size_t>(cell.meaning)];
      static constexpr char kPlain[] = " STC";
      line += cell.stress == Stress::none ? letter
              : letter == ' '             ? kPlain[static_cast<std::size_t>(cell.stress)]
                                          : static_cast<char>(letter - 'a' + 'A');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace leat::tools::top
