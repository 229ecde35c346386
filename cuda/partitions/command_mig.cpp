// leat-gpu mig: how the GPUs are cut, and cutting them anew.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "cuda/partitions/mig.h"
#include "tools/base/cli/command.h"

namespace leat::partitions {
namespace {

constexpr cli::Option kOptions[] = {{.name = "layout",
                                     .type = cli::Type::path,
                                     .value = "FILE",
                                     .help = "what is wanted, as leat-plan mig writes it; says what would be done"},
                                    {.name = "apply", .help = "with --layout: does it"}};
constexpr cli::Command kCommand = {
    .name = "leat-gpu mig",
    .summary = "how the GPUs are cut into MIG instances, and cutting them anew",
    .description =
        "Without --layout it prints a host file for leat-plan mig, with the driver's own geometry. With --layout it "
        "prints the difference, step by step; only with --apply it makes it. MIG mode is never turned on or off, what "
        "a process uses is never destroyed, and a refusal comes before the first step. If it is ended in the middle, "
        "run it again: it goes on from what is there.",
    .options = kOptions,
    .see_also = "leat-plan-mig(1), leat-plan(1)",
    .exit_status = "0: done, or nothing to do; 1: a step failed in the middle; 2: refused, nothing was changed"};

Result<std::vector<MigWanted>> read_layout(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{path + ": cannot be read"};
  auto layout = parse_layout({std::istreambuf_iterator<char>(file), {}});
  if (!layout.ok()) return Error{path + ": " + layout.error()};
  return layout;
}

int run(const cli::Arguments& arguments) {
  const auto driver = MigDriver::open();
  if (!driver.ok()) return cli::fail("leat-gpu mig", driver.error());
  const std::vector<MigGpu> gpus = (*driver)->read();
  if (!arguments.given("layout")) {
    if (arguments.flag("apply")) return cli::fail("leat-gpu mig", "--apply needs --layout FILE");
    const std::string host = as_mig_host(gpus);
    if (host.empty()) return cli::fail("leat-gpu mig", "no GPU here can be cut into MIG instances");
    std::fputs(host.c_str(), stdout);
    for (const MigGpu& g : gpus)
      if (!g.hidden.empty()) std::fprintf(stderr, "leat-gpu mig: GPU %u: %s\n", g.index, g.hidden.c_str());
    return 0;
  }
  const auto layout = read_layout(arguments.text("layout"));
  if (!layout.ok()) return cli::fail("leat-gpu mig", layout.error());
  std::vector<std::pair<const MigGpu*, MigSteps>> all;
  for (const MigWanted& wanted : *layout) {
    const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const MigGpu& g) { return g.uuid == wanted.uuid; });
    if (gpu == gpus.end()) return cli::fail("leat-gpu mig", "there is no GPU " + wanted.uuid + " on this host");
    auto steps = steps_to(*gpu, wanted);
    if (!steps.ok()) return cli::fail("leat-gpu mig", steps.error() + "; nothing was changed");
    all.emplace_back(&*gpu, std::move(*steps));
  }
  bool any = false;
  for (const auto& [gpu, steps] : all) {
    any = any || steps.any();
    for (const std::string& line : text_of(*gpu, steps)) std::printf("GPU %u: %s\n", gpu->index, line.c_str());
  }
  std::printf(!any                      ? "nothing to do\n"
              : arguments.flag("apply") ? "changing it:\n"
                                        : "nothing was changed; --apply does it\n");
  std::fflush(stdout);
  if (!any || !arguments.flag("apply")) return 0;
  unsigned done = 0;
  for (const auto& [gpu, steps] : all) {
    if (const Status status = (*driver)->take(*gpu, steps, &done); !status.ok()) {
      std::printf("GPU %u: %s; %u steps were taken before: run it again to see the rest\n", gpu->index,
                  status.error().c_str(), done);
      return 1;
    }
  }
  std::printf("%u steps taken\n", done);
  return 0;
}

}  // namespace

extern const cli::Subcommand kGpuMig;
const cli::Subcommand kGpuMig = {&kCommand, run};

}  // namespace leat::partitions
