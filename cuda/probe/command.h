// Runs another program to its end: text in, text out, within a limit of time. Thread rule: as Child.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/probe/channel.h"

namespace leat::probe {

using Environment = std::vector<std::pair<std::string, std::string>>;

// Its standard output (and error), at most 64 KiB. An error when it cannot be started, ends with another status than 0
// (the text then holds its last line) or outlives the deadline (it is killed).
Result<std::string> run_command(const std::vector<std::string>& words, const Environment& environment,
                                std::string_view input, Deadline deadline);

}  // namespace leat::probe
