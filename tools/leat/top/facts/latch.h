// A condition with two thresholds: it comes into force at once and leaves only after it has been over for a while.
#pragma once

#include <cstdint>

namespace leat::tools::top {

inline constexpr std::int64_t kRememberNs = 60'000'000'000;  // back within it: it has been in force since then

class Latch {
 public:
  // comes: it is so. over: it no longer is; neither: as it was. It is left once it has been over for hold_ns.
  void step(bool comes, bool over, std::int64_t now, std::int64_t hold_ns) noexcept {
    if (comes) {
      if (!on_) {
        if (ended_ns_ == 0 || now - ended_ns_ > kRememberNs) since_ns_ = now;
        on_ = true;
      }
      over_since_ns_ = 0;
      return;
    }
    if (!on_) return;
    if (!over) {
      over_since_ns_ = 0;
      return;
    }
    if (over_since_ns_ == 0) over_since_ns_ = now;
    if (now - over_since_ns_ < hold_ns) return;
    on_ = false;
    ended_ns_ = now;
    over_since_ns_ = 0;
  }
  [[nodiscard]] bool on() const noexcept { return on_; }
  [[nodiscard]] std::int64_t since_ns() const noexcept { return since_ns_; }
  void since(std::int64_t ns) noexcept { since_ns_ = ns; }

 private:
  bool on_ = false;
  std::int64_t since_ns_ = 0, over_since_ns_ = 0, ended_ns_ = 0;
};

}  // namespace leat::tools::top
