// Whether what a model answered holds numbers: none that is infinite or not a number. Pure; any thread.
#pragma once

#include "engine/exec/decode/post.h"

namespace leat::exec {

// Integers always are. One pass over the item's values, as fast as they come from memory.
[[nodiscard]] bool all_finite(const ItemTensor& item) noexcept;

}  // namespace leat::exec
