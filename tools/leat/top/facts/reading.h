// What the sentence is judged by and no page shows: how many frames were lost for which kind of reason, in windows.
#pragma once

#include <vector>

#include "tools/leat/top/facts/figures.h"

namespace leat::tools::top {

// Missed is late, given up for load, or a fault; what was asked for or passes (cancelled, closed, not ready) is
// neither.
enum class Loss : std::uint8_t { none, load, fault };
[[nodiscard]] Loss loss_of(Reason reason) noexcept;

struct Losses {
  double seconds = 0;  // 0: nothing to compare with
  double answers = 0, late = 0, load = 0, superseded = 0, faults = 0;
  [[nodiscard]] double missed() const noexcept { return late + load + faults; }
};

struct StreamReading {
  bool together = true;
  Losses five, minute;
  double minute_share_late = 0;
};

struct Reading {
  std::vector<StreamReading> streams;  // as Second::streams
  StreamReading total;
  double refused = 0, violated = 0;  // of all users, ever
  std::string refusal;               // "user yard: memory"
  std::int64_t last_answer_ns = 0;   // 0: none yet
  double longest_slo_ns = 0;
  std::int64_t watched_ns = 0;  // since the first observation of this leatd
  double faults_ever = 0;
};

}  // namespace leat::tools::top
