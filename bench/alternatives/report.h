// All runs of a benchmark, told as text and JSON: of each contender, count of cameras and deadline the median of the
// rounds, with the least and the most. Values; one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/alternatives/figures.h"
#include "tools/base/json/json.h"

namespace leat::bench::alternatives {

class Report {
 public:
  void add(std::string_view contender, std::uint32_t cameras, std::uint32_t deadline_ms, const Measured& run);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] Json json() const;

 private:
  struct Case {
    std::string contender;
    std::uint32_t cameras, deadline_ms;
    std::vector<Measured> runs;
    std::vector<Figures> figures;
    [[nodiscard]] std::vector<double> all(double Figures::*figure) const;
    [[nodiscard]] std::vector<double> memory_mb() const;  // none: nobody could tell
  };
  [[nodiscard]] std::vector<Case> by_size() const;
  std::vector<Case> cases_;  // as they were added first
};

}  // namespace leat::bench::alternatives
