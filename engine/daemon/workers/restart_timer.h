// When a worker's process starts again: at once where it had served for a while, else after a time that doubles with
// each failure in a row. Thread rule: values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace leat::daemon {

class RestartTimer {
 public:
  explicit RestartTimer(std::int64_t max_backoff_ns) noexcept : max_backoff_ns_(max_backoff_ns) {}

  // Its process has ended; served_ns: how long it had been ready; none: it never was.
  void ended(std::optional<std::int64_t> served_ns) noexcept {
    if (served_ns && *served_ns >= kSettledNs) failures_ = 0;
    ++failures_;
    backoff_ns_ = backoff_after(served_ns ? failures_ - 1 : failures_);
  }
  void failed_to_start() noexcept { backoff_ns_ = backoff_after(++failures_); }
  void excuse() noexcept {  // its end was no fault of its own
    failures_ -= std::min(failures_, 1u);
    backoff_ns_ = 0;
  }
  void set(std::int64_t now) noexcept { due_ns_ = now + backoff_ns_; }
  void set_at_least(std::int64_t now) noexcept { due_ns_ = std::max(due_ns_ == INT64_MAX ? now : due_ns_, now); }
  void clear() noexcept { due_ns_ = INT64_MAX; }
  [[nodiscard]] bool take(std::int64_t now) noexcept {  // true: it starts again
    if (due_ns_ > now) return false;
    due_ns_ = INT64_MAX;
    ++restarts_;
    return true;
  }

  [[nodiscard]] std::int64_t due_ns() const noexcept { return due_ns_; }  // INT64_MAX: not set
  [[nodiscard]] std::int64_t backoff_ns() const noexcept { return backoff_ns_; }
  [[nodiscard]] std::uint32_t restarts() const noexcept { return restarts_; }
  [[nodiscard]] std::uint32_t failures() const noexcept { return failures_; }  // in a row; a long life ends the row

 private:
  static constexpr std::int64_t kFirstBackoffNs = 100'000'000;
  static constexpr std::int64_t kSettledNs = 10'000'000'000;  // who has served for so long did not die of its start

  // 0, 0.1 s, 0.2 s, ...
  [[nodiscard]] std::int64_t backoff_after(std::uint32_t failures) const noexcept {
    return failures == 0 ? 0 : std::min(kFirstBackoffNs << std::min(failures - 1, 20u), max_backoff_ns_);
  }

  std::int64_t max_backoff_ns_;
  std::int64_t backoff_ns_ = 0, due_ns_ = INT64_MAX;
  std::uint32_t restarts_ = 0, failures_ = 0;
};

}  // namespace leat::daemon
