#include "engine/daemon/daemon.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>
#include <utility>

#include "engine/core/policy/registry.h"
#include "engine/daemon/clients/client_sessions.h"
#include "engine/daemon/clients/door.h"
#include "engine/daemon/clients/pool_builder.h"
#include "engine/daemon/deployment/auto_plan.h"
#include "engine/daemon/deployment/deployment.h"
#include "engine/daemon/deployment/loop_options.h"
#include "engine/daemon/deployment/objective.h"
#include "engine/daemon/deployment/trial.h"
#include "engine/daemon/event_loop/event_loop.h"
#include "engine/daemon/log.h"
#include "engine/daemon/scheduler_thread/counters_board.h"
#include "engine/daemon/scheduler_thread/recorder.h"
#include "engine/daemon/scheduler_thread/scheduler_loop.h"
#include "engine/daemon/status_report.h"
#include "engine/daemon/workers/gpu_tool.h"
#include "engine/daemon/workers/model_files.h"
#include "engine/daemon/workers/model_words.h"
#include "engine/daemon/workers/remeasure.h"
#include "engine/daemon/workers/self_guard.h"
#include "engine/daemon/workers/start_progress.h"
#include "engine/daemon/workers/supervisor.h"
#include "engine/worker/link/affinity.h"
#include "planner/child/solver_process.h"
#include "shm/src/protocol/limiters.h"
#include "shm/src/protocol/listener.h"
#include "shm/src/rings/clock.h"
#include "tools/base/cores/core_count.h"
#include "tools/base/cores/cores.h"

namespace leat::daemon {
namespace {

using shm::DaemonCounter;
using shm::PartitionCounter;
using shm::RecordKind;

constexpr std::uint32_t kCoresToSpare = 4;

enum Token : std::uint64_t { kListener = 0, kSignals = 1, kNotices = 2, kPools = 3, kSocket = 2000, kSession = 3000 };

}  // namespace

class Daemon::Impl final : public Supervisor::Listener {
 public:
  Impl(Config config, DaemonOptions options)
      : config_(std::move(config)), options_(std::move(options)), progress_(options_.bar_fd) {}
  ~Impl() override { end_scheduler(); }

  Status create();
  Status run();
  std::vector<std::vector<exec::Recognised>> recognised;  // [application][module], from serving on
  std::vector<worker::Ready> first_ready;                 // [partition]: of its first worker, or as measured again

  void worker_ready(std::uint32_t partition, WorkerPort* port, const worker::Ready& ready) override;
  void worker_lost(std::uint32_t partition, const std::string& how) override;
  void worker_released(std::uint32_t partition, bool excused);
  void worker_failed(std::uint32_t partition, const std::string& line) override;
  void features_lost(std::uint32_t edge) override;
  void worker_measured(std::uint32_t partition, const worker::Measured& measured) override;

 private:
  enum class Phase : std::uint8_t { starting, serving, draining, stopping, done };

  bool checking() const noexcept { return options_.check_ns > 0; }
  void look_after_keepers();
  Status start_serving();
  void give_up_starting();
  std::string about(std::uint32_t partition, const std::string& line) const;
  Status settle_results();
  void plan_again(const std::optional<std::string>& why);  // none: nothing is new
  void on_event(const Readiness& ready);
  void on_notices();
  void on_signals();
  void ask_planner(const std::vector<std::uint32_t>& cores);
  void begin_drain();
  void begin_stop();
  void end_scheduler();
  void publish_worker(std::uint32_t partition);
  void say(LogLevel level, std::uint32_t partition, const std::string& what);
  void say_sandbox(const worker::Ready& ready);
  void update_estimates();
  std::string status_json() const;
  std::int64_t timeout_ns() const;

  Config config_;
  DaemonOptions options_;
  Deployment deployment_;
  std::unique_ptr<EventLoop> loop_;
  std::string loop_note_;
  std::unique_ptr<CountersBoard> board_;
  std::unique_ptr<Recorder> recorder_;  // none: not asked for, or not possible
  shm::Listener listener_;
  shm::Fd signals_;
  shm::Doorbell notices_bell_;
  shm::Doorbell scheduler_bell_;            // rung by the control thread; handed to the loop
  std::vector<shm::FeaturePool> features_;  // [edge]
  MpsKeepers keepers_;                      // of the GPUs that are shared out; end after the workers
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<core::Estimator> estimator_;  // none when the policy reads no estimates
  std::unique_ptr<SchedulerLoop> scheduler_;
  std::unique_ptr<Door> door_;
  std::unique_ptr<PoolBuilder> pools_;  // ends after the sessions, whose sockets and ports it closes
  std::unique_ptr<ClientSessions> sessions_;
  std::thread thread_;
  std::optional<Remeasure> remeasure_;  // while serving
  std::vector<WorkerPort*> ready_ports_;
  std::vector<shm::LogLimit> partition_log_;
  shm::LogLimit features_log_;
  Phase phase_ = Phase::starting;
  bool sandbox_said_ = false;
  std::string failure_;                   // why it could not start
  std::optional<std::uint32_t> failing_;  // the partition whose worker said so
  std::int64_t deadline_ns_ = INT64_MAX;  // of the drain or the stop
  std::int64_t started_ns_ = 0;
  StartProgress progress_;
};

Status Daemon::Impl::create() {
  raise_open_files();
  if (!config_.workers.user.empty() && geteuid() != 0)
    return Error{config_.file + ": [workers] user: only a leatd that root starts can give its workers another user; " +
                 "start it as root, or leave the key out"};
  const auto cores = usable_cores();
  if (!cores.ok()) return Error{cores.error()};
  if (auto status = locate_gpus(config_.partitions); !status) return Error{config_.file + ": " + status.error()};
  auto deployment = deploy(config_, *cores);
  if (!deployment.ok()) return Error{deployment.error()};
  deployment_ = checking() ? std::move(*deployment) : with_device_pairs(config_, *cores, std::move(*deployment));
  if (config_.plan_auto) ask_planner(*cores);
  if (auto status = pin_models(deployment_.setups); !status) return status;
  if (checking()) {
    if (auto status = shm::Listener::possible(config_.socket); !status)
      return Error{config_.socket_place + status.error()};
  } else {
    auto listener = shm::Listener::open(config_.socket, config_.socket_mode, config_.socket_group);
    if (!listener.ok()) return Error{config_.socket_place + listener.error()};
    listener_ = std::move(*listener);
  }
  auto board = CountersBoard::create();
  if (!board.ok()) return Error{board.error()};
  board_ = std::move(*board);
  for (const FeatureEdge& e : deployment_.edges) {
    if (!e.place.empty()) {  // a worker makes its memory
      features_.emplace_back();
      continue;
    }
    auto pool = shm::FeaturePool::create(e.spec);
    if (!pool.ok()) return Error{name_of(e, config_) + ": " + pool.error()};
    features_.push_back(std::move(*pool));
  }
  auto loop = make_event_loop(config_.event_loop, &loop_note_);
  if (!loop.ok()) return Error{loop.error()};
  loop_ = std::move(*loop);
  auto notices = shm::Doorbell::create();
  auto bell = shm::Doorbell::create();
  if (!notices.ok() || !bell.ok()) return Error{"no eventfd: " + (notices.ok() ? bell.error() : notices.error())};
  notices_bell_ = std::move(*notices);
  scheduler_bell_ = std::move(*bell);
  return Done{};
}

// A plan is a gain, never a condition: whatever becomes of the solver, leatd starts.
void Daemon::Impl::ask_planner(const std::vector<std::uint32_t>& cores) {
  log_info("plan = \"auto\": asking leat-plan");
  const auto plan = auto_plan(config_, deployment_, planner::solver_path());
  auto planned = plan.ok() ? deploy(config_, cores, &*plan) : Result<Deployment>(Error{plan.error()});
  if (planned.ok()) {
    deployment_ = std::move(*planned);
    log_info("plan = \"auto\": " + std::to_string(deployment_.plan.routes.size()) + " routes by leat-plan");
  } else {
    log_warning("plan = \"auto\": no plan, every partition runs every module: " + planned.error());
  }
}

void Daemon::Impl::look_after_keepers() {
  if (phase_ == Phase::stopping || phase_ == Phase::done) return;
  for (const MpsKeepers::Replaced& r : keepers_.replace_ended())
    supervisor_->replace_environment(r.uuid, r.environment, shm::monotonic_ns());
}

Status Daemon::Impl::run() {
  started_ns_ = shm::monotonic_ns();
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) sigaddset(&set, s);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  (void)signal(SIGCHLD, SIG_DFL);  // where it is ignored, the kernel keeps no word of how a worker ended
  (void)signal(SIGPIPE, SIG_IGN);
  signals_ = shm::Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  log_info(loop_note_);
  for (auto& setup : deployment_.setups)
    setup.yields = shm::choose_wait_policy(shm::Role::worker, core_count(), false, deployment_.tiny_hops).yields;
  if (checking()) {
    for (auto& setup : deployment_.setups) setup.alone_only = true;
  }
  if (auto status = keepers_.start(deployment_.setups); !status) return status;
  supervisor_ = std::make_unique<Supervisor>(
      *loop_, *this, kSocket, options_.worker_binary, deployment_.setups, features_, config_.workers.max_backoff_ns,
      config_.workers.worker_start_timeout_ns, (worker::kMaxQueuedBatches + 1) * config_.limits.batch_timeout_ns);
  std::vector<ServedApplication> served;
  for (const auto& app : config_.applications)
    served.push_back({.name = app.application.name, .slo_ns = app.application.slo_ns});
  auto pools = PoolBuilder::create();
  if (!pools.ok()) return Error{pools.error()};
  pools_ = std::move(*pools);
  sessions_ = std::make_unique<ClientSessions>(
      ClientSessions::Environment{config_, std::move(served), *loop_, *board_, *supervisor_, *pools_,
                                  [this](const Command& c) {
                                    if (scheduler_) scheduler_->command(c);
                                  },
                                  [this] { return status_json(); },
                                  [this]() -> const char* {
                                    if (phase_ == Phase::serving) return nullptr;
                                    return phase_ == Phase::starting ? "leatd is starting its workers; try again"
                                                                     : "leatd is stopping";
                                  }},
      kSession);
  shm::Record daemon = board_->daemon();
  daemon.set(DaemonCounter::pid, static_cast<std::uint64_t>(getpid()));
  daemon.set(DaemonCounter::started_ns, static_cast<std::uint64_t>(started_ns_));
  daemon.set(DaemonCounter::event_loop, loop_->name() == "io_uring" ? 1 : 0);
  for (const auto value :
       {DaemonCounter::clients, DaemonCounter::sessions, DaemonCounter::streams, DaemonCounter::memory_bytes})
    daemon.set(value, 0);
  first_ready.resize(supervisor_->count());
  ready_ports_.assign(supervisor_->count(), nullptr);
  partition_log_.assign(supervisor_->count(), shm::LogLimit(20));
  begin_records(config_, deployment_, *board_);
  door_ = std::make_unique<Door>(listener_, *loop_, *board_, kListener);
  if (!checking()) {
    if (auto status = door_->open(); !status) return status;
  } else {
    deadline_ns_ = started_ns_ + options_.check_ns;
  }
  for (const auto& [fd, token] :
       {std::pair{signals_.get(), kSignals}, std::pair{notices_bell_.fd(), kNotices}, std::pair{pools_->fd(), kPools}})
    if (auto status = loop_->watch(fd, token); !status) return status;
  if (auto status = supervisor_->start_all(started_ns_); !status) return status;
  for (std::uint32_t p = 0; p < supervisor_->count(); ++p) publish_worker(p);

  std::array<Readiness, 64> events;
  while (phase_ != Phase::done) {
    const std::size_t count = loop_->wait(timeout_ns(), events);
    for (std::size_t i = 0; i < count && phase_ != Phase::done; ++i) on_event(events[i]);
    const std::int64_t now = shm::monotonic_ns();
    supervisor_->advance(now);
    sessions_->advance(now);
    door_->advance(now);
    if (phase_ == Phase::starting) progress_.look(*supervisor_, now);
    if (phase_ == Phase::serving) plan_again(remeasure_->advance(now));
    if (now >= deadline_ns_ && phase_ == Phase::starting) give_up_starting();
    if (now >= deadline_ns_ && phase_ == Phase::draining) {
      log_warning("requests are unanswered after " + std::to_string(options_.drain_ns / 1'000'000'000) +
                  " s; ending without them");
      begin_stop();
    }
    if (phase_ == Phase::stopping && (supervisor_->all_down() || now >= deadline_ns_)) phase_ = Phase::done;
  }
  end_scheduler();
  door_->retire([this](shm::Fd listener) { sessions_->turn_away(std::move(listener)); });
  recorder_.reset();
  if (!failure_.empty()) return Error{failure_};
  return Done{};
}

std::int64_t Daemon::Impl::timeout_ns() const {
  const std::int64_t again = phase_ == Phase::serving ? remeasure_->next_due() : INT64_MAX;
  const std::int64_t due = std::min(
      {supervisor_->next_due(), sessions_->next_due(), door_->next_due(), deadline_ns_, progress_.next_due(), again});
  return due == INT64_MAX ? -1 : std::max<std::int64_t>(0, due - shm::monotonic_ns());
}

void Daemon::Impl::on_event(const Readiness& ready) {
  if (ready.token == kListener)
    return door_->on_ready(
        shm::monotonic_ns(), [this](shm::Fd c) { return sessions_->accept(std::move(c)); },
        [this](shm::Fd c) { sessions_->turn_away(std::move(c)); });
  if (ready.token == kSignals) return on_signals();
  if (ready.token == kNotices) return on_notices();
  if (ready.token == kPools) return sessions_->on_pools();
  if (ready.token >= kSession) return sessions_->on_ready(ready.token);
  if (ready.token >= kSocket) return supervisor_->on_ready(ready, shm::monotonic_ns());
}

// ---- workers ----

void Daemon::Impl::publish_worker(std::uint32_t p) {
  shm::Record record = board_->of(RecordKind::partition, p);
  record.set(PartitionCounter::state, static_cast<std::uint64_t>(supervisor_->state(p)));
  record.set(PartitionCounter::pid, static_cast<std::uint64_t>(supervisor_->pid(p)));
  record.set(PartitionCounter::restarts, supervisor_->restarts(p));
  record.set(PartitionCounter::backoff_ms, static_cast<std::uint64_t>(supervisor_->backoff_ns(p) / 1'000'000));
}

void Daemon::Impl::worker_ready(std::uint32_t p, WorkerPort* port, const worker::Ready& ready) {
  board_->of(RecordKind::partition, p)
      .set(PartitionCounter::started_ns, static_cast<std::uint64_t>(shm::monotonic_ns()));
  publish_worker(p);
  say(LogLevel::info, p, "ready (process " + std::to_string(supervisor_->pid(p)) + ")");
  say_sandbox(ready);
  if (phase_ != Phase::starting) {
    if (scheduler_) scheduler_->command({.kind = Command::Kind::worker_ready, .partition = p, .worker = port});
    return;
  }
  first_ready[p] = checking() ? as_alone(deployment_.setups[p], ready) : ready;
  ready_ports_[p] = port;
  if (std::find(ready_ports_.begin(), ready_ports_.end(), nullptr) != ready_ports_.end()) return;
  if (auto status = start_serving(); !status) {
    failure_ = status.error();
    begin_stop();
  }
}

// A frame can end a worker, so a client can cause these once leatd serves.
void Daemon::Impl::say(LogLevel level, std::uint32_t p, const std::string& what) {
  const std::string line = "partition '" + deployment_.partitions[p].partition.name + "': " + what;
  log_caused(level, line, partition_log_[p], shm::monotonic_ns(), phase_ != Phase::starting);
}

// What is in force is said once; a kernel that refuses, as well.
void Daemon::Impl::say_sandbox(const worker::Ready& ready) {
  if (std::exchange(sandbox_said_, true)) return;
  if (ready.not_enclosed.empty())
    log_info("workers' sandbox '" + std::string(name_of(ready.sandbox)) + "': " + std::string(text_of(ready.sandbox)));
  else
    log_warning("workers are not sandboxed: " + ready.not_enclosed +
                "; they serve all the same ([workers] sandbox = \"off\" says so)");
}

void Daemon::Impl::worker_lost(std::uint32_t p, const std::string& how) {
  if (phase_ == Phase::starting) {
    ready_ports_[p] = nullptr;
    if (!supervisor_->waits_for_device(p, shm::monotonic_ns()))
      failure_ = about(p, "its worker was " + how + " while leatd was starting; see the lines above"), begin_stop();
    return supervisor_->released(p, false, shm::monotonic_ns());
  }
  if (!scheduler_) return worker_released(p, false);
  if (remeasure_) remeasure_->lost(p);
  scheduler_->command({.kind = Command::Kind::worker_lost, .partition = p});
}

// The scheduler thread has given up what ran there, and knows whose frames they were.
void Daemon::Impl::worker_released(std::uint32_t p, bool excused) {
  supervisor_->released(p, excused, shm::monotonic_ns());
  if (phase_ == Phase::serving || phase_ == Phase::draining)
    say(LogLevel::warning, p,
        "its worker was " + supervisor_->last_end(p) +
            (excused ? " by frames of a user whose frames have ended others" : "") + "; starting it again" +
            supervisor_->in_a_while(p));
  publish_worker(p);
}

void Daemon::Impl::features_lost(std::uint32_t edge) {
  log_caused(LogLevel::warning,
             "the features of " + name_of(deployment_.edges[edge], config_) + " were lost with their device",
             features_log_, shm::monotonic_ns());
  if (scheduler_) scheduler_->command({.kind = Command::Kind::features_lost, .edge = edge});
}

void Daemon::Impl::worker_failed(std::uint32_t p, const std::string& line) {
  if (phase_ == Phase::serving || phase_ == Phase::draining)
    return say(LogLevel::error, p, line + "; trying again" + supervisor_->in_a_while(p));
  if (phase_ == Phase::stopping && failing_ == p) failure_ += "\n" + about(p, line);
  if (phase_ != Phase::starting) return;
  if (supervisor_->waits_for_device(p, shm::monotonic_ns())) return say(LogLevel::warning, p, line + "; trying again");
  if (failure_.empty()) failure_ = about(p, line), failing_ = p;
  begin_stop();
}

void Daemon::Impl::worker_measured(std::uint32_t p, const worker::Measured& measured) {
  if (phase_ == Phase::serving) plan_again(remeasure_->measured(p, measured, shm::monotonic_ns()));
}

// With what was measured anew. Streams keep the objectives that they were opened with.
void Daemon::Impl::plan_again(const std::optional<std::string>& why) {
  if (!why) return;
  log_info(*why);
  const std::vector<std::string> said = unschedulable(deployment_);
  if (auto status = complete_plan(config_, deployment_, first_ready); !status) return log_error(status.error());
  for (const auto& line : choose_objectives(config_, deployment_, true)) log_info(line);
  sessions_->objectives_changed();
  for (const auto& line : unschedulable(deployment_))
    if (std::ranges::find(said, line) == said.end()) log_warning(line);
  scheduler_->command(
      {.kind = Command::Kind::replace_plan, .plan = scheduler_->prepare(topology_of(config_, deployment_)).release()});
}

// A starting worker's trouble, with the place in the configuration that it comes from.
std::string Daemon::Impl::about(std::uint32_t p, const std::string& line) const {
  const std::string partition = "partition '" + deployment_.partitions[p].partition.name + "'";
  const auto opening = supervisor_->opening(p);
  if (!opening) return config_.file + ": " + partition + ": " + line;
  return about_module(config_, deployment_.setups[p].modules[*opening], line, " (" + partition + ")");
}

void Daemon::Impl::give_up_starting() {
  for (std::uint32_t p = 0; p < supervisor_->count(); ++p) {
    if (supervisor_->state(p) != WorkerState::starting) continue;
    if (failure_.empty())
      failure_ = about(p, "loading takes longer than " + std::to_string(options_.check_ns / 1'000'000'000) +
                              " s; look whether the model loads at all, or allow more time");
    supervisor_->kill(p);
  }
  begin_stop();
}

// ---- phases ----

Status Daemon::Impl::start_serving() {
  progress_.end();
  if (auto status = complete_plan(config_, deployment_, first_ready); !status) return status;
  for (const auto& line : choose_objectives(config_, deployment_)) log_info(line);
  if (auto status = settle_results(); !status) return status;
  supervisor_->calibrated();
  if (const auto line = cap_memory(config_.limits, shm::available_memory().room_in_group()); !line.empty())
    log_warning(line);
  for (const auto& line : unschedulable(deployment_)) log_warning(line);
  const core::Topology topology = topology_of(config_, deployment_);
  if (const std::string problem = topology.problem(); !problem.empty()) return Error{config_.file + ": " + problem};
  if (std::string line = idle_setting(config_, deployment_); !line.empty()) return Error{std::move(line)};
  for (const std::string& line : config_.warnings) log_warning(line);
  LoopOptions options;
  options.limits.streams = config_.limits.streams;
  options.limits.coordinated = std::min(config_.limits.streams, kMaxCoordinated);
  options.limits.requests = config_.limits.requests;
  options.clients = config_.limits.clients;
  options.batch_limit_ns = config_.limits.batch_timeout_ns;
  // Spinning pays where work is shorter than a wake; for longer work only where a core is to spare for it.
  const bool spins = deployment_.scheduler_alone && (deployment_.tiny_hops || core_count() >= kCoresToSpare);
  options.wait = shm::choose_wait_policy(shm::Role::scheduler, core_count(), spins, deployment_.tiny_hops);
  options.cores = deployment_.scheduler_cores;
  options.ahead = !deployment_.scheduler_alone;
  number_stages(deployment_, options);
  options.first_module = deployment_.first_module, options.sizes = deployment_.sizes;
  estimator_ = core::make_estimator(config_.policy, topology);
  options.samples = estimator_ != nullptr;
  auto scheduler = SchedulerLoop::create(topology, config_.policy, std::move(options), *board_, notices_bell_,
                                         std::move(scheduler_bell_));
  if (!scheduler.ok()) return Error{scheduler.error()};
  if (checking()) {
    begin_stop();
    return Done{};
  }
  scheduler_ = std::move(*scheduler);
  for (std::uint32_t p = 0; p < ready_ports_.size(); ++p)
    scheduler_->command({.kind = Command::Kind::worker_ready, .partition = p, .worker = ready_ports_[p]});
  recorder_ = Recorder::start(*board_, config_.recorder_path, log_warning);
  thread_ = std::thread([this] { scheduler_->run(); });
  remeasure_.emplace(deployment_, *board_, *supervisor_, first_ready);
  phase_ = Phase::serving;
  log_info("serving on " + config_.socket);
  if (options_.ready_fd >= 0) {
    const std::string line = "ready " + config_.socket + "\n";
    (void)!write(options_.ready_fd, line.data(), line.size());
  }
  return Done{};
}

// What the models turned out to answer with, and to take.
Status Daemon::Impl::settle_results() {
  for (std::uint32_t a = 0; a < config_.applications.size(); ++a) {
    const planner::Application& application = config_.applications[a].application;
    std::vector<std::vector<exec::PartSpec>> needs(application.modules.size());
    std::vector<leat_tensor_shape> tensors;
    std::vector<exec::Recognised>& known = recognised.emplace_back(application.modules.size());
    for (std::uint32_t p = 0; p < deployment_.setups.size(); ++p) {
      const auto& sessions = deployment_.setups[p].modules;
      for (std::size_t s = 0; s < sessions.size() && s < first_ready[p].parts.size(); ++s) {
        if (sessions[s].application != application.name) continue;
        if (s < first_ready[p].recognised.size()) merge(first_ready[p].recognised[s], known[sessions[s].index]);
        if (!first_ready[p].parts[s].empty()) needs[sessions[s].index] = first_ready[p].parts[s];
        if (application.modules[sessions[s].index].after.empty() && !first_ready[p].tensors[s].empty())
          tensors = first_ready[p].tensors[s];
      }
    }
    auto layout = result_layout(application, needs);
    if (!layout.ok()) return Error{config_.file + ": " + layout.error()};
    sessions_->settle(a, std::move(*layout), std::move(tensors), class_names(config_.applications[a], known));
  }
  return Done{};
}

void Daemon::Impl::on_notices() {
  constexpr int kNoticesPerTurn = 256;
  notices_bell_.drain();
  Notice n;
  for (int i = 0; scheduler_ && scheduler_->notice(n); ++i) {
    switch (n.kind) {
      case Notice::Kind::worker_released:
        worker_released(n.partition, n.excused);
        break;
      case Notice::Kind::worker_broken:
        say(LogLevel::error, n.partition,
            "its worker reported nonsense, took no batches, or ran one for longer than limits.batch_timeout_ms; "
            "killing it");
        supervisor_->kill(n.partition);
        break;
      case Notice::Kind::plan_retired:
        core::ReadyPlan{}(n.plan);
        break;
      case Notice::Kind::samples:
        update_estimates();
        break;
      case Notice::Kind::drained:
        if (phase_ == Phase::draining) begin_stop();
        break;
      default:
        sessions_->on_notice(n);
    }
    if (i == kNoticesPerTurn && thread_.joinable()) return notices_bell_.ring();  // the rest comes with the next turn
  }
}

void Daemon::Impl::update_estimates() {
  core::Sample sample;  // a mailbox full at most: more come while these are taken
  for (std::uint32_t i = 0; i < kMailboxRoom && scheduler_->sample(sample); ++i) estimator_->add(std::span(&sample, 1));
  scheduler_->command({.kind = Command::Kind::set_estimates, .estimates = &estimator_->update(shm::monotonic_ns())});
}

void Daemon::Impl::on_signals() {
  signalfd_siginfo info;  // of each kind one waits at most
  for (int i = 0; i < 4 && read(signals_.get(), &info, sizeof(info)) == sizeof(info); ++i) {
    if (info.ssi_signo == SIGCHLD) {
      supervisor_->on_child(shm::monotonic_ns());
      look_after_keepers();
      for (std::uint32_t p = 0; p < supervisor_->count(); ++p) publish_worker(p);
    } else if (info.ssi_signo == SIGUSR1) {
      if (recorder_) recorder_->wake();
    } else if (phase_ == Phase::serving) {
      begin_drain();
    } else {
      if (checking() && failure_.empty()) failure_ = "interrupted; nothing can be said about the rest";
      begin_stop();  // before serving, or asked twice
    }
  }
}

void Daemon::Impl::begin_drain() {
  log_info("finishing what is in flight");
  phase_ = Phase::draining;
  deadline_ns_ = shm::monotonic_ns() + options_.drain_ns;
  scheduler_->command({.kind = Command::Kind::drain});
}

void Daemon::Impl::begin_stop() {
  if (phase_ == Phase::stopping || phase_ == Phase::done) return;
  constexpr std::int64_t kStopNs = 2'000'000'000;  // then workers are killed
  progress_.end();
  phase_ = Phase::stopping;
  deadline_ns_ = shm::monotonic_ns() + kStopNs;
  sessions_->close_all();
  supervisor_->stop_all();
}

void Daemon::Impl::end_scheduler() {
  if (!thread_.joinable()) return;
  scheduler_->command({.kind = Command::Kind::stop});
  thread_.join();
  on_notices();  // the last streams and clients it gave back
}

std::string Daemon::Impl::status_json() const {
  static constexpr const char* kPhases[] = {"starting", "serving", "draining", "stopping", "done"};
  return status_report({config_, deployment_, *supervisor_, *board_, recognised,
                        kPhases[static_cast<std::size_t>(phase_)], loop_note_, std::string(loop_->name()),
                        sessions_->clients(), (shm::monotonic_ns() - started_ns_) / 1'000'000});
}

// ---- the door ----

Daemon::Daemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() = default;

Result<std::unique_ptr<Daemon>> Daemon::create(Config config, DaemonOptions options) {
  auto impl = std::make_unique<Impl>(std::move(config), std::move(options));
  if (auto status = impl->create(); !status) return Error{status.error()};
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

Status Daemon::run() { return impl_->run(); }
const std::vector<std::vector<exec::Recognised>>& Daemon::recognised() const { return impl_->recognised; }
const std::vector<worker::Ready>& Daemon::measured() const { return impl_->first_ready; }

}  // namespace leat::daemon
