// What is looked at once a second: every record of the counters, and when that was. Made by the daemon's segment
// (source/source.h) or by a recording (source/recording.h).
#pragma once

#include <optional>
#include <string>

#include "tools/leat/top/facts/figures.h"
#include "tools/leat/top/sample.h"

namespace leat::tools::top {

struct Observation {
  Sample sample;
  std::int64_t wall_ns = 0, utc_offset_s = 0;  // of sample.at_ns
  bool gone = false;                           // leatd is not there: the sample has only its time
  std::optional<std::string> status;           // leatd's answer, where it was asked
  std::vector<shm::Event> events;              // of the flight recorder, since the look before
  std::vector<CameraFigures> cameras;          // of this user's feeders
  std::vector<HeatFigures> gpus;
};

}  // namespace leat::tools::top
