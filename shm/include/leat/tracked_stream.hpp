// Boxes on every frame from answers to a few: keeps the frames since the one that was last answered, follows their
// boxes with any tracker, catches up when an answer comes that is several frames old, and says what tracking had lost
// by then. Every 96 frames (look_back.hpp) an answer is also compared with what would still be tracked from an older
// one, which is followed up to it then: 16 to 31 steps of the tracker, within answer().
//
//   leat::TrackedStream<leat::BlockTracker> tracked;
//   for each frame:   boxes = tracked.frame(number, grey);           what to show
//   for each answer:  auto seen = tracked.answer(number, boxes);      of the frame of that number
//                     if (seen) ... seen->stride, seen->drop          what was lost: the client's report,
//                     and far_stride, far_drop where far_stride > 0   leat_observe and leat_observe_far
//
// With a tracker that says what it expects to have lost (certainty.hpp), expected() says it of what is shown, for
// leat_should_submit_expecting, and the reports have it too, for leat_observe_expecting.
//
// Frames are numbered upwards. One older than the last `depth` frames cannot be caught up with any more: its answer is
// not used. With fewer than 32 kept, answers are seldom compared with older ones. Thread rule: one thread. Errors:
// none; allocates until all frames have had their size once.
#pragma once

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "leat/look_back.hpp"
#include "leat/tracking.hpp"

namespace leat {

struct TrackingReport {
  std::uint32_t stride = 0;  // frames that tracking had gone on for
  double drop = 0;           // distance between what it had made of the frame and the answer, 0..1
  // The same of the frames since an older answer; stride 0: not compared this time.
  std::uint32_t far_stride = 0;
  double far_drop = 0;
  // What the tracker had expected those drops to be, 0..1; below 0: it does not say.
  double expected = -1, far_expected = -1;
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
    std::size_t at = find(number);
    if (at == kept_.size()) return std::nullopt;
    std::optional<TrackingReport> report;
    if (source_) {
      report = TrackingReport{.stride = static_cast<std::uint32_t>(number - *source_),
                              .drop = distance(kept_[at].boxes, boxes),
                              .expected = kept_[at].expected};
    }
    source_ = number;
    if (const auto from = look_.answered(number); from && report) look_back(*from, at, boxes, *report);
    if (look_.from() == number) from_boxes_.assign(boxes.begin(), boxes.end());
    tracker_.start(view(kept_[at]), boxes);
    shown(kept_[at]);
    while ((at = (at + 1) % kept_.size()) != next_) {  // the ring is in order of numbers
      tracker_.step(view(kept_[at]));
      shown(kept_[at]);
    }
    return report;
  }

  [[nodiscard]] std::span<const TrackedBox> boxes() const { return tracker_.boxes(); }
  // What boxes() has lost by now, as far as the tracker can tell, 0..1; below 0: it does not say, or has no answer yet.
  [[nodiscard]] double expected() const { return expected_; }

 private:
  struct Kept {
    std::uint64_t number = 0;
    bool used = false;
    std::uint32_t width = 0, height = 0;
    std::vector<std::uint8_t> pixels;
    std::vector<TrackedBox> boxes;  // what was shown on it
    double expected = -1;           // to have been lost then
  };
  static GreyFrame view(const Kept& k) { return {k.pixels.data(), k.width, k.height, k.width}; }
  [[nodiscard]] std::size_t find(std::uint64_t number) const {  // kept_.size(): kept no longer, or never
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (kept_[i].used && kept_[i].number == number) return i;
    return kept_.size();
  }
  // With the one tracker, which is started anew behind it anyway.
  void look_back(std::uint64_t from, std::size_t to, std::span<const TrackedBox> boxes, TrackingReport& report) {
    std::size_t at = find(from);
    if (at == kept_.size()) return;
    tracker_.start(view(kept_[at]), from_boxes_);
    while (at != to) tracker_.step(view(kept_[at = (at + 1) % kept_.size()]));
    report.far_stride = static_cast<std::uint32_t>(kept_[to].number - from);
    report.far_drop = distance(tracker_.boxes(), boxes);
    report.far_expected = expects();
  }
  void shown(Kept& k) {
    const std::span<const TrackedBox> now = tracker_.boxes();
    k.boxes.assign(now.begin(), now.end());
    k.expected = expected_ = source_ ? expects() : -1;
  }
  [[nodiscard]] double expects() {
    if constexpr (CertainTracker<T>) return tracker_.expected();
    return -1;
  }

  T tracker_;
  std::vector<Kept> kept_;
  std::size_t next_ = 0;                 // oldest of the ring once it is full
  std::optional<std::uint64_t> newest_;  // frame
  std::optional<std::uint64_t> source_;  // frame that is answered and carried on
  LookBack look_;
  double expected_ = -1;
  std::vector<TrackedBox> from_boxes_;  // the answer of look_.from()
};

}  // namespace leat
