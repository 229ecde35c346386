// How well identities were kept, against a scene's ground truth: IDF1.
//
// Ristani et al., "Performance Measures and a Data Set for Multi-Target, Multi-Camera Tracking" (2016): every true
// object goes with at most one identity, so that as many frames as possible agree (IoU of 0.5 and more in that frame).
// IDF1 = 2 IDTP / (2 IDTP + IDFP + IDFN), 0..1. Objects that do not count (Object::ignore) are left out, and what is
// identified on them. Thread rule: one thread. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "leat/result_types.h"
#include "tools/scene/scene.h"

namespace leat::scene {

class IdentityMeter {
 public:
  // ids[i] is that of found[i]; 0: none.
  void add(std::span<const Object> truth, std::span<const leat_detection> found, std::span<const std::uint64_t> ids);
  struct Counts {
    std::uint64_t right = 0, all = 0;  // IDTP; (objects + identities) in frames, which is 2 IDTP + IDFP + IDFN
    [[nodiscard]] double idf1() const {
      return all == 0 ? 1 : 2 * static_cast<double>(right) / static_cast<double>(all);
    }
  };
  [[nodiscard]] Counts counts() const;
  [[nodiscard]] double idf1() const { return counts().idf1(); }
  [[nodiscard]] std::size_t objects() const { return true_.size(); }
  [[nodiscard]] std::size_t identities() const { return given_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> true_, given_;                        // id -> frames
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> together_;  // true, given -> frames
};

}  // namespace leat::scene
