// Options about sources that several commands have.
#pragma once

#include "tools/base/cli/command.h"

namespace leat::tools {

inline constexpr cli::Option kAsStoredOption = {
    .name = "as-stored",
    .help = "do not turn pictures and videos as they say they are to be shown (EXIF's orientation, a display matrix)"};

}  // namespace leat::tools
