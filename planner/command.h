// A sub-command of leat-plan: its name, one line of help, and its main. Each command parses its own options.
#pragma once

namespace leat::planner {

inline constexpr int kBadInput = 2;  // exit status of every refused input, after one line on standard error

struct Command {
  const char* name;
  const char* help;
  int (*run)(int argc, char** argv);  // argv[0] is "leat-plan NAME"
};

}  // namespace leat::planner
