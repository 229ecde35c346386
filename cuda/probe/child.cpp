#include "cuda/probe/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>

namespace leat::probe {
namespace {

constexpr int kChannelFd = 3;
constexpr const char* kRoleFlag = "--role";

std::vector<std::string> merged_environment(const ChildOptions& options) {
  std::vector<std::string> result;
  const auto replaced = [&](std::string_view entry) {
    return std::any_of(options.environment.begin(), options.environment.end(), [&](const auto& change) {
      return entry.size() > change.first.size() && entry.starts_with(change.first) && entry[change.first.size()] == '=';
    });
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!replaced(*entry)) result.emplace_back(*entry);
  }
  for (const auto& [name, value] : options.environment) {
    if (!value.empty()) result.push_back(name + "=" + value);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

// Between fork and exec: async-signal-safe calls only, since a parent may have threads of the CUDA driver.
[[noreturn]] void become(int socket, pid_t parent, bool survives_parent, char* const* argv, char* const* envp) {
  if (survives_parent) {
    ::setsid();
  } else {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before the line above
  }
  if (socket == kChannelFd) {
    ::fcntl(socket, F_SETFD, 0);
  } else if (::dup2(socket, kChannelFd) < 0) {
    ::_exit(127);
  }
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // stdout is the report's
  ::syscall(SYS_close_range, kChannelFd + 1, ~0U, 0U);
  ::execve("/proc/self/exe", argv, envp);
  ::_exit(127);
}

}  // namespace

std::string Ending::text() const {
  switch (how) {
    case How::exited:
      return "ended with status " + std::to_string(code);
    case How::signalled:
      return "was killed by signal " + std::to_string(code) + " (" + ::strsignal(code) + ")";
    case How::timed_out:
      break;
  }
  return "exceeded its time limit and was killed";
}

Result<Child> Child::start(const ChildOptions& options) {
  auto ends = Channel::pair();
  if (!ends) return Error{ends.error()};
  std::vector<std::string> arguments{"leat-gpu-probe", kRoleFlag, options.role};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = merged_environment(options);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Error{std::string("fork: ") + std::strerror(errno)};
  if (pid == 0) become(ends->second.fd(), parent, options.survives_parent, argv.data(), envp.data());
  return Child(pid, std::move(ends->first));
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), channel_(std::move(other.channel_)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = std::exchange(other.pid_, -1);
    channel_ = std::move(other.channel_);
  }
  return *this;
}

Child::~Child() { kill(); }

Ending Child::wait(Deadline deadline) {
  Ending ending;
  if (pid_ < 0) return ending;
  if (!reap_by(pid_, deadline, ending)) {
    kill();
    return {Ending::How::timed_out, SIGKILL};
  }
  pid_ = -1;
  return ending;
}

void Child::kill() noexcept {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  Ending ending;
  reap_by(pid_, after(std::chrono::seconds(10)), ending);  // bounded: a driver call may hold a process for a while
  pid_ = -1;
}

bool reap(pid_t pid, Ending& ending) {
  int status = 0;
  const pid_t got = ::waitpid(pid, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return false;
  if (got < 0) {
    ending = {};  // somebody else reaped it
  } else if (WIFSIGNALED(status)) {
    ending = {Ending::How::signalled, WTERMSIG(status)};
  } else {
    ending = {Ending::How::exited, WEXITSTATUS(status)};
  }
  return true;
}

bool reap_by(pid_t pid, Deadline deadline, Ending& ending) {
  // A nap between two looks works on every kernel; pidfd does not exist in all sandboxes.
  for (auto nap = std::chrono::microseconds(200); !reap(pid, ending);
       nap = std::min(nap * 2, std::chrono::microseconds(10'000))) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(nap);
  }
  return true;
}

int run_role(int argc, char** argv, std::span<const Role> roles) {
  if (argc < 3 || std::strcmp(argv[1], kRoleFlag) != 0) return -1;
  const auto role = std::find_if(roles.begin(), roles.end(), [&](const Role& r) { return r.name == argv[2]; });
  if (role == roles.end() || ::fcntl(kChannelFd, F_SETFD, FD_CLOEXEC) != 0) {
    std::fprintf(stderr, "leat-gpu-probe: %s is for the probe's own use\n", kRoleFlag);
    return 2;
  }
  Channel channel{Fd(kChannelFd)};
  const std::vector<std::string> arguments(argv + 3, argv + argc);
  try {
    return role->run(channel, arguments);
  } catch (const std::exception& problem) {
    // Best effort: the parent also sees the exit status.
    if (!channel.send("failed", problem.what())) std::fprintf(stderr, "leat-gpu-probe: %s\n", problem.what());
    return 1;
  }
}

}  // namespace leat::probe
