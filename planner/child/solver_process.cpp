#include "planner/child/solver_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/words/fd.h"

extern char** environ;

namespace leat::planner {
namespace {

constexpr std::size_t kMostOutput = 64u << 20;
using Clock = std::chrono::steady_clock;

// The last line that is not empty.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  const std::size_t start = text.rfind('\n');
  return start == std::string::npos ? text : text.substr(start + 1);
}

// Reads what is there; false: nothing will follow.
bool drain(Fd& from, std::string& into) {
  char buffer[65536];
  for (;;) {
    const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
    if (got > 0) {
      if (into.size() < kMostOutput) into.append(buffer, static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && errno == EAGAIN;
  }
}

int spawn(const std::vector<std::string>& command, int out, int err, pid_t& pid) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  const int failed = posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return failed;
}

void judge(int status, const std::string& errors, SolverRun& run) {
  const std::string line = last_line(errors);
  if (WIFSIGNALED(status)) {
    run.end = SolverRun::End::crashed;
    run.message =
        std::string("the solver died of signal ") + strsignal(WTERMSIG(status)) + (line.empty() ? "" : ": " + line);
  } else if (WEXITSTATUS(status) == 0) {
    run.end = SolverRun::End::done;
  } else if (WEXITSTATUS(status) == 1) {
    run.end = SolverRun::End::infeasible;
    run.message = last_line(run.output);
  } else {
    run.end = SolverRun::End::refused;
    run.message = line.empty() ? "the solver ended with status " + std::to_string(WEXITSTATUS(status)) : line;
  }
}

}  // namespace

namespace {

// Beside the running program, in one of `folders` seen from it, or by its bare name.
std::string program_near(const char* name, std::initializer_list<const char*> folders) {
  std::error_code none;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", none);
  for (const char* folder : folders) {
    const auto path = self.parent_path() / folder / name;
    if (!none && ::access(path.c_str(), X_OK) == 0) return path.string();
  }
  return name;
}

}  // namespace

std::string solver_path() { return program_near("leat-plan", {"", "../planner", "../../planner"}); }

std::string gpu_tool_path() {
  if (const char* named = ::getenv("LEAT_GPU"); named != nullptr && *named != '\0') return named;
  return program_near("leat-gpu", {"", "../cuda/partitions", "../../cuda/partitions"});
}

SolverRun run_solver(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  SolverRun run;
  if (command.empty()) {
    run.message = "no command to run";
    return run;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return run.message = std::string("no pipe: ") + std::strerror(errno), run;
  Fd out(ends[0]), out_write(ends[1]);
  if (::pipe2(ends, O_CLOEXEC) != 0) return run.message = std::string("no pipe: ") + std::strerror(errno), run;
  Fd err(ends[0]), err_write(ends[1]);
  ::fcntl(out.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err.get(), F_SETFL, O_NONBLOCK);
  pid_t pid = 0;
  if (const int failed = spawn(command, out_write.get(), err_write.get(), pid); failed != 0) {
    run.message = command[0] + ": cannot be started: " + std::strerror(failed);
    return run;
  }
  out_write.reset();
  err_write.reset();
  const Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto deadline = Clock::now() + limit;
  std::string errors;
  bool out_open = true, err_open = true, over = ended.get() < 0;
  while (!over) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) break;
    pollfd polled[3] = {
        {ended.get(), POLLIN, 0}, {out_open ? out.get() : -1, POLLIN, 0}, {err_open ? err.get() : -1, POLLIN, 0}};
    if (::poll(polled, 3, static_cast<int>(std::min<std::int64_t>(left, 3'600'000))) < 0 && errno != EINTR) break;
    if (out_open && polled[1].revents != 0) out_open = drain(out, run.output);
    if (err_open && polled[2].revents != 0) err_open = drain(err, errors);
    over = (polled[0].revents & POLLIN) != 0;
  }
  if (!over) ::kill(-pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  ::kill(-pid, SIGKILL);  // what it may have left behind in its group
  if (out_open) drain(out, run.output);
  if (err_open) drain(err, errors);
  if (!over) {
    run.end = SolverRun::End::too_long;
    run.message =
        "the solver was stopped after " + std::to_string(limit.count()) + " ms; raise the limit, or plan for less";
    return run;
  }
  judge(status, errors, run);
  return run;
}

}  // namespace leat::planner
