// leat: the one program a user types. Everything it does is a sub-command.
#include "tools/leat/commands.h"

int main(int argc, char** argv) {
  const leat::cli::Program leat = {
      .name = "leat",
      .summary = "feeds, watches and checks a Leat daemon",
      .description =
          "Leat serves vision models on the partitions of one host: frames go in through shared memory, each\n"
          "stream with a deadline, and every frame gets exactly one answer. leatd(8) is the daemon.",
      .subcommands = leat::tools::commands(),
  };
  return leat::cli::run_program(leat, argc, argv);
}
