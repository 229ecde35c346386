// Makes a tracker's rule of what it expects to have lost (leat/certainty.hpp) from recordings, and judges one on
// others.
//
// The rule is the sum of the terms that errs least, by squares, over all frames and strides that were recorded, frames
// soon after the answer counting more than late ones; terms that say little are held near 0 (ridge regression).
//
// Plain data. Thread rule: one thread. Errors: none.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "leat/certainty.hpp"
#include "tools/scene/tracking/drop_table.h"

namespace leat::scene {

class CertaintyFit {
 public:
  // What was known `stride` frames after an answer, and what was lost then.
  void add(const CertaintyTerms& terms, std::uint32_t stride, double lost);
  void add(const DropTable& recorded);
  // All weights 0 where nothing was added.
  [[nodiscard]] CertaintyRule rule() const;

 private:
  using Row = std::array<double, kCertaintyTerms>;
  std::array<Row, kCertaintyTerms> products_{};
  Row with_lost_{};
};

// How well a table's `expects` tell what was lost.
struct CertaintyWorth {
  std::array<double, 4> at{};  // correlation among frames of one age: kWorthAges
  double late = 0;         // the chance that of two frames 2 to 24 old, one that has lost more than .06 and one that
                           // has not, the first is expected to have lost more; 0: there is no such pair
  double late_by_age = 0;  // the same of their ages
};
inline constexpr std::array<std::uint32_t, 4> kWorthAges = {4, 8, 16, 24};
[[nodiscard]] CertaintyWorth worth(const DropTable& table);

}  // namespace leat::scene
