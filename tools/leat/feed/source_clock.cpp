#include "tools/leat/feed/source_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace leat::tools {
namespace {

constexpr std::int64_t kUnknownIntervalNs = 33'333'333;
constexpr std::int64_t kWrapNs = (std::int64_t{1} << 33) * 100'000 / 9;  // of a 33-bit clock at 90 kHz

std::int64_t interval_of(double rate) { return rate > 0 ? std::llround(1e9 / rate) : kUnknownIntervalNs; }

}  // namespace

SourceClock::SourceClock(const Options& options) noexcept
    : live_(options.live),
      period_ns_(options.rate > 0 && !options.live ? 1e9 / options.rate : 0),
      own_interval_ns_(interval_of(options.own_rate)),
      interval_ns_(own_interval_ns_) {}

std::int64_t SourceClock::due(std::int64_t time_ns, std::uint64_t index, FrameArrival arrival) noexcept {
  const std::int64_t mapped_ns = map(time_ns, index, arrival);
  if (by_place()) return std::llround(static_cast<double>(rounds_ + index) * period_ns_);
  if (!live_) return mapped_ns;
  arrived(mapped_ns, arrival);
  return offset_ns_ + mapped_ns;
}

void SourceClock::passed(std::int64_t time_ns, std::uint64_t index, FrameArrival arrival) noexcept {
  recent_count_ = 0;  // a decoder that goes on behind them keeps nothing back
  (void)map(time_ns, index, arrival);
}

void SourceClock::again() noexcept {
  rounds_ += index_ + 1;
  index_ = last_index_ = 0;
  mapped_ns_ += interval_ns_;
  last_ = {0, mapped_ns_};
  recent_count_ = 0;
  any_ = timed_ = false;
}

std::int64_t SourceClock::next_due() const noexcept {
  if (by_place()) return std::llround(static_cast<double>(rounds_ + index_ + (any_ ? 1 : 0)) * period_ns_);
  return offset_ns_ + mapped_ns_ + (any_ ? interval_ns_ : 0);
}

std::int64_t SourceClock::source_time(std::int64_t due_ns) const noexcept {
  double ahead_ns = static_cast<double>(due_ns - offset_ns_ - last_.mapped_ns);
  if (by_place())
    ahead_ns = (static_cast<double>(due_ns) / period_ns_ - static_cast<double>(rounds_ + index_)) *
               static_cast<double>(interval_ns_);
  return last_.own_ns - wraps_ns_ + std::llround(ahead_ns);
}

std::optional<SourceClock::Step> SourceClock::take_step() noexcept {
  const auto step = step_;
  step_.reset();
  return step;
}

// ---- from the source's times to ones without steps, which begin at 0 ----

std::int64_t SourceClock::map(std::int64_t time_ns, std::uint64_t index, FrameArrival arrival) noexcept {
  const std::int64_t frames = any_ && index > index_ ? static_cast<std::int64_t>(index - index_) : 1;
  const std::int64_t usual_ns = frames * interval_ns_, elapsed_ns = arrival.at_ns - last_at_ns_;
  // Where times do not say how much of it has passed.
  std::int64_t instead_ns = mapped_ns_;
  if (any_) instead_ns += live_ && arrival.waited() ? std::max(usual_ns, elapsed_ns) : usual_ns;
  any_ = true;
  index_ = index;
  last_at_ns_ = arrival.at_ns;
  const std::int64_t mapped_ns =
      time_ns == kNoTime ? instead_ns : map_timed(unwrapped(time_ns), instead_ns, elapsed_ns);
  mapped_ns_ = std::max(mapped_ns_, mapped_ns);
  return mapped_ns;
}

std::int64_t SourceClock::map_timed(std::int64_t own_ns, std::int64_t instead_ns, std::int64_t elapsed_ns) noexcept {
  std::int64_t mapped_ns = instead_ns;
  if (timed_) {
    const std::int64_t frames = index_ > last_index_ ? static_cast<std::int64_t>(index_ - last_index_) : 1;
    const std::int64_t usual_ns = frames * interval_ns_, by_ns = own_ns - last_.own_ns;
    const bool paused = live_ && elapsed_ns >= by_ns - kMaxGapNs / 10;  // as long as the times say
    equal_ = by_ns == 0 ? equal_ + 1 : 0;
    if (by_ns < 0) {
      if (const auto between_ns = between(own_ns)) {
        remember({own_ns, *between_ns});
        return live_ ? *between_ns : mapped_ns_;  // a file's is due by now
      }
      stepped(StepKind::back, usual_ns - by_ns);
    } else if (by_ns - usual_ns > kMaxGapNs && !paused) {
      stepped(StepKind::ahead, by_ns - usual_ns);
    } else if (equal_ < 2) {
      mapped_ns = last_.mapped_ns + by_ns;
      if (by_ns > 0 && by_ns - usual_ns <= kMaxGapNs) learn(by_ns / frames);
    }
  }
  timed_ = true;
  last_ = {own_ns, mapped_ns};
  last_index_ = index_;
  remember(last_);
  return mapped_ns;
}

std::int64_t SourceClock::unwrapped(std::int64_t time_ns) noexcept {
  time_ns += wraps_ns_;
  if (!timed_) return time_ns;
  const std::int64_t by_ns = time_ns - last_.own_ns;
  if (std::abs(by_ns + kWrapNs) <= kMaxGapNs) {
    wraps_ns_ += kWrapNs;
    return time_ns + kWrapNs;
  }
  return std::abs(by_ns - kWrapNs) <= kMaxGapNs ? time_ns - kWrapNs : time_ns;  // from before the wrap
}

// The place of a frame out of order: between two recent ones that are further apart than frames that follow each other,
// or than the source states, but not by more frames than a codec keeps back.
std::optional<std::int64_t> SourceClock::between(std::int64_t own_ns) const noexcept {
  std::array<Point, std::tuple_size_v<decltype(recent_)>> sorted = recent_;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(recent_count_);
  std::sort(sorted.begin(), end, [](const Point& a, const Point& b) { return a.own_ns < b.own_ns; });
  std::int64_t min_ns = own_interval_ns_;
  for (auto p = sorted.begin(); p != end && p + 1 != end; ++p)
    if (p[1].own_ns > p->own_ns) min_ns = std::min(min_ns, p[1].own_ns - p->own_ns);
  const auto most = static_cast<std::int64_t>(recent_.size() + 1);
  for (auto p = sorted.begin(); p != end && p + 1 != end; ++p) {
    const std::int64_t hole_ns = p[1].own_ns - p->own_ns;
    if (p->own_ns < own_ns && own_ns < p[1].own_ns && hole_ns > min_ns + min_ns / 2 && hole_ns <= most * min_ns)
      return p->mapped_ns + (own_ns - p->own_ns);
  }
  return std::nullopt;
}

void SourceClock::remember(Point point) noexcept {
  if (recent_count_ < recent_.size()) {
    recent_[recent_count_++] = point;
    return;
  }
  std::move(recent_.begin() + 1, recent_.end(), recent_.begin());
  recent_.back() = point;
}

void SourceClock::learn(std::int64_t interval_ns) noexcept {
  intervals_[interval_count_++ % intervals_.size()] = interval_ns;
  auto seen = intervals_;
  const auto count = std::min(interval_count_, seen.size());
  const auto middle = seen.begin() + static_cast<std::ptrdiff_t>((count - 1) / 2);
  std::nth_element(seen.begin(), middle, seen.begin() + static_cast<std::ptrdiff_t>(count));
  interval_ns_ = *middle;
}

void SourceClock::stepped(StepKind kind, std::int64_t by_ns) noexcept {
  if (kind != StepKind::later) recent_count_ = 0;
  if (!by_place()) step_ = {kind, by_ns};
}

// ---- a live source: when its frames were taken ----

void SourceClock::arrived(std::int64_t mapped_ns, FrameArrival arrival) noexcept {
  const std::int64_t offset_ns = arrival.at_ns - mapped_ns, delay_ns = offset_ns - offset_ns_;
  if (!any_arrived_ || delay_ns <= 0) {
    any_arrived_ = true;
    offset_ns_ = offset_ns;
    late_.clear();
    return;
  }
  if (late_.empty() || arrival.at_ns - late_.back().at_ns >= kBelieveNs / 256)
    late_.push_back({arrival.at_ns, delay_ns});
  late_.back().delay_ns = std::min(late_.back().delay_ns, delay_ns);
  late_.back().waited_ns += arrival.waited_ns;
  while (late_.size() > 1 && arrival.at_ns - late_[1].at_ns >= kBelieveNs) late_.pop_front();
  const std::int64_t took_ns = arrival.at_ns - late_.front().at_ns;
  if (took_ns < kBelieveNs) return;
  std::int64_t waited_ns = -late_.front().waited_ns, first_ns = INT64_MAX, second_ns = INT64_MAX;  // of both halves
  for (const Late& l : late_) {
    waited_ns += l.waited_ns;
    std::int64_t& min_ns = 2 * (l.at_ns - late_.front().at_ns) < took_ns ? first_ns : second_ns;
    min_ns = std::min(min_ns, l.delay_ns);
  }
  // A frame is no evidence where it was found in a buffer, nor where each comes sooner than the one before.
  if (waited_ns < took_ns / 32 || second_ns < first_ns - took_ns / 16) return;
  const std::int64_t later_ns = std::min(first_ns, second_ns);
  offset_ns_ += later_ns;
  if (later_ns >= kSaidNs) stepped(StepKind::later, later_ns);
  for (Late& l : late_) l.delay_ns -= later_ns;
  const auto punctual = std::find_if(late_.rbegin(), late_.rend(), [](const Late& l) { return l.delay_ns <= 0; });
  late_.erase(late_.begin(), punctual.base());
}

std::string text_of(const SourceClock::Step& step) {
  char by[32];
  std::snprintf(by, sizeof by, "%.2f s", static_cast<double>(step.by_ns) / 1e9);
  switch (step.kind) {
    case SourceClock::StepKind::back:
      return std::string("its times stepped back by ") + by + ": frames go on one interval after the last one";
    case SourceClock::StepKind::ahead:
      return std::string("its times stepped ahead by ") + by + ": frames go on one interval after the last one";
    case SourceClock::StepKind::later:
      break;
  }
  return std::string("its frames come ") + by + " later than before: they are taken as captured by that much later";
}

}  // namespace leat::tools
