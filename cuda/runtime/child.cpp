#include "cuda/runtime/child.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

namespace leat::gpu {
namespace {

constexpr int kChannelFd = 3;
constexpr const char* kRoleFlag = "--role";

}  // namespace

Result<Child> Child::start(const ChildOptions& options) {
  auto ends = Channel::pair();
  if (!ends) return Error{ends.error()};
  subprocess::Command command{.words = {program_invocation_short_name, kRoleFlag, options.role},
                              .file = "/proc/self/exe",
                              .environment = options.environment};
  command.words.insert(command.words.end(), options.arguments.begin(), options.arguments.end());
  // Standard output is the report's.
  command.fds = {{ends->second.fd(), kChannelFd}, {STDERR_FILENO, STDOUT_FILENO}};
  if (options.survives_parent)
    command.group = subprocess::Group::session;
  else
    command.death_signal = SIGKILL;
  auto process = subprocess::Process::start(command);
  if (!process) return Error{process.error()};
  return Child(std::move(*process), std::move(ends->first));
}

int run_role(int argc, char** argv, std::span<const Role> roles) {
  if (argc < 3 || std::strcmp(argv[1], kRoleFlag) != 0) return -1;
  const auto role = std::find_if(roles.begin(), roles.end(), [&](const Role& r) { return r.name == argv[2]; });
  if (role == roles.end() || ::fcntl(kChannelFd, F_SETFD, FD_CLOEXEC) != 0) {
    std::fprintf(stderr, "%s: %s is for the program's own use\n", program_invocation_short_name, kRoleFlag);
    return 2;
  }
  Channel channel{Fd(kChannelFd)};
  const std::vector<std::string> arguments(argv + 3, argv + argc);
  try {
    return role->run(channel, arguments);
  } catch (const std::exception& problem) {
    // Best effort: the parent also sees the exit status.
    if (!channel.send("failed", problem.what()))
      std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, problem.what());
    return 1;
  }
}

}  // namespace leat::gpu
