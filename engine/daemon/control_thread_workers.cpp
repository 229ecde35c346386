// What becomes of workers, as the supervisor and the scheduler thread tell it. See control_thread.h.
#include <algorithm>
#include <utility>

#include "engine/daemon/control_thread.h"
#include "engine/daemon/deployment/trial.h"
#include "shm/src/rings/clock.h"

namespace leat::daemon {

using shm::PartitionCounter;
using shm::RecordKind;

void ControlThread::worker_ready(std::uint32_t p, WorkerPort* port, const worker::Ready& ready) {
  metrics_->of(RecordKind::partition, p)
      .set(PartitionCounter::started_ns, static_cast<std::uint64_t>(shm::monotonic_ns()));
  publish_worker(p);
  log_worker(LogLevel::info, p, "ready (process " + std::to_string(workers_.supervisor->pid(p)) + ")");
  log_sandbox(ready);
  if (change_ && change_->worker_ready(p, port, ready, shm::monotonic_ns())) return;
  if (life_.phase != Phase::starting)
    return scheduler_.command(
        {.kind = Command::Kind::worker_ready, .partition = p, .pid = workers_.supervisor->pid(p), .worker = port});
  now_.ready[p] = checking() ? as_alone(deployment_.setups[p], ready) : ready;
  workers_.ports[p] = port;
  if (std::ranges::find(workers_.ports, nullptr) != workers_.ports.end()) return;
  if (auto status = start_serving(); !status) {
    life_.failure = status.error();
    begin_stop();
  }
}

void ControlThread::worker_lost(std::uint32_t p, const std::string& how) {
  if (life_.phase == Phase::starting) {
    workers_.ports[p] = nullptr;
    if (!workers_.supervisor->waits_for_device(p, shm::monotonic_ns())) {
      life_.failure = about(p, "its worker " + how + " while leatd was starting; see the lines above");
      begin_stop();
    }
    return workers_.supervisor->released(p, false, shm::monotonic_ns());
  }
  if (change_ && change_->worker_lost(p, how, shm::monotonic_ns())) return;
  metrics_->of(RecordKind::partition, p)
      .set(PartitionCounter::lost_ns, static_cast<std::uint64_t>(shm::monotonic_ns()));
  if (!scheduler_.begun()) return worker_released(p, false);
  if (remeasure_) remeasure_->lost(p);
  const auto was = metrics_->of(RecordKind::partition, p).value(PartitionCounter::pid);
  scheduler_.command({.kind = Command::Kind::worker_lost, .partition = p, .pid = static_cast<std::int64_t>(was)});
}

// The scheduler thread has given up what ran there, and knows whose frames they were.
void ControlThread::worker_released(std::uint32_t p, bool excused) {
  workers_.supervisor->released(p, excused, shm::monotonic_ns());
  if (!workers_.supervisor->in_use(p)) return;
  if (life_.phase == Phase::serving || life_.phase == Phase::draining)
    log_worker(LogLevel::warning, p,
               "its worker " + workers_.supervisor->last_end(p) +
                   (excused ? " by frames of a user whose frames have ended others" : "") + "; starting it again" +
                   workers_.supervisor->in_a_while(p));
  publish_worker(p);
}

void ControlThread::worker_gone(std::uint32_t p) {
  if (change_) change_->worker_gone(p, shm::monotonic_ns());
}

void ControlThread::worker_failed(std::uint32_t p, const std::string& line) {
  if (change_ && change_->worker_failed(p, line)) return;
  switch (life_.phase) {
    case Phase::serving:
    case Phase::draining:
      scheduler_.command({.kind = Command::Kind::worker_failed,
                          .partition = p,
                          .what = workers_.supervisor->end_status(p).value_or(0)});
      return log_worker(LogLevel::error, p, line + "; trying again" + workers_.supervisor->in_a_while(p));
    case Phase::stopping:
      if (life_.failing == p) life_.failure += "\n" + about(p, line);
      return;
    case Phase::done:
      return;
    case Phase::starting:
      break;
  }
  if (workers_.supervisor->waits_for_device(p, shm::monotonic_ns()))
    return log_worker(LogLevel::warning, p, line + "; trying again");
  if (life_.failure.empty()) {
    life_.failure = about(p, line);
    life_.failing = p;
  }
  begin_stop();
}

void ControlThread::worker_measured(std::uint32_t p, const worker::Measured& measured) {
  if (life_.phase == Phase::serving && remeasure_) plan_again(remeasure_->measured(p, measured, shm::monotonic_ns()));
}

void ControlThread::features_lost(std::uint32_t edge) {
  const auto at = std::ranges::find(deployment_.edges, edge, &FeatureEdge::number);
  const std::string what = at == deployment_.edges.end() ? "an earlier plan" : name_of(*at, config_);
  log_caused(LogLevel::warning, "the features of " + what + " were lost with their device", workers_.features_log,
             shm::monotonic_ns());
  scheduler_.command({.kind = Command::Kind::features_lost, .edge = edge});
}

void ControlThread::publish_worker(std::uint32_t p) {
  const Supervisor& supervisor = *workers_.supervisor;
  shm::Record record = metrics_->of(RecordKind::partition, p);
  record.set(PartitionCounter::state, static_cast<std::uint64_t>(supervisor.state(p)));
  record.set(PartitionCounter::pid, static_cast<std::uint64_t>(supervisor.pid(p)));
  record.set(PartitionCounter::restarts, supervisor.restarts(p));
  record.set(PartitionCounter::backoff_ms, static_cast<std::uint64_t>(supervisor.backoff_ns(p) / 1'000'000));
  record.set(PartitionCounter::failures, supervisor.failures(p));
  if (const auto status = supervisor.end_status(p)) record.set(PartitionCounter::end_status, *status);
  const std::int64_t next = supervisor.next_start_ns(p);
  record.set(PartitionCounter::next_start_ns, next == INT64_MAX ? shm::kUnknown : static_cast<std::uint64_t>(next));
  record.set(PartitionCounter::device_bytes,
             supervisor.device(p).name.empty() ? shm::kUnknown : supervisor.device(p).memory.allocated);
}

void ControlThread::publish_workers() {
  for (std::uint32_t p = 0; p < workers_.supervisor->count(); ++p)
    if (workers_.supervisor->in_use(p)) publish_worker(p);
}

// A frame can end a worker, so a client can cause these once leatd serves.
void ControlThread::log_worker(LogLevel level, std::uint32_t p, const std::string& what) {
  const std::string line = "partition '" + workers_.supervisor->setup(p).partition + "': " + what;
  log_caused(level, line, workers_.log[p], shm::monotonic_ns(), life_.phase != Phase::starting);
}

// What is in force is said once; a kernel that refuses, as well.
void ControlThread::log_sandbox(const worker::Ready& ready) {
  if (std::exchange(workers_.sandbox_logged, true)) return;
  if (ready.not_enclosed.empty())
    log_info("workers' sandbox '" + std::string(name_of(ready.sandbox)) + "': " + std::string(text_of(ready.sandbox)));
  else
    log_warning("workers are not sandboxed: " + ready.not_enclosed +
                "; they serve all the same ([workers] sandbox = \"off\" says so)");
}

// A starting worker's trouble, with the place in the configuration that it comes from.
std::string ControlThread::about(std::uint32_t p, const std::string& line) const {
  const std::string partition = "partition '" + deployment_.partitions[p].partition.name + "'";
  const auto opening = workers_.supervisor->opening(p);
  if (!opening) return config_.file + ": " + partition + ": " + line;
  return about_module(config_, deployment_.setups[p].modules[*opening], line, " (" + partition + ")");
}

}  // namespace leat::daemon
