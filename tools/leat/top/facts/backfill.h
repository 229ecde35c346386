// What was before the first look, from the flight recorder's ring: frames, answers and their times, second by second,
// so that graphs do not begin empty. Partitions and modules of then are not known. Pure.
#pragma once

#include <span>
#include <vector>

#include "tools/leat/top/facts/figures.h"
#include "tools/leat/top/facts/observation.h"

namespace leat::tools::top {

inline constexpr int kBackfillSeconds = 60;

// Whole seconds that the events cover, oldest first, the last of which ends where the sample was taken. `streams`:
// those that live now, by index of their records.
[[nodiscard]] std::vector<Second> backfilled(std::span<const shm::Event> events, std::int64_t now_ns,
                                             std::span<const std::shared_ptr<const StreamIdentity>> streams);

}  // namespace leat::tools::top
