// A client that asks when its tracker is unsure, played over a recording beside one that sends by the clock: whether it
// loses less with as many detections. One request is under way at a time, as leatd has it (leat/leat.h,
// leat_should_submit_expecting), and what may be asked for is in a bucket.
//
// Plain data. Thread rule: one thread. Errors: none.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tools/scene/tracking/drop_table.h"

namespace leat::tools {

struct Replay {
  std::uint32_t interval = 8;                              // frames, from one that is sent to the next, by the clock
  double above = std::numeric_limits<double>::infinity();  // expected loss from which a frame is sent before that
  bool asks = false;         // by the clock alone, else: at the latest four intervals after the frame before
  std::uint32_t answer = 2;  // frames from one that is sent until its answer serves
};
struct Replayed {
  std::uint32_t sent = 0;
  std::vector<double> lost;                                     // of each frame
  [[nodiscard]] std::vector<double> seconds(double fps) const;  // mean of each whole one
};
// Of frames [from, to) of a recording, whose drops and expectations are in `table`.
[[nodiscard]] Replayed replay(const scene::DropTable& table, std::uint32_t from, std::uint32_t to, const Replay& how);

// The same with the `above` by which as many frames are sent as by the clock at that interval, or as nearly so as
// there is one, never more.
[[nodiscard]] Replayed replay_asking(const scene::DropTable& table, std::uint32_t from, std::uint32_t to, Replay how,
                                     std::uint32_t sent);

}  // namespace leat::tools
