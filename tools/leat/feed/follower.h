// The client's part of a coordinated stream (leat feed --accuracy): keeps each picture, follows the boxes of the last
// answer over it, says at each answer what that had lost, and counts what all of it was worth.
//
// Tracking runs on a grey copy at most 320 pixels wide; boxes come and go in pixels of the picture. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/leat.h"
#include "leat/tracked_stream.hpp"
#include "tools/leat/draw/answer.h"
#include "tools/leat/feed/own_picture.h"
#include "tools/leat/feed/small_grey.h"
#include "tools/leat/feed/source/picture_source.h"
#include "tools/leat/feed/truth.h"
#include "tools/scene/tracking/any_tracker.h"

namespace leat::tools {

struct FollowerFigures {
  std::string_view tracker;    // its name
  std::uint64_t frames = 0;    // shown, with what there was to show
  std::uint64_t followed = 0;  // of them behind some answer
  double tracking_cpu_s = 0;   // grey copy, tracking and catching up
  std::uint64_t reports = 0;   // answers that tracking was compared with
  double seen_sum = 0;         // their distances
  std::uint64_t judged = 0;    // followed frames with a truth
  double off_truth_sum = 0;    // their distances to it
  std::uint64_t answers_judged = 0;
  double detector_off_sum = 0;  // distances of answers to the truth of their own picture
  leat_schedule schedule{};     // as it stands
};

class Follower {
 public:
  // truth may be nullptr; outlives this. Precondition: takes(format).
  Follower(const PictureFormat& format, const Truth* truth, scene::AnyTracker tracker);
  [[nodiscard]] static bool takes(const PictureFormat& format) noexcept;  // pixels, not tensors

  // Memory for the next picture, for PictureSource::write.
  [[nodiscard]] const leat_frame& picture() const noexcept { return own_.frame; }
  // That picture has been written: its boxes. Numbers grow; `index` is the picture's place in its source.
  std::span<const TrackedBox> show(std::uint64_t number, std::uint64_t index);
  // An answer for picture `number`, at `index` of its source. What to report, if there was something to compare.
  std::optional<TrackingReport> answered(std::uint64_t number, std::uint64_t index, const leat_answer& answer);

  // What that has lost by now, as far as the tracker can tell; below 0: it cannot.
  [[nodiscard]] double expected() const noexcept { return tracked_.expected(); }
  // What was shown last, with that pixel of the drawing as the picture's first.
  [[nodiscard]] draw::Tracked tracked(std::uint32_t x = 0, std::uint32_t y = 0) const;
  [[nodiscard]] FollowerFigures& figures() noexcept { return figures_; }

 private:
  [[nodiscard]] std::optional<std::vector<TrackedBox>> truth_at(std::uint64_t index) const;

  OwnPicture own_;
  const leat_frame& frame_ = own_.frame;
  SmallGrey grey_;
  const Truth* truth_;
  FollowerFigures figures_;
  TrackedStream<scene::AnyTracker> tracked_;
  std::vector<TrackedBox> shown_;
  std::vector<std::string> names_;  // by TrackedBox::label
  std::uint64_t source_ = 0, newest_ = 0;
  bool any_ = false;  // answer
};

}  // namespace leat::tools
