// Options that every command has. Private to tools/base/cli.
#pragma once

#include "tools/base/cli/command.h"

namespace leat::cli {

inline constexpr Option kStandardOptions[] = {
    {.name = "help", .letter = 'h', .help = "print this help"},
    {.name = "version", .help = "print the version"},
    {.name = "man", .help = "print the manual page (roff): pipe it into 'man -l -'"},
};

}  // namespace leat::cli
