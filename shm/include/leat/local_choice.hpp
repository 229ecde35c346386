// Which of two results a client shows on a frame: what was tracked from the last answer, or what an algorithm of its
// own finds that loses the same whatever the frame (leat_stream_options::local_drop_ppm). The second where the tracker
// expects to have lost more than that (tracked_stream.hpp's expected()); leatd knows what a stream's expectations have
// been worth so far, and says from which on (leat_schedule::local_above).
//
//   leat::LocalChoice choice;
//   for each frame:  boxes = choice.local(tracked.expected(), schedule.local_above) ? own(frame) : tracked.boxes();
//
// So that a loss near the bound does not change what is shown from frame to frame, the tracker's result is shown again
// only when clearly less is expected, which is so at a new answer.
//
// Where the tracker does not say, or what it says has not proven to be worth anything: always the tracker's.
// Plain data. Thread rule: one thread. Errors: none.
#pragma once

namespace leat {

class LocalChoice {
 public:
  static constexpr double kBack = 0.8;  // of the bound, below which the tracker's result is shown again

  // For each frame in order. expected: below 0, the tracker does not say. above: 0, it has not proven worth anything.
  [[nodiscard]] bool local(double expected, double above) {
    return local_ = expected >= 0 && above > 0 && expected > (local_ ? kBack * above : above);
  }

 private:
  bool local_ = false;  // of the frame before
};

}  // namespace leat
