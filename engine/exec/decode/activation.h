// What makes scores of a model's values (act=). Pure; any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace leat::exec {

enum class Activation : std::uint8_t { none, sigmoid, softmax };

// Of infinity and of what is no number it is the value itself: no score can be made of them.
[[nodiscard]] inline float sigmoid(float v) noexcept { return v < INFINITY ? 1 / (1 + std::exp(-v)) : v; }

// The softmax of `count` values value(0), value(1), ...: the exponentials are taken relative to the largest.
struct Softmax {
  float largest = 0, sum = 0;

  template <class Value>
  Softmax(std::size_t count, Value&& value) noexcept : largest(value(0)) {
    for (std::size_t i = 1; i < count; ++i) largest = std::max(largest, value(i));
    for (std::size_t i = 0; i < count; ++i) sum += std::exp(value(i) - largest);
  }
  [[nodiscard]] float operator()(float v) const noexcept { return std::exp(v - largest) / sum; }
};

// The score of a value that is one of `count`.
template <class Value>
[[nodiscard]] float score_of(Activation act, float v, std::size_t count, Value&& value) noexcept {
  if (act == Activation::softmax) return Softmax(count, value)(v);
  return act == Activation::sigmoid ? sigmoid(v) : v;
}

// The place of the largest of value(from) .. value(end - 1), the first of equals, and the value there: NaN where one of
// them is.
struct Largest {
  std::size_t place;
  float value;
};
template <class Value>
[[nodiscard]] Largest largest_of(std::size_t from, std::size_t end, Value&& value) noexcept {
  Largest best{from, value(from)};
  bool numbers = !std::isnan(best.value);
  for (std::size_t i = from + 1; i < end; ++i) {
    const float v = value(i);
    numbers = numbers && !std::isnan(v);
    if (v > best.value) best = {i, v};
  }
  if (!numbers) best.value = NAN;
  return best;
}

}  // namespace leat::exec
