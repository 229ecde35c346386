// Whether a frame that has just been taken is one that the schedule asks for. The client's side of a schedule page: a
// scheduled time asks for the newest frame taken until then, so a frame is sent when the next one will be too late; of
// a probe also the one before it. What was missed is made good with the next frame.
//
// Where the page lets it, a frame is also sent because its client expects to have lost much by then. A time that comes
// soon after that asks for nothing more.
//
// O(1) a frame where nothing is wanted, no system call. One thread, the submitting one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "leat/leat.h"
#include "shm/src/segments/schedule_page.h"

namespace leat::shm {

class FrameClock {
 public:
  explicit FrameClock(std::int64_t period_ns = 0) noexcept : period_ns_(period_ns) {}

  // expected: what tracking has lost on this frame, as far as the client can tell, 0..1; below 0: it does not say.
  bool wanted(SchedulePage& page, std::int64_t capture_ns, double expected = -1) noexcept {
    const bool yes = due(page, capture_ns, expected >= 0) || asks(capture_ns, expected);
    if (yes) sent_ns_ = capture_ns, under_way_ = true;
    return yes;
  }
  // There is an answer to what was sent.
  void answered() noexcept { under_way_ = false; }
  // As it stands now.
  const Schedule& refresh(SchedulePage& page) noexcept {
    // A page that is just being written is looked at again with the next frame.
    static_cast<void>(page.read(seen_, now_));
    return now_;
  }
  std::int64_t period_ns() const noexcept { return period_ns_; }

 private:
  static constexpr std::int64_t kStaleNs = 300'000'000, kSpeakNs = 1'000'000'000, kUs = 1000;

  bool due(SchedulePage& page, std::int64_t capture_ns, bool certain) noexcept {
    tick(capture_ns);
    refresh(page);
    if (now_.standing == LEAT_STANDING_SILENT) {  // to be heard again
      if (capture_ns < spoke_ns_ + kSpeakNs) return false;
      spoke_ns_ = capture_ns;
      return true;
    }
    bool yes = false;
    for (std::uint32_t i = 0; i < now_.count && i < kScheduleFrames; ++i) {
      const auto at = static_cast<std::int64_t>(now_.frames[i]);
      if (at <= done_ns_) continue;
      if (at < capture_ns + period_ns_) {
        const bool probe = (at & 1) != 0;
        const bool soon = certain && !probe && capture_ns - sent_ns_ < now_.ask_latest_us * kUs / 2;
        yes = yes || (at > capture_ns - kStaleNs && !soon);
        done_ns_ = at;
      } else {
        if ((at & 1) != 0 && at < capture_ns + 2 * period_ns_ && older_of_ns_ != at) {
          older_of_ns_ = at;
          yes = true;
        }
        break;
      }
    }
    return yes;
  }

  // One frame at a time is under way: while an answer is awaited, what is expected to be lost says nothing new.
  bool asks(std::int64_t capture_ns, double expected) noexcept {
    if (now_.standing != LEAT_STANDING_ADMITTED || now_.ask_latest_us == 0 || !(expected >= 0) || sent_ns_ == 0)
      return false;
    const std::int64_t since = capture_ns - sent_ns_, latest = now_.ask_latest_us * kUs;
    if (since < latest && (under_way_ || since < now_.ask_earliest_us * kUs || expected * 1e6 < now_.ask_above_ppm))
      return false;
    const std::int64_t refill = now_.ask_refill_us * kUs;
    bucket_ns_ = std::max(bucket_ns_, capture_ns - refill * now_.ask_bucket / 100);
    if (bucket_ns_ + refill > capture_ns) return false;
    bucket_ns_ += refill;
    return true;
  }

  // The camera's period, smoothed over 16 frames; frames that were left out are counted, longer gaps are not.
  void tick(std::int64_t capture_ns) noexcept {
    const std::int64_t gap = capture_ns - last_ns_;
    if (last_ns_ != 0 && gap > period_ns_ / 2 && gap < 8 * period_ns_) {
      const std::int64_t frames = (gap + period_ns_ / 2) / period_ns_;
      period_ns_ += (gap / frames - period_ns_) / 16;
    }
    last_ns_ = capture_ns;
  }

  std::int64_t period_ns_, last_ns_ = 0;
  std::int64_t done_ns_ = 0, older_of_ns_ = 0, spoke_ns_ = 0;
  std::int64_t sent_ns_ = 0, bucket_ns_ = 0;  // until when what was asked for is paid
  bool under_way_ = false;
  std::uint64_t seen_ = 0;
  Schedule now_;
};

}  // namespace leat::shm
