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

// In two halves, of which one is out while the other serves: first those of `changing` that are true, then the others.
struct InPlaceHalves {
  std::vector<bool> first;  // [partition]
  // Modules, of `before` or else of `after`, that would have no partition meanwhile; both empty: it can be done.
  std::vector<std::uint32_t> bare_before, bare_after;
};
// changing: [partition], whose models are exchanged, one at least. Every module has a partition that holds it as before
// while the first half is out, and one that holds it as after while the second is. The modules of the two need not be
// the same.
InPlaceHalves in_place_halves(const std::vector<std::vector<bool>>& before, const std::vector<std::vector<bool>>& after,
                              const std::vector<bool>& changing);

}  // namespace leat::planner
