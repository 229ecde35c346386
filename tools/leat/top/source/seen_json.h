// Cameras and GPUs as they are told in JSON: by feeders, by leat-gpu watch, and in a recording's lines. What makes no
// sense is left out. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/base/json/json.h"
#include "tools/leat/top/facts/figures.h"

namespace leat::tools::top {

// Of read_camera_states(), with times of now. Rates are rounded, and the last picture of a camera that runs is of now,
// so that what does not change does not look as if it did.
[[nodiscard]] std::vector<CameraFigures> cameras_told(const Json& states, std::int64_t now_ns);
// A line of leat-gpu watch.
[[nodiscard]] std::vector<HeatFigures> gpus_told(const Json& line);

// Of a recording.
[[nodiscard]] Json to_json(const std::vector<CameraFigures>& cameras);
[[nodiscard]] Json to_json(const std::vector<HeatFigures>& gpus);
[[nodiscard]] std::vector<CameraFigures> cameras_recorded(const Json& list);
[[nodiscard]] std::vector<HeatFigures> gpus_recorded(const Json& list);

}  // namespace leat::tools::top
