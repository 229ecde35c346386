// A real video as trackers are measured on generated ones (drop_table.h), at a third or so of its size, with a
// classical detector: what stands out from a learned background (OpenCV's MOG2), as boxes around what hangs together.
//
// Nobody has marked what is there. As truth stands what the detector said over time: boxes that follow one another by
// overlap for half a second and more, gaps of up to three frames filled, each side smoothed over seven frames by a
// line. What flickers in one frame is not in it, what the detector never sees is not either. It is made without any of
// the trackers.
#pragma once

#include <string>

#include "leat/result.hpp"
#include "tools/scene/tracking/drop_table.h"

namespace leat::bench {

// Errors: one line; also where this was built without OpenCV.
[[nodiscard]] Result<scene::Footage> real_footage(const std::string& path);

// The truth above, from what was detected. Any frame may be empty.
[[nodiscard]] std::vector<std::vector<TrackedBox>> smoothed_over_time(
    const std::vector<std::vector<TrackedBox>>& detected, double fps);

}  // namespace leat::bench
