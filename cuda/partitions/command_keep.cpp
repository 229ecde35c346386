// leat-gpu keep: one GPU's MPS daemon, for as long as somebody holds the other end of its standard input.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cuda/runtime/mps_daemon.h"
#include "tools/base/cli/command.h"
#include "tools/base/subprocess/descendants.h"
#include "tools/base/subprocess/user.h"

namespace leat::partitions {
namespace {

constexpr cli::Positional kPositionals[] = {{.name = "UUID", .help = "the GPU or MIG device it shares out"},
                                            {.name = "FOLDER", .help = "private folder; removed at the end"}};
constexpr cli::Option kOptions[] = {{.name = "user",
                                     .type = cli::Type::text,
                                     .value = "NAME",
                                     .help = "whose the daemon and its clients are (default: the caller's)"}};
constexpr cli::Command kCommand = {
    .name = "leat-gpu keep",
    .summary = "runs one GPU's MPS daemon until its standard input ends",
    .description =
        "leatd starts one for each GPU that it shares out. It says \"ready\" once clients may come. However leatd "
        "ends, the daemon and everything it started end too, and the folder is removed.",
    .options = kOptions,
    .positionals = kPositionals,
    .see_also = "leatd(8)"};

std::string program() {
  const char* const named = std::getenv("LEAT_MPS_CONTROL");
  return named != nullptr && *named != '\0' ? named : "nvidia-cuda-mps-control";
}

int run(const cli::Arguments& arguments) {
  for (const int ignored : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
    (void)::signal(ignored, SIG_IGN);  // leatd's end is the end
  const std::string uuid = arguments.positionals()[0], folder = arguments.positionals()[1];
  // A daemon serves its own user's processes.
  if (const std::string user = arguments.text("user"); !user.empty())
    if (const auto became = subprocess::become_user(user); !became.ok())
      return cli::fail("leat-gpu keep", "cannot become the user '" + user + "': " + became.error());
  if (const auto adopted = subprocess::adopt_orphans(); !adopted.ok())
    return cli::fail("leat-gpu keep", adopted.error());
  gpu::MpsDaemon daemon(folder);
  const auto started = daemon.start({program(), {}, {{"CUDA_VISIBLE_DEVICES", uuid}}});
  int status = 0;
  if (!started.ok()) {
    status = cli::fail("leat-gpu keep", started.error());
  } else {
    std::puts("ready");
    std::fflush(stdout);
    constexpr int kLookMs = 200;  // whether the daemon still runs
    while (status == 0) {
      pollfd input{STDIN_FILENO, POLLIN, 0};
      char byte;
      if (::poll(&input, 1, kLookMs) > 0 && ::read(STDIN_FILENO, &byte, 1) <= 0) break;
      if (const auto ending = daemon.ended()) status = cli::fail("leat-gpu keep", "the MPS daemon " + ending->text());
    }
  }
  (void)daemon.stop();
  std::error_code none;
  std::filesystem::remove_all(folder, none);
  return status;
}

}  // namespace

extern const cli::Subcommand kGpuKeep;
const cli::Subcommand kGpuKeep = {&kCommand, run};

}  // namespace leat::partitions
