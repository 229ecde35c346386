// What `leat doctor` says about workers that turn against their daemon: as whom they run, and what the kernel has
// against them.
#pragma once

#include <string>

#include "tools/leat/doctor_checks.h"

namespace leat::tools {

Finding workers_user();
Finding landlock();

// From leatd's status as JSON, at `socket`; empty: no leatd answers.
Finding finding_from_status(const std::string& status, const std::string& socket);

}  // namespace leat::tools
