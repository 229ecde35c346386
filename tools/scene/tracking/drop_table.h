// What tracking loses, recorded: for every frame of a generated video (tools/scene/tracking/motion.h) that might be
// sent to a server, and every stride behind it, how far the tracked boxes are from the truth beyond what a detection of
// that very frame would be, and how far from that detection (which is all that a client sees). Studies of coordinated
// streams look it up instead of tracking.
//
// The detector is the truth with a flicker: each side of a box is off by 0.8 pixels of a frame 640 wide (standard
// deviation), drawn anew for each frame. Objects less than half visible are in nobody's list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/scene/tracking/any_tracker.h"
#include "tools/scene/tracking/motion.h"

namespace leat::scene {

// A video in grey with what is there and what a detector says, frame by frame.
struct Footage {
  std::string video;
  std::uint32_t width = 0, height = 0;
  double fps = 60;
  std::vector<std::uint8_t> pixels;                      // of all frames, tight
  std::vector<std::vector<TrackedBox>> truth, detected;  // one each
  [[nodiscard]] GreyFrame frame(std::size_t f) const {
    return {pixels.data() + f * width * height, width, height, width};
  }
};

struct DropTable {
  static constexpr std::uint32_t kStrides = 64;  // 0..63; longer ones are taken as 63
  std::string video;
  double fps = 60;
  std::uint32_t frames = 0, every = 1;  // a source stands for itself and the every - 1 frames after it
  std::vector<float> drop, seen;        // [source / every][stride]
  std::vector<CertaintyTerms> terms;    // what the tracker knew there of its own
  std::vector<float> expects;           // and made of it, by its rule
  double step_us = 0;                   // CPU time of one step of the tracker, mean

  [[nodiscard]] std::size_t at(std::uint64_t source, std::uint64_t stride) const {
    return source % frames / every * kStrides + std::min<std::uint64_t>(stride, kStrides - 1);
  }
  // Beyond the detection of the same frame; below 0 where chance was with the tracker.
  [[nodiscard]] double extra(std::uint64_t source, std::uint64_t stride) const { return drop[at(source, stride)]; }
  [[nodiscard]] double observed(std::uint64_t source, std::uint64_t stride) const { return seen[at(source, stride)]; }
  [[nodiscard]] double expected(std::uint64_t source, std::uint64_t stride) const {
    return expects[at(source, stride)];
  }
  void expect(const CertaintyRule& rule);  // by another rule
  [[nodiscard]] double mean_extra(std::uint32_t stride) const;
  [[nodiscard]] double mean_observed(std::uint32_t stride) const;
};

// A generated video with what the detector above says.
[[nodiscard]] Footage generated_footage(const MotionKind& kind, std::uint64_t seed, std::uint32_t frames);

// Of all frames but the last kStrides. Precondition: more than kStrides frames.
[[nodiscard]] DropTable record_drops(const Footage& footage, std::uint32_t every, AnyTracker tracker);
[[nodiscard]] DropTable record_drops(const MotionKind& kind, std::uint64_t seed, std::uint32_t frames,
                                     std::uint32_t every, AnyTracker tracker = AnyTracker::blocks());

}  // namespace leat::scene
