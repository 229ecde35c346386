// A rule of what a tracker expects to have lost (leat/certainty.hpp), made of recordings by what a client itself sees,
// and judged on what it was not made of. Every video is cut into parts one behind the other; what is said of a part is
// said by a rule made of all others, without the frames at its ends from which one can be tracked into it.
//
// Plain data. Thread rule: one thread. Errors: none.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "leat/certainty.hpp"
#include "tools/scene/tracking/certainty_fit.h"
#include "tools/scene/tracking/drop_table.h"

namespace leat::tools {

inline constexpr std::uint32_t kJudgedParts = 5;      // of each video
inline constexpr std::uint32_t kLeastPictures = 600;  // of a video: most is left when a part and its ends are taken out

// How well a rule told, means over all parts.
struct RuleWorth {
  std::array<double, scene::kWorthAges.size()> at{};  // correlation with what is lost among frames of one age
  double late = 0, late_by_age = 0;                   // as scene::CertaintyWorth
  // Of what seconds lose by the clock, so much less by asking with as many detections: the root of their mean square,
  // over intervals of 4 to 24 frames; its standard error by the jackknife over the parts; the same of those that
  // lose most, one in twenty.
  double gain = 0, gain_error = 0, worst_gain = 0;
  // Worth asking by: as much as cannot be chance.
  [[nodiscard]] bool asks() const { return gain >= kLeastGain && gain > 2 * gain_error; }
  static constexpr double kLeastGain = 0.03;
};

struct RuleJudgement {
  double flicker = 0;  // what a client sees where nothing has drifted
  CertaintyRule rule;  // of everything
  RuleWorth made;      // rules made so, on the parts that they were not made of
  RuleWorth given;     // the rule that the tracker comes with
};

// Of recordings whose `seen` is what was seen (record_drops of footage without a truth); `drop` and `expects` are
// overwritten. `answer_frames`: from a frame that is sent until its answer serves.
// Precondition: each is of kLeastPictures at least.
[[nodiscard]] RuleJudgement judge(std::span<scene::DropTable> recordings, const CertaintyRule& given,
                                  std::uint32_t answer_frames);

}  // namespace leat::tools
