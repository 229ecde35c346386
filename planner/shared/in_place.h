// In which order partitions take other models where memory has no room for the old ones beside the new: each is out
// while it does, so every model keeps a partition that holds it, and half of them where there are two or more. Pure;
// any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace leat::planner {

struct InPlaceWaves {
  std::vector<std::vector<std::uint32_t>> waves;  // partitions that are out at once
  std::vector<std::uint32_t> bare;  // modules that only partitions hold which cannot go out for them; empty: all can
};

// [partition][module]; partitions that hold the same before and after have no wave. most: of a wave, at least 1.
InPlaceWaves in_place_waves(std::vector<std::vector<bool>> before, const std::vector<std::vector<bool>>& after,
                            std::size_t most);

}  // namespace leat::planner
