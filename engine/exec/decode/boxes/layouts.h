// The table of all layouts of boxes. Control plane; any thread.
#pragma once

#include "engine/exec/decode/boxes/layout.h"

namespace leat::exec {

// Null: there is none of this name.
[[nodiscard]] const LayoutRow* find_layout(std::string_view name);
// "maps, rows, yolo8, ...", or those alone that take masks.
[[nodiscard]] std::string layout_names(bool with_masks = false);

}  // namespace leat::exec
