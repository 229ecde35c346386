// Summary of repeated measurements. A number of the probe is never quoted without its spread. Thread rule: values.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace leat::probe {

// Every field but count has the unit of the samples. p25, median and p75 interpolate between neighbours; p99 is the
// nearest rank, a value that was really measured (with fewer than 100 samples it is the largest).
struct Summary {
  std::size_t count = 0;
  double min = 0, p25 = 0, median = 0, p75 = 0, p99 = 0, max = 0;

  // Half of the samples lie within this fraction of the median; 0 where the median is 0.
  [[nodiscard]] double relative_spread() const noexcept { return median != 0 ? (p75 - p25) / median : 0; }
};

// Nothing for no samples. Every sample must be finite; one that is not is a bug of the caller and ends the process.
[[nodiscard]] std::optional<Summary> summarise(std::vector<double> samples);

}  // namespace leat::probe
