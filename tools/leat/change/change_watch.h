// Asks a daemon to become another while it serves, and watches what becomes of it. Thread rule: one thread.
#pragma once

#include <string>

#include "shm/src/protocol/control_protocol.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/leat/commands.h"

namespace leat::tools {

inline constexpr cli::Option kDryRunOption = {
    .name = "dry-run", .help = "change nothing; print what would come and go, and in which waves workers would start"};

// `text`: the message's tail. Prints each step, and at the end whether it is in force; with --json that as JSON.
// Returns the exit status: 0 it is in force, or was only looked at; 1 it is not, and all is as before.
int watch_change(const cli::Command& command, const cli::Arguments& args, const shm::Change& what,
                 const std::string& text);

}  // namespace leat::tools
