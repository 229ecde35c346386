// Rules of what a tracker expects to have lost (leat/certainty.hpp) for studies: that of a video is made of other kinds
// of videos, and of other videos of those. Kinds are dealt into three folds; a kind's rule is made of the two others.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sim/for_each_job.h"
#include "tools/base/cli/progress.h"
#include "tools/scene/tracking/certainty_fit.h"

namespace leat::bench {

struct CertaintyFolds {
  static constexpr std::size_t kFolds = 3;
  // As kMotionKinds: easy walk shaky, fast crowd phases, zoom noisy, swing counter-swing.
  static constexpr std::array<std::size_t, std::size(scene::kMotionKinds)> kFoldOf = {0, 1, 2, 0, 1, 2, 2, 0, 1, 1};
  std::array<scene::CertaintyFit, kFolds> without;  // each fold
  scene::CertaintyFit all;

  [[nodiscard]] CertaintyRule rule_for(std::size_t kind) const { return without[kFoldOf[kind]].rule(); }
};

// Of all kinds of videos of these seeds. tracker: known to AnyTracker::make.
inline CertaintyFolds certainty_folds(const std::vector<std::uint64_t>& seeds, std::uint32_t frames,
                                      std::size_t threads, const std::string& tracker) {
  const std::size_t jobs = std::size(scene::kMotionKinds) * seeds.size();
  std::vector<scene::DropTable> tables(jobs);
  std::vector<scene::AnyTracker> trackers;
  for (std::size_t i = 0; i < jobs; ++i) trackers.push_back(std::move(*scene::AnyTracker::make(tracker)));
  cli::Progress progress("rules", jobs, "videos");
  sim::for_each_job(jobs, threads, [&](std::size_t i) {
    tables[i] = scene::record_drops(scene::kMotionKinds[i / seeds.size()], seeds[i % seeds.size()], frames, 3,
                                    std::move(trackers[i]));
  });
  progress.add(jobs);
  CertaintyFolds out;
  for (std::size_t i = 0; i < jobs; ++i) {
    out.all.add(tables[i]);
    for (std::size_t f = 0; f < CertaintyFolds::kFolds; ++f)
      if (CertaintyFolds::kFoldOf[i / seeds.size()] != f) out.without[f].add(tables[i]);
  }
  return out;
}

}  // namespace leat::bench
