// Maps a source's own times to capture times: when a frame of a file is due, when one of a live source was taken.
// Pure: times come in and go out, so that tests can walk them.
//
// A source's times may step in both directions, repeat, wrap or be missing. From frame to frame the clock adds what
// their times differ by, or one frame interval where that cannot be:
//   - back, unless the time fills a hole between recent ones (frames out of order) or MPEG's 33-bit clock wrapped;
//   - ahead by more than kMaxGapNs beyond what the frames between take: the bound of common players;
//   - none, or the same time for the third time in a row.
// For a live source that interval is as long as the frame was waited for, if that is longer.
//
// A live source's frames also have a time of arrival. The frame that came soonest after its time says when all were
// taken. Where for kBelieveNs every frame came later than that says, the clock follows: the source's times stepped by
// less than an interval, or the way here has become longer. It follows only while the source is waited for and the
// delay does not shrink: frames that wait here, and a backlog on the way, are as old as they seem.
//
// All times are nanoseconds; results and arrivals count from the feeder's start. Thread rule: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "tools/leat/feed/source/frame_time.h"

namespace leat::tools {

class SourceClock {
 public:
  static constexpr std::int64_t kMaxGapNs = 10'000'000'000;
  static constexpr std::int64_t kBelieveNs = 800'000'000;
  static constexpr std::int64_t kSaidNs = 100'000'000;  // smaller delays are followed, but are no step

  struct Options {
    bool live = false;
    double rate = 0;      // of a file: frames are due by their places at this rate; 0: by their times
    double own_rate = 0;  // frames per second as the source states it; 0: unknown
  };
  enum class StepKind : std::uint8_t { back, ahead, later };  // later: only arrivals show it
  struct Step {
    StepKind kind = StepKind::back;
    std::int64_t by_ns = 0;  // > 0
  };

  SourceClock() : SourceClock(Options{}) {}
  explicit SourceClock(const Options& options) noexcept;

  // When the frame with this time (kNoTime: none) and place in the source is due, or was captured: a live one's is
  // not after its arrival.
  std::int64_t due(std::int64_t time_ns, std::uint64_t index, FrameArrival arrival = {}) noexcept;
  // A frame that the source passed over: as due(), for one that nobody waits for.
  void passed(std::int64_t time_ns, std::uint64_t index, FrameArrival arrival = {}) noexcept;
  // The source begins again, one frame interval after the last frame.
  void again() noexcept;

  // When the frame after the last one should be due.
  [[nodiscard]] std::int64_t next_due() const noexcept;
  // The source's own time of what is due at `due_ns`, counted from the last frame.
  [[nodiscard]] std::int64_t source_time(std::int64_t due_ns) const noexcept;
  // The newest step since this was asked last. None of a file whose frames are due by their places.
  [[nodiscard]] std::optional<Step> take_step() noexcept;

 private:
  struct Point {
    std::int64_t own_ns = 0, mapped_ns = 0;
  };
  [[nodiscard]] std::int64_t map(std::int64_t time_ns, std::uint64_t index, FrameArrival arrival) noexcept;
  [[nodiscard]] std::int64_t map_timed(std::int64_t own_ns, std::int64_t instead_ns, std::int64_t elapsed_ns) noexcept;
  [[nodiscard]] std::int64_t unwrapped(std::int64_t time_ns) noexcept;
  [[nodiscard]] std::optional<std::int64_t> between(std::int64_t own_ns) const noexcept;
  void remember(Point point) noexcept;
  void learn(std::int64_t interval_ns) noexcept;
  void stepped(StepKind kind, std::int64_t by_ns) noexcept;
  void arrived(std::int64_t mapped_ns, FrameArrival arrival) noexcept;
  [[nodiscard]] bool by_place() const noexcept { return period_ns_ > 0; }

  bool live_ = false;
  double period_ns_ = 0;
  std::uint64_t rounds_ = 0, index_ = 0;        // frames of the source's earlier rounds; of the last frame
  bool any_ = false, timed_ = false;            // in this round there was a frame; one with a time
  std::int64_t mapped_ns_ = 0;                  // the highest of any frame
  Point last_;                                  // of the last frame with a time and in order
  std::uint64_t last_index_ = 0;                // its place
  std::int64_t last_at_ns_ = 0;                 // when the last frame arrived
  std::int64_t wraps_ns_ = 0;                   // what wraps of the source's clock have taken from its times
  std::uint32_t equal_ = 0;                     // times in a row that were the one before
  std::int64_t own_interval_ns_, interval_ns_;  // between frames: as stated; the median of those seen
  std::array<std::int64_t, 15> intervals_{};
  std::size_t interval_count_ = 0;
  std::array<Point, 16> recent_{};  // since times stepped last: no codec keeps more frames back
  std::size_t recent_count_ = 0;
  std::optional<Step> step_;

  // Live: a frame was captured at offset_ns_ + its mapped time. late_: the frames of the last kBelieveNs, all of which
  // came later than that says; of frames that come at once, the one that is least late.
  bool any_arrived_ = false;
  std::int64_t offset_ns_ = 0;
  struct Late {
    std::int64_t at_ns = 0, delay_ns = 0, waited_ns = 0;
  };
  std::deque<Late> late_;
};

// "its times stepped back by 0.30 s: frames go on one interval after the last one"
[[nodiscard]] std::string text_of(const SourceClock::Step& step);

}  // namespace leat::tools
