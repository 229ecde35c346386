// leat doctor: is this machine fit to serve, and if not, why and what to do.
#include <cstdio>

#include "tools/base/cli/json_output.h"
#include "tools/base/cli/progress.h"
#include "tools/base/json/json.h"
#include "tools/leat/commands.h"
#include "tools/leat/doctor_checks.h"

namespace leat::tools {
namespace {

constexpr cli::Option kOptions[] = {
    cli::json_option(),
};
constexpr cli::Example kExamples[] = {{.line = "leat doctor", .text = "looks at everything and says what to do"}};
constexpr cli::Command kCommand = {
    .name = "leat doctor",
    .summary = "says whether this machine can serve, and what to do where it cannot",
    .description =
        "Looks at the kernel, limits, shared memory, io_uring, cores, memory, clock, ONNX Runtime, the daemon's socket "
        "and "
        "GPUs. Each finding is 'good', a 'note' (works, less well than it could) or a 'fault' (Leat cannot serve "
        "here); the "
        "last two come with cause and cure. Nothing is changed.",
    .options = kOptions,
    .examples = kExamples,
    .see_also = "leatd(8), leat-check(1)",
    .exit_status = "0 when there is no fault, 2 otherwise.",
};

int run(const cli::Arguments& args) {
  const cli::JsonOutput json(args);
  bool fault = false;
  Json findings = Json::array();
  cli::Progress progress("looking at this machine", doctor_checks().size(), "checks");
  std::uint64_t looked = 0;
  for (const DoctorCheck check : doctor_checks()) {
    if (progress.on_terminal()) progress.set(looked++);
    const Finding finding = check();
    progress.erase();
    fault = fault || finding.health == Health::fault;
    findings.push_back({{"subject", finding.subject},
                        {"health", name_of(finding.health)},
                        {"found", finding.found},
                        {"cause", finding.cause},
                        {"cure", finding.cure}});
    if (json.alone()) continue;
    std::printf("%-5s  %-14.*s %s\n", std::string(name_of(finding.health)).c_str(),
                static_cast<int>(finding.subject.size()), finding.subject.data(), finding.found.c_str());
    if (!finding.cause.empty())
      std::printf("%-22scause: %s\n%-22scure:  %s\n", "", finding.cause.c_str(), "", finding.cure.c_str());
    std::fflush(stdout);
  }
  if (!json.alone())
    std::printf("%s\n", fault ? "This machine cannot serve yet: see the faults above." : "This machine can serve.");
  const Json out = {{"fit", !fault}, {"findings", findings}};
  if (const int failed = json.write(out.dump(2)); failed != 0) return failed;
  return fault ? cli::kBadInput : 0;
}

}  // namespace

extern const cli::Subcommand kLeatDoctor;
const cli::Subcommand kLeatDoctor = {.command = &kCommand, .run = run};

}  // namespace leat::tools
