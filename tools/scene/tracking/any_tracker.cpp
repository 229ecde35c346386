#include "tools/scene/tracking/any_tracker.h"

#include <string>

#include "leat/block_tracker.hpp"
#if defined(LEAT_OPENCV)
#include <opencv2/core/utility.hpp>

#include "leat/lk_tracker.hpp"
#endif

namespace leat::scene {
namespace {

template <Tracker T>
struct Chosen final : AnyTracker::Interface {
  void start(const GreyFrame& frame, std::span<const TrackedBox> boxes) override { tracker.start(frame, boxes); }
  void step(const GreyFrame& frame) override { tracker.step(frame); }
  [[nodiscard]] std::span<const TrackedBox> boxes() const override { return tracker.boxes(); }
  [[nodiscard]] CertaintyTerms terms() override { return tracker.terms(); }
  T tracker;
};

}  // namespace

AnyTracker AnyTracker::blocks() { return {"blocks", kBlockRule, std::make_unique<Chosen<BlockTracker>>()}; }

Result<AnyTracker> AnyTracker::make(std::string_view name) {
  if (name == "blocks") return blocks();
  if (name != "lk") return Error{"there is no tracker '" + std::string(name) + "', only 'blocks' and 'lk'"};
#if defined(LEAT_OPENCV)
  cv::setNumThreads(1);
  return AnyTracker("lk", kLkRule, std::make_unique<Chosen<LkTracker>>());
#else
  return Error{
      "the tracker 'lk' needs OpenCV, without which this was built; 'tools/setup --packages libopencv-video-dev'"
      " installs it, or take 'blocks'"};
#endif
}

}  // namespace leat::scene
