// Whether a JPEG is there as a whole, as far as its markers tell. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace leat::tools {

// A progressive JPEG without its end marker: the scans that refine the picture are missing, and none that is there
// shows it. (Of a sequential one, which has all of the picture in one scan, its decoder sees what is missing.)
[[nodiscard]] bool lacks_scans(std::span<const std::uint8_t> jpeg);

}  // namespace leat::tools
