// The way to serving: what is taken before a worker runs, the workers, and with what they said the plan and the
// scheduler thread. See control_thread.h.
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "engine/daemon/clients/served_application.h"
#include "engine/daemon/control_thread.h"
#include "engine/daemon/control_tokens.h"
#include "engine/daemon/deployment/capacity/objective.h"
#include "engine/daemon/deployment/loop_options.h"
#include "engine/daemon/workers/self_guard.h"
#include "planner/child/solver_process.h"
#include "shm/src/rings/clock.h"
#include "shm/src/segments/available_memory.h"
#include "tools/base/cores/core_count.h"

namespace leat::daemon {

using shm::DaemonCounter;

Status ControlThread::create() {
  raise_open_files();
  auto deployment = find_deployment(config_, purpose());
  if (!deployment.ok()) return Error{deployment.error()};
  deployment_ = std::move(*deployment);
  auto listener = take_socket(config_, purpose());
  if (!listener.ok()) return Error{listener.error()};
  listener_ = std::move(*listener);
  auto metrics = Metrics::create();
  if (!metrics.ok()) return Error{metrics.error()};
  metrics_ = std::move(*metrics);
  auto features = make_feature_pools(config_, deployment_);
  if (!features.ok()) return Error{features.error()};
  features_ = std::move(*features);
  features_.resize(kMaxEdges);
  auto loop = EventLoop::create();
  if (!loop.ok()) return Error{loop.error()};
  loop_.emplace(std::move(*loop));
  return scheduler_.open();
}

void ControlThread::block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD}) sigaddset(&set, s);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  (void)signal(SIGCHLD, SIG_DFL);  // where it is ignored, the kernel keeps no word of how a worker ended
  (void)signal(SIGPIPE, SIG_IGN);
  signals_ = shm::Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

Status ControlThread::start_workers() {
  for (const std::string& line : config_.warnings) log_warning(line);
  workers_.slots = slots_for(deployment_.partitions.size());
  for (worker::Setup& setup : deployment_.setups) {
    setup.yields = shm::choose_wait_policy(shm::Role::worker, core_count(), false, deployment_.tiny_hops).yields;
    if (checking()) setup.alone_only = true;
  }
  if (auto status = workers_.keepers.start(deployment_.setups); !status) return status;
  const Supervisor::Patience patience{.max_backoff_ns = config_.workers.max_backoff_ns,
                                      .start_timeout_ns = config_.workers.worker_start_timeout_ns,
                                      .unread_ns = (worker::kMaxQueuedBatches + 1) * config_.limits.batch_timeout_ns};
  Supervisor::Listener& listener = *this;
  workers_.supervisor = std::make_unique<Supervisor>(*loop_, listener, kFirstWorkerToken, options_.worker_binary,
                                                     workers_.slots, deployment_.setups, features_, patience);
  const auto partitions = static_cast<std::uint32_t>(deployment_.partitions.size());
  now_.ready.resize(partitions);
  workers_.ports.assign(partitions, nullptr);
  workers_.log.assign(workers_.slots, shm::LogLimit(20));
  if (auto status = open_to_clients(); !status) return status;
  begin_metrics();
  if (auto status = watch_all(); !status) return status;
  service_.status("starting workers");
  log_info("starting workers: " + std::to_string(partitions) + (partitions == 1 ? " partition" : " partitions"));
  if (auto status = workers_.supervisor->start_all(life_.started_ns); !status) return status;
  publish_workers();
  return Done{};
}

// They are told that leatd is starting until it serves.
Status ControlThread::open_to_clients() {
  auto pools = PoolBuilder::create();
  if (!pools.ok()) return Error{pools.error()};
  clients_.pools = std::move(*pools);
  clients_.sessions = std::make_unique<ClientSessions>(
      ClientSessions::Environment{config_, served_applications(config_), *loop_, *metrics_, *workers_.supervisor,
                                  *clients_.pools, [this](const Command& c) { scheduler_.command(c); },
                                  [this](const shm::Change& m, std::string_view text) {
                                    return ask_change({.kind = static_cast<ChangeRequest::Kind>(m.kind),
                                                       .dry_run = m.dry_run != 0,
                                                       .name = std::string(shm::text_of(m.name)),
                                                       .text = std::string(text),
                                                       .trial_ns = m.trial_ns});
                                  },
                                  [this] { return status_json(); }, [this] { return not_ready(); }},
      kFirstSessionToken);
  clients_.acceptor = std::make_unique<Acceptor>(listener_, *loop_, *metrics_, kListenerToken);
  return Done{};
}

void ControlThread::begin_metrics() {
  shm::Record daemon = metrics_->daemon();
  daemon.set(DaemonCounter::pid, static_cast<std::uint64_t>(getpid()));
  daemon.set(DaemonCounter::started_ns, static_cast<std::uint64_t>(life_.started_ns));
  for (const auto value :
       {DaemonCounter::clients, DaemonCounter::sessions, DaemonCounter::streams, DaemonCounter::memory_bytes})
    daemon.set(value, 0);
  daemon.set(DaemonCounter::requests, 0);
  daemon.set(DaemonCounter::max_clients, config_.limits.clients);
  daemon.set(DaemonCounter::max_streams, config_.limits.streams);
  daemon.set(DaemonCounter::max_requests, config_.limits.requests);
  daemon.set(DaemonCounter::max_memory_bytes, config_.limits.memory_bytes);
  enter(Phase::starting);
  begin_records(config_, deployment_, *metrics_);
}

Status ControlThread::watch_all() {
  if (checking())
    life_.deadline_ns = life_.started_ns + options_.check_ns;
  else if (auto status = clients_.acceptor->open(); !status)
    return status;
  for (const auto& [fd, token] : {std::pair{signals_.get(), kSignalsToken},
                                  {scheduler_.events_fd(), kSchedulerToken},
                                  {clients_.pools->fd(), kPoolsToken}})
    if (auto status = loop_->watch(fd, token); !status) return status;
  return Done{};
}

void ControlThread::give_up_starting() {
  for (std::uint32_t p = 0; p < workers_.supervisor->count(); ++p) {
    if (workers_.supervisor->state(p) != WorkerState::starting) continue;
    if (life_.failure.empty())
      life_.failure = about(p, "loading takes longer than " + std::to_string(options_.check_ns / 1'000'000'000) +
                                   " s; look whether the model loads at all, or allow more time");
    workers_.supervisor->kill(p);
  }
  begin_stop();
}

// ---- all workers are ready ----

Status ControlThread::start_serving() {
  progress_.end();
  if (auto status = plan_and_check(); !status) return status;
  if (checking()) {
    begin_stop();
    return Done{};
  }
  scheduler_.begin();
  for (std::uint32_t p = 0; p < workers_.ports.size(); ++p)
    scheduler_.command({.kind = Command::Kind::worker_ready,
                        .partition = p,
                        .pid = workers_.supervisor->pid(p),
                        .worker = workers_.ports[p]});
  remeasure_.emplace(deployment_, *metrics_, *workers_.supervisor, now_.ready);
  if (auto status = begin_changes(); !status) return status;
  enter(Phase::serving);
  log_info("serving on " + config_.socket);
  service_.ready("serving on " + config_.socket);
  if (options_.ready_fd >= 0) {
    const std::string line = "ready " + config_.socket + "\n";
    (void)!write(options_.ready_fd, line.data(), line.size());
  }
  return Done{};
}

// Everything that can still be wrong.
Status ControlThread::plan_and_check() {
  if (auto status = complete_plan(config_, deployment_, now_.ready); !status) return status;
  for (const auto& line : choose_objectives(config_, deployment_)) log_info(line);
  if (auto status = keep_what_models_said(); !status) return status;
  workers_.supervisor->calibrated();
  if (const auto line = cap_memory(config_.limits, shm::available_memory().room_in_group()); !line.empty())
    log_warning(line);
  for (const auto& line : unschedulable(deployment_)) log_warning(line);
  const core::Topology topology = topology_of(config_, deployment_, workers_.slots);
  if (const std::string problem = topology.problem(); !problem.empty()) return Error{config_.file + ": " + problem};
  if (std::string line = idle_setting(config_, deployment_); !line.empty()) return Error{std::move(line)};
  LoopOptions options = loop_options(config_, deployment_, workers_.slots);
  options.plan = plan_tables(config_, deployment_, topology, workers_.slots);
  if (!checking() && !config_.recorder_path.empty()) options.record = begin_record();
  return scheduler_.prepare(topology, served_policy(config_), std::move(options), *metrics_);
}

// Without one leatd serves all the same.
record::Ring* ControlThread::begin_record() {
  auto recorder = Recorder::create(config_.recorder_bytes);
  Status made = recorder.ok() ? (*recorder)->keep_in(config_.recorder_path, *metrics_, log_warning)
                              : Status(Error{recorder.error()});
  if (!made) {
    log_warning(made.error());
    return nullptr;
  }
  recorder_ = std::move(*recorder);
  return &recorder_->ring();
}

// ---- changes while it serves ----

// As [daemon] recorder says since a change.
void ControlThread::follow_record() {
  if (config_.recorder_path == (recorder_ ? recorder_->path() : std::string()) &&
      (!recorder_ || config_.recorder_bytes == recorder_->bytes()))
    return;
  left_.push_back(std::move(recorder_));
  record::Ring* const ring = config_.recorder_path.empty() ? nullptr : begin_record();
  log_info(ring != nullptr ? "recording into " + config_.recorder_path : std::string("nothing is recorded any more"));
  scheduler_.command({.kind = Command::Kind::record, .ring = ring});
}

Status ControlThread::begin_changes() {
  auto builder = TargetBuilder::create();
  if (!builder.ok()) return Error{builder.error()};
  change_ = std::make_unique<LiveChange>(
      LiveChange::Environment{now_, features_, *metrics_, *workers_.supervisor, scheduler_, *clients_.sessions,
                              workers_.slots, [this](auto& setups) { return prepare_setups(setups); },
                              [this] { remeasure_.reset(); },
                              [this] {
                                remeasure_.emplace(deployment_, *metrics_, *workers_.supervisor, now_.ready);
                                follow_record();
                              }},
      std::move(*builder));
  replanning_.emplace(Replanning::Environment{now_, *metrics_, *change_, planner::solver_path(),
                                              [this](ChangeRequest request) { return ask_change(std::move(request)); }},
                      shm::monotonic_ns());
  return loop_->watch(change_->fd(), kChangesToken);
}

// What workers are told beside what the deployment says.
Status ControlThread::prepare_setups(std::vector<worker::Setup>& setups) {
  for (worker::Setup& setup : setups)
    setup.yields = shm::choose_wait_policy(shm::Role::worker, core_count(), false, deployment_.tiny_hops).yields;
  return workers_.keepers.start(setups);
}

Result<std::uint64_t> ControlThread::ask_change(ChangeRequest request) {
  if (const char* why = not_ready()) return Error{why};
  return change_->ask(std::move(request));
}

Status ControlThread::keep_what_models_said() {
  for (std::uint32_t a = 0; a < config_.applications.size(); ++a) {
    auto said = models_said(config_, a, deployment_.setups, now_.ready);
    if (!said.ok()) return Error{said.error()};
    now_.recognised.push_back(std::move(said->recognised));
    now_.tensors.push_back(std::move(said->tensors));
    said->served.need_ns = need_of(deployment_, a).largest_ns;
    now_.served.push_back(said->served);
    clients_.sessions->serve(a, std::move(said->served));
  }
  return Done{};
}

// With what was measured anew. Streams keep the objectives that they were opened with.
void ControlThread::plan_again(const std::optional<std::string>& why) {
  if (!why) return;
  if (!why->empty()) log_info(*why);
  const std::vector<std::string> said = unschedulable(deployment_);
  if (auto status = complete_plan(config_, deployment_, now_.ready); !status) return log_error(status.error());
  for (const auto& line : choose_objectives(config_, deployment_, true)) log_info(line);
  clients_.sessions->objectives_changed();
  for (const auto& line : unschedulable(deployment_))
    if (std::ranges::find(said, line) == said.end()) log_warning(line);
  core::Topology topology = topology_of(config_, deployment_, workers_.slots);
  PlanTables tables = plan_tables(config_, deployment_, topology, workers_.slots);
  scheduler_.replace_plan(topology, served_policy(config_), std::move(tables), {}, true);
}

}  // namespace leat::daemon
