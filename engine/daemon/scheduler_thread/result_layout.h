// Where the parts of an application's results lie in a slot: the directory that leatd writes into every slot of its
// streams, made from what the modules said they need at most (engine/exec/part.h). A module behind a fan-out has a row
// for each task of it. Pure; values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/exec/part.h"
#include "leat/result.hpp"
#include "planner/application.h"

namespace leat::daemon {

struct ResultLayout {
  std::vector<leat_part> parts;    // bytes and counts of nothing written yet
  std::uint32_t result_bytes = 0;  // of a slot; 0: the head is enough
};

// needs[m]: the parts of the application's module m. Errors: more parts than the directory holds, or a slot above the
// largest there may be.
Result<ResultLayout> result_layout(const planner::Application& application,
                                   std::span<const std::vector<exec::PartSpec>> needs);

}  // namespace leat::daemon
