// The sub-commands of `leat`. Each lives in its own file tools/leat/<word>.cpp (or a folder of that name), defines one
// `const cli::Subcommand kLeat<Word>` and is listed once in commands.cpp.
#pragma once

#include "tools/base/cli/command.h"

namespace leat::tools {

[[nodiscard]] std::span<const cli::Subcommand* const> commands();

}  // namespace leat::tools
