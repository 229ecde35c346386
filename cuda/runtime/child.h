// A process that answers: this very executable started again with `--role NAME` and a Channel at a fixed descriptor, so
// that it begins with clean memory, no CUDA state of its parent and the environment it is given (MPS reads its settings
// from the environment, before the first CUDA call).
//
// A child never outlives its parent (subprocess::Command's death signal: start children from a thread that lives as
// long as the process). Destruction of a Child kills and reaps it. One thread an object.
#pragma once

#include <sys/types.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/runtime/channel.h"
#include "tools/base/subprocess/process.h"

namespace leat::gpu {

using subprocess::Ending;
using subprocess::Environment;

struct ChildOptions {
  std::string role;
  std::vector<std::string> arguments = {};
  Environment environment = {};
  bool survives_parent = false;  // no death signal, a session of its own
};

class Child {
 public:
  static Result<Child> start(const ChildOptions& options);

  [[nodiscard]] Channel& channel() noexcept { return channel_; }
  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }
  // Waits for the end; at the deadline the process is killed and the ending says timed_out.
  Ending wait(Deadline deadline) { return process_.wait(deadline); }
  // SIGKILL, then reaps. Nothing if it has ended already.
  void kill() noexcept { process_.kill(); }

 private:
  Child(subprocess::Process process, Channel channel) noexcept
      : process_(std::move(process)), channel_(std::move(channel)) {}
  subprocess::Process process_;
  Channel channel_;
};

struct Role {
  std::string_view name;
  std::function<int(Channel&, std::span<const std::string>)> run;
};

// For the first line of main: runs the role named by `--role NAME ARGS...` and returns its exit status, or -1 when this
// process was started by a person. A role that throws sends "failed" with the text and returns 1.
int run_role(int argc, char** argv, std::span<const Role> roles);

}  // namespace leat::gpu
