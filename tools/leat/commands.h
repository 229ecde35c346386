// The sub-commands of `leat`. Each lives in its own file tools/leat/<word>.cpp (or a folder of that name), defines one
// `const cli::Subcommand kLeat<Word>` and is listed once in commands.cpp.
#pragma once

#include "tools/base/cli/command.h"

namespace leat::tools {

inline constexpr cli::Option kSocketOption = {
    .name = "socket",
    .type = cli::Type::path,
    .value = "PATH",
    .help = "the daemon's socket (default: $LEAT_SOCKET, else the usual place)"};

[[nodiscard]] std::span<const cli::Subcommand* const> commands();

}  // namespace leat::tools
