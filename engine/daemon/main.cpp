// leatd CONFIG: the daemon.
#include <unistd.h>

#include <filesystem>

#include "engine/daemon/config.h"
#include "engine/daemon/daemon.h"
#include "engine/daemon/log.h"
#include "tools/cli/command.h"

namespace {

using leat::cli::Type;

constexpr leat::cli::Option kOptions[] = {
    {.name = "check", .help = "read the configuration, say whether it is sound, start nothing"},
    {.name = "socket", .type = Type::path, .value = "PATH", .help = "serve there instead of where the configuration says"},
    {.name = "worker", .type = Type::path, .value = "FILE", .help = "leat-worker to start; by default the one beside leatd"},
    {.name = "ready-fd", .type = Type::integer, .value = "FD", .fallback = "-1", .min = -1, .max = 1023, .help = "write one line there when serving"},
    {.name = "drain-ms", .type = Type::integer, .value = "MS", .fallback = "5000", .min = 0, .max = 3'600'000, .help = "longest wait for frames in flight at the end"},
};
constexpr leat::cli::Positional kPositionals[] = {{.name = "CONFIG", .help = "configuration file (TOML)"}};
constexpr leat::cli::Example kExamples[] = {{"leatd shapes.toml", "serve as the file says"}, {"leatd --check shapes.toml", "only look whether the file is sound"}};
constexpr leat::cli::Command kCommand = {
    .name = "leatd",
    .summary = "serves frames to vision models on the partitions of this host",
    .description = "Clients place frames in shared memory with a latency objective; leatd decides for every frame where it runs, with whom, "
                   "or that it does not run at all, and answers each exactly once. One leat-worker runs for each partition.\n\n"
                   "SIGTERM and SIGINT finish what is in flight and end it; a second one ends it at once. SIGUSR1 saves the flight recorder.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat(1), leat-worker(8)",
    .section = 8};

// leat-worker beside leatd, or where the build leaves it.
std::string find_worker() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& candidate : {here / "leat-worker", here / "../worker/leat-worker"})
    if (access(candidate.c_str(), X_OK) == 0) return candidate.lexically_normal().string();
  return (here / "leat-worker").string();
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = leat::cli::parse_or_exit(kCommand, argc, argv);
  auto config = leat::daemon::read_config(arguments.positionals()[0]);
  if (!config.ok()) return leat::cli::fail("leatd", config.error());
  if (arguments.given("socket")) config->socket = arguments.text("socket");
  leat::daemon::start_log(config->log_level);
  if (arguments.flag("check")) return 0;
  leat::daemon::DaemonOptions options;
  options.worker_binary = arguments.given("worker") ? arguments.text("worker") : find_worker();
  options.ready_fd = static_cast<int>(arguments.integer("ready-fd"));
  options.drain_ns = arguments.integer("drain-ms") * 1'000'000;
  auto daemon = leat::daemon::Daemon::create(std::move(*config), options);
  if (!daemon.ok()) return leat::cli::fail("leatd", daemon.error());
  if (auto status = (*daemon)->run(); !status) return leat::cli::fail("leatd", status.error());
  return 0;
}
