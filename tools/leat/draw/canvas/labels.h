// Where labels go: near what they name, never on one another nor on what is taken, whole within the picture, and where
// there is a choice on as little of other things as can be. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tools/leat/draw/canvas/geometry.h"

namespace leat::tools::draw {

struct LabelWish {
  Rect of;                       // what it names
  double width = 0, height = 0;  // of the label
};

// By wish: where its label goes; nothing where there is no room near enough. Wishes that come first choose first.
[[nodiscard]] std::vector<std::optional<Rect>> place_labels(std::span<const LabelWish> wishes, const Rect& within,
                                                            std::span<const Rect> taken);
// Whether a label stands so far from what it names that a line between the two is needed.
[[nodiscard]] bool apart(const Rect& label, const Rect& of) noexcept;

}  // namespace leat::tools::draw
