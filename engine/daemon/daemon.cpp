#include "engine/daemon/daemon.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "engine/core/estimator.h"
#include "engine/daemon/auto_plan.h"
#include "engine/daemon/client_sessions.h"
#include "engine/daemon/counters_board.h"
#include "engine/daemon/deployment.h"
#include "engine/daemon/event_loop.h"
#include "engine/daemon/log.h"
#include "engine/daemon/recorder.h"
#include "engine/daemon/scheduler_loop.h"
#include "engine/daemon/status_report.h"
#include "engine/daemon/supervisor.h"
#include "engine/worker/affinity.h"
#include "planner/solver_process.h"
#include "shm/src/protocol.h"

namespace leat::daemon {
namespace {

using shm::DaemonCounter;
using shm::PartitionCounter;
using shm::RecordKind;

constexpr std::uint32_t kCoresToSpare = 4;

enum Token : std::uint64_t { kListener = 0, kSignals = 1, kNotices = 2, kProcess = 1000, kSocket = 2000, kSession = 3000 };

std::int64_t clock_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

// Each client needs a few descriptors and each stream some more; the default soft limit of 1024 is soon reached.
void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

class Daemon::Impl final : public Supervisor::Listener {
 public:
  Impl(Config config, DaemonOptions options) : config_(std::move(config)), options_(std::move(options)) {}
  ~Impl() override {
    end_scheduler();
    if (listener_) (void)unlink(config_.socket.c_str());  // ours: listen_at() gave it to nobody else
  }

  Status create();
  Status run();

  void worker_ready(std::uint32_t partition, WorkerPort* port, const worker::Ready& ready) override;
  void worker_lost(std::uint32_t partition, const std::string& how) override;
  void worker_failed(std::uint32_t partition, const std::string& line) override;

 private:
  enum class Phase : std::uint8_t { starting, serving, draining, stopping, done };

  Status start_serving();
  void number_stages(LoopOptions& options) const;
  void on_event(const Readiness& ready);
  void on_notices();
  void on_signals();
  void ask_planner(const std::vector<std::uint32_t>& cores);
  void begin_drain();
  void begin_stop();
  void end_scheduler();
  void publish_worker(std::uint32_t partition);
  void update_estimates();
  std::string status_json() const;
  std::int64_t timeout_ns() const;

  Config config_;
  DaemonOptions options_;
  Deployment deployment_;
  std::unique_ptr<EventLoop> loop_;
  std::string loop_note_;
  std::unique_ptr<CountersBoard> board_;
  shm::Fd listener_, signals_;
  shm::Doorbell notices_bell_;
  shm::Doorbell scheduler_bell_;                 // rung by workers and the control thread; handed to the loop
  std::vector<shm::FeaturePool> features_;       // [edge]
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<core::Estimator> estimator_;   // none when the policy reads no estimates
  std::unique_ptr<SchedulerLoop> scheduler_;
  std::unique_ptr<ClientSessions> sessions_;
  std::thread thread_;
  std::vector<worker::Ready> ready_;             // [partition], until serving
  std::vector<WorkerPort*> ready_ports_;
  Phase phase_ = Phase::starting;
  std::string failure_;                          // why it could not start
  std::int64_t deadline_ns_ = INT64_MAX;         // of the drain or the stop
  std::int64_t started_ns_ = 0;
};

Status Daemon::Impl::create() {
  raise_open_files();
  const auto cores = worker::usable_cores();
  if (!cores.ok()) return Error{cores.error()};
  auto deployment = deploy(config_, *cores);
  if (!deployment.ok()) return Error{deployment.error()};
  deployment_ = std::move(*deployment);
  if (config_.plan_auto) ask_planner(*cores);
  auto listener = shm::listen_at(config_.socket, config_.socket_mode);
  if (!listener.ok()) return Error{listener.error()};
  listener_ = std::move(*listener);
  auto board = CountersBoard::create();
  if (!board.ok()) return Error{board.error()};
  board_ = std::move(*board);
  for (const FeatureEdge& e : deployment_.edges) {
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
  const auto plan = auto_plan(config_, deployment_, planner::solver_path());
  auto planned = plan.ok() ? deploy(config_, cores, &*plan) : Result<Deployment>(Error{plan.error()});
  if (planned.ok()) {
    deployment_ = std::move(*planned);
    log_info("plan = \"auto\": " + std::to_string(deployment_.plan.routes.size()) + " routes by leat-plan");
  } else {
    log_warning("plan = \"auto\": no plan, every partition runs every module: " + planned.error());
  }
}

Status Daemon::Impl::run() {
  started_ns_ = clock_ns();
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&set, s);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  (void)signal(SIGPIPE, SIG_IGN);
  signals_ = shm::Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  log_info(loop_note_);
  for (auto& setup : deployment_.setups)
    setup.yields = shm::choose_wait_policy(shm::Role::worker, shm::usable_cores(), false, deployment_.tiny_hops).yields;
  supervisor_ = std::make_unique<Supervisor>(*loop_, *this, Supervisor::Tokens{kSocket, kProcess}, options_.worker_binary, deployment_.setups, features_, scheduler_bell_.fd());
  std::vector<ServedApplication> served;
  for (std::size_t a = 0; a < config_.applications.size(); ++a) {
    const auto& app = config_.applications[a];
    std::string names;
    for (const auto& m : app.modules)
      for (const auto& head : m.labels) names += (names.empty() ? "" : "\n") + head;
    served.push_back({app.application.name, app.application.slo_ns, names});
  }
  sessions_ = std::make_unique<ClientSessions>(
      ClientSessions::Environment{config_, std::move(served), *loop_, *board_, *supervisor_,
                                  [this](const Command& c) { if (scheduler_) scheduler_->command(c); },
                                  [this] { return status_json(); },
                                  [this]() -> const char* {
                                    if (phase_ == Phase::serving) return nullptr;
                                    return phase_ == Phase::starting ? "leatd is starting its workers; try again" : "leatd is stopping";
                                  }},
      kSession);
  shm::Record daemon = board_->daemon();
  daemon.set(DaemonCounter::pid, static_cast<std::uint64_t>(getpid()));
  daemon.set(DaemonCounter::started_ns, static_cast<std::uint64_t>(started_ns_));
  daemon.set(DaemonCounter::event_loop, loop_->name() == "io_uring" ? 1 : 0);
  for (const auto value : {DaemonCounter::clients, DaemonCounter::streams, DaemonCounter::memory_bytes}) daemon.set(value, 0);
  ready_.resize(supervisor_->count());
  ready_ports_.assign(supervisor_->count(), nullptr);
  for (std::uint32_t p = 0; p < supervisor_->count(); ++p) {
    const auto& partition = deployment_.partitions[p];
    shm::Record record = board_->writer().begin(RecordKind::partition, p, partition.partition.name);
    record.set(PartitionCounter::kind, static_cast<std::uint64_t>(partition.partition.kind));
    record.set(PartitionCounter::cores, partition.cores.size());
    record.set(PartitionCounter::queued, 0);
  }
  std::uint32_t module = 0;
  for (std::uint32_t a = 0; a < config_.applications.size(); ++a) {
    for (const auto& m : config_.applications[a].application.modules) {
      shm::Record record = board_->writer().begin(RecordKind::module, module++, config_.applications[a].application.name + "/" + m.name);
      record.set(shm::ModuleCounter::application, a);
      record.set(shm::ModuleCounter::queued, 0);
      record.set(shm::ModuleCounter::running, 0);
    }
  }
  for (std::uint32_t e = 0; e < features_.size(); ++e) {
    shm::Record record = board_->writer().begin(RecordKind::edge, e, name_of(deployment_.edges[e], config_));
    for (const auto counter : {shm::EdgeCounter::transfers, shm::EdgeCounter::bytes_in_place, shm::EdgeCounter::bytes_copied, shm::EdgeCounter::slots_in_use}) record.set(counter, 0);
  }
  for (const auto& [fd, token] : {std::pair{listener_.get(), kListener}, std::pair{signals_.get(), kSignals}, std::pair{notices_bell_.fd(), kNotices}})
    if (auto status = loop_->watch(fd, token); !status) return status;
  if (auto status = supervisor_->start_all(); !status) return status;
  for (std::uint32_t p = 0; p < supervisor_->count(); ++p) publish_worker(p);

  std::array<Readiness, 64> events;
  while (phase_ != Phase::done) {
    const std::size_t count = loop_->wait(timeout_ns(), events);
    for (std::size_t i = 0; i < count && phase_ != Phase::done; ++i) on_event(events[i]);
    const std::int64_t now = clock_ns();
    supervisor_->advance(now);
    if (now >= deadline_ns_ && phase_ == Phase::draining) begin_stop();
    if (phase_ == Phase::stopping && (supervisor_->all_down() || now >= deadline_ns_)) phase_ = Phase::done;
  }
  end_scheduler();
  if (!config_.recorder_path.empty())
    if (auto status = save_recording(*board_, config_.recorder_path); !status) log_error(status.error());
  if (!failure_.empty()) return Error{failure_};
  return Done{};
}

std::int64_t Daemon::Impl::timeout_ns() const {
  const std::int64_t due = std::min(supervisor_->next_due(), deadline_ns_);
  return due == INT64_MAX ? -1 : std::max<std::int64_t>(0, due - clock_ns());
}

void Daemon::Impl::on_event(const Readiness& ready) {
  if (ready.token == kListener) {
    auto connection = shm::accept_peer(listener_.get());
    if (!connection.ok()) return log_error(connection.error());
    if (*connection) sessions_->accept(std::move(*connection));
    return;
  }
  if (ready.token == kSignals) return on_signals();
  if (ready.token == kNotices) return on_notices();
  if (ready.token >= kSession) return sessions_->on_ready(static_cast<std::uint32_t>(ready.token - kSession), ready);
  if (ready.token >= kSocket) return supervisor_->on_socket(static_cast<std::uint32_t>(ready.token - kSocket), ready);
  const auto partition = static_cast<std::uint32_t>(ready.token - kProcess);
  supervisor_->on_exit(partition, clock_ns());
  publish_worker(partition);
}

// ---- workers ----

void Daemon::Impl::publish_worker(std::uint32_t p) {
  shm::Record record = board_->of(RecordKind::partition, p);
  record.set(PartitionCounter::state, static_cast<std::uint64_t>(supervisor_->state(p)));
  record.set(PartitionCounter::pid, static_cast<std::uint64_t>(supervisor_->pid(p)));
  record.set(PartitionCounter::restarts, supervisor_->restarts(p));
}

void Daemon::Impl::worker_ready(std::uint32_t p, WorkerPort* port, const worker::Ready& ready) {
  board_->of(RecordKind::partition, p).set(PartitionCounter::started_ns, static_cast<std::uint64_t>(clock_ns()));
  publish_worker(p);
  log_info("partition '" + deployment_.partitions[p].partition.name + "' is ready (process " + std::to_string(supervisor_->pid(p)) + ")");
  if (phase_ != Phase::starting) {
    if (scheduler_) scheduler_->command({.kind = Command::Kind::worker_ready, .partition = p, .worker = port});
    return;
  }
  ready_[p] = ready;
  ready_ports_[p] = port;
  if (std::find(ready_ports_.begin(), ready_ports_.end(), nullptr) != ready_ports_.end()) return;
  if (auto status = start_serving(); !status) {
    failure_ = status.error();
    begin_stop();
  }
}

void Daemon::Impl::worker_lost(std::uint32_t p, const std::string& how) {
  const std::string line = "partition '" + deployment_.partitions[p].partition.name + "': its worker was " + how;
  if (phase_ == Phase::starting) {
    failure_ = line + " while leatd was starting; see the lines above";
    supervisor_->released(p, clock_ns());
    return begin_stop();
  }
  if (phase_ == Phase::serving || phase_ == Phase::draining) log_warning(line + "; starting it again");
  if (scheduler_)
    scheduler_->command({.kind = Command::Kind::worker_lost, .partition = p});
  else
    supervisor_->released(p, clock_ns());
}

void Daemon::Impl::worker_failed(std::uint32_t p, const std::string& line) {
  const std::string text = "partition '" + deployment_.partitions[p].partition.name + "': " + line;
  if (phase_ != Phase::starting) return log_error(text);
  if (failure_.empty()) failure_ = text;
  begin_stop();
}

// ---- phases ----

Status Daemon::Impl::start_serving() {
  if (auto status = complete_plan(config_, deployment_, ready_); !status) return status;
  supervisor_->calibrated();
  for (const auto& line : unschedulable(deployment_)) log_warning(line);
  const core::Topology topology = core::Topology::from(deployment_.plan, deployment_.applications);
  if (const std::string problem = topology.problem(); !problem.empty()) return Error{config_.file + ": " + problem};
  LoopOptions options;
  options.limits.streams = config_.limits.streams;
  options.limits.requests = config_.limits.requests;
  options.clients = config_.limits.clients;
  options.batch_limit_ns = config_.limits.batch_ns;
  // Spinning pays where work is shorter than a wake; for longer work only where a core is to spare for it.
  const bool spins = deployment_.scheduler_alone && (deployment_.tiny_hops || shm::usable_cores() >= kCoresToSpare);
  options.wait = shm::choose_wait_policy(shm::Role::scheduler, shm::usable_cores(), spins, deployment_.tiny_hops);
  options.cores = deployment_.scheduler_cores;
  number_stages(options);
  options.first_module = deployment_.first_module;
  options.samples = core::Estimator::needed(config_.policy);
  if (options.samples) estimator_ = std::make_unique<core::Estimator>(topology, config_.policy);
  auto scheduler = SchedulerLoop::create(topology, config_.policy, std::move(options), *board_, notices_bell_, std::move(scheduler_bell_));
  if (!scheduler.ok()) return Error{scheduler.error()};
  scheduler_ = std::move(*scheduler);
  for (std::uint32_t p = 0; p < ready_ports_.size(); ++p)
    scheduler_->command({.kind = Command::Kind::worker_ready, .partition = p, .worker = ready_ports_[p]});
  thread_ = std::thread([this] { scheduler_->run(); });
  phase_ = Phase::serving;
  log_info("serving on " + config_.socket);
  if (options_.ready_fd >= 0) {
    const std::string line = "ready " + config_.socket + "\n";
    (void)!write(options_.ready_fd, line.data(), line.size());
  }
  return Done{};
}

// Every stage of every route, one after the other.
void Daemon::Impl::number_stages(LoopOptions& options) const {
  options.session_of.resize(deployment_.partitions.size());
  for (const planner::Route& r : deployment_.plan.routes) {
    options.first_stage.push_back(static_cast<std::uint32_t>(options.stages.size()));
    for (std::size_t s = 0; s < r.stages.size(); ++s) {
      const BlockRange blocks = blocks_of(r, s);
      options.stages.push_back({edge_at(deployment_.edges, r.application, r.module, blocks.first), edge_at(deployment_.edges, r.application, r.module, blocks.end)});
      for (std::uint32_t p = 0; p < options.session_of.size(); ++p) options.session_of[p].push_back(session(deployment_, p, r.application, r.module, blocks));
    }
  }
  for (const FeatureEdge& e : deployment_.edges) options.edges.push_back(e.spec);
}

void Daemon::Impl::on_notices() {
  notices_bell_.drain();
  Notice n;
  while (scheduler_ && scheduler_->notice(n)) {
    switch (n.kind) {
      case Notice::Kind::worker_released:
        supervisor_->released(n.partition, clock_ns());
        publish_worker(n.partition);
        break;
      case Notice::Kind::worker_broken:
        log_error("partition '" + deployment_.partitions[n.partition].partition.name + "': its worker reported nonsense, took no batches, or ran one for longer than limits.batch_ms; killing it");
        supervisor_->kill(n.partition);
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
  }
}

void Daemon::Impl::update_estimates() {
  core::Sample sample;
  while (scheduler_->sample(sample)) estimator_->add(std::span(&sample, 1));
  scheduler_->command({.kind = Command::Kind::set_estimates, .estimates = &estimator_->update(clock_ns())});
}

void Daemon::Impl::on_signals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGUSR1) {
      if (config_.recorder_path.empty()) continue;
      if (auto status = save_recording(*board_, config_.recorder_path); !status) log_error(status.error());
    } else if (phase_ == Phase::serving) {
      begin_drain();
    } else {
      begin_stop();  // before serving, or asked twice
    }
  }
}

void Daemon::Impl::begin_drain() {
  log_info("finishing what is in flight");
  phase_ = Phase::draining;
  deadline_ns_ = clock_ns() + options_.drain_ns;
  scheduler_->command({.kind = Command::Kind::drain});
}

void Daemon::Impl::begin_stop() {
  if (phase_ == Phase::stopping || phase_ == Phase::done) return;
  constexpr std::int64_t kStopNs = 2'000'000'000;  // then workers are killed
  phase_ = Phase::stopping;
  deadline_ns_ = clock_ns() + kStopNs;
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
  return status_report({config_, deployment_, *supervisor_, *board_, kPhases[static_cast<std::size_t>(phase_)], loop_note_, std::string(loop_->name()),
                        sessions_->clients(), (clock_ns() - started_ns_) / 1'000'000});
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

}  // namespace leat::daemon
