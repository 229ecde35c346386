#include "cuda/probe/keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "cuda/probe/descendants.h"

namespace leat::probe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kDaemonStart = seconds(15);
constexpr auto kDaemonQuit = seconds(6);
constexpr auto kReply = seconds(30);  // longer than either, so that the keeper answers first

// A start request: program, count of arguments, arguments, then name=value lines.
std::string encode(const DaemonOptions& options) {
  std::string body = options.program + '\n' + std::to_string(options.arguments.size()) + '\n';
  for (const std::string& argument : options.arguments) body += argument + '\n';
  for (const auto& [name, value] : options.environment) body += name + '=' + value + '\n';
  return body;
}

DaemonOptions decode(const std::string& body) {
  DaemonOptions options;
  std::istringstream lines(body);
  std::string line;
  std::getline(lines, options.program);
  std::getline(lines, line);
  for (int left = std::atoi(line.c_str()); left > 0 && std::getline(lines, line); --left)
    options.arguments.push_back(line);
  while (std::getline(lines, line)) {
    const std::size_t equals = line.find('=');
    options.environment.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return options;
}

std::string first_lines(const std::string& path) {
  std::ifstream file(path);
  std::string text, line;
  while (std::getline(file, line) && text.size() < 300) text += (text.empty() ? "" : "; ") + line;
  return text.empty() ? "it said nothing" : text;
}

// The daemon as the keeper sees it.
class Daemon {
 public:
  explicit Daemon(std::string directory) : directory_(std::move(directory)) {}

  Status start(const DaemonOptions& options) {
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
  Status stop() {
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

 private:
  [[noreturn]] void become() {
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

  Status wait_until_up() {
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

  std::string directory_;
  DaemonOptions options_;
  pid_t pid_ = -1;
};

Status reply(Channel& channel, const Status& status) {
  return status.ok() ? channel.send("ok") : channel.send("failed", status.error());
}

}  // namespace

Environment mps_environment(const std::string& directory) {
  return {{"CUDA_MPS_PIPE_DIRECTORY", directory + "/pipe"}, {"CUDA_MPS_LOG_DIRECTORY", directory + "/log"}};
}

int Keeper::run(Channel& channel, std::span<const std::string> arguments) {
  if (arguments.size() != 1) return 2;
  for (int ignored : {SIGINT, SIGTERM, SIGHUP}) ::signal(ignored, SIG_IGN);  // the probe's end is the only end
  if (auto adopted = adopt_orphans(); !adopted) {
    (void)channel.send("failed", adopted.error());
    return 1;
  }
  const std::string& directory = arguments[0];
  Daemon daemon(directory);
  Status status = channel.send("ok");
  while (status.ok()) {
    Received received = channel.receive(after(std::chrono::hours(1)));
    if (received.receipt == Receipt::timed_out) continue;
    if (received.receipt != Receipt::message || received.message.kind == "finish") break;
    status =
        reply(channel, received.message.kind == "start" ? daemon.start(decode(received.message.body)) : daemon.stop());
  }
  const Status stopped = daemon.stop();
  const Status removed = remove_directory(directory);
  return stopped.ok() && removed.ok() ? 0 : 1;
}

Result<Keeper> Keeper::start() {
  if (auto adopted = adopt_orphans(); !adopted) return Error{adopted.error()};
  const char* base = std::getenv("TMPDIR");
  std::string pattern = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/leat-probe-XXXXXX";
  // MPS puts Unix sockets below it, whose paths end at 107 bytes.
  if (pattern.size() > 80) pattern = "/tmp/leat-probe-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) return Error{pattern + ": " + std::strerror(errno) + "; set TMPDIR"};
  ChildOptions options{
      .role = std::string(kKeeperRole), .arguments = {pattern}, .environment = {}, .survives_parent = true};
  auto process = Child::start(options);
  if (!process) {
    (void)remove_directory(pattern);
    return Error{process.error()};
  }
  Keeper keeper(std::move(*process), pattern);
  if (auto ready = keeper.process_->channel().expect("ok", after(kReply)); !ready) {
    (void)keeper.tidy();
    return Error{"the keeper did not start: " + ready.error()};
  }
  return keeper;
}

Keeper::~Keeper() {
  if (process_) (void)tidy();
}

Status Keeper::start_daemon(const DaemonOptions& options) {
  if (!process_) return Error{"the keeper has ended"};
  if (auto sent = process_->channel().send("start", encode(options)); !sent) return sent;
  auto answer = process_->channel().expect("ok", after(kReply));
  if (!answer) return Error{answer.error()};
  return Done{};
}

Status Keeper::stop_daemon() {
  if (!process_) return Error{"the keeper has ended"};
  if (auto sent = process_->channel().send("stop"); !sent) return sent;
  auto answer = process_->channel().expect("ok", after(kReply));
  if (!answer) return Error{answer.error()};
  return Done{};
}

Status Keeper::tidy() {
  if (!process_) return Done{};
  (void)process_->channel().send("finish");  // a keeper that is gone already is found by its ending
  const Ending ending = process_->wait(after(kReply));
  process_.reset();
  auto killed = kill_descendants({}, after(seconds(10)));
  if (!killed) return Error{killed.error()};
  if (auto removed = remove_directory(directory_); !removed) return removed;
  if (!ending.clean()) {
    return Error{"the keeper " + ending.text() + "; " + std::to_string(*killed) + " processes it left were killed"};
  }
  return Done{};
}

Environment Keeper::environment() const { return mps_environment(directory_); }

}  // namespace leat::probe
