#include "tools/leat/top/source/gpu_watcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "planner/child/solver_process.h"
#include "tools/leat/top/source/seen_json.h"

namespace leat::tools::top {
namespace {

constexpr std::int64_t kAgainNs = 30 * kSecondNs;  // a child that has ended is started anew
constexpr std::int64_t kFreshNs = 5 * kSecondNs;   // what is older is not known any more
constexpr std::size_t kMostText = 1 << 16;         // of a line

}  // namespace

void GpuWatcher::start(std::int64_t now_ns) {
  start_again_ns_ = now_ns + kAgainNs;
  text_.clear();
  auto in = subprocess::make_pipe();
  auto out = subprocess::make_pipe();
  const Fd none(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!in.ok() || !out.ok() || !none) return;
  auto child = subprocess::Process::start({.words = {planner::gpu_tool_path(), "watch"},
                                           .fds = {{in->read.get(), STDIN_FILENO},
                                                   {out->write.get(), STDOUT_FILENO},
                                                   {none.get(), STDERR_FILENO}},  // the screen is ours
                                           .group = subprocess::Group::own,
                                           .death_signal = SIGKILL});
  if (!child.ok()) return;
  child_ = std::move(*child);
  input_ = std::move(in->write);
  output_ = std::move(out->read);
  (void)::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
}

void GpuWatcher::read(std::int64_t now_ns) {
  char bytes[4096];
  for (ssize_t got; (got = ::read(output_.get(), bytes, sizeof bytes)) > 0;) {
    text_.append(bytes, static_cast<std::size_t>(got));
    if (text_.size() > kMostText) text_.clear();
  }
  const std::size_t end = text_.rfind('\n');
  if (end == std::string::npos) return;
  const std::size_t before = end == 0 ? std::string::npos : text_.rfind('\n', end - 1);
  const std::size_t from = before == std::string::npos ? 0 : before + 1;
  if (const auto line = Json::try_parse(text_.substr(from, end - from))) {
    newest_ = gpus_told(*line);
    newest_ns_ = now_ns;
  }
  text_.erase(0, end + 1);
}

std::vector<HeatFigures> GpuWatcher::look(std::int64_t now_ns) {
  if (child_ && child_.ended()) child_ = {};
  if (!child_ && now_ns >= start_again_ns_) start(now_ns);
  if (output_) read(now_ns);
  if (now_ns - newest_ns_ > kFreshNs) newest_.clear();
  return newest_;
}

}  // namespace leat::tools::top
