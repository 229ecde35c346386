// What the system said, behind what was tried.
#pragma once

#include <cstring>
#include <string>

namespace leat::shm {

// "WHAT: No such file or directory". Any thread.
inline std::string system_text(const std::string& what, int error) { return what + ": " + std::strerror(error); }

}  // namespace leat::shm
