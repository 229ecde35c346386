// leat-gpu-probe: asks a GPU and its driver what Leat's design wants to know. See docs/research/gpu-probe.md.
#include <cstdio>
#include <optional>
#include <sstream>

#include "bench/gpu/keeper.h"
#include "bench/gpu/probe.h"
#include "bench/gpu/questions/groups.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/cli/progress.h"

namespace {

using namespace leat;
using namespace leat::probe;

constexpr cli::Option kOptions[] = {
    cli::json_option("print the report as JSON in place of text"),
    {.name = "quick", .help = "fewer sizes and repetitions, for `leat doctor`"},
    {.name = "only",
     .type = cli::Type::text,
     .value = "GROUPS",
     .help = "ask these groups alone: devices,clocks,handover,mps,green,frames,cudnn"},
    {.name = "device",
     .type = cli::Type::text,
     .value = "UUID",
     .help = "the GPU or MIG device to ask; default: the first that CUDA shows"},
    {.name = "mps-control",
     .type = cli::Type::path,
     .value = "FILE",
     .help = "the nvidia-cuda-mps-control to use; default: the one on PATH, else beside the driver"},
};
constexpr cli::Example kExamples[] = {
    {.line = "leat-gpu-probe --json report.json",
     .text = "everything, for people on stdout and for programs in report.json"},
    {.line = "leat-gpu-probe --quick --json", .text = "the short form, JSON on stdout"},
    {.line = "leat-gpu-probe --only handover,mps", .text = "two groups of questions"},
};
constexpr cli::Command kCommand = {
    .name = "leat-gpu-probe",
    .summary = "asks a GPU and its driver what Leat can rely on",
    .description =
        "Finds by trying what works between processes on one GPU: hand-over of device memory, MPS shares, green "
        "contexts, "
        "client frames in shared memory, cuDNN, timers. Every answer is yes, no, a number with its spread, not "
        "applicable, or "
        "failed, with how it was found.\n\n"
        "Reads only: MIG, clocks and modes stay as they are. An MPS control daemon of its own runs in a private "
        "directory and "
        "is stopped at the end, also when the probe is killed.",
    .options = kOptions,
    .examples = kExamples,
    .see_also = "leat(1)",
    .exit_status =
        "0 every question was answered; 1 some probes failed (the report is complete); 2 bad input; 3 no NVIDIA "
        "driver or no device"};

const Role kRoles[] = {{kKeeperRole, Keeper::run},
                       {kEnumerateRole, run_enumerate},
                       {kGroupRole, run_group},
                       {kPeerRole, run_handover_peer},
                       {kClientRole, run_gpu_client}};

// Names of groups separated by commas; an unknown one ends with a line.
std::optional<std::vector<std::string>> group_names(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream words(text);
  for (std::string name; std::getline(words, name, ',');) {
    if (group_named(name) == nullptr) {
      cli::fail("leat-gpu-probe", "--only: no group is called '" + name + "'; see --help");
      return std::nullopt;
    }
    names.push_back(name);
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  if (const int role = run_role(argc, argv, kRoles); role >= 0) return role;
  const cli::Arguments arguments = cli::parse_or_exit(kCommand, argc, argv);
  const auto groups = group_names(arguments.text("only"));
  if (!groups) return cli::kBadInput;
  const cli::JsonOutput json(arguments);
  ProbeOptions options{.quick = arguments.flag("quick"),
                       .groups = *groups,
                       .device = arguments.text("device"),
                       .mps_control = arguments.text("mps-control"),
                       .progress = {},
                       .partial = {}};
  std::optional<cli::Progress> progress;
  options.progress = [&](std::size_t done, std::size_t total, std::string_view name) {
    if (!progress) progress.emplace("probing", total, "groups");
    progress->set(done, name);
  };
  if (json.wanted() && !json.alone()) options.partial = [&](const Report& now) { (void)json.write(to_json(now)); };
  const Report report = run_probe(options);
  progress.reset();
  if (!report.problem.empty()) std::fprintf(stderr, "leat-gpu-probe: %s\n", report.problem.c_str());
  if (json.wanted()) {
    if (const int failed = json.write(to_json(report)); failed != 0) return failed;
  }
  if (!json.alone() && report.problem.empty()) std::fputs(to_text(report).c_str(), stdout);
  return exit_status(report);
}
