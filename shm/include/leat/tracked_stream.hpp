// Boxes on every frame from answers to a few: keeps the frames since the one that was last answered, follows their
// boxes with any tracker, catches up when an answer comes that is several frames old, and says what tracking had lost
// by then.
//
//   leat::TrackedStream<leat::BlockTracker> tracked;
//   for each frame:   boxes = tracked.frame(number, grey);           what to show
//   for each answer:  auto seen = tracked.answer(number, boxes);      of the frame of that number
//                     if (seen) ... seen->stride, seen->drop          what was lost: the client's report
//
// Frames are numbered upwards. One older than the last `depth` frames cannot be caught up with any more: its answer is
// not used. Thread rule: one thread. Errors: none; allocates until all frames have had their size once.
#pragma once

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "leat/tracking.hpp"

namespace leat {

struct TrackingReport {
  std::uint32_t stride = 0;  // frames that tracking had gone on for
  double drop = 0;           // distance between what it had made of the frame and the answer, 0..1
};

template <Tracker T>
class TrackedStream {
 public:
  explicit TrackedStream(std::size_t depth = 64, T tracker = T()) : tracker_(std::move(tracker)), kept_(depth) {}

  // What is to be shown on this frame; empty until the first answer. Numbers that do not grow are ignored.
  std::span<const TrackedBox> frame(std::uint64_t number, const GreyFrame& grey) {
    if (newest_ && number <= *newest_) return tracker_.boxes();
    newest_ = number;
    Kept& slot = kept_[next_];
    next_ = (next_ + 1) % kept_.size();
    slot.number = number;
    slot.used = true;
    slot.width = grey.width;
    slot.height = grey.height;
    slot.pixels.resize(std::size_t{grey.width} * grey.height);
    for (std::uint32_t y = 0; y < grey.height; ++y)
      std::memcpy(slot.pixels.data() + std::size_t{y} * grey.width, grey.pixels + y * grey.stride, grey.width);
    if (source_) tracker_.step(view(slot));
    shown(slot);
    return tracker_.boxes();
  }

  // An answer for frame `number`. What tracking had made of that frame is compared with it first, where it had made
  // something; then the answer is carried on to the newest frame.
  std::optional<TrackingReport> answer(std::uint64_t number, std::span<const TrackedBox> boxes) {
    if (source_ && number <= *source_) return std::nullopt;  // older than what is shown
    std::size_t at = kept_.size();
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (kept_[i].used && kept_[i].number == number) at = i;
    if (at == kept_.size()) return std::nullopt;
    std::optional<TrackingReport> report;
    if (source_) {
      report = TrackingReport{static_cast<std::uint32_t>(number - *source_), distance(kept_[at].boxes, boxes)};
    }
    source_ = number;
    tracker_.start(view(kept_[at]), boxes);
    shown(kept_[at]);
    while ((at = (at + 1) % kept_.size()) != next_) {  // the ring is in order of numbers
      tracker_.step(view(kept_[at]));
      shown(kept_[at]);
    }
    return report;
  }

  [[nodiscard]] std::span<const TrackedBox> boxes() const { return tracker_.boxes(); }

 private:
  struct Kept {
    std::uint64_t number = 0;
    bool used = false;
    std::uint32_t width = 0, height = 0;
    std::vector<std::uint8_t> pixels;
    std::vector<TrackedBox> boxes;  // what was shown on it
  };
  static GreyFrame view(const Kept& k) { return {k.pixels.data(), k.width, k.height, k.width}; }
  void shown(Kept& k) const {
    const std::span<const TrackedBox> now = tracker_.boxes();
    k.boxes.assign(now.begin(), now.end());
  }

  T tracker_;
  std::vector<Kept> kept_;
  std::size_t next_ = 0;                 // oldest of the ring once it is full
  std::optional<std::uint64_t> newest_;  // frame
  std::optional<std::uint64_t> source_;  // frame that is answered and carried on
};

}  // namespace leat
