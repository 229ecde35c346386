// The keeper: a process of its own that starts the probe's MPS control daemon in a private directory and stops it, also
// when the probe is killed with SIGKILL at any moment.
//
// - The probe's end of the keeper's channel is close-on-exec and nowhere else, so its closing means: the probe is gone.
//   The keeper then asks the daemon to quit, kills whatever is left below itself, removes the directory and ends.
// - The daemon runs in the foreground as the keeper's child; the keeper adopts orphans, so servers that the daemon
//   forks are found however they detach.
// - If the keeper itself is killed, the kernel sends the daemon SIGTERM (death signal) and hands what is left to the
//   probe, which adopts orphans too; tidy() kills it.
// What remains uncovered: probe and keeper killed in the same instant, with a daemon that ignores SIGTERM.
//
// Not thread-safe: one thread of the probe owns a Keeper.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/gpu/processes.h"

namespace leat::probe {

inline constexpr std::string_view kKeeperRole = "keeper";

class Keeper {
 public:
  // Makes the private directory (mode 0700, under $TMPDIR or /tmp) and starts the process.
  static Result<Keeper> start();
  Keeper(Keeper&& other) noexcept
      : process_(std::exchange(other.process_, std::nullopt)), directory_(std::move(other.directory_)) {}
  ~Keeper();

  // The daemon is up when its control socket exists. One daemon at a time. The error holds the daemon's own last words.
  Status start_daemon(const DaemonOptions& options);
  Status stop_daemon();
  // Ends the keeper and checks that nothing is left: no process, no directory. Kills what a killed keeper left behind.
  Status tidy();

  // CUDA_MPS_PIPE_DIRECTORY and CUDA_MPS_LOG_DIRECTORY of the private daemon.
  [[nodiscard]] Environment environment() const;
  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  [[nodiscard]] pid_t pid() const noexcept { return process_ ? process_->pid() : -1; }

  // The keeper process itself.
  static int run(Channel& channel, std::span<const std::string> arguments);

 private:
  Keeper(Child process, std::string directory) : process_(std::move(process)), directory_(std::move(directory)) {}
  std::optional<Child> process_;
  std::string directory_;
};

}  // namespace leat::probe
