#include "tools/leat/try/private_daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "shm/src/segment.h"

namespace leat::tools {
namespace {

namespace fs = std::filesystem;

// A line of leatd's log without the time it begins with, "2026-01-31 23:59:59.123 ".
std::string without_time(const std::string& line) {
  constexpr std::string_view kForm = "dddd-dd-dd dd:dd:dd.ddd ";
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (i >= line.size() || (kForm[i] == 'd' ? line[i] < '0' || line[i] > '9' : line[i] != kForm[i])) return line;
  return line.substr(kForm.size());
}

// Of leatd's log the last line that is more than information, without its name and level; the lines that it ended
// with, if it did, since these have no level.
std::string complaint_in(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  bool ended = false;
  while (std::getline(file, line)) {
    line = without_time(line);
    const bool of_leatd = line.rfind("leatd: ", 0) == 0;
    if (of_leatd) line.erase(0, 7);
    bool level = false;
    for (const std::string_view word : {"info: ", "debug: ", "warning: ", "error: ", "critical: "})
      level = level || line.rfind(word, 0) == 0;
    if (line.empty() || line.rfind("info: ", 0) == 0 || line.rfind("debug: ", 0) == 0) continue;
    if (level) line.erase(0, line.find(' ') + 1);
    const bool end = of_leatd && !level;
    last = end && ended ? last + "\n" + line : line;
    ended = end;
  }
  return last;
}

}  // namespace

std::string leatd_program() {
  std::error_code none;
  const fs::path here = fs::read_symlink("/proc/self/exe", none).parent_path();
  for (const fs::path& candidate : {here / "leatd", here / "../../engine/daemon/leatd"})
    if (access(candidate.c_str(), X_OK) == 0) return candidate.lexically_normal().string();
  return "leatd";
}

Result<std::string> text_behind_descriptor(const std::string& text) {
  shm::Fd fd(memfd_create("leat-config", 0));
  if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return Error{std::string("no memory for the configuration: ") + std::strerror(errno)};
  return "/proc/self/fd/" + std::to_string(fd.release());
}

Result<std::unique_ptr<PrivateDaemon>> PrivateDaemon::start(const std::string& config, const std::string& model) {
  const char* const scratch = std::getenv("TMPDIR");
  std::string folder = std::string(scratch != nullptr && *scratch != '\0' ? scratch : "/tmp") + "/leat-try-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr)
    return Error{"no folder can be made at " + folder + ": " + std::strerror(errno) + "; set TMPDIR"};
  std::unique_ptr<PrivateDaemon> d(new PrivateDaemon);
  d->folder_ = folder;
  const std::string log = folder + "/log", leatd = leatd_program(), socket = d->socket();
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return Error{std::string("no pipe can be made: ") + std::strerror(errno)};
  const int out = open(log.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
  const int terminal = isatty(STDERR_FILENO) == 1 ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
  const std::string tell = std::to_string(ready[1]), bar = std::to_string(terminal);
  const pid_t parent = getpid();
  d->pid_ = fork();
  if (d->pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    setpgid(0, 0);  // an interrupt is for leat, which then ends it
    dup2(out, STDERR_FILENO);
    dup2(out, STDOUT_FILENO);
    if (terminal >= 0) fcntl(terminal, F_SETFD, 0);
    fcntl(ready[1], F_SETFD, 0);  // under its own number: the configuration may be a descriptor too
    const char* line[14] = {"leatd", "--trial", "--ready-fd", tell.c_str(), "--socket", socket.c_str()};
    std::size_t words = 6;
    if (terminal >= 0) line[words++] = "--bar-fd", line[words++] = bar.c_str();
    if (!model.empty()) line[words++] = "--made-from", line[words++] = model.c_str();
    line[words] = config.c_str();
    execvp(leatd.c_str(), const_cast<char* const*>(line));
    _exit(127);
  }
  close(out);
  close(ready[1]);
  if (terminal >= 0) close(terminal);
  char line[8];
  const bool serves = d->pid_ > 0 && read(ready[0], line, sizeof line) > 0;
  close(ready[0]);
  if (serves) return d;
  int status = 0;
  if (d->pid_ > 0) waitpid(std::exchange(d->pid_, -1), &status, 0);
  std::string why = complaint_in(log);
  if (why.empty()) why = leatd + " cannot be started; install leatd beside leat";
  return Error{why};
}

PrivateDaemon::~PrivateDaemon() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code none;
  fs::remove_all(folder_, none);
}

std::string PrivateDaemon::last_complaint() const { return complaint_in(folder_ + "/log"); }

}  // namespace leat::tools
