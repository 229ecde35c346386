// What the kinds of answers leave to be drawn last and together: labels, which avoid one another, and rows of a panel,
// which say what is true of the whole picture. Thread rule: values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/leat/draw/canvas/palette.h"
#include "tools/leat/draw/canvas/pen.h"
#include "tools/leat/draw/canvas/sheet.h"

namespace leat::tools::draw {

struct Label {
  Rect of;  // what it names
  std::string text;
  Colour colour;
};

struct Row {
  std::string text, value;       // at the left, at the right
  std::optional<Colour> swatch;  // a class's colour before the text
  double bar = -1;               // 0..1: how long a bar lies under it; < 0: none
  std::vector<Colour> strip;     // cells from left to right, in place of the text
};

struct Marks {
  std::vector<Label> labels;
  std::vector<Row> rows;
  std::string banner;
  Colour banner_colour = kWhite;
};

// Where things went, for whoever wants to know.
struct Placed {
  struct Text {
    Rect at;
    std::string text;
  };
  std::vector<Text> labels;
  Rect banner, panel;
  double font = 0;           // of the labels, pixels
  std::size_t left_out = 0;  // labels without room
};

// Draws them on the sheet's picture.
Placed draw_marks(Pen& pen, const Sheet& sheet, const Style& style, const Marks& marks);

}  // namespace leat::tools::draw
