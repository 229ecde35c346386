// The demo's cameras as videos: H.264, 30 pictures a second, a key picture a second, no picture that waits for a later
// one. Errors: one line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leat/result.hpp"

namespace leat::bench {

// street0.mp4 ... street3.mp4: those in `scenes`, or, where that is empty, drawn and encoded into `folder` by the
// leat-scene that the build left and ffmpeg. Shows how far it is.
Result<std::vector<std::string>> street_videos(const std::string& scenes, const std::string& folder,
                                               std::uint64_t pictures);

}  // namespace leat::bench
