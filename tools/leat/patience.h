// For a command that asks leatd once: a host that stalls keeps leatd from its answer for seconds. What goes on asking
// (the screen of `leat top`, the gateway) asks again in place of waiting so long.
#pragma once

#include <cstdint>
#include <string>

#include "tools/base/cli/waiting.h"

namespace leat::tools {

inline constexpr std::int64_t kPatienceSeconds = 10, kPatienceNs = kPatienceSeconds * 1'000'000'000;  // for each reply

// While it is there: a terminal is told, from the third second on, what is waited for.
struct WaitingForLeatd : cli::Waiting {
  WaitingForLeatd()
      : Waiting("leatd has not answered yet, it is waited for up to " + std::to_string(kPatienceSeconds) + " s") {}
};

}  // namespace leat::tools
