// leat-worker beside the program that asks, or where the build leaves it.
#pragma once

#include <string>

namespace leat::daemon {

// Its name alone where it stands at none of these places: PATH is asked then.
[[nodiscard]] std::string find_worker();

}  // namespace leat::daemon
