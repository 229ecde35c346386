#include "bench/gpu/keeper.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "tools/base/subprocess/descendants.h"

namespace leat::probe {
namespace {

// Succeeds when it is not there.
Status remove_directory(const std::string& path) {
  std::error_code problem;
  std::filesystem::remove_all(path, problem);
  if (problem) return Error{path + ": " + problem.message()};
  return Done{};
}

using std::chrono::seconds;

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

Status reply(Channel& channel, const Status& status) {
  return status.ok() ? channel.send("ok") : channel.send("failed", status.error());
}

}  // namespace

int Keeper::run(Channel& channel, std::span<const std::string> arguments) {
  if (arguments.size() != 1) return 2;
  for (int ignored : {SIGINT, SIGTERM, SIGHUP}) ::signal(ignored, SIG_IGN);  // the probe's end is the only end
  if (auto adopted = subprocess::adopt_orphans(); !adopted) {
    (void)channel.send("failed", adopted.error());
    return 1;
  }
  const std::string& directory = arguments[0];
  MpsDaemon daemon(directory);
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
  if (auto adopted = subprocess::adopt_orphans(); !adopted) return Error{adopted.error()};
  const char* base = std::getenv("TMPDIR");
  std::string pattern = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/leat-probe-XXXXXX";
  // MPS puts Unix sockets below it, whose paths end at 107 bytes.
  if (pattern.size() > 80) pattern = "/tmp/leat-probe-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) return Error{pattern + ": " + std::strerror(errno) + "; set TMPDIR"};
  auto process = Child::start({.role = std::string(kKeeperRole), .arguments = {pattern}, .survives_parent = true});
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
  auto killed = subprocess::kill_descendants(after(seconds(10)));
  if (!killed) return Error{killed.error()};
  if (auto removed = remove_directory(directory_); !removed) return removed;
  if (!ending.clean()) {
    return Error{"the keeper " + ending.text() + "; " + std::to_string(*killed) + " processes it left were killed"};
  }
  return Done{};
}

Environment Keeper::environment() const { return gpu::mps_environment(directory_); }

}  // namespace leat::probe
