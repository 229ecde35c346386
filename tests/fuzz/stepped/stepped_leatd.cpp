#include "tests/fuzz/stepped/stepped_leatd.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "engine/daemon/log.h"
#include "tests/fuzz/stepped/seams.h"
#include "tests/fuzz/stepped/stepped_job_threads.h"

namespace leat::daemon {

// park() alone is what makes the scheduler thread look at its bells.
struct LoopTestAccess {
  static void park(SchedulerLoop& loop) { loop.park(); }
};

}  // namespace leat::daemon

namespace leat::fuzz {
namespace {

using daemon::Command;
using daemon::SchedulerEvent;
using shm::DaemonCounter;
using shm::RecordKind;
using shm::UserCounter;

enum Token : std::uint64_t { kListener, kSchedulerEvents, kPools, kSession = 100 };

constexpr std::int64_t kStartNs = 1'000'000'000'000;
constexpr std::uint32_t kStreams = 10, kClients = 8, kUserRecords = 16;
constexpr std::uint32_t kEveryRule = 0xf;

// The listener's folder, one for all inputs, as the process has its pid.
class Folder {
 public:
  Folder() {
    std::string text = std::filesystem::temp_directory_path() / "leat-fuzz.XXXXXX";
    insist(mkdtemp(text.data()) != nullptr, "no folder for a socket");
    path_ = text;
    listener_ = std::make_unique<shm::Listener>(std::move(shm::Listener::open(socket(), 0600)).value());
  }
  ~Folder() {
    listener_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string socket() const { return path_ + "/s"; }
  [[nodiscard]] shm::Listener& listener() const { return *listener_; }

 private:
  std::string path_;
  std::unique_ptr<shm::Listener> listener_;
};
const Folder& folder() {
  static const Folder kFolder;
  return kFolder;
}

daemon::Config config() {
  daemon::Config c;
  c.limits.clients = kClients;
  c.limits.streams = kStreams;
  c.limits.requests = 64;
  c.limits.memory_bytes = 16 << 20;
  c.limits.client_memory_bytes = 6 << 20;
  c.allow_uids = {kHonestUser, kUser, kSmallUser};
  daemon::UserOverride small;
  small.sessions = 3;
  small.streams = 2;
  small.descriptors = 6;
  small.priority = LEAT_PRIORITY_PROTECTED;
  small.overload_set = kEveryRule;
  c.limits.user.users.emplace_back(kSmallUser, small);
  return c;
}

}  // namespace

TurnFigures& SteppedLeatd::figures_of_control() {
  static TurnFigures figures;
  return figures;
}
TurnFigures& SteppedLeatd::figures_of_scheduler() {
  static TurnFigures figures;
  return figures;
}

// Whoever gives up his processor of his own accord has waited: a thread of leatd's waits for no client.
class SteppedLeatd::Turn {
 public:
  Turn(SteppedLeatd& leatd, TurnFigures& figures)
      : leatd_(leatd), figures_(figures), interrupted_(leatd.passed_.lingers()) {
    (void)leatd_.passed_.let_go();
    waits_ = waits();
    from_ns_ = real_time_ns();
  }
  ~Turn() {
    const std::uint32_t let_go = leatd_.passed_.let_go();
    ++figures_.turns;
    if (waits() != waits_) {
      ++figures_.waited;
      figures_.longest_wait_ns = std::max(figures_.longest_wait_ns, real_time_ns() - from_ns_);
    }
    insist(let_go == 0, "leatd's own thread closed what a client had passed");
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  static long waits() {
    rusage used{};
    (void)getrusage(RUSAGE_THREAD, &used);
    return used.ru_nvcsw;
  }
  SteppedLeatd& leatd_;
  TurnFigures& figures_;
  Interrupted interrupted_;
  long waits_ = 0;
  std::int64_t from_ns_ = 0;
};

const std::string& SteppedLeatd::path() {
  static const std::string kPath = folder().socket();
  return kPath;
}

SteppedLeatd::SteppedLeatd(Passed& passed) : passed_(passed), config_(config()) {
  static const bool kQuiet = [] {
    daemon::start_log("off");
    return true;
  }();
  (void)kQuiet;
  later(kStartNs);
  events_.emplace(std::move(daemon::EventLoop::create()).value());
  events_bell_ = std::move(shm::Doorbell::create()).value();
  auto bell = std::move(shm::Doorbell::create()).value();
  scheduler_bell_ = shm::Doorbell(std::move(shm::duplicate(bell.fd())).value());
  const core::Topology served = topology({2, 1, 1});
  begin_records(RecordKind::module, static_cast<std::uint32_t>(served.modules.size()));
  begin_records(RecordKind::partition, kPartitions);
  daemon::LoopOptions options = options_of(served);
  options.limits = {.streams = kStreams,
                    .requests = config_.limits.requests,
                    .tasks = 256,
                    .batches = 32,
                    .actions = 1024,
                    .coordinated = kStreams};
  options.clients = kClients;
  loop_ = std::move(daemon::SchedulerLoop::create(served, config_.policy, std::move(options), metrics(), events_bell_,
                                                  std::move(bell)))
              .value();
  daemon::Supervisor::Listener& nobody_listens = *this;
  supervisor_ =
      std::make_unique<daemon::Supervisor>(*events_, nobody_listens, 0, "", 0, std::vector<worker::Setup>{},
                                           std::span<const shm::FeaturePool>{}, daemon::Supervisor::Patience{});
  pools_ = std::move(daemon::PoolBuilder::create()).value();
  // The counters outlive an input, and one that ends with a stopped leatd leaves what its users had then.
  for (std::uint32_t i = 0; i < kUserRecords; ++i)
    for (const auto c : {UserCounter::sessions, UserCounter::clients, UserCounter::streams, UserCounter::requests,
                         UserCounter::memory_bytes, UserCounter::descriptors})
      metrics().of(RecordKind::user, i).set(c, 0);
  std::vector<daemon::ServedApplication> applications;
  for (const char* name : kApplications) {
    applications.push_back({.name = name, .slo_ns = 50'000'000});
    config_.applications.emplace_back().application.slo_ns = 50'000'000;
  }
  sessions_ = std::make_unique<daemon::ClientSessions>(
      daemon::ClientSessions::Environment{
          config_, std::move(applications), *events_, metrics(), *supervisor_, *pools_,
          [this](const Command& c) { loop_->command(c); },
          [](const shm::Change&, std::string_view) { return Result<std::uint64_t>(Error{"nothing is changed here"}); },
          [] { return std::string(2000, ' '); }, [this] { return stopping_ ? "leatd is stopping" : nullptr; }},
      kSession);
  leat_tensor_shape four{};
  four.rank = 1;
  four.dims[0] = 4;
  four.dtype = LEAT_F32;
  sessions_->serve(0, {.name = kApplications[0], .slo_ns = 50'000'000, .class_names = "a\tb"});
  sessions_->serve(2, {.name = kApplications[2], .slo_ns = 50'000'000, .tensors = {four}});
  acceptor_ = std::make_unique<daemon::Acceptor>(folder().listener(), *events_, metrics(), kListener);
  insist(acceptor_->open().ok(), "an acceptor that does not open");
  for (const auto& [fd, token] : {std::pair{events_bell_.fd(), kSchedulerEvents}, std::pair{pools_->fd(), kPools}})
    insist(events_->watch(fd, token).ok(), "a bell that cannot be watched");
  for (core::PartitionId p = 0; p < kPartitions; ++p) start_worker(p);
}

SteppedLeatd::~SteppedLeatd() {
  sessions_.reset();
  loop_.reset();
  run_jobs(UINT32_MAX);
  set_time(0);
}

void SteppedLeatd::later(std::int64_t ns) { set_time(now_ += ns); }

void SteppedLeatd::start_worker(core::PartitionId p) {
  workers_[p].start();
  lost_[p] = false;
  loop_->command({.kind = Command::Kind::worker_ready, .partition = p, .worker = workers_[p].port.get()});
}
void SteppedLeatd::lose(core::PartitionId p) {
  if (!lost_[p]) loop_->command({.kind = Command::Kind::worker_lost, .partition = p});
  lost_[p] = true;
}
void SteppedLeatd::work(core::PartitionId p, Reader* changes) {
  if (!lost_[p]) workers_[p].work(now_, changes);
}

void SteppedLeatd::control() {
  const Turn turn(*this, figures_of_control());
  std::array<daemon::Readiness, 64> ready;
  const std::size_t count = events_->wait(0, ready);
  for (std::size_t i = 0; i < count; ++i) on_event(ready[i]);
  sessions_->advance(now_);
  acceptor_->advance(now_);
}

void SteppedLeatd::on_event(const daemon::Readiness& ready) {
  if (ready.token == kListener)
    return acceptor_->on_ready(
        now_, [this](shm::Fd connection) { return sessions_->accept(std::move(connection)); },
        [this](shm::Fd connection) { sessions_->turn_away(std::move(connection)); });
  if (ready.token == kSchedulerEvents) return on_scheduler_events();
  if (ready.token == kPools) return sessions_->on_pools();
  sessions_->on_ready(ready.token);
}

void SteppedLeatd::on_scheduler_events() {
  events_bell_.drain();
  for (SchedulerEvent n; loop_->next_event(n);) {
    if (n.kind == SchedulerEvent::Kind::worker_released)
      start_worker(n.partition);
    else if (n.kind == SchedulerEvent::Kind::worker_broken)
      lose(n.partition);
    else
      sessions_->on_scheduler_event(n);
  }
}

void SteppedLeatd::schedule(bool parks) {
  const Turn turn(*this, figures_of_scheduler());
  (void)loop_->turn(now_);
  if (!parks) return;
  scheduler_bell_.ring();  // it does not sleep
  daemon::LoopTestAccess::park(*loop_);
}

void SteppedLeatd::round() {
  later(1'000'000);
  control();
  schedule(true);
  {
    const Interrupted hurried(passed_.lingers());
    run_jobs(job_steps_);
  }
  for (core::PartitionId p = 0; p < kPartitions; ++p) work(p, nullptr);
  schedule(false);
  control();
}

void SteppedLeatd::stop() {
  stopping_ = true;
  const Turn turn(*this, figures_of_control());
  sessions_->close_all();
}

std::uint32_t SteppedLeatd::sessions() const {
  return static_cast<std::uint32_t>(metrics().daemon().value(DaemonCounter::sessions));
}

std::string SteppedLeatd::left() const {
  std::string out;
  const auto note = [&](const std::string& what, std::uint64_t value) {
    if (value != 0) out += (out.empty() ? "" : ", ") + what + " " + std::to_string(value);
  };
  const shm::Record daemon = metrics().daemon();
  note("sessions", daemon.value(DaemonCounter::sessions));
  note("clients", daemon.value(DaemonCounter::clients));
  note("streams", daemon.value(DaemonCounter::streams));
  note("bytes", daemon.value(DaemonCounter::memory_bytes));
  note("jobs", waiting_jobs());
  for (std::uint32_t i = 0; i < kUserRecords; ++i)
    for (const auto c : {UserCounter::sessions, UserCounter::clients, UserCounter::streams, UserCounter::requests,
                         UserCounter::memory_bytes, UserCounter::descriptors})
      note("user " + std::to_string(i) + "'s " +
               std::string(shm::counter_names(RecordKind::user)[static_cast<std::size_t>(c)].name),
           metrics().of(RecordKind::user, i).value(c));
  return out;
}

std::size_t SteppedLeatd::max_descriptors() const {
  constexpr std::size_t kOfItself = 24, kOfSession = 5, kOfStream = 4, kOfJob = 5;
  return kOfItself + kOfJob * waiting_jobs() + kOfSession * sessions() +
         kOfStream * std::min<std::size_t>(kStreams, metrics().daemon().value(DaemonCounter::streams));
}

}  // namespace leat::fuzz
