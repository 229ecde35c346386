// What the bridge counts: questions = answered + zeros + let wait for ever + waiting, all the time. Thread rule:
// values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json/json.h"

namespace leat::tools {

struct BridgeCounts {
  std::uint64_t questions = 0;                         // crops, and what was meant as one
  std::map<std::string_view, std::uint64_t> answered;  // with what was found, by leatd's outcome
  std::map<std::string_view, std::uint64_t> zeros;     // by cause
  std::uint64_t left_alone = 0;  // not answered on purpose, so that the detector names its model again
  std::uint64_t waiting = 0;
  std::uint64_t after_time = 0;                         // leatd's answers to crops that zeros had answered already
  std::uint64_t models_served = 0, models_refused = 0;  // questions for models

  void took(double ms);
  [[nodiscard]] Json json() const;
  [[nodiscard]] std::string text() const;  // one line

 private:
  std::vector<double> recent_ms_;  // a ring of the latest answers
  std::size_t next_ = 0;
};

}  // namespace leat::tools
