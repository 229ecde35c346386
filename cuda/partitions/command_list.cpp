// leat-gpu list: what there is.
#include <cstdio>

#include "cuda/partitions/gpus.h"
#include "cuda/partitions/peers.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"

namespace leat::partitions {
namespace {

constexpr cli::Option kOptions[] = {cli::json_option(),
                                    {.name = "host", .help = "as a host file for leat plan --host"},
                                    {.name = "peers", .help = "with --host: measures every ordered pair of devices"}};
constexpr cli::Command kCommand = {
    .name = "leat-gpu list",
    .summary = "shows GPUs, MIG instances, multiprocessors and memory",
    .description = "Reads only: MIG mode, instances, clocks and processes stay as they are.",
    .options = kOptions,
    .see_also = "leatd(8), leat-plan(1)"};

int run(const cli::Arguments& arguments) {
  auto gpus = read_gpus();
  if (!gpus.ok()) return cli::fail("leat-gpu list", gpus.error());
  ask_cuda_for_instances(*gpus);
  const cli::JsonOutput json(arguments);
  if (json.wanted()) {
    if (const int failed = json.write(as_json(*gpus)); failed != 0 || json.alone()) return failed;
  }
  if (arguments.flag("host")) {
    std::vector<Pair> pairs;
    if (arguments.flag("peers")) {
      auto asked = ask_all_pairs();
      if (!asked.ok()) return cli::fail("leat-gpu list", asked.error());
      pairs = std::move(*asked);
    }
    std::fputs(as_host(*gpus, pairs).c_str(), stdout);
    return 0;
  }
  for (const Gpu& g : *gpus) {
    std::printf("%s  %s  %u multiprocessors, %llu MiB%s\n", g.uuid.c_str(), g.name.c_str(), g.multiprocessors,
                static_cast<unsigned long long>(g.memory_mib), g.mig ? ", MIG on" : "");
    for (const Instance& i : g.instances)
      std::printf("  %s  %s  instance %u.%u, %u multiprocessors, %u MiB\n", i.uuid.c_str(), i.profile.c_str(),
                  i.gpu_instance, i.compute_instance, i.multiprocessors, i.memory_mib);
  }
  if (gpus->empty()) std::printf("no GPU\n");
  return 0;
}

}  // namespace

extern const cli::Subcommand kGpuList;
const cli::Subcommand kGpuList = {&kCommand, run};

}  // namespace leat::partitions
