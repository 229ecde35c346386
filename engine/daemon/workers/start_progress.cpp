#include "engine/daemon/workers/start_progress.h"

#include <unistd.h>

#include <algorithm>

#include "engine/daemon/log.h"
#include "engine/daemon/workers/supervisor.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kQuietNs = 2'000'000'000;  // nobody wonders before
constexpr std::int64_t kLineNs = 5'000'000'000;   // between two lines of the log
constexpr std::int64_t kRedrawNs = 250'000'000;
constexpr std::size_t kInBar = 1, kInLine = 4;  // workers by name

std::vector<StartingWorker> workers_of(const Supervisor& supervisor) {
  std::vector<StartingWorker> out;
  for (std::uint32_t p = 0; p < supervisor.count(); ++p) {
    if (!supervisor.in_use(p)) continue;
    const worker::Setup& setup = supervisor.setup(p);
    const auto count = static_cast<std::uint32_t>(setup.modules.size());
    StartingWorker& w = out.emplace_back();
    w.partition = setup.partition, w.modules = count;
    if (supervisor.state(p) == WorkerState::up) w.opened = count;
    const auto opening = supervisor.opening(p);
    if (w.opened == count || !opening) continue;
    w.opened = *opening;
    w.module = setup.modules[*opening].application + "/" + setup.modules[*opening].name;
    w.runs = supervisor.measuring(p).done, w.most_runs = supervisor.measuring(p).max;
  }
  return out;
}

}  // namespace

std::uint32_t percent_of(const std::vector<StartingWorker>& workers) {
  double done = 0, all = 0;
  for (const StartingWorker& w : workers) {
    all += w.modules, done += w.opened;
    if (w.most_runs > 0) done += 0.5 + 0.5 * w.runs / w.most_runs;
  }
  return all > 0 ? static_cast<std::uint32_t>(100 * done / all) : 0;
}

std::string text_of(const std::vector<StartingWorker>& workers, std::size_t named) {
  std::string out;
  std::size_t waiting = 0;
  for (const StartingWorker& w : workers) {
    if (w.opened == w.modules || ++waiting > named) continue;
    out += (out.empty() ? "" : ", ") + w.partition;
    if (w.module.empty())
      out += " starts";
    else if (w.most_runs == 0)
      out += " loads " + w.module;
    else
      out += " measures " + w.module + " (" + std::to_string(w.runs) + " of " + std::to_string(w.most_runs) + " runs)";
  }
  return waiting > named ? out + ", and " + std::to_string(waiting - named) + " more" : out;
}

void StartProgress::look(const Supervisor& supervisor, std::int64_t now_ns) {
  if (now_ns < due_ns_) return;
  if (first_ns_ == 0) {
    first_ns_ = now_ns, line_due_ns_ = now_ns + kQuietNs;
    bar_.emplace("starting", 100, "", bar_fd_ >= 0 ? bar_fd_ : STDERR_FILENO);
  }
  const std::vector<StartingWorker> workers = workers_of(supervisor);
  if (bar_->on_terminal()) {
    due_ns_ = now_ns + kRedrawNs;
    bar_->set(percent_of(workers), text_of(workers, kInBar));
    if (bar_->shown() && bar_fd_ < 0) bar_drawn();
    return;
  }
  due_ns_ = line_due_ns_;
  if (now_ns < line_due_ns_) return;
  due_ns_ = line_due_ns_ = now_ns + kLineNs;
  log_info("starting for " + std::to_string((now_ns - first_ns_) / 1'000'000'000) + " s, " +
           std::to_string(percent_of(workers)) + " % done: " + text_of(workers, kInLine));
}

void StartProgress::end() {
  if (bar_) bar_->erase();
  due_ns_ = INT64_MAX;
}

}  // namespace leat::daemon
