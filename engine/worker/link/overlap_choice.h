// Whether batches of a module overlap, where it can (engine/worker/measuring/overlap_gain.h): where that was measured
// to gain, wherever it can, or nowhere. Plain data.
#pragma once

#include <cstdint>

namespace leat::worker {

enum class Overlap : std::uint8_t { measured, on, off };

}  // namespace leat::worker
