#include "tools/leat/feed/pace.h"

#include <algorithm>
#include <cmath>

namespace leat::tools {

std::int64_t Pace::due(std::int64_t picture_ns, std::uint64_t index) noexcept {
  if (any_ && index > index_ && picture_ns > last_)
    step_ = (picture_ns - last_) / static_cast<std::int64_t>(index - index_);
  any_ = true;
  index_ = index;
  last_ = picture_ns;
  if (period_ns_ > 0) return std::llround(static_cast<double>(rounds_ + index) * period_ns_);
  return base_ + picture_ns;
}

std::int64_t Pace::next_due() const noexcept {
  if (period_ns_ > 0) return std::llround(static_cast<double>(rounds_ + index_ + (any_ ? 1 : 0)) * period_ns_);
  return base_ + last_ + (any_ ? step_ : 0);
}

std::int64_t Pace::picture_time(std::int64_t due_ns) const noexcept {
  if (period_ns_ <= 0) return due_ns - base_;
  const double ahead = (static_cast<double>(due_ns) - static_cast<double>(rounds_ + index_) * period_ns_) / period_ns_;
  return last_ + std::llround(ahead * static_cast<double>(step_));
}

void Pace::again() noexcept {
  rounds_ += index_ + 1;
  base_ += last_ + step_;
  last_ = 0;
  index_ = 0;
  any_ = false;
}

void Pace::arrived(std::int64_t picture_ns, std::int64_t now_ns) noexcept {
  const std::int64_t base = now_ns - picture_ns;
  if (heard_ns_ >= 0) base_ += (now_ns - heard_ns_) / 1000;
  if (heard_ns_ < 0 || base < base_) base_ = base;
  heard_ns_ = now_ns;
}

void AnswerTime::add(std::int64_t now_ns, std::int64_t took_ns) noexcept {
  if (!fresh(now_ns)) {
    min_before_ = kNone;
    usual_ = took_ns;
    since_ = now_ns;
    min_ = took_ns;
  } else if (now_ns - since_ >= kInterval) {
    min_before_ = min_;
    since_ = now_ns;
    min_ = took_ns;
  }
  min_ = std::min(min_, took_ns);
  usual_ += (took_ns - usual_) / 8;
}

std::int64_t AnswerTime::min_ns(std::int64_t now_ns) const noexcept {
  return fresh(now_ns) ? std::min(min_, min_before_) : 0;
}

std::int64_t AnswerTime::usual_ns(std::int64_t now_ns) const noexcept { return fresh(now_ns) ? usual_ : 0; }

CatchUp Liveness::decide(std::int64_t lag_ns, std::int64_t room_ns, bool jump_ends) noexcept {
  const std::int64_t borne_ns = room_ns / 1000 * borne_permille_;
  if (lag_ns <= borne_ns) {
    over_ = 0;
  } else if ((!jump_ends && lag_ns > kHopelessly * borne_ns) ||
             !catches_up(lag_ns, borne_ns, jump_ends ? kMaxBeforeEnd : kMaxPictures)) {
    draw();
    thin_ = false;  // what comes then is due about now
    over_ = 0;
    return CatchUp::jump;
  }
  thin_ = lag_ns > room_ns / (thin_ ? 16 : 8);
  return thin_ ? CatchUp::thin : CatchUp::nothing;
}

// A stall leaves a lag that a decoder with time to spare makes good within a few pictures, where a jump costs those up
// to the next key frame. So the first pictures behind the bound show how fast the lag falls.
bool Liveness::catches_up(std::int64_t lag_ns, std::int64_t borne_ns, std::int64_t max_pictures) noexcept {
  if (over_++ == 0) {
    first_lag_ns_ = lag_ns;
    return true;
  }
  if (over_ <= kTrialPictures) return true;
  const std::int64_t fallen_ns = first_lag_ns_ - lag_ns;
  return fallen_ns > 0 && (lag_ns - borne_ns) * (over_ - 1) <= max_pictures * fallen_ns;
}

void Liveness::draw() noexcept {
  state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
  borne_permille_ = 500 + static_cast<std::int64_t>((state_ >> 33) % 400);
}

}  // namespace leat::tools
