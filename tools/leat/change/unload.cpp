// leat unload: an application goes while leatd serves the others.
#include "tools/leat/change/change_watch.h"

namespace leat::tools {
namespace {

constexpr cli::Option kOptions[] = {
    kDryRunOption,
    cli::json_option("print what became of it as JSON in place of text"),
    kSocketOption,
};
constexpr cli::Positional kPositionals[] = {{.name = "NAME", .help = "the application"}};
constexpr cli::Example kExamples[] = {{.line = "leat unload people", .text = "serve the others alone"}};
constexpr cli::Command kCommand = {
    .name = "leat unload",
    .summary = "takes an application from a daemon while it serves the others",
    .description =
        "Frames that are under way are answered. What its streams submit from then on is rejected (not_ready), and no "
        "stream of it can be opened. An application of the configuration comes back with leat reload.\n\n"
        "Only root and leatd's own user may.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat-load(1), leat-reload(1), leatd(8)",
    .exit_status = "0: it is gone, or was only looked at; 1: it is not, and all is as before; 2: bad input"};

int run(const cli::Arguments& args) {
  shm::Change what;
  what.kind = shm::ChangeKind::unload;
  what.dry_run = args.flag("dry-run") ? 1 : 0;
  const std::string& name = args.positionals()[0];
  if (name.size() >= sizeof what.name) return cli::fail(kCommand.name, "no application has so long a name");
  shm::set_text(what.name, name);
  return watch_change(kCommand, args, what, {});
}

}  // namespace

extern const cli::Subcommand kLeatUnload;
const cli::Subcommand kLeatUnload = {.command = &kCommand, .run = run};

}  // namespace leat::tools
