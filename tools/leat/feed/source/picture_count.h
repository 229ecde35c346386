// Places of decoded pictures in their source, by counting what goes into a decoder and what comes out: right also where
// times step, and where pictures were left undecoded. Pure.
//
// A decoder keeps at most `held_max` pictures back. What it took beyond that, and gave no picture for, it will give
// none for: left out on purpose, it takes a place; otherwise it is damaged and takes none.
#pragma once

#include <algorithm>
#include <cstdint>

namespace leat::tools {

class PictureCount {
 public:
  void sent() noexcept { ++open_; }
  // The decoder wants more data, or there are none: whatever it does not keep back by now has no picture.
  void wants_more(int held_max) noexcept {
    const std::uint64_t held = static_cast<std::uint64_t>(std::max(held_max, 0));
    if (open_ <= held) return;
    if (thins_ || settling_ > 0) left_out_ += open_ - held;
    open_ = held;
  }
  // A picture: its place. frames: how many places after the one before its time says it is, < 1: it does not say. That
  // is believed as far as so many may have been left out; what is then still to be placed lies further on.
  [[nodiscard]] std::uint64_t received(std::int64_t frames = 0) noexcept {
    open_ -= open_ > 0 ? 1 : 0;
    settling_ -= settling_ > 0 ? 1 : 0;
    std::uint64_t before = left_out_;
    if (frames > 0) {
      const std::uint64_t must = left_out_ - std::min(left_out_, kMost);
      before = std::clamp(static_cast<std::uint64_t>(frames) - 1, must, left_out_);
    }
    left_out_ -= before;
    const std::uint64_t place = next_ + before;
    next_ = place + 1;
    return place;
  }
  // Pictures to which no other refers are left undecoded from now on, or are no longer.
  void thins(bool on) noexcept {
    if (thins_ && !on) settling_ = kMost;
    thins_ = on;
  }
  // The decoder was emptied, to go on at a key frame: pictures that it kept back.
  [[nodiscard]] std::uint64_t emptied() noexcept {
    const std::uint64_t lost = open_ + left_out_;
    open_ = left_out_ = 0;
    next_ += lost;
    settling_ = kMost;
    return lost;
  }
  void passed_over() noexcept { ++next_; }

 private:
  static constexpr std::uint64_t kMost = 16;  // pictures; no codec keeps more back
  std::uint64_t next_ = 0, open_ = 0, left_out_ = 0, settling_ = 0;
  bool thins_ = false;
};

}  // namespace leat::tools
