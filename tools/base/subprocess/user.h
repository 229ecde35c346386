// Who this process is.
#pragma once

#include <string>

#include "shm/include/leat/result.hpp"

namespace leat::subprocess {

// Becomes this user with its groups, for good; nothing where it is that user. Before any thread is started; the kernel
// forgets a death signal. Error: what is wrong, and what to do.
Status become_user(const std::string& name);
// Gives a file or a folder to this user.
Status give_to_user(const std::string& path, const std::string& name);

}  // namespace leat::subprocess
