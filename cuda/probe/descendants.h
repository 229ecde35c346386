// Processes below this one, found in /proc. A process that calls adopt_orphans() becomes the parent of every descendant
// whose own parent dies, so that nothing started below it can slip away, however often it forks. Thread rule: none.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "cuda/probe/channel.h"

namespace leat::probe {

Status adopt_orphans();  // PR_SET_CHILD_SUBREAPER

// Children of a process right now.
[[nodiscard]] std::vector<pid_t> children_of(pid_t parent);

// Kills and reaps all descendants but those in `except` (and what is below them), until none is left or the deadline
// has passed. Returns how many were killed; an error names the first that would not go.
Result<int> kill_descendants(std::span<const pid_t> except, Deadline deadline);

// Removes a directory with all it holds. Succeeds when it is not there.
Status remove_directory(const std::string& path);

}  // namespace leat::probe
