#include "tools/base/subprocess/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>

#include "tools/base/text/system_reason.h"

namespace leat::subprocess {
namespace {

constexpr int kFirstOther = 3;           // after standard input, output and error
constexpr unsigned kMarkOnly = 1U << 2;  // CLOSE_RANGE_CLOEXEC, which old headers lack

std::vector<std::string> merged(const Environment& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view key(*entry, std::strcspn(*entry, "="));
    if (std::none_of(changes.begin(), changes.end(), [&](const auto& change) { return change.first == key; }))
      result.emplace_back(*entry);
  }
  for (const auto& [name, value] : changes) {
    if (!value.empty()) result.push_back(name + "=" + value);
  }
  return result;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& s : strings) result.push_back(const_cast<char*>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

// All that the child needs, made before it is there: it shares this memory until the program runs, and may allocate
// nothing.
struct Plan {
  const Command& command;
  const char* file;
  char* const* argv;
  char* const* envp;
  GivenFd* fds;  // a copy that the child changes
  std::size_t count;
  pid_t parent;
  int problem;  // where the child writes an errno
};

bool place_fds(Plan& plan) {
  if (!plan.command.inherits_fds) ::syscall(SYS_close_range, kFirstOther, ~0U, kMarkOnly);
  int above = kFirstOther;
  bool reads = false;
  for (std::size_t i = 0; i < plan.count; ++i) {
    above = std::max(above, plan.fds[i].as + 1);
    reads = reads || plan.fds[i].as == STDIN_FILENO;
  }
  // Out of the way first: the number that one is to get may be another's now, or that of the pipe.
  plan.problem = ::fcntl(plan.problem, F_DUPFD_CLOEXEC, above);
  if (plan.problem < 0) return false;
  for (std::size_t i = 0; i < plan.count; ++i) {
    plan.fds[i].fd = ::fcntl(plan.fds[i].fd, F_DUPFD_CLOEXEC, above);
    if (plan.fds[i].fd < 0) return false;
  }
  if (!reads) {
    const int null = ::open("/dev/null", O_RDONLY);
    if (null > 0 && (::dup2(null, STDIN_FILENO) < 0 || ::close(null) != 0)) return false;
  }
  for (std::size_t i = 0; i < plan.count; ++i) {
    if (::dup2(plan.fds[i].fd, plan.fds[i].as) < 0) return false;
  }
  return true;
}

// In the child: only calls that are safe in a handler of a signal.
[[noreturn]] void become(Plan& plan) {
  const bool alive = plan.command.death_signal == 0 ||
                     (::prctl(PR_SET_PDEATHSIG, plan.command.death_signal) == 0 && ::getppid() == plan.parent);
  if (!alive) ::_exit(127);  // the parent ended before the line above
  if (plan.command.group == Group::own) ::setpgid(0, 0);
  if (plan.command.group == Group::session) ::setsid();
  if (place_fds(plan)) {
    // Handlers first: a signal that has been waiting must find the default.
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; ++number) ::sigaction(number, &usual, nullptr);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execvpe(plan.file, plan.argv, plan.envp);
  }
  const int why = errno;
  (void)!::write(plan.problem, &why, sizeof why);
  ::_exit(127);
}

// By itself, so that no variable of the caller lies where the child may change it.
[[gnu::noinline]] pid_t branch(Plan& plan) {
  const pid_t pid = ::vfork();
  if (pid == 0) become(plan);
  return pid;
}

}  // namespace

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error{"no pipe: " + text::system_reason(errno)};
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<Process> Process::start(const Command& command) {
  const auto refused = [&](const char* what, int why) {
    return Error{(command.words.empty() ? std::string("no program") : command.words[0]) + ": " + what + ": " +
                 text::system_reason(why)};
  };
  if (command.words.empty()) return refused("cannot be started", EINVAL);
  auto pipe = make_pipe();  // by which the child says why it could not become the program
  if (!pipe) return Error{command.words[0] + ": " + pipe.error()};
  const std::vector<std::string> environment = merged(command.environment);
  const std::vector<char*> argv = pointers(command.words), envp = pointers(environment);
  std::vector<GivenFd> fds = command.fds;
  const std::string& file = command.file.empty() ? command.words[0] : command.file;
  Plan plan{command, file.c_str(), argv.data(), envp.data(), fds.data(), fds.size(), ::getpid(), pipe->write.get()};
  // No handler of this process may run in the child, which shares its memory.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = branch(plan);
  const int failed = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return refused("no process", failed);
  Process process(pid, command.group != Group::callers);
  pipe->write.reset();
  int why = 0;
  ssize_t got = 0;
  do {
    got = ::read(pipe->read.get(), &why, sizeof why);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return process;  // the pipe went with the old program
  process.kill();
  return refused("cannot be started", why);
}

Result<Process> Process::start(const std::function<void()>& function) {
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) return Error{"no process: " + text::system_reason(errno)};
  if (pid == 0) {
    ::setpgid(0, 0);
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(127);
    function();
    ::_exit(0);
  }
  ::setpgid(pid, pid);  // also here: the group is there for whoever kills it next
  return Process(pid, true);
}

Process::Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)), leads_group_(other.leads_group_) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = std::exchange(other.pid_, -1);
    leads_group_ = other.leads_group_;
  }
  return *this;
}

Process::~Process() { kill(); }

bool Process::has_ended() const noexcept {
  siginfo_t info{};
  if (pid_ < 0) return false;
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return errno == ECHILD;
  return info.si_pid == pid_;
}

std::optional<Ending> Process::ended() {
  if (pid_ < 0) return std::nullopt;
  int status = 0;
  const pid_t got = ::waitpid(pid_, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return std::nullopt;
  pid_ = -1;
  return got < 0 ? Ending{} : ending_of(status);  // < 0: somebody else has reaped it
}

std::optional<Ending> Process::ended_by(Deadline deadline) {
  // A nap between two looks works on every kernel; pidfd does not exist in all sandboxes.
  for (auto nap = std::chrono::microseconds(200);; nap = std::min(nap * 2, std::chrono::microseconds(10'000))) {
    const auto ending = ended();
    if (ending || pid_ < 0 || Clock::now() >= deadline) return ending;
    std::this_thread::sleep_for(nap);
  }
}

Ending Process::wait(Deadline deadline) {
  if (pid_ < 0) return {};
  if (const auto ending = ended_by(deadline)) return *ending;
  kill();
  return {Ending::How::timed_out, SIGKILL};
}

void Process::signal(int number) noexcept {
  if (pid_ > 0) ::kill(pid_, number);
}

void Process::send_kill() noexcept {
  if (pid_ > 0) ::kill(leads_group_ ? -pid_ : pid_, SIGKILL);
}

void Process::kill() noexcept {
  if (pid_ < 0) return;
  send_kill();
  (void)ended_by(after(std::chrono::seconds(10)));
  pid_ = -1;
}

}  // namespace leat::subprocess
