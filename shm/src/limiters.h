// Two small bounds on what others can make leatd and its workers do: how often a line is logged, and how fast a user is
// served.
// Thread rule: values; one thread each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace leat::shm {

// A bucket of tokens that fills at `per_second` up to `burst`. What finds too few is to wait.
class TokenBucket {
 public:
  TokenBucket(double per_second, double burst) noexcept : per_ns_(per_second / 1e9), burst_(burst), tokens_(burst) {}
  [[nodiscard]] bool take(std::int64_t now_ns, double tokens = 1) noexcept {
    if (last_ns_ != 0) tokens_ = std::min(burst_, tokens_ + static_cast<double>(now_ns - last_ns_) * per_ns_);
    last_ns_ = now_ns;
    if (tokens_ < tokens) return false;
    tokens_ -= tokens;
    return true;
  }
  // Takes what it costs even if it is not there: what comes next waits for it. Less than none: gives back.
  void charge(double tokens) noexcept { tokens_ -= tokens; }
  // When take(tokens) would succeed.
  [[nodiscard]] std::int64_t ready_ns(double tokens = 1) const noexcept {
    return last_ns_ + static_cast<std::int64_t>(std::max(0.0, tokens - tokens_) / per_ns_) + 1;
  }

 private:
  double per_ns_, burst_, tokens_;
  std::int64_t last_ns_ = 0;
};

// For every line that a client can cause: `burst` at once, then one in ten seconds; the next one logged tells how many
// were left out.
class LogLimit {
 public:
  LogLimit() noexcept : LogLimit(5) {}
  explicit LogLimit(double burst) noexcept : bucket_(0.1, burst) {}
  // The line to log now; empty: none.
  [[nodiscard]] std::string line(std::int64_t now_ns, const std::string& text) {
    if (!bucket_.take(now_ns)) {
      ++left_out_;
      return {};
    }
    const std::uint64_t n = std::exchange(left_out_, 0);
    return n == 0 ? text : text + " (" + std::to_string(n) + " lines left out before it)";
  }

 private:
  TokenBucket bucket_;
  std::uint64_t left_out_ = 0;
};

}  // namespace leat::shm
