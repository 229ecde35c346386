#include "cuda/runtime/mps_daemon.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tools/base/subprocess/descendants.h"
#include "tools/base/subprocess/run.h"
#include "tools/base/text/fd.h"

namespace leat::gpu {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using subprocess::after;
using subprocess::Clock;

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
  if (process_) return Error{"an MPS daemon runs here already"};
  program_ = options.program;
  for (const char* part : {"/pipe", "/log"}) {
    if (::mkdir((directory_ + part).c_str(), 0700) != 0 && errno != EEXIST) {
      return Error{directory_ + part + ": " + std::strerror(errno)};
    }
  }
  const Fd out(::open((directory_ + "/log/out").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out) return Error{directory_ + "/log/out: " + std::strerror(errno)};
  subprocess::Command command{.words = {program_, "-f"},
                              .environment = mps_environment(directory_),
                              .fds = {{out.get(), STDOUT_FILENO}, {out.get(), STDERR_FILENO}},
                              .death_signal = SIGTERM};
  command.words.insert(command.words.end(), options.arguments.begin(), options.arguments.end());
  command.environment.insert(command.environment.end(), options.environment.begin(), options.environment.end());
  auto process = subprocess::Process::start(command);
  if (!process) return Error{process.error()};
  process_ = std::move(*process);
  return wait_until_up();
}

Status MpsDaemon::stop() {
  if (process_ && !process_.ended()) {
    // The answer does not matter: the process is watched, and killed when it stays.
    (void)subprocess::run({.words = {program_}, .environment = mps_environment(directory_)},
                          {.limit = kDaemonQuit, .input = "quit -t 2\n"});
    if (!process_.ended_by(after(seconds(1)))) {
      process_.signal(SIGTERM);
      (void)process_.ended_by(after(seconds(1)));
    }
  }
  process_.kill();
  auto killed = subprocess::kill_descendants(after(seconds(10)));
  if (!killed) return Error{killed.error()};
  std::error_code problem;
  std::filesystem::remove_all(directory_ + "/pipe", problem);
  if (problem) return Error{directory_ + "/pipe: " + problem.message()};
  return Done{};
}

Status MpsDaemon::wait_until_up() {
  const std::string control = directory_ + "/pipe/control";
  const auto deadline = after(kDaemonStart);
  for (;;) {
    if (const auto ending = process_.ended())
      return Error{program_ + " " + ending->text() + ": " + first_lines(directory_ + "/log/out")};
    if (::access(control.c_str(), F_OK) == 0) return Done{};
    if (Clock::now() >= deadline) {
      (void)stop();
      return Error{program_ + " made no control socket within 15 s"};
    }
    std::this_thread::sleep_for(milliseconds(2));
  }
}

}  // namespace leat::gpu
