// Two snapshots of one record, and what happened between them.
#pragma once

#include <array>
#include <optional>

#include "tools/leat/top/facts/figures.h"
#include "tools/leat/top/facts/reading.h"
#include "tools/leat/top/sample.h"

namespace leat::tools::top {

using Buckets = std::array<std::uint64_t, shm::kBuckets>;
// Nanoseconds; empty: nothing was observed.
[[nodiscard]] std::optional<double> quantile_of(const Buckets& buckets, double q) noexcept;

// A record that began within the window is compared with nothing: its counters began at 0.
struct Span {
  const shm::RecordSnapshot* now = nullptr;
  const shm::RecordSnapshot* before = nullptr;
  double seconds = 0;  // 0: no window, everything is unknown

  [[nodiscard]] explicit operator bool() const noexcept { return seconds > 0; }
  template <class Counter>
  [[nodiscard]] double delta(Counter counter) const {
    const double was = before == nullptr ? 0 : static_cast<double>(before->value(counter).value_or(0));
    return static_cast<double>(now->value(counter).value_or(0)) - was;
  }
  template <class Counter>
  [[nodiscard]] float rate(Counter counter) const {
    return seconds > 0 ? static_cast<float>(delta(counter) / seconds) : kUnknownFigure;
  }
  [[nodiscard]] double cause(std::size_t index) const;
  [[nodiscard]] Buckets buckets(shm::Which which) const;
  [[nodiscard]] Losses losses() const;
};

// The record in an earlier sample; null: it was not there, or in another life.
[[nodiscard]] const shm::RecordSnapshot* find_in(const std::vector<shm::RecordSnapshot>& records,
                                                 const shm::RecordSnapshot& record) noexcept;
// Since an earlier sample; of a record that began later (at began_ns, 0: unknown), since then. No earlier sample: none.
[[nodiscard]] Span span_since(const std::vector<shm::RecordSnapshot>* before, std::int64_t before_ns,
                              const shm::RecordSnapshot& now, std::int64_t now_ns, std::int64_t began_ns) noexcept;

template <class Counter>
[[nodiscard]] float gauge(const shm::RecordSnapshot& record, Counter counter) {
  const auto value = record.value(counter);
  return value ? static_cast<float>(*value) : kUnknownFigure;
}
template <class Counter>
[[nodiscard]] std::int64_t time_in(const shm::RecordSnapshot& record, Counter counter) {
  return static_cast<std::int64_t>(record.value(counter).value_or(0));
}

}  // namespace leat::tools::top
