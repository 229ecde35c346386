// leat-worker beside the program that asks, or where the build leaves it.
#pragma once

#include <string>

namespace leat::daemon {

// Of the places it may stand at the first where there is one; else the first place, for the message.
[[nodiscard]] std::string find_worker();

}  // namespace leat::daemon
