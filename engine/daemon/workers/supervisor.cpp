#include "engine/daemon/workers/supervisor.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/daemon/log.h"
#include "engine/daemon/workers/models/model_files.h"
#include "leat/leat.h"
#include "tools/base/text/units.h"

namespace leat::daemon {
Supervisor::Supervisor(EventLoop& loop, Listener& listener, std::uint64_t first_token, std::string binary,
                       std::uint32_t slots, std::vector<worker::Setup> setups,
                       std::span<const shm::FeaturePool> features, Patience patience)
    : listener_(listener),
      first_token_(first_token),
      binary_(std::move(binary)),
      patience_(patience),
      edges_(features) {
  workers_.reserve(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    workers_.push_back({.setup = {},
                        .link = {loop,
                                 {first_token + i, first_token + slots + i},
                                 patience.unread_ns,
                                 [&listener] { listener.send_exhausted(); }},
                        .restart = RestartTimer(patience.max_backoff_ns)});
    if (i >= setups.size()) continue;
    workers_.back().setup = std::move(setups[i]);
    workers_.back().used = true;
  }
}

Supervisor::~Supervisor() {
  for (auto& w : workers_) {
    if (!w.process) continue;
    w.process.kill();
    w.link.close(leat_now_ns());
  }
}

// ---- starting ----

Status Supervisor::start_all(std::int64_t now) {
  if (count() > 1) turns_ = Fd(::memfd_create("leat:measuring", MFD_CLOEXEC));
  for (std::uint32_t i = 0; i < count(); ++i)
    if (auto status = in_use(i) ? start(i, now) : Done{}; !status) return status;
  return Done{};
}

Status Supervisor::start_beside(std::uint32_t i, worker::Setup setup, std::int64_t now) {
  Worker& w = workers_[i];
  w.setup = std::move(setup);
  w.used = w.on_trial = true;
  w.ends = false;
  w.killed_ns = INT64_MAX;
  w.restart = RestartTimer(patience_.max_backoff_ns);
  w.end_status.reset();
  w.last_end.clear();
  w.why_down.clear();
  auto status = start(i, now);
  if (status || w.process) {
    if (!status) kill(i);  // its end is noticed like any other
    return status;
  }
  w.link.close(now);
  w.link.drop_port();
  w.state = WorkerState::down;
  w.used = w.on_trial = false;
  w.setup = {};
  return status;
}

void Supervisor::settle(std::uint32_t i) noexcept {
  workers_[i].on_trial = false;
  workers_[i].setup.calibrate = false;
}

void Supervisor::retire(std::uint32_t i, std::int64_t now) {
  constexpr std::int64_t kPatienceNs = 2'000'000'000;
  Worker& w = workers_[i];
  if (!w.used || w.ends) return;
  w.ends = true;
  w.restart.clear();
  if (!w.process) {  // it waits before it starts again, or the scheduler thread still has what it left
    if (w.link.port() == nullptr) released(i, false, now);
    return;
  }
  w.killed_ns = now + kPatienceNs;
  w.link.send({.packet = worker::encode_stop()});
}

void Supervisor::calibrated() noexcept {
  for (auto& w : workers_) w.setup.calibrate = false;
}

Status Supervisor::start(std::uint32_t i, std::int64_t now) {
  Worker& w = workers_[i];
  const auto trouble = [&](const Status& status) -> Status {
    return Error{"partition '" + w.setup.partition + "': " + status.error()};
  };
  auto ends = w.link.open(!w.setup.device.plugin.empty());  // who has a device makes edges
  if (!ends) return trouble(Error{ends.error()});
  if (auto status = spawn(w, *ends); !status) return trouble(status);
  w.state = WorkerState::starting;
  w.start = {.ready_by_ns = now + patience_.start_timeout_ns};
  w.restart.clear();
  w.asked.reset();
  w.not_finite.clear();
  if (auto status = w.link.watch(); !status) return status;
  if (auto status = send_all(w); !status) return trouble(status);
  return Done{};
}

// Of leatd's own descriptors it gets none.
Status Supervisor::spawn(Worker& w, const WorkerLink::WorkerEnds& ends) {
  const int output = ends.output.get();
  auto process = subprocess::Process::start(
      {.words = {binary_, w.setup.partition},
       .environment = w.setup.device.environment,
       .fds = {{output, STDOUT_FILENO}, {output, STDERR_FILENO}, {ends.socket.get(), worker::kControlFd}}});
  if (!process) {
    const bool there = ::access(binary_.c_str(), X_OK) == 0;
    return Error{process.error() + (there ? "" : "; install leat-worker beside leatd or name it with --worker")};
  }
  w.process = std::move(*process);
  return Done{};
}

// What it is to run, then models and edges, which it reads in the order of its setup, then the pools there are.
Status Supervisor::send_all(Worker& w) {
  std::vector<const worker::Setup*> running;
  for (const Worker& other : workers_)
    if (&other != &w && other.process) running.push_back(&other.setup);
  edges_.choose_made(w.setup, running);
  WorkerMessage setup{.packet = worker::encode(w.setup)};
  auto channel = shm::duplicate(w.link.port()->channel_fd());
  if (!channel) return Error{channel.error()};
  setup.fds.push_back(std::move(*channel));
  setup.fds.push_back(w.link.port()->take_worker_bell());
  if (auto turns = shm::duplicate(turns_.get()); w.setup.calibrate && turns) setup.fds.push_back(std::move(*turns));
  w.link.send(std::move(setup));
  if (auto status = send_models(w); !status) return status;
  auto edges = edges_.messages(w.setup);
  if (!edges) return Error{edges.error()};
  for (WorkerMessage& message : *edges) w.link.send(std::move(message));
  for (const SharedPool& pool : pools_)
    if (serves(w, pool.application)) w.link.send(pool_message(pool));
  return Done{};
}

Status Supervisor::send_models(Worker& w) {
  for (const worker::ModuleSetup& m : w.setup.modules) {
    for (const exec::ModelFile& f : m.files) {
      auto fd = shm::duplicate(f.fd->get());
      if (!fd) return Error{fd.error()};
      WorkerMessage message{.packet = worker::encode_file()};
      message.fds.push_back(std::move(*fd));
      w.link.send(std::move(message));
    }
  }
  return Done{};
}

// Not before it has been told of every pool: frames may be in any of them.
void Supervisor::announce_ready(std::uint32_t i, std::int64_t now) {
  Worker& w = workers_[i];
  if (!w.start.ready || !w.link.all_sent()) return;
  const worker::Ready ready = *std::exchange(w.start.ready, std::nullopt);
  w.state = WorkerState::up;
  w.link.refuse_descriptors();  // what edges it makes are made
  w.start.ready_by_ns = INT64_MAX;
  w.ready_ns = now;
  w.why_down.clear();
  if (auto status = keep_words(ready, w.setup); !status) log_warning(status.error());
  w.setup.overlap_permille = ready.overlap_permille;
  w.sandbox = ready.sandbox;
  w.device = ready.device;
  listener_.worker_ready(i, w.link.port(), ready);
  if (w.restart.restarts() != 0) return;  // a frame can end a worker: what it says of its start is said once
  for (std::size_t m = 0; m < std::min(ready.overlap_permille.size(), w.setup.modules.size()); ++m)
    if (const std::uint32_t n = ready.overlap_permille[m]; n != 0)
      log_info("partition '" + w.setup.partition + "': " + w.setup.modules[m].application + "/" +
               w.setup.modules[m].name + ": batches overlap, by which " + std::to_string(100 * n / (1000 - n)) +
               " % more come through");
  for (std::size_t m = 0; m < std::min(ready.device.modules.size(), w.setup.modules.size()); ++m)
    if (const std::string text = exec::text_of(ready.device.modules[m].graphs); !text.empty())
      log_info("partition '" + w.setup.partition + "': " + w.setup.modules[m].application + "/" +
               w.setup.modules[m].name + ": " + text);
}

// ---- what workers say ----

void Supervisor::on_ready(const Readiness& ready, std::int64_t now) {
  const auto which = static_cast<std::uint32_t>(ready.token - first_token_);
  if (which < count()) {
    if (ready.writable && workers_[which].link.is_open()) workers_[which].link.flush();
    return on_socket(which, now);
  }
  if (which < 2 * count()) workers_[which - count()].link.pass_output_on(now);
}

void Supervisor::on_socket(std::uint32_t i, std::int64_t now) {
  constexpr int kMessagesPerTurn = 16;
  Worker& w = workers_[i];
  if (!w.link.is_open()) return;
  std::vector<std::byte> packet;
  for (int n = 0; n < kMessagesPerTurn; ++n) {
    std::vector<shm::Fd> fds;
    const bool takes = w.state == WorkerState::starting && !w.setup.device.plugin.empty();
    const shm::Got got = w.link.receive(packet, takes ? &fds : nullptr);
    if (got == shm::Got::message) {
      handle(i, packet, std::move(fds), now);
      continue;
    }
    if (got == shm::Got::descriptors) kill(i);
    if (got != shm::Got::nothing) w.link.hang_up();  // it is ending: SIGCHLD tells when
    return;
  }
}

void Supervisor::handle(std::uint32_t i, const std::vector<std::byte>& packet, std::vector<shm::Fd> fds,
                        std::int64_t now) {
  Worker& w = workers_[i];
  if (auto taken = take_message(i, packet, std::move(fds), now); !taken) {
    w.start.why_ended = taken.error();
    kill(i);
  }
}

Status Supervisor::take_message(std::uint32_t i, const std::vector<std::byte>& packet, std::vector<shm::Fd> fds,
                                std::int64_t now) {
  Worker& w = workers_[i];
  const auto type = worker::type_of(packet);
  if (type.ok() && *type == worker::ControlType::failed) {
    complain(w, worker::decode_failed(packet));
    return Done{};
  }
  if (type.ok() && *type == worker::ControlType::edge_made && w.state == WorkerState::starting)
    return pass_edge_on(i, packet, std::move(fds));
  if (type.ok() && *type == worker::ControlType::memory && take_memory(i, packet)) return Done{};
  if (type.ok() && *type == worker::ControlType::not_finite && take_not_finite(i, packet)) return Done{};
  if (type.ok() && w.state == WorkerState::starting && take_while_starting(i, *type, packet, now)) return Done{};
  if (type.ok() && w.state == WorkerState::up && take_while_up(i, *type, packet)) return Done{};
  return Error{"its worker sent a message leatd does not understand; install leatd and leat-worker of one release"};
}

bool Supervisor::take_while_starting(std::uint32_t i, worker::ControlType type, const std::vector<std::byte>& packet,
                                     std::int64_t now) {
  Worker& w = workers_[i];
  if (type == worker::ControlType::opening) {
    const auto module = worker::decode_opening(packet);
    if (!module.ok() || *module >= w.setup.modules.size()) return false;
    w.start.opening = *module;
    w.start.measuring = {};
    return true;
  }
  if (type == worker::ControlType::measuring) {
    const auto progress = worker::decode_measuring(packet);
    if (!progress.ok() || !w.start.opening) return false;
    w.start.measuring = *progress;
    return true;
  }
  if (type != worker::ControlType::ready || w.start.ready) return false;
  auto message = worker::decode_ready(packet);
  if (!message.ok()) return false;
  w.start.ready = std::move(*message);
  announce_ready(i, now);
  return true;
}

// Also while it starts and waits for an edge: it is told then of the pools that are open.
bool Supervisor::take_memory(std::uint32_t i, const std::vector<std::byte>& packet) {
  const auto memory = worker::decode_memory(packet);
  if (memory.ok()) workers_[i].device.memory = *memory;
  return memory.ok();
}

// While it starts or serves, once for each module.
bool Supervisor::take_not_finite(std::uint32_t i, const std::vector<std::byte>& packet) {
  const auto module = worker::decode_not_finite(packet);
  return module.ok() && *module < workers_[i].setup.modules.size() && workers_[i].not_finite.insert(*module).second;
}

bool Supervisor::take_while_up(std::uint32_t i, worker::ControlType type, const std::vector<std::byte>& packet) {
  Worker& w = workers_[i];
  if (type != worker::ControlType::measured || !w.asked) return false;
  const auto found = worker::decode_measured(packet);
  if (!found.ok() || found->module != *w.asked) return false;
  w.asked.reset();
  listener_.worker_measured(i, *found);
  return true;
}

void Supervisor::complain(Worker& w, std::string line) {
  std::vector<Start::Complaint>& said = w.start.complaints;
  const bool known = std::ranges::any_of(said, [&](const auto& c) { return c.line == line; });
  if (!known && said.size() <= w.setup.modules.size()) said.push_back({w.start.opening, std::move(line)});
}

// An edge that a worker has made goes to all others that wait for it.
Status Supervisor::pass_edge_on(std::uint32_t i, const std::vector<std::byte>& packet, std::vector<shm::Fd> fds) {
  const auto edge = edges_.take_made(workers_[i].setup, packet, std::move(fds));
  if (!edge.ok()) return Error{edge.error()};
  for (Worker& w : workers_) {
    if (w.state != WorkerState::starting) continue;
    for (std::uint32_t e = 0; e < w.setup.edges.size(); ++e) {
      const worker::EdgeSetup& theirs = w.setup.edges[e];
      if (theirs.edge != *edge || !theirs.device || theirs.make) continue;
      auto message = edges_.device_message(w.setup, e);
      if (!message.ok()) {
        w.start.why_ended = message.error();
        w.process.signal(SIGKILL);
        break;
      }
      w.link.send(std::move(*message));
    }
  }
  return Done{};
}

void Supervisor::ask_to_measure(std::uint32_t i, const worker::Measure& what) {
  workers_[i].asked = what.module;
  workers_[i].link.send({.packet = worker::encode(what)});
}

// ---- their end ----

void Supervisor::kill(std::uint32_t i) { workers_[i].process.signal(SIGKILL); }

// Signals of several children may come as one.
void Supervisor::on_child(std::int64_t now) {
  for (std::uint32_t i = 0; i < count(); ++i)
    if (workers_[i].process.has_ended()) on_exit(i, now);
}

void Supervisor::on_exit(std::uint32_t i, std::int64_t now) {
  Worker& w = workers_[i];
  on_socket(i, now);  // its last words
  w.link.close(now);
  w.start.ready.reset();
  w.start.ready_by_ns = w.killed_ns = INT64_MAX;
  const subprocess::Ending ending = w.process.wait(subprocess::Clock::now());
  const bool was_up = w.state == WorkerState::up;
  w.state = WorkerState::lost;
  w.last_end = ending.text();
  w.end_status = static_cast<std::uint32_t>(ending.code) + (ending.how == subprocess::Ending::How::exited ? 0 : 256);
  w.device = {};
  w.restart.ended(was_up ? std::optional(now - w.ready_ns) : std::nullopt);
  for (worker::EdgeSetup& e : w.setup.edges) e.make = false;
  if (ending.how == subprocess::Ending::How::exited && ending.code == worker::kDeviceLost)
    lose_group(w.setup.device.group, now);
  if (was_up) return listener_.worker_lost(i, w.last_end);
  if (!w.ends) tell_failed(i);
  released(i, false, now);
}

void Supervisor::tell_failed(std::uint32_t i) {
  Worker& w = workers_[i];
  Start& s = w.start;
  if (!s.why_ended.empty()) s.complaints = {{s.opening, s.why_ended}};
  if (s.complaints.empty())
    s.complaints = {{s.opening, "its worker " + w.last_end +
                                    " before it was ready; the model, its executor or the runtime ended it"}};
  w.why_down = s.complaints.front().line;
  for (const Start::Complaint& c : s.complaints) {
    s.opening = c.opening;
    listener_.worker_failed(i, c.line);
  }
}

void Supervisor::released(std::uint32_t i, bool excused, std::int64_t now) {
  Worker& w = workers_[i];
  w.link.drop_port();
  if (excused) w.restart.excuse();
  if (stopping_) {
    w.state = WorkerState::down;
    return;
  }
  if (w.ends || w.on_trial) {
    w.state = WorkerState::down;
    w.used = w.on_trial = w.ends = false;
    const std::string group = std::exchange(w.setup, {}).device.group;
    end_lost_group(group, now);
    return listener_.worker_gone(i);
  }
  w.restart.set(now);
  end_lost_group(w.setup.device.group, now);
}

void Supervisor::end_late(std::uint32_t i, std::int64_t now) {
  Worker& w = workers_[i];
  if (w.start.ready_by_ns <= now) {
    w.start.ready_by_ns = INT64_MAX;
    w.start.why_ended =
        "its worker has been loading for " + text::time_text(patience_.start_timeout_ns) +
        " and is not ready; look whether the model loads at all, or raise worker_start_timeout_ms in [workers]";
    kill(i);
  }
  if (w.state == WorkerState::up && w.link.read_by_ns() <= now) {
    w.link.forgive_unread();
    log_error("partition '" + w.setup.partition + "': its worker reads no messages; killing it");
    kill(i);
  }
}

void Supervisor::end_slow(std::uint32_t i) {
  Worker& w = workers_[i];
  if (!w.link.was_slow()) return;
  log_error("partition '" + w.setup.partition + "': its worker makes it slow to talk to it; killing it");
  kill(i);
}

void Supervisor::end_retired(std::uint32_t i, std::int64_t now) {
  if (workers_[i].killed_ns > now) return;
  workers_[i].killed_ns = INT64_MAX;
  kill(i);
}

// ---- groups of partitions that share a device ----

void Supervisor::replace_environment(const std::string& group,
                                     const std::vector<std::pair<std::string, std::string>>& settings,
                                     std::int64_t now) {
  for (Worker& w : workers_) {
    if (w.setup.device.group != group) continue;
    for (const auto& [key, value] : settings)
      for (auto& [theirs, old] : w.setup.device.environment)
        if (theirs == key) old = value;
  }
  lose_group(group, now);
}

bool Supervisor::is_lost(const std::string& group) const noexcept {
  const auto at = groups_.find(group);
  return at != groups_.end() && at->second.lost;
}

bool Supervisor::waits_for_device(std::uint32_t i, std::int64_t now) const noexcept {
  const std::string& group = workers_[i].setup.device.group;
  return is_lost(group) && now - groups_.at(group).first_lost_ns < patience_.start_timeout_ns;
}

// A fault in one share has made the device useless for all of them.
void Supervisor::lose_group(const std::string& group, std::int64_t now) {
  if (group.empty() || is_lost(group)) return;
  groups_.try_emplace(group, Group{.first_lost_ns = now}).first->second.lost = true;
  for (std::uint32_t i = 0; i < count(); ++i)
    if (workers_[i].setup.device.group == group) kill(i);
  end_lost_group(group, now);
}

void Supervisor::end_lost_group(const std::string& group, std::int64_t now) {
  if (!is_lost(group)) return;
  for (const Worker& w : workers_)
    if (w.setup.device.group == group && (w.process || w.link.port())) return;  // its end is still to come
  std::set<std::uint32_t> edges;
  for (Worker& w : workers_) {
    if (w.setup.device.group != group) continue;
    for (const worker::EdgeSetup& e : w.setup.edges)
      if (e.device) edges.insert(e.edge);
    w.restart.set_at_least(now);
  }
  for (const std::uint32_t edge : edges)
    if (edges_.lose(edge)) listener_.features_lost(edge);  // else it was lost before, or never came about
  groups_[group].lost = false;
}

// ---- time ----

std::int64_t Supervisor::next_due() const noexcept {
  std::int64_t due = INT64_MAX;
  for (const auto& w : workers_)
    due = std::min({due, is_lost(w.setup.device.group) ? INT64_MAX : w.restart.due_ns(), w.link.resend_ns(),
                    w.start.ready_by_ns, w.state == WorkerState::up ? w.link.read_by_ns() : INT64_MAX,
                    w.link.output_ns(), w.killed_ns});
  return due;
}

void Supervisor::advance(std::int64_t now) {
  for (std::uint32_t i = 0; i < count(); ++i) {
    Worker& w = workers_[i];
    if (w.link.resend_ns() <= now) w.link.flush();
    if (w.link.output_ns() <= now) w.link.pass_output_on(now);
    announce_ready(i, now);
    end_late(i, now);
    end_slow(i);
    end_retired(i, now);
    if (is_lost(w.setup.device.group) || !w.restart.take(now)) continue;
    if (auto status = start(i, now); !status) {
      w.restart.failed_to_start();
      kill(i);
      listener_.worker_failed(i, status.error());
      if (!w.process) released(i, false, now);
    }
  }
}

std::string Supervisor::in_a_while(std::uint32_t i) const {
  const std::int64_t ns = backoff_ns(i);
  return ns == 0 ? std::string() : " in " + text::time_text(ns);
}

void Supervisor::stop_all() {
  stopping_ = true;
  for (Worker& w : workers_) {
    w.restart.clear();
    if (w.process)
      w.link.send({.packet = worker::encode_stop()});
    else
      w.state = WorkerState::down;
  }
}

bool Supervisor::all_down() const noexcept {
  return std::ranges::none_of(workers_, [](const Worker& w) { return static_cast<bool>(w.process); });
}

// ---- streams' pools ----

bool Supervisor::serves(const Worker& w, const std::string& application) noexcept {
  return std::ranges::any_of(w.setup.modules,
                             [&](const worker::ModuleSetup& m) { return m.application == application; });
}

void Supervisor::add_pool(std::uint32_t id, std::uint32_t generation, const shm::StreamPool& pool,
                          const std::string& application) {
  pools_.push_back({id, generation, &pool, application});
  for (Worker& w : workers_)
    if (w.process && serves(w, application)) w.link.send(pool_message(pools_.back()));
}

void Supervisor::forget_pool(std::uint32_t id) {
  const auto it = std::ranges::find(pools_, id, &SharedPool::id);
  if (it == pools_.end()) return;
  for (Worker& w : workers_) {
    if (!w.process || !serves(w, it->application) || w.link.take_back(id)) continue;  // it never heard of it
    w.link.send({.packet = worker::encode(worker::ForgetPool{id, it->generation})});
  }
  pools_.erase(it);
}

bool Supervisor::pool_known(std::uint32_t id) const noexcept {
  return std::ranges::all_of(workers_, [&](const Worker& w) { return w.link.has_sent(id); });
}

}  // namespace leat::daemon
