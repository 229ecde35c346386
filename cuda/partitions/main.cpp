// leat-gpu: GPUs and their shares. Each sub-command lives in its own file command_WORD.cpp.
#include <exception>
#include <vector>

#include "cuda/partitions/gpus.h"
#include "cuda/partitions/peers.h"
#include "tools/base/cli/command.h"

namespace leat::partitions {

extern const cli::Subcommand kGpuList;
extern const cli::Subcommand kGpuMig;
extern const cli::Subcommand kGpuKeep;
extern const cli::Subcommand kGpuPeers;
extern const cli::Subcommand kGpuWatch;

namespace {

const cli::Subcommand* const kSubcommands[] = {&kGpuList, &kGpuMig, &kGpuPeers, &kGpuWatch, &kGpuKeep};
const cli::Program kProgram = {.name = "leat-gpu",
                               .summary = "GPUs and their shares",
                               .description = "Loads the driver in a process of its own, so that leatd does not.",
                               .subcommands = kSubcommands};

}  // namespace
}  // namespace leat::partitions

int main(int argc, char** argv) {
  try {
    std::vector<leat::gpu::Role> roles = {leat::partitions::multiprocessors_role()};
    for (const leat::gpu::Role& role : leat::partitions::peer_roles()) roles.push_back(role);
    if (const int status = leat::gpu::run_role(argc, argv, roles); status >= 0) return status;
    return leat::cli::run_program(leat::partitions::kProgram, argc, argv);
  } catch (const std::exception& e) {
    return leat::cli::fail("leat-gpu", std::string("ran into an error of its own: ") + e.what());
  }
}
