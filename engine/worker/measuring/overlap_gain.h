// Whether the batches of a module gain by overlapping on this very partition: one is prepared and the one before it
// answered while the model runs. That gains where those are a good part of a batch's time; elsewhere a second thread
// only takes the model's cores. Uses the module alone: call it before serving, on the thread that will serve.
#pragma once

#include <cstdint>

#include "engine/exec/host_stream.h"
#include "engine/exec/module.h"
#include "leat/result.hpp"

namespace leat::worker {

inline constexpr double kOverlapPays = 1.05;  // times as many batches; less is within what is measured from run to run

// Of batches that follow one another: nanoseconds a batch, medians of some rounds in turns.
struct OverlapGain {
  std::int64_t behind_ns = 0, beside_ns = 0;  // one behind the other; overlapping
  std::uint32_t rounds = 0, won = 0;          // those of them in which overlapping was faster
  // Where something else takes the cores now and then, medians differ by chance: so nearly every round has to agree.
  [[nodiscard]] bool pays() const noexcept {
    return static_cast<double>(behind_ns) >= kOverlapPays * static_cast<double>(beside_ns) &&
           won >= rounds - rounds / 4;
  }
  // Of a batch's time: so much the next one's beside it.
  [[nodiscard]] std::uint32_t overlap_permille() const noexcept {
    return beside_ns >= behind_ns ? 0 : static_cast<std::uint32_t>(1000 * (behind_ns - beside_ns) / behind_ns);
  }
};

// The module has two sets of buffers. A module whose preparing and answering are too small a part to gain is not run
// further. An error is the module's own line.
Result<OverlapGain> measure_overlap(exec::Module& module, exec::HostStream& stream, std::uint32_t batch, bool crops);

}  // namespace leat::worker
