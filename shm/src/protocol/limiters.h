// Three small bounds on what others can make leatd and its workers do: how often a line is logged, and how fast a user
// is served. Thread rule: values; one thread each.
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

// For all lines together that clients can cause, whoever they are: each limit above is one of many. Five in a second
// and four more at once; how many were left out is said once in ten seconds.
class LineAllowance {
 public:
  [[nodiscard]] bool take(std::int64_t now_ns) {
    if (bucket_.take(now_ns)) return true;
    if (left_out_++ == 0) due_ns_ = std::max(now_ns + kSecondNs, due_ns_);
    return false;
  }
  void give_back() noexcept { bucket_.charge(-1); }  // it was not used
  [[nodiscard]] std::int64_t due_ns() const noexcept { return left_out_ == 0 ? INT64_MAX : due_ns_; }
  // The line that says how many; empty: none was. When it is to be said is due_ns().
  [[nodiscard]] std::string summary(std::int64_t now_ns) {
    if (left_out_ == 0) return {};
    due_ns_ = now_ns + 10 * kSecondNs;
    return std::to_string(std::exchange(left_out_, 0)) +
           " lines that clients caused were left out; `leat status --users` has the counts of all";
  }

 private:
  static constexpr std::int64_t kSecondNs = 1'000'000'000;
  TokenBucket bucket_{5, 4};
  std::uint64_t left_out_ = 0;
  std::int64_t due_ns_ = 0;
};

}  // namespace leat::shm
