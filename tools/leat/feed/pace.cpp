#include "tools/leat/feed/pace.h"

#include <algorithm>

namespace leat::tools {

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
