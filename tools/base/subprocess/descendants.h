// Processes below this one, found in /proc. A process that calls adopt_orphans() becomes the parent of every descendant
// whose own parent dies, so that nothing started below it can slip away, however often it forks. Thread rule: none.
#pragma once

#include <sys/types.h>

#include <vector>

#include "shm/include/leat/result.hpp"
#include "tools/base/subprocess/ending.h"

namespace leat::subprocess {

Status adopt_orphans();  // PR_SET_CHILD_SUBREAPER

// Children of a process right now.
[[nodiscard]] std::vector<pid_t> children_of(pid_t parent);

// Kills and reaps all descendants, until none is left or the deadline has passed. Returns how many were killed; an
// error names the first that would not go. Only where no other thread waits for a child of its own.
Result<int> kill_descendants(Deadline deadline);

}  // namespace leat::subprocess
