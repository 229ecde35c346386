#include "engine/daemon/control_thread.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/daemon/control_tokens.h"
#include "engine/daemon/status_report.h"
#include "shm/src/rings/clock.h"

namespace leat::daemon {

ControlThread::ControlThread(Config config, DaemonOptions options)
    : now_{.config = std::move(config)},
      options_(std::move(options)),
      progress_(options_.bar_fd),
      service_(ServiceManager::from_environment()) {}

ControlThread::~ControlThread() { end_scheduler(); }

Status ControlThread::run() {
  life_.started_ns = shm::monotonic_ns();
  block_signals();
  if (auto status = start_workers(); !status) return status;
  std::array<Readiness, 64> events;
  while (life_.phase != Phase::done) {
    const std::size_t count = loop_->wait(timeout_ns(), events);
    for (std::size_t i = 0; i < count && life_.phase != Phase::done; ++i) on_event(events[i]);
    advance(shm::monotonic_ns());
  }
  end_scheduler();
  clients_.acceptor->retire([this](shm::Fd listener) { clients_.sessions->turn_away(std::move(listener)); });
  left_.clear();
  recorder_.reset();
  if (!life_.failure.empty()) return Error{life_.failure};
  return Done{};
}

// ---- time ----

std::int64_t ControlThread::timeout_ns() const {
  std::int64_t again = remeasure_ ? remeasure_->next_due() : INT64_MAX;
  if (change_) again = std::min(again, change_->next_due());
  if (replanning_) again = std::min(again, replanning_->next_due());
  const std::int64_t due = std::min({workers_.supervisor->next_due(), clients_.sessions->next_due(),
                                     clients_.acceptor->next_due(), life_.deadline_ns, progress_.next_due(), again});
  return due == INT64_MAX ? -1 : std::max<std::int64_t>(0, due - shm::monotonic_ns());
}

void ControlThread::advance(std::int64_t now) {
  const bool workers_change = workers_.supervisor->next_due() <= now;
  workers_.supervisor->advance(now);
  if (workers_change) publish_workers();
  clients_.sessions->advance(now);
  clients_.acceptor->advance(now);
  if (life_.phase == Phase::starting) progress_.look(*workers_.supervisor, now);
  if (life_.phase == Phase::serving && remeasure_) plan_again(remeasure_->advance(now));
  if (change_) change_->advance(now);
  if (life_.phase == Phase::serving && replanning_) replanning_->advance(now);
  if (life_.reads_again && !(change_ && change_->busy())) {
    life_.reads_again = false;
    if (auto asked = ask_change({}); !asked.ok()) log_warning("SIGHUP: " + asked.error());
  }
  if (now >= life_.deadline_ns && life_.phase == Phase::starting) give_up_starting();
  if (now >= life_.deadline_ns && life_.phase == Phase::draining) {
    if (life_.drained) return begin_stop();
    log_warning("requests are unanswered after " + std::to_string(options_.drain_ns / 1'000'000'000) +
                " s; ending without them");
    begin_stop();
  }
  if (life_.phase == Phase::stopping && (workers_.supervisor->all_down() || now >= life_.deadline_ns))
    life_.phase = Phase::done;
}

// ---- events ----

void ControlThread::on_event(const Readiness& ready) {
  if (ready.token == kListenerToken)
    return clients_.acceptor->on_ready(
        shm::monotonic_ns(), [this](shm::Fd c) { return clients_.sessions->accept(std::move(c)); },
        [this](shm::Fd c) { clients_.sessions->turn_away(std::move(c)); });
  if (ready.token == kSignalsToken) return on_signals();
  if (ready.token == kSchedulerToken) return on_scheduler_events();
  if (ready.token == kPoolsToken) return clients_.sessions->on_pools();
  if (ready.token == kChangesToken) return change_->on_target(shm::monotonic_ns());
  if (ready.token >= kFirstSessionToken) return clients_.sessions->on_ready(ready.token);
  if (ready.token >= kFirstWorkerToken) workers_.supervisor->on_ready(ready, shm::monotonic_ns());
}

void ControlThread::on_signals() {
  signalfd_siginfo info;  // of each kind one waits at most
  for (int i = 0; i < 5 && read(signals_.get(), &info, sizeof(info)) == sizeof(info); ++i) {
    if (info.ssi_signo == SIGCHLD) {
      on_child();
    } else if (info.ssi_signo == SIGUSR1) {
      if (recorder_) recorder_->wake();
    } else if (info.ssi_signo == SIGHUP) {
      life_.reads_again = true;
    } else if (life_.phase == Phase::serving) {
      begin_drain();
    } else {
      if (checking() && life_.failure.empty()) life_.failure = "interrupted; nothing can be said about the rest";
      begin_stop();  // before serving, or asked twice
    }
  }
}

void ControlThread::on_child() {
  workers_.supervisor->on_child(shm::monotonic_ns());
  if (replanning_) replanning_->on_child(shm::monotonic_ns());
  if (life_.phase != Phase::stopping && life_.phase != Phase::done)
    for (const MpsKeepers::Replaced& r : workers_.keepers.replace_ended())
      workers_.supervisor->replace_environment(r.uuid, r.environment, shm::monotonic_ns());
  publish_workers();
}

void ControlThread::on_scheduler_events() {
  scheduler_.take_events([this](const SchedulerEvent& event) { handle(event); });
}

void ControlThread::handle(const SchedulerEvent& event) {
  switch (event.kind) {
    case SchedulerEvent::Kind::worker_released:
      return worker_released(event.partition, event.excused);
    case SchedulerEvent::Kind::worker_broken:
      log_worker(LogLevel::error, event.partition,
                 "its worker reported nonsense, took no batches, or ran one for longer than limits.batch_timeout_ms; "
                 "killing it");
      return workers_.supervisor->kill(event.partition);
    case SchedulerEvent::Kind::plan_retired:
      delete event.plan;
      return;
    case SchedulerEvent::Kind::record_left:
      left_.erase(left_.begin());
      return;
    case SchedulerEvent::Kind::plan_in_force:
    case SchedulerEvent::Kind::quiet:
      if (change_) change_->on_scheduler_event(event, shm::monotonic_ns());
      return;
    case SchedulerEvent::Kind::samples:
      return scheduler_.update_estimates(shm::monotonic_ns());
    case SchedulerEvent::Kind::drained:
      if (life_.phase == Phase::draining) drained();
      return;
    default:
      return clients_.sessions->on_scheduler_event(event);
  }
}

void ControlThread::enter(Phase phase) {
  life_.phase = phase;
  metrics_->daemon().set(shm::DaemonCounter::phase, static_cast<std::uint64_t>(phase));
}

// ---- the end ----

void ControlThread::begin_drain() {
  log_info("finishing what is in flight");
  service_.stopping("finishing what is in flight");
  enter(Phase::draining);
  life_.deadline_ns = shm::monotonic_ns() + options_.drain_ns;
  scheduler_.command({.kind = Command::Kind::drain});
}

// Whoever submits now is told so by `rejected(not_ready)`. What is submitted just before a connection closes is never
// answered, so connections stay until every camera of ten pictures a second has heard it.
void ControlThread::drained() {
  constexpr std::int64_t kTellNs = 100'000'000;
  if (clients_.sessions->clients() == 0) return begin_stop();
  life_.drained = true;
  life_.deadline_ns = std::min(life_.deadline_ns, shm::monotonic_ns() + kTellNs);
}

void ControlThread::begin_stop() {
  if (life_.phase == Phase::stopping || life_.phase == Phase::done) return;
  constexpr std::int64_t kStopNs = 2'000'000'000;  // then workers are killed
  progress_.end();
  service_.stopping("stopping");
  enter(Phase::stopping);
  life_.deadline_ns = shm::monotonic_ns() + kStopNs;
  clients_.sessions->close_all();
  workers_.supervisor->stop_all();
}

void ControlThread::end_scheduler() {
  if (!scheduler_.runs()) return;
  scheduler_.end();
  on_scheduler_events();  // the last streams and clients it gave back
}

// ---- what others see ----

const char* ControlThread::not_ready() const noexcept {
  if (life_.phase == Phase::serving) return nullptr;
  return life_.phase == Phase::starting ? "leatd is starting its workers; try again" : "leatd is stopping";
}

std::string ControlThread::status_json() const {
  static constexpr const char* kPhases[] = {"starting", "serving", "draining", "stopping", "done"};
  return status_report({config_, deployment_, *workers_.supervisor, *metrics_, now_.recognised, now_.tensors,
                        kPhases[static_cast<std::size_t>(life_.phase)], clients_.sessions->clients(),
                        (shm::monotonic_ns() - life_.started_ns) / 1'000'000, change_ ? change_->status() : Json(),
                        replanning_ ? replanning_->status() : Json()});
}

}  // namespace leat::daemon
