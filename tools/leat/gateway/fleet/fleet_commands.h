// What `leat gateway` does about several hosts, and leaves. Exit statuses.
#pragma once

#include "tools/base/cli/command.h"

namespace leat::gateway {

int print_haproxy(const cli::Arguments& args);  // 0
int check_ledger(const cli::Arguments& args);   // 0: exact; 1: not, or a node cannot be reached

}  // namespace leat::gateway
