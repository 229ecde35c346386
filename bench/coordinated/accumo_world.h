// The world that AccuMO's policies are tried in: one client whose tasks are tracked between answers, each on a video of
// its own with recorded drops (drop_table.h); one offloading at a time, each task's takes so many frames; a local
// algorithm, where there is one, loses its error whatever the frame. What a frame loses is the mean over tasks of what
// is shown: the tracked answer, or the local algorithm's where that is believed to be better, by the age of what is
// tracked and its slope, or, where trackers say what they expect to have lost and that is worth something, by that
// (leat/local_choice.hpp); the plan's slopes then go by what was expected at answers, which is what a server is told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/core/streams/group.h"
#include "tools/scene/tracking/drop_table.h"

namespace leat::bench {

using scene::DropTable;

struct AccumoTask {
  const DropTable* table = nullptr;
  double scale = 1;           // of the table's drops, so that two videos' rates have a ratio
  double local = 0;           // error of the local algorithm; 0: none
  std::uint32_t latency = 2;  // frames
};

struct AccumoCase {
  std::vector<AccumoTask> tasks;
  std::uint32_t frames = 600;
  std::uint64_t offset = 0;  // where in the videos it begins
};

// weighted: so many turns of the first task for so many of the second. all: all tasks at once, which takes as long as
// one after the other. leat: the exact program over the estimated rates; oracle: over the rates that are.
enum class Turns : std::uint8_t { weighted, all, leat, oracle };

struct AccumoPolicy {
  Turns turns = Turns::leat;
  std::uint32_t first = 1, second = 1;  // weighted
  bool local = true;                    // whether local algorithms are used
  std::uint32_t horizon = 30;           // frames
  bool certain = false;                 // whether clients say what they expect to have lost (leat/certainty.hpp)
};

// Mean error, beyond what a detection of every frame would have.
[[nodiscard]] double run_accumo(const AccumoCase& c, const AccumoPolicy& policy);

// What two tasks of equal latency can gain over round-robin at most, by splitting the time freely between constant
// rates: (sqrt r1 - sqrt r2)^2 / (4 (r1 + r2)).
[[nodiscard]] double max_over_round_robin(double ratio);

}  // namespace leat::bench
