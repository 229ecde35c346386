// Where plug-ins and libraries lie that come with the running program: a build's folders, or an installation's.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace leat::exec {

// The running program's folder and those above it, nearest first; a build's programs lie a few folders deep, so no more
// than `max`. Empty where /proc does not tell. Any thread.
std::vector<std::filesystem::path> folders_above_program(int max = 5);

// The folder of libraries that are Leat's alone (lib/leat), of the installation that the running program lies in; empty
// where /proc does not tell. It need not exist. Any thread.
std::filesystem::path installed_libraries();

// Where "libleat_KIND_NAME.so" may lie, best first: $LEAT_PLUGINS, beside the program, lib/leat of an installation, a
// build's NAME/KIND, the loader's own places. A name with a slash is the path itself. Any thread.
std::vector<std::string> plugin_candidates(std::string_view kind, const std::string& name);

}  // namespace leat::exec
