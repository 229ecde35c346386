// The tracker of Lucas and Kanade (tracking.hpp) by OpenCV's video module: up to 16 corners of each box are followed
// from frame to frame through a pyramid of the picture, and move and scale the box. Needs OpenCV 4 (core, imgproc,
// video); nothing else of this library includes this header.
//
// J.-Y. Bouguet, Pyramidal implementation of the Lucas Kanade feature tracker: windows of 15 x 15, 3 levels. Corners by
// Shi and Tomasi. OpenCV spreads the work over threads of its own; cv::setNumThreads(1) keeps it on the caller's.
// Thread rule: one thread for each tracker. Errors: none; a box without corners goes on as it did.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <opencv2/video/tracking.hpp>
#include <utility>
#include <vector>

#include "leat/box_motion.hpp"
#include "leat/certainty.hpp"
#include "leat/tracking.hpp"

namespace leat {

// Made by `certainty_study --rule --tracker lk` of all ten kinds of generated videos, two of each.
inline constexpr CertaintyRule kLkRule{{-0.0018578f, -0.056006f, 0.23845f, 3.6216f, 3.1891f, 0.08397f, 0.039388f,
                                        0.095776f, -0.02004f, 0.060732f, -0.003448f, 0.16707f, 0.0032581f, 0.008653f}};

class LkTracker {
 public:
  explicit LkTracker(const CertaintyRule& rule = kLkRule) : rule_(rule) {}

  void start(const GreyFrame& frame, std::span<const TrackedBox> boxes) {
    boxes_.assign(boxes.begin(), boxes.end());
    moved_.assign(boxes.size(), {});
    points_.clear();
    box_of_.clear();
    pyramid(frame, before_);
    asked_.assign(boxes.size(), 0);
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      find_corners(frame, i);
      asked_[i] = static_cast<std::size_t>(std::count(box_of_.begin(), box_of_.end(), i));
    }
    certainty_.start(frame, boxes.size());
  }

  void step(const GreyFrame& frame) {
    if (before_.empty() ||
        !(before_[0].cols == static_cast<int>(frame.width) && before_[0].rows == static_cast<int>(frame.height))) {
      points_.clear();  // nothing to compare with
      box_of_.clear();
      return pyramid(frame, before_);
    }
    pyramid(frame, now_);
    if (!points_.empty()) {
      cv::calcOpticalFlowPyrLK(before_, now_, points_, next_, found_, cv::noArray(), {kWindow, kWindow}, kLevels - 1,
                               {cv::TermCriteria::COUNT + cv::TermCriteria::EPS, 20, 0.03});
    }
    std::size_t at = 0, kept = 0;
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      const std::size_t first = at;
      std::size_t n = 0;
      std::array<PointMatch, kMostMatches> matches;
      for (; at < points_.size() && box_of_[at] == i; ++at) {
        if (found_[at] == 0) continue;
        const cv::Point2f d = next_[at] - points_[at];
        matches[n++] = {points_[at].x, points_[at].y, d.x, d.y};
      }
      const BoxMove before = moved_[i];
      const BoxVotes votes = move_box(boxes_[i], moved_[i], std::span(matches.data(), n));
      certainty_.saw(i, boxes_[i], before, moved_[i], asked_[i], votes);
      if (n == 0) continue;
      // What went another way than most is followed no longer: it hangs on to something else.
      const Agreement agrees = agreement(std::span(matches.data(), n));
      for (std::size_t k = first; k < at; ++k) {
        const cv::Point2f p = points_[k], q = next_[k];
        if (found_[k] == 0 || !agrees({p.x, p.y, q.x - p.x, q.y - p.y})) continue;
        points_[kept] = q;
        box_of_[kept++] = i;
      }
    }
    points_.resize(kept);
    box_of_.resize(kept);
    std::swap(before_, now_);
    certainty_.stepped(boxes_);
  }

  [[nodiscard]] std::span<const TrackedBox> boxes() const { return boxes_; }
  // What the boxes have lost by now, as far as this can tell (certainty.hpp), 0..1; and what it goes by.
  [[nodiscard]] double expected() { return rule_.expected(terms()); }
  [[nodiscard]] CertaintyTerms terms() { return certainty_.terms(boxes_, moved_); }

 private:
  static constexpr int kWindow = 15, kLevels = 3;

  static cv::Mat image(const GreyFrame& f) {  // is only read
    return {static_cast<int>(f.height), static_cast<int>(f.width), CV_8UC1, const_cast<std::uint8_t*>(f.pixels),
            f.stride};
  }
  static void pyramid(const GreyFrame& frame, std::vector<cv::Mat>& to) {
    cv::buildOpticalFlowPyramid(image(frame), to, {kWindow, kWindow}, kLevels - 1, true, cv::BORDER_REFLECT_101,
                                cv::BORDER_CONSTANT, false);
  }

  // Within the inner 80 % of the box: an outline's corners show what lies behind it.
  void find_corners(const GreyFrame& frame, std::size_t box) {
    const TrackedBox& b = boxes_[box];
    const float dx = 0.1f * (b.x1 - b.x0), dy = 0.1f * (b.y1 - b.y0);
    const auto within = [](float v, std::uint32_t most) {  // what is no number is at 0
      return v > 0 ? static_cast<int>(std::min(v, static_cast<float>(most))) : 0;
    };
    const int x0 = within(b.x0 + dx, frame.width), x1 = within(b.x1 - dx, frame.width);
    const int y0 = within(b.y0 + dy, frame.height), y1 = within(b.y1 - dy, frame.height);
    if (x1 - x0 < 4 || y1 - y0 < 4) return;
    const double apart = std::max(2.0, 0.1 * std::min(x1 - x0, y1 - y0));
    cv::goodFeaturesToTrack(image(frame)({x0, y0, x1 - x0, y1 - y0}), corners_, static_cast<int>(kMostMatches), 0.02,
                            apart, cv::noArray(), 3);
    for (const cv::Point2f& c : corners_) {
      points_.emplace_back(c.x + static_cast<float>(x0), c.y + static_cast<float>(y0));
      box_of_.push_back(box);
    }
  }

  std::vector<TrackedBox> boxes_;
  std::vector<BoxMove> moved_;
  std::vector<cv::Point2f> points_, next_, corners_;  // of the boxes in order
  std::vector<std::size_t> box_of_;                   // by point
  std::vector<std::uint8_t> found_;
  std::vector<cv::Mat> before_, now_;
  std::vector<std::size_t> asked_;  // corners that a box began with
  Certainty certainty_;
  CertaintyRule rule_;
};
static_assert(CertainTracker<LkTracker>);

}  // namespace leat
