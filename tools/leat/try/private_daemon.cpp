#include "tools/leat/try/private_daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/base/subprocess/program.h"
#include "tools/base/text/fd.h"

namespace leat::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kEnd{2};  // what a leatd may take that is asked to end

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

std::string leatd_program() { return subprocess::near_this_program("leatd", {"", "../../engine/daemon"}); }

Result<std::string> text_behind_descriptor(const std::string& text) {
  Fd fd(memfd_create("leat-config", 0));
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
  auto ready = subprocess::make_pipe();
  if (!ready.ok()) return Error{ready.error()};
  const Fd out(open(log.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600));
  const Fd terminal(isatty(STDERR_FILENO) == 1 ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1);
  const int tell = ready->write.get(), bar = terminal.get();
  std::vector<std::string> words = {leatd, "--trial", "--ready-fd", std::to_string(tell), "--socket", socket};
  if (bar >= 0) words.insert(words.end(), {"--bar-fd", std::to_string(bar)});
  if (!model.empty()) words.insert(words.end(), {"--made-from", model});
  words.push_back(config);
  // The pipe and the terminal under their own numbers: the configuration may be a descriptor too.
  std::vector<subprocess::GivenFd> fds = {{out.get(), STDOUT_FILENO}, {out.get(), STDERR_FILENO}, {tell, tell}};
  if (bar >= 0) fds.push_back({bar, bar});
  auto process =
      subprocess::Process::start({.words = std::move(words),
                                  .fds = std::move(fds),
                                  .inherits_fds = true,
                                  .group = subprocess::Group::own,  // an interrupt is for leat, which then ends it
                                  .death_signal = SIGTERM});
  if (!process.ok()) return Error{leatd + " cannot be started; install leatd beside leat"};
  d->process_ = std::move(*process);
  ready->write.reset();
  char line[8];
  if (read(ready->read.get(), line, sizeof line) > 0) return d;
  (void)d->process_.wait(subprocess::after(kEnd));
  std::string why = complaint_in(log);
  if (why.empty()) why = leatd + " ended before it served, and did not say why";
  return Error{why};
}

PrivateDaemon::~PrivateDaemon() {
  process_.signal(SIGTERM);
  (void)process_.wait(subprocess::after(kEnd));
  std::error_code none;
  fs::remove_all(folder_, none);
}

std::string PrivateDaemon::last_complaint() const { return complaint_in(folder_ + "/log"); }

}  // namespace leat::tools
