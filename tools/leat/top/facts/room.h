// How much more there is room for: an estimate of the load that streams are, from what was measured. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/leat/top/facts/figures.h"

namespace leat::tools::top {

inline constexpr double kFillable = 0.85;  // of a partition, before answers come late

struct Room {
  double more = 0;                      // streams like the mean of these
  std::string application;              // whose: the one with least room; empty where there is one alone
  std::vector<std::string> partitions;  // the narrowest set that ran the same modules
};
// Empty: nothing was measured, or frames are missed, so that there is none to speak of.
[[nodiscard]] std::optional<Room> room_for_more(const Second& second);

// Of one stream: per cent of a partition, and whether another like it fits.
struct OneMore {
  const StreamFigures* stream = nullptr;
  double percent = kUnknownFigure;
  bool fits = false;
};
// One stream for each application and rate, those that take most first.
[[nodiscard]] std::vector<OneMore> one_more_like(const Second& second);

}  // namespace leat::tools::top
