// leat reload: leatd reads its configuration again and puts in force what has changed, while it serves.
#include "tools/leat/change/change_watch.h"

namespace leat::tools {
namespace {

constexpr cli::Option kOptions[] = {
    kDryRunOption,
    cli::json_option("print what became of it as JSON in place of text"),
    kSocketOption,
};
constexpr cli::Example kExamples[] = {
    {.line = "leat reload", .text = "after leatd's configuration was edited; SIGHUP does the same"},
    {.line = "leat reload --dry-run", .text = "what that would change, and in which waves workers would start"}};
constexpr cli::Command kCommand = {
    .name = "leat reload",
    .summary = "has a daemon read its configuration again and put it in force while it serves",
    .description =
        "Applications, models, objectives, users' limits, partitions, the policy and the plan are put in force without "
        "a restart: new workers start beside the old ones that they follow, then the new plan takes over between two "
        "batches, and the old workers end. Where a step fails all stays as it was, and one line says why. Keys that a "
        "new start alone can put in force are named, and nothing is changed then.\n\n"
        "Only root and leatd's own user may.",
    .options = kOptions,
    .examples = kExamples,
    .see_also = "leatd(8), leat-load(1), leat-unload(1), leat-plan(1), leat-status(1)",
    .exit_status = "0: it is in force, or was only looked at; 1: it is not, and all is as before; 2: bad input"};

int run(const cli::Arguments& args) {
  shm::Change what;
  what.kind = shm::ChangeKind::reload;
  what.dry_run = args.flag("dry-run") ? 1 : 0;
  what.trial_ns = 5'000'000'000;
  return watch_change(kCommand, args, what, {});
}

}  // namespace

extern const cli::Subcommand kLeatReload;
const cli::Subcommand kLeatReload = {.command = &kCommand, .run = run};

}  // namespace leat::tools
