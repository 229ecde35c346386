#include "cuda/probe/mps_daemon.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "cuda/probe/descendants.h"

namespace leat::probe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kDaemonStart = seconds(15);
constexpr auto kDaemonQuit = seconds(6);

std::string first_lines(const std::string& path) {
  std::ifstream file(path);
  std::string text, line;
  while (std::getline(file, line) && text.size() < 300) text += (text.empty() ? "" : "; ") + line;
  return text.empty() ? "it said nothing" : text;
}

}  // namespace

Environment mps_environment(const std::string& directory) {
  return {{"CUDA_MPS_PIPE_DIRECTORY", directory + "/pipe"}, {"CUDA_MPS_LOG_DIRECTORY", directory + "/log"}};
}

Status MpsDaemon::start(const DaemonOptions& options) {
  if (pid_ > 0) return Error{"an MPS daemon of the probe is running already"};
  options_ = options;
  for (const char* part : {"/pipe", "/log"}) {
    if (::mkdir((directory_ + part).c_str(), 0700) != 0 && errno != EEXIST) {
      return Error{directory_ + part + ": " + std::strerror(errno)};
    }
  }
  pid_ = ::fork();
  if (pid_ < 0) return Error{std::string("fork: ") + std::strerror(errno)};
  if (pid_ == 0) become();
  return wait_until_up();
}

// Asks, then insists. Whatever the daemon forked goes too.
Status MpsDaemon::stop() {
  Ending ending;
  if (pid_ > 0 && !reap(pid_, ending)) {
    // The answer does not matter: the process is watched, and killed when it stays.
    (void)run_command({options_.program}, mps_environment(directory_), "quit -t 2\n", after(kDaemonQuit));
    if (!reap_by(pid_, after(seconds(1)), ending)) {
      ::kill(pid_, SIGTERM);
      reap_by(pid_, after(seconds(1)), ending);
    }
  }
  pid_ = -1;
  auto killed = kill_descendants({}, after(seconds(10)));
  if (!killed) return Error{killed.error()};
  return remove_directory(directory_ + "/pipe");
}

void MpsDaemon::become() {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGHUP, SIG_DFL);
  const int out = ::open((directory_ + "/log/out").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  for (const Environment& part : {mps_environment(directory_), options_.environment}) {
    for (const auto& [name, value] : part) ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<std::string> words{options_.program, "-f"};
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

Status MpsDaemon::wait_until_up() {
  const std::string control = directory_ + "/pipe/control";
  const Deadline deadline = after(kDaemonStart);
  Ending ending;
  for (;;) {
    if (reap(pid_, ending)) {
      pid_ = -1;
      return Error{options_.program + " " + ending.text() + ": " + first_lines(directory_ + "/log/out")};
    }
    if (::access(control.c_str(), F_OK) == 0) return Done{};
    if (Clock::now() >= deadline) {
      (void)stop();
      return Error{options_.program + " made no control socket within 15 s"};
    }
    std::this_thread::sleep_for(milliseconds(2));
  }
}

}  // namespace leat::probe
