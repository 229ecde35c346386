// What a client asks of a stream beside its frames' format: one struct from the message (OpenStream) to the scheduler
// thread's table (engine/daemon/scheduler_thread/granted_stream.h). The C struct, leat_stream_options, is the ABI and
// becomes this in one place. A new option is a field here and there, its check, and where it is used.
#pragma once

#include <cstdint>

#include "leat/leat.h"
#include "shm/src/protocol/color.h"

namespace leat::shm {

struct StreamSettings {
  std::uint32_t depth = 0;
  std::uint32_t overload = 0;      // leat_overload
  std::uint32_t priority = 0;      // leat_priority
  std::uint32_t sla_drop_ppm = 0;  // coordinated: accuracy that may be lost, millionths; 0: not
  std::int64_t slo_ns = 0;         // 0: the application's
  std::int64_t max_age_ns = 0;
  std::int64_t period_ns = 0;
  std::uint32_t task_group = 0;                     // coordinated: of this client's; 0: by itself
  std::uint32_t task_weight = 0;                    // thousandths; 0: 1000
  std::uint32_t local_drop_ppm = 0;                 // 0: no local algorithm
  std::uint32_t waits_for_grants = 0;               // 1: it looks whether a frame is wanted; not coordinated
  std::uint32_t color_range = 0, color_matrix = 0;  // of frames that say nothing; 0: the default rule

  // Precondition: problem(*this) == nullptr.
  [[nodiscard]] Color color() const noexcept {
    return {static_cast<std::uint8_t>(color_range), static_cast<std::uint8_t>(color_matrix)};
  }
};

// An SLO, an age or a period: beyond a day it is a mistake.
inline bool span_ok(std::int64_t ns) noexcept { return ns >= 0 && ns <= 24ll * 3600 * 1'000'000'000; }

StreamSettings settings_of(const leat_stream_options& options) noexcept;
// nullptr, or one line.
const char* problem(const StreamSettings& settings) noexcept;

}  // namespace leat::shm
