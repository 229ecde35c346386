// leat-worker PARTITION: started by leatd only, with its control socket as descriptor 3.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>

#include "engine/exec/onnx/denormals.h"
#include "engine/worker/worker.h"
#include "tools/base/cli/command.h"

namespace {

constexpr leat::cli::Positional kPositionals[] = {
    {.name = "PARTITION", .help = "name of the partition it serves, for the list of processes"}};
constexpr leat::cli::Command kCommand = {
    .name = "leat-worker",
    .summary = "runs the models of one partition",
    .description =
        "leatd starts one leat-worker for each partition and ends it with itself. It is of no use on its own.",
    .positionals = kPositionals,
    .see_also = "leatd(8)",
    .section = 8};

}  // namespace

int main(int argc, char** argv) {
  leat::exec::take_denormals_for_zero();
  // Dies with leatd, also if that is killed. If it was gone before this line, the control socket says so.
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto arguments = leat::cli::parse_or_exit(kCommand, argc, argv);
  if (fcntl(leat::worker::kControlFd, F_GETFD) < 0)
    return leat::cli::fail("leat-worker", "has no control socket; leatd starts it, see `leatd --help`");
  (void)signal(SIGPIPE, SIG_IGN);
  // Ctrl-C and a closed terminal's SIGHUP go to the whole group, and a service manager's SIGTERM too: leatd decides
  // when its workers end.
  for (const int ignored : {SIGINT, SIGHUP, SIGTERM}) (void)signal(ignored, SIG_IGN);
  bool device_lost = false;
  auto worker = leat::worker::Worker::start(leat::shm::Fd(leat::worker::kControlFd), &device_lost);
  // leatd has been sent the line, and says it once.
  if (!worker.ok()) return device_lost ? leat::worker::kDeviceLost : leat::cli::kBadInput;
  (*worker)->run();
  // Not by way of destructors: a library whose device is lost may end the process in them, and hide why.
  (void)fflush(nullptr);
  _exit((*worker)->exit_status());
}
