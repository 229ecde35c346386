// Processes of the probe. A child is this very executable started again with `--role NAME` and a Channel at a fixed
// descriptor, so that it begins with clean memory, no CUDA state of its parent and the environment it is given (MPS
// reads its settings from the environment, before the first CUDA call).
//
// A child never outlives its parent: the kernel sends it SIGKILL when the parent dies (PR_SET_PDEATHSIG, tied to the
// thread that started it: start children from a thread that lives as long as the process). Destruction of a Child kills
// and reaps it. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/probe/channel.h"

namespace leat::probe {

// How a process ended.
struct Ending {
  enum class How : unsigned char { exited, signalled, timed_out } how = How::exited;
  int code = 0;  // exit status, or signal
  [[nodiscard]] bool clean() const noexcept { return how == How::exited && code == 0; }
  [[nodiscard]] std::string text() const;  // "ended with status 3", "was killed by signal 9 (Killed)", ...
};

struct ChildOptions {
  std::string role;
  std::vector<std::string> arguments;
  // Set before exec; an empty value removes the variable.
  std::vector<std::pair<std::string, std::string>> environment;
  bool survives_parent = false;  // for the keeper alone: no death signal, a session of its own
};

class Child {
 public:
  static Result<Child> start(const ChildOptions& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  [[nodiscard]] Channel& channel() noexcept { return channel_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  // Waits for the end; at the deadline the process is killed and the ending says timed_out.
  Ending wait(Deadline deadline);
  // SIGKILL, then reaps. Nothing if it has ended already.
  void kill() noexcept;

 private:
  Child(pid_t pid, Channel channel) noexcept : pid_(pid), channel_(std::move(channel)) {}
  pid_t pid_ = -1;
  Channel channel_;
};

// True once the process has ended; it is then reaped and `ending` filled.
bool reap(pid_t pid, Ending& ending);
// Reaps by the deadline; true: it ended.
bool reap_by(pid_t pid, Deadline deadline, Ending& ending);

struct Role {
  std::string_view name;
  std::function<int(Channel&, std::span<const std::string>)> run;
};

// For the first line of main: runs the role named by `--role NAME ARGS...` and returns its exit status, or -1 when this
// process was started by a person. A role that throws sends "failed" with the text and returns 1.
int run_role(int argc, char** argv, std::span<const Role> roles);

}  // namespace leat::probe
