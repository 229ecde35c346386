// leat-plan: applications and profiles in, plans out. The table below is the whole program; add a command there.
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "planner/command.h"
#include "planner/commands.h"

namespace {

using leat::planner::Command;

constexpr Command kCommands[] = {
    {"check", "check a plan file: indexes, shapes, deadlines, rates", leat::planner::run_check},
    {"harpagon", "the cheapest machines that serve a rate within an SLO", leat::planner::run_harpagon},
};

void print_help(std::FILE* out) {
  std::fprintf(out, "leat-plan: applications and profiles in, plans out\nusage: leat-plan COMMAND [options]; leat-plan COMMAND --help\n");
  for (const Command& c : kCommands) std::fprintf(out, "  %-10s %s\n", c.name, c.help);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    print_help(stderr);
    return leat::planner::kBadInput;
  }
  if (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0 || std::strcmp(argv[1], "help") == 0) {
    print_help(stdout);
    return 0;
  }
  for (const Command& c : kCommands) {
    if (std::strcmp(argv[1], c.name) != 0) continue;
    std::string name = std::string("leat-plan ") + c.name;
    argv[1] = name.data();
    try {
      return c.run(argc - 1, argv + 1);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "leat-plan: %s\n", e.what());
      return leat::planner::kBadInput;
    }
  }
  std::fprintf(stderr, "leat-plan: no command '%s'; leat-plan --help lists them\n", argv[1]);
  return leat::planner::kBadInput;
}
