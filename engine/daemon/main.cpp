// leatd CONFIG: the daemon.
#include <unistd.h>

#include <csignal>

#include "engine/daemon/configuration/config.h"
#include "engine/daemon/daemon.h"
#include "engine/daemon/deployment/trial.h"
#include "engine/daemon/log.h"
#include "engine/daemon/workers/self_guard.h"
#include "engine/daemon/workers/worker_binary.h"
#include "tools/base/cli/command.h"
#include "tools/base/cores/cores.h"

namespace {

using leat::cli::Type;

constexpr leat::cli::Option kOptions[] = {
    {.name = "check", .help = "say whether leatd would start: models are loaded as for serving, but nothing is served"},
    {.name = "trial", .help = "one partition on every core, batches of one, no deadlines: what `leat try` starts"},
    {.name = "made-from",
     .type = Type::path,
     .value = "MODEL",
     .help = "CONFIG was made from this model by a command line, whose words messages use: `leat serve`, `leat try`"},
    {.name = "socket",
     .type = Type::path,
     .value = "PATH",
     .help = "serve there instead of where the configuration says"},
    {.name = "worker",
     .type = Type::path,
     .value = "FILE",
     .help = "leat-worker to start; by default the one beside leatd"},
    leat::cli::integer_option("ready-fd", "-1", -1, 1023, "write one line there when serving", "FD"),
    leat::cli::integer_option("bar-fd", "-1", -1, 1023,
                              "a terminal that shows how far the start is, where standard error is none", "FD"),
    leat::cli::integer_option("drain-ms", "5000", 0, 3'600'000, "longest wait for frames in flight at the end", "MS"),
};
constexpr leat::cli::Positional kPositionals[] = {{.name = "CONFIG", .help = "configuration file (TOML)"}};
constexpr leat::cli::Example kExamples[] = {{"leatd shapes.toml", "serve as the file says"},
                                            {"leatd --check shapes.toml", "only look whether the file is sound"}};
constexpr leat::cli::Command kCommand = {
    .name = "leatd",
    .summary = "serves frames to vision models on the partitions of this host",
    .description =
        "Clients place frames in shared memory with a latency objective; leatd decides for every frame where it runs, "
        "with whom, "
        "or that it does not run at all, and answers each exactly once. One leat-worker runs for each partition.\n\n"
        "SIGTERM and SIGINT finish what is in flight and end it; a second one ends it at once. SIGUSR1 writes "
        "what is new of the record. SIGHUP has it read CONFIG again and put in force what has changed, as "
        "leat-reload(1) does.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat(1), leat-worker(8)",
    .section = 8};

}  // namespace

int main(int argc, char** argv) {
  // What leatd was given is not for its workers: a configuration behind a descriptor, the pipe that tells it is ready.
  (void)::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  const auto arguments = leat::cli::parse_or_exit(kCommand, argc, argv);
  auto config = leat::daemon::read_config(arguments.positionals()[0], arguments.text("made-from"));
  if (!config.ok()) return leat::cli::fail("leatd", config.error());
  if (arguments.given("socket")) config->socket = arguments.text("socket");
  if (arguments.given("socket") || arguments.given("made-from")) config->socket_place.clear();  // no file says it
  if (arguments.flag("trial")) {
    auto cores = leat::usable_cores();
    if (!cores.ok()) return leat::cli::fail("leatd", cores.error());
    leat::daemon::as_trial(*config, std::move(*cores));
  }
  leat::daemon::start_log(arguments.flag("check") ? "error" : config->log_level);
  leat::daemon::guard_itself(*config);
  leat::daemon::DaemonOptions options;
  options.worker_binary = arguments.given("worker") ? arguments.text("worker") : leat::daemon::find_worker();
  options.ready_fd = static_cast<int>(arguments.integer("ready-fd"));
  options.bar_fd = static_cast<int>(arguments.integer("bar-fd"));
  if (options.bar_fd >= 0) (void)std::signal(SIGTTOU, SIG_IGN);  // whoever started it may be what the terminal obeys
  options.drain_ns = arguments.integer("drain-ms") * 1'000'000;
  if (arguments.flag("check")) options.check_ns = leat::daemon::kCheckNs;
  auto daemon = leat::daemon::Daemon::create(std::move(*config), options);
  if (!daemon.ok()) return leat::cli::fail("leatd", daemon.error());
  if (auto status = (*daemon)->run(); !status) return leat::cli::fail("leatd", status.error());
  return 0;
}
