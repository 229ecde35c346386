// Draws what one frame's answer says on the frame's picture, every kind of it: docs/guide/drawing.md shows how each
// looks. For `leat try -o` and `leat feed --annotate`. Thread rule: pure functions; any thread. Errors: none; parts
// that are not sound are left out.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/leat.h"
#include "leat/outcome.h"
#include "tools/leat/draw/canvas/marks.h"

namespace leat::tools::draw {

struct AnswerView {
  Outcome outcome = Outcome::completed;
  Reason reason{};
  double milliseconds = 0;              // from capture to answer
  const leat_result* result = nullptr;  // none where there was no answer
  std::uint64_t bytes = 0;              // room at result, head and parts
  // A class's name as leat_class_name gives it; nullptr where it has none. Empty: no class has one.
  std::function<const char*(std::uint32_t head, std::int32_t id)> name;
  std::string title;  // stands before all else in the banner
};

// tile: the drawing is as large as fits into that, with nothing beside it; otherwise sheet_of the frame's size.
// placed: where labels went.
[[nodiscard]] Picture draw_answer(const Picture& frame, const AnswerView& answer, std::optional<Size> tile = {},
                                  Placed* placed = nullptr);

// Boxes that are carried from picture to picture in a part of the frame.
struct Tracked {
  Rect part;  // pixels of the frame
  std::vector<Label> boxes;
  std::string banner;
};
[[nodiscard]] Picture draw_tracked(const Picture& frame, std::span<const Tracked> parts, std::optional<Size> tile = {});

}  // namespace leat::tools::draw
