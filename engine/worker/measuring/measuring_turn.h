// leatd's workers measure at start one at a time: cores that share a clock, caches or their arithmetic make each other
// slow, and a table of such figures says what nobody has who runs alone. The turn is a lock on a file that all of them
// have, so it is free again when its holder ends. Thread rule: one thread; a lock is the process's.
#pragma once

#include <cstdint>
#include <utility>

#include "tools/base/text/fd.h"

namespace leat::worker {

class MeasuringTurn {
 public:
  static constexpr std::int64_t kPatienceNs = 2'000'000'000;

  MeasuringTurn() = default;  // nobody to take turns with
  explicit MeasuringTurn(Fd shared, std::int64_t patience_ns = kPatienceNs) noexcept
      : shared_(std::move(shared)), patience_ns_(patience_ns) {}

  // All waits together take the patience at most; then it measures beside others, so that many partitions are not slow
  // to start. True: it has its turn.
  bool take() noexcept;
  void give() noexcept;

 private:
  bool lock(short kind) const noexcept;

  Fd shared_;
  std::int64_t patience_ns_ = kPatienceNs;
};

}  // namespace leat::worker
