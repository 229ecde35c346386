// How much a tracker expects to have lost by now (tracking.hpp), from what it knows anyway: how many of a box's points
// were found again and agree, how far those are apart, how the box grew, how far and next to what it went, and how old
// the answer is. A sum of those terms with fixed weights, which each tracker has of its own, made from recordings
// (docs/guide/certainty.md).
//
// The number is the expected distance (tracking.hpp) to a detection of the same frame, without the detector's flicker:
// the order of a stream's frames by it is what it is made for; its scale differs from video to video.
//
// Thread rule: its tracker's. Errors: none; allocates when there are more boxes than ever before.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "leat/box_motion.hpp"
#include "leat/tracking.hpp"

namespace leat {

// Of a frame: means over its boxes, lengths in sizes of the box (the root of its area). All are 0 at the answer, but
// for what overlaps then.
enum CertaintyTerm : std::uint8_t {
  kTermLost,         // points that were not found again, of those looked for; summed over steps
  kTermOutliers,     // of those found, that went another way than most; summed
  kTermSpread,       // of those that agree, around the box's move; summed
  kTermWander,       // how far off the box is if each step errs by chance as those points say
  kTermMostWander,   // of the worst box
  kTermGrowth,       // of the box, either way; summed
  kTermPath,         // that it went
  kTermBorder,       // that it went near the frame's border
  kTermTurns,        // changes of its move from step to step; summed
  kTermOverlap,      // largest with another box
  kTermOverlapSoon,  // in 12 frames, if all go on as they do
  kTermOverlapSum,   // over the steps, in sixteenths
  kTermAge,          // steps since the answer, in sixteenths
  kTermAgeSmall,     // times ten over the box's size in pixels
  kCertaintyTerms
};
using CertaintyTerms = std::array<float, kCertaintyTerms>;
// As a file of a rule has them (leat/certainty_file.hpp).
inline constexpr std::array<std::string_view, kCertaintyTerms> kCertaintyTermNames = {
    "lost",   "outliers", "spread",  "wander",       "most_wander", "growth", "path",
    "border", "turns",    "overlap", "overlap_soon", "overlap_sum", "age",    "age_small"};

struct CertaintyRule {
  CertaintyTerms weight{};  // by term
  bool asks = true;         // false: it tells no more than the answer's age does, so nothing is expected, ever
  [[nodiscard]] double expected(const CertaintyTerms& terms) const {
    if (!asks) return -1;
    float sum = 0;
    for (std::size_t i = 0; i < kCertaintyTerms; ++i) sum += weight[i] * terms[i];
    return sum > 0 ? std::min(sum, 1.0f) : 0;
  }
};

// What a tracker gathers from an answer on. start(), then for each step saw() of each box; terms() at any time.
class Certainty {
 public:
  void start(const GreyFrame& frame, std::size_t boxes) {
    age_ = 0;
    sums_.assign(boxes, {});
    width_ = static_cast<float>(frame.width);
    height_ = static_cast<float>(frame.height);
  }

  // A step of box number `i`, which has ended as `box`. `before` and `now`: its moves of the step before and of this
  // one; `points`: that were looked for.
  void saw(std::size_t i, const TrackedBox& box, const BoxMove& before, const BoxMove& now, std::size_t points,
           const BoxVotes& votes) {
    Sums& s = sums_[i];
    const float size = size_of(box);
    const auto n = static_cast<float>(points), found = static_cast<float>(votes.found);
    const auto kept = static_cast<float>(votes.kept);
    if (points > 0) s.lost += 1 - found / n;
    if (votes.found > 0) s.outliers += 1 - kept / found;
    s.spread += std::sqrt(votes.spread) / size;
    // A step that went by nothing may err by as much as a point that agrees can.
    s.wander += (votes.kept > 0 ? votes.spread / kept : 1.0f) / (size * size);
    s.growth += std::abs(votes.growth);
    const float path = std::hypot(now.x, now.y) / size;
    s.path += path;
    s.turns += std::hypot(now.x - before.x, now.y - before.y) / size;
    const float room = std::min({box.x0, box.y0, width_ - box.x1, height_ - box.y1});
    s.border += path * std::clamp(1 - room / size, 0.0f, 1.0f);
  }
  // Every box's step was told.
  void stepped(std::span<const TrackedBox> boxes) {
    ++age_;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      sums_[i].overlap = largest_overlap(boxes, i);
      sums_[i].overlaps += sums_[i].overlap;
    }
  }

  // `moves`: of the last step.
  [[nodiscard]] CertaintyTerms terms(std::span<const TrackedBox> boxes, std::span<const BoxMove> moves) {
    CertaintyTerms t{};
    const float age = static_cast<float>(age_) / 16;
    soon_.assign(boxes.begin(), boxes.end());
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const float x = kSoon * moves[i].x, y = kSoon * moves[i].y;
      soon_[i].x0 += x, soon_[i].x1 += x, soon_[i].y0 += y, soon_[i].y1 += y;
    }
    for (std::size_t i = 0; i < boxes.size() && i < sums_.size(); ++i) {
      const Sums& s = sums_[i];
      const float wander = std::sqrt(s.wander);
      t[kTermLost] += s.lost;
      t[kTermOutliers] += s.outliers;
      t[kTermSpread] += s.spread;
      t[kTermWander] += wander;
      t[kTermMostWander] = std::max(t[kTermMostWander], wander);
      t[kTermGrowth] += s.growth;
      t[kTermPath] += s.path;
      t[kTermBorder] += s.border;
      t[kTermTurns] += s.turns;
      t[kTermOverlap] += s.overlap;
      t[kTermOverlapSoon] += largest_overlap(soon_, i);
      t[kTermOverlapSum] += s.overlaps / 16;
      t[kTermAgeSmall] += age * 10 / size_of(boxes[i]);
    }
    const auto n = static_cast<float>(boxes.size());
    for (std::size_t i = 0; i < kCertaintyTerms; ++i)
      if (i != kTermMostWander && n > 0) t[i] /= n;
    t[kTermAge] = age;
    for (float& each : t) each = std::isfinite(each) ? std::clamp(each, -kMost, kMost) : kMost;
    return t;
  }

 private:
  struct Sums {  // of a box since the answer
    float lost = 0, outliers = 0, spread = 0, wander = 0, growth = 0, path = 0, border = 0, turns = 0;
    float overlap = 0, overlaps = 0;
  };
  static constexpr float kSoon = 12, kMost = 1e4f;

  static float size_of(const TrackedBox& b) {
    const float area = (b.x1 - b.x0) * (b.y1 - b.y0);
    return area > 16 ? std::sqrt(area) : 4;
  }
  static float largest_overlap(std::span<const TrackedBox> boxes, std::size_t i) {
    float most = 0;
    for (std::size_t k = 0; k < boxes.size(); ++k)
      if (k != i) most = std::max(most, overlap(boxes[i], boxes[k]));
    return most;
  }

  std::uint32_t age_ = 0;
  float width_ = 0, height_ = 0;
  std::vector<Sums> sums_;
  std::vector<TrackedBox> soon_;
};

}  // namespace leat
