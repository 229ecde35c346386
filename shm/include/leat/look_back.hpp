// Which answers of a stream are compared with more than the answer before: every so often one is followed on beside
// those that have taken its place, until it is at least `kFar` frames old, and then compared with the answer that
// comes. A detector's flicker may last for several frames, and then grows with the stride as drift does; over so many
// frames drift shows by itself.
//
// A rule alone: TrackedStream follows boxes by it, simulated clients look up what they would have seen. O(1), plain
// data.
#pragma once

#include <cstdint>
#include <optional>

namespace leat {

class LookBack {
 public:
  static constexpr std::uint32_t kFar = 16, kFarthest = 48;  // frames that are looked back over; further: not at all
  static constexpr std::uint32_t kEvery = 96;                // frames from one to the next

  // An answer of frame `number`, later than any before. The frame of the answer that it is to be compared with beside
  // the one before it, if it is to.
  std::optional<std::uint64_t> answered(std::uint64_t number) noexcept {
    std::optional<std::uint64_t> far;
    if (from_ && number - *from_ >= kFar) {
      if (last_ != *from_ && number - *from_ <= kFarthest) far = from_;  // else that comparison is made anyway
      next_ = *from_ + kEvery;
      from_.reset();
    }
    if (!from_ && number >= next_) from_ = number;
    last_ = number;
    return far;
  }
  // The frame whose answer is kept to be compared with later.
  [[nodiscard]] std::optional<std::uint64_t> from() const noexcept { return from_; }

 private:
  std::optional<std::uint64_t> from_;
  std::uint64_t last_ = 0, next_ = 0;
};

}  // namespace leat
