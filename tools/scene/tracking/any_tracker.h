// A tracker chosen at run time: 'blocks' (leat/block_tracker.hpp), or 'lk' (leat/lk_tracker.hpp) where this was built
// with OpenCV. Thread rule: as the trackers'. OpenCV is kept to the caller's thread, so that its CPU time is the
// caller's.
#pragma once

#include <memory>
#include <string_view>

#include "leat/certainty.hpp"
#include "leat/result.hpp"
#include "leat/tracking.hpp"

namespace leat::scene {

inline constexpr std::string_view kTrackers = "blocks|lk";

class AnyTracker {
 public:
  [[nodiscard]] static AnyTracker blocks();
  // Errors: one line; no tracker of that name, or not in this build.
  [[nodiscard]] static Result<AnyTracker> make(std::string_view name);

  [[nodiscard]] std::string_view name() const { return name_; }
  void start(const GreyFrame& frame, std::span<const TrackedBox> boxes) { tracker_->start(frame, boxes); }
  void step(const GreyFrame& frame) { tracker_->step(frame); }
  [[nodiscard]] std::span<const TrackedBox> boxes() const { return tracker_->boxes(); }
  // What they have lost, as far as the tracker can tell, by its own rule or the one given; and what it goes by.
  [[nodiscard]] double expected() const { return rule_.expected(terms()); }
  [[nodiscard]] CertaintyTerms terms() const { return tracker_->terms(); }
  [[nodiscard]] const CertaintyRule& rule() const { return rule_; }
  void set_rule(const CertaintyRule& rule) { rule_ = rule; }

  struct Interface {
    virtual ~Interface() = default;
    virtual void start(const GreyFrame& frame, std::span<const TrackedBox> boxes) = 0;
    virtual void step(const GreyFrame& frame) = 0;
    [[nodiscard]] virtual std::span<const TrackedBox> boxes() const = 0;
    [[nodiscard]] virtual CertaintyTerms terms() = 0;
  };

 private:
  AnyTracker(std::string_view name, const CertaintyRule& rule, std::unique_ptr<Interface> tracker)
      : name_(name), rule_(rule), tracker_(std::move(tracker)) {}
  std::string_view name_;
  CertaintyRule rule_;
  std::unique_ptr<Interface> tracker_;
};
static_assert(CertainTracker<AnyTracker>);

}  // namespace leat::scene
