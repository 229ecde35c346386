// Runs a program, or a function of this one, in a process of its own to its end: within a limit of time, its output
// kept up to a limit of size, and nothing left of it afterwards. It dies with the caller. The calling thread waits, for
// the limit at most; any thread. No handler of a signal and no other child of the caller is touched.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "tools/base/subprocess/process.h"

namespace leat::subprocess {

enum class Errors : unsigned char { apart, with_output, callers };  // where standard error goes

struct RunOptions {
  std::chrono::milliseconds limit;
  Errors errors = Errors::apart;
  std::size_t max_bytes = std::size_t{64} << 20;  // of each kind of output; what follows is read and forgotten
  std::string_view input = {};                    // at most 4096 bytes
};

struct Run {
  Ending ending;
  std::string output, errors;
};

// The last line that is not empty; "": there is none.
[[nodiscard]] std::string last_line(std::string_view text);

// An error: it could not be started. The process leads a group, of which nothing is left when this returns.
// Its standard descriptors, group and death signal are set here.
Result<Run> run(Command command, const RunOptions& options);

// The output of a program that ends with status 0; else an error: how it ended, and its last line.
Result<std::string> output_of(const Command& command, const RunOptions& options);

// What the function returns, as output. For what may crash, hang or eat memory, in a program with one thread
// (Process::start). Of the options errors may be `apart` or `callers`; there is no input.
Result<Run> run_function(const std::function<std::string()>& function, const RunOptions& options);

}  // namespace leat::subprocess
