#include "engine/exec/picture/weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/exec/picture/sizes.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kMaxGroup = 8;

// The taps of one target pixel: of the axis, or of a plane of half its size.
class Taps {
 public:
  Taps(const Axis& axis, std::uint32_t i, bool half) noexcept
      : reach_(reach_of(axis, i)),
        half_(half),
        size_(half ? axis.size / 2 : axis.size),
        first_(half ? half_first(reach_) : reach_.first),
        end_(half ? half_end(reach_, size_) : reach_.end) {}

  [[nodiscard]] std::uint32_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint32_t end() const noexcept { return end_; }
  [[nodiscard]] float inverse_sum() const noexcept { return 1.0f / sum_of(reach_); }
  [[nodiscard]] float weight(std::uint32_t at) const noexcept {
    return half_ ? half_weight(reach_, at, size_) : weight_of(reach_, at - first_);
  }

 private:
  Reach reach_;
  bool half_;
  std::uint32_t size_, first_, end_;
};

// Weights as whole numbers, so that all of them together are kOne.
class Whole {
 public:
  explicit Whole(float inverse_sum) noexcept : scale_(inverse_sum * static_cast<float>(kOne)) {}
  std::int16_t next(float weight) noexcept {
    sum_ += weight;
    const auto all = static_cast<std::int32_t>(std::lround(sum_ * scale_));
    return static_cast<std::int16_t>(all - std::exchange(given_, all));
  }

 private:
  float scale_, sum_ = 0;
  std::int32_t given_ = 0;
};

// Of `count` target pixels: a kernel that is stretched reaches over the source twice its support times, else each
// target pixel takes that many and two more, and what is not a whole group of them.
std::size_t taps_max(std::uint32_t count, std::uint32_t resize) {
  const auto reach = static_cast<std::size_t>(2 * support_of(resize));
  return reach * std::max(kMaxSide, count) + std::size_t{count} * (reach + 2 + kMaxGroup);
}

}  // namespace

void ColumnWeights::reserve(std::uint32_t count, std::uint32_t resize) {
  first.resize(count);
  weights.resize(taps_max(count, resize));
}

void ColumnWeights::lay(const Axis& axis, std::uint32_t count, bool half, std::uint32_t group) noexcept {
  const std::uint32_t size = half ? axis.size / 2 : axis.size;
  std::uint32_t most = 1;
  begin = size, end = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Taps t(axis, i, half);
    most = std::max(most, t.end() - t.first());
    begin = std::min(begin, t.first()), end = std::max(end, t.end());
  }
  taps = (most + group - 1) / group * group;
  std::fill_n(weights.begin(), std::size_t{count} * taps, std::int16_t{0});
  for (std::uint32_t i = 0; i < count; ++i) {
    const Taps t(axis, i, half);
    const std::uint32_t from = size > taps ? std::min(t.first(), size - taps) : 0;
    std::int16_t* const out = weights.data() + std::size_t{i} * taps;
    first[i] = static_cast<std::int32_t>(from);
    Whole whole(t.inverse_sum());
    for (std::uint32_t x = t.first(); x < t.end(); ++x) out[x - from] = whole.next(t.weight(x));
  }
}

void RowWeights::reserve(std::uint32_t count, std::uint32_t resize) {
  first.resize(count), end.resize(count), at.resize(count);
  weights.resize(taps_max(count, resize)), whole.resize(weights.size());
}

void RowWeights::lay(const Axis& axis, std::uint32_t count, bool half) noexcept {
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Taps t(axis, i, half);
    const float inverse = t.inverse_sum();
    Whole given(inverse);
    first[i] = t.first(), end[i] = t.end(), at[i] = next;
    for (std::uint32_t row = t.first(); row < t.end(); ++row, ++next)
      weights[next] = t.weight(row) * inverse, whole[next] = given.next(t.weight(row));
    if ((t.end() - t.first()) % 2 != 0) weights[next] = 0, whole[next++] = 0;
  }
}

}  // namespace leat::exec
