#include "engine/daemon/workers/supervisor.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/daemon/log.h"
#include "engine/daemon/workers/model_files.h"
#include "leat/leat.h"
#include "shm/src/protocol/kernel_features.h"
#include "shm/src/protocol/protocol.h"
#include "tools/base/text/units.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kFirstBackoffNs = 100'000'000;
constexpr std::int64_t kSettledNs = 10'000'000'000;  // who has served for so long did not die of its start
constexpr std::int64_t kResendNs = 20'000'000;
constexpr int kMessagesPerWorkerTurn = 16;

std::string how_it_ended(const subprocess::Ending& ending) {
  const std::string text = ending.text();
  return text.starts_with("was ") ? text.substr(4) : text;
}

}  // namespace

Supervisor::Supervisor(EventLoop& loop, Listener& listener, std::uint64_t first_token, std::string binary,
                       std::vector<worker::Setup> setups, std::span<const shm::FeaturePool> features,
                       std::int64_t max_backoff_ns, std::int64_t worker_start_timeout_ns,
                       std::int64_t longest_unread_ns)
    : loop_(loop),
      listener_(listener),
      first_token_(first_token),
      binary_(std::move(binary)),
      features_(features),
      max_backoff_ns_(max_backoff_ns),
      worker_start_timeout_ns_(worker_start_timeout_ns),
      longest_unread_ns_(longest_unread_ns) {
  workers_.resize(setups.size());
  for (std::size_t i = 0; i < setups.size(); ++i) workers_[i].setup = std::move(setups[i]);
  edge_memory_.resize(features_.size());
}

Supervisor::~Supervisor() {
  for (auto& w : workers_) {
    if (!w.process) continue;
    loop_.unwatch(w.socket.get());
    if (w.output.fd() >= 0) loop_.unwatch(w.output.fd());
    w.process.kill();
    w.output.close(leat_now_ns());
  }
}

Status Supervisor::start_all(std::int64_t now) {
  for (std::uint32_t i = 0; i < count(); ++i)
    if (auto status = start(i, now); !status) return status;
  return Done{};
}

// 0, 0.1 s, 0.2 s, ...
std::int64_t Supervisor::backoff_after(std::uint32_t failures) const noexcept {
  if (failures == 0) return 0;
  return std::min(kFirstBackoffNs << std::min(failures - 1, 20u), max_backoff_ns_);
}

std::string Supervisor::in_a_while(std::uint32_t i) const {
  const std::int64_t ns = backoff_ns(i);
  return ns == 0 ? std::string() : " in " + text::time_text(ns);
}

void Supervisor::calibrated() noexcept {
  for (auto& w : workers_) w.setup.calibrate = false;
}

Status Supervisor::start(std::uint32_t i, std::int64_t now) {
  Worker& w = workers_[i];
  const auto trouble = [&](const std::string& what) { return Error{"partition '" + w.setup.partition + "': " + what}; };
  auto port = WorkerPort::create();
  if (!port) return trouble(port.error());
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
    return trouble(std::string("no socket pair: ") + std::strerror(errno));
  w.socket = shm::Fd(pair[0]);
  shm::Fd child(pair[1]);
  if (w.setup.device.plugin.empty()) shm::refuse_descriptors(w.socket.get());  // who has a device makes edges
  auto output = w.output.open();
  if (!output) return trouble(output.error());
  if (auto status = spawn(w, child.get(), output->get()); !status) return trouble(status.error());
  w.port = std::move(*port);
  w.state = WorkerState::starting;
  w.ready_by_ns = now + worker_start_timeout_ns_;
  w.due_ns = INT64_MAX;
  w.outbox.clear();
  w.ready.reset();
  w.resend_ns = w.read_by_ns = INT64_MAX;
  w.complaints.clear();
  w.last_line.clear();
  w.opening.reset();
  w.measuring = {};
  w.asked.reset();
  if (auto status = loop_.watch(w.socket.get(), first_token_ + i); !status) return status;
  if (auto status = loop_.watch(w.output.fd(), first_token_ + count() + i); !status) return status;
  choose_makers(w);
  Message setup{worker::encode(w.setup), {}};
  auto channel = shm::duplicate(w.port->channel_fd());
  if (!channel) return trouble(channel.error());
  setup.fds.push_back(std::move(*channel));
  setup.fds.push_back(w.port->take_worker_bell());
  send(i, std::move(setup));
  if (auto status = send_models(i); !status) return trouble(status.error());
  if (auto status = send_edges(i); !status) return trouble(status.error());
  for (const auto& pool : pools_)
    if (serves(w, pool.application)) send(i, pool_message(pool));
  return Done{};
}

Status Supervisor::send_models(std::uint32_t i) {
  for (const worker::ModuleSetup& m : workers_[i].setup.modules) {
    for (const exec::ModelFile& f : m.files) {
      auto fd = shm::duplicate(f.fd->get());
      if (!fd) return Error{fd.error()};
      Message message{worker::encode_file(), {}};
      message.fds.push_back(std::move(*fd));
      send(i, std::move(message));
    }
  }
  return Done{};
}

Status Supervisor::send_edges(std::uint32_t i) {
  const auto& edges = workers_[i].setup.edges;
  for (std::uint32_t index = 0; index < edges.size(); ++index) {
    const worker::EdgeSetup& e = edges[index];
    if (e.device) {
      if (!edge_memory_[e.edge]) continue;  // it makes it, or gets it once another has
      if (auto status = send_edge_memory(i, index); !status) return status;
      continue;
    }
    auto fd = e.writes ? features_[e.edge].for_producer() : features_[e.edge].for_consumer();
    if (!fd) return Error{fd.error()};
    Message message{worker::encode_edge(index), {}};
    message.fds.push_back(std::move(*fd));
    send(i, std::move(message));
  }
  return Done{};
}

// The first producer of an edge that has no memory yet makes it.
void Supervisor::choose_makers(Worker& w) {
  for (worker::EdgeSetup& e : w.setup.edges) {
    const bool made = std::any_of(workers_.begin(), workers_.end(), [&](const Worker& other) {
      return &other != &w && other.process &&
             std::any_of(other.setup.edges.begin(), other.setup.edges.end(),
                         [&](const worker::EdgeSetup& o) { return o.edge == e.edge && o.make; });
    });
    const bool twice =
        std::any_of(w.setup.edges.data(), &e, [&](const worker::EdgeSetup& o) { return o.edge == e.edge && o.make; });
    e.make = e.device && e.writes && !edge_memory_[e.edge] && !made && !twice;
  }
}

Status Supervisor::send_edge_memory(std::uint32_t i, std::uint32_t index) {
  auto fd = shm::duplicate(edge_memory_[workers_[i].setup.edges[index].edge].get());
  if (!fd) return Error{fd.error()};
  Message message{worker::encode_edge(index), {}};
  message.fds.push_back(std::move(*fd));
  send(i, std::move(message));
  return Done{};
}

Status Supervisor::edge_made(std::uint32_t i, const std::vector<std::byte>& packet, std::vector<shm::Fd> fds) {
  const auto index = worker::decode_edge(packet);
  const auto& edges = workers_[i].setup.edges;
  if (!index.ok() || *index >= edges.size() || !edges[*index].make || edge_memory_[edges[*index].edge])
    return Error{"its worker sent features that nobody asked for; install leatd and leat-worker of one release"};
  if (fds.size() != 1)
    return Error{"the descriptor of an edge's memory did not come through; raise the limit of open files (ulimit -n)"};
  const std::uint32_t edge = edges[*index].edge;
  edge_memory_[edge] = std::move(fds[0]);
  for (std::uint32_t k = 0; k < count(); ++k) {
    if (workers_[k].state != WorkerState::starting) continue;
    const auto& theirs = workers_[k].setup.edges;
    for (std::uint32_t e = 0; e < theirs.size(); ++e) {
      if (theirs[e].edge != edge || !theirs[e].device || theirs[e].make) continue;
      if (auto status = send_edge_memory(k, e); !status) {
        workers_[k].last_line = status.error();
        kill(k);
        break;
      }
    }
  }
  return Done{};
}

// Of leatd's own descriptors it gets none.
Status Supervisor::spawn(Worker& w, int child_socket, int output) {
  auto process = subprocess::Process::start(
      {.words = {binary_, w.setup.partition},
       .environment = w.setup.device.environment,
       .fds = {{output, STDOUT_FILENO}, {output, STDERR_FILENO}, {child_socket, worker::kControlFd}}});
  if (!process) return Error{process.error() + "; install leat-worker beside leatd or name it with --worker"};
  w.process = std::move(*process);
  return Done{};
}

void Supervisor::send(std::uint32_t i, Message message) {
  workers_[i].outbox.push_back(std::move(message));
  flush(i);
}

shm::Sent Supervisor::send_first(Worker& w) {
  Message& message = w.outbox.front();
  if (message.pool) {
    auto frames = message.pool->pool->frames_for_worker();
    auto results = message.pool->pool->results_for_worker();
    if (!frames || !results) return shm::Sent::exhausted;
    message.fds.push_back(std::move(*frames));
    message.fds.push_back(std::move(*results));
  }
  std::vector<int> fds;
  for (const auto& fd : message.fds) fds.push_back(fd.get());
  shm::Sent sent{};
  w.calls.timed([&] { sent = shm::send_packet(w.socket.get(), message.packet, fds); });
  if (message.pool) message.fds.clear();
  return sent;
}

void Supervisor::flush(std::uint32_t i) {
  Worker& w = workers_[i];
  w.resend_ns = INT64_MAX;
  bool full = false;
  while (!w.outbox.empty()) {
    const shm::Sent sent = send_first(w);
    if (sent != shm::Sent::sent) {
      // The socket stays writable where descriptors are what is missing: to wait for that would be to spin.
      if (sent == shm::Sent::exhausted) w.resend_ns = leat_now_ns() + kResendNs;
      full = sent == shm::Sent::full;
      break;  // full, or the worker has died: SIGCHLD tells
    }
    w.port->control_sent();  // cells pushed from now on are run after it was read
    w.outbox.pop_front();
    w.read_by_ns = INT64_MAX;
  }
  if (full && w.read_by_ns == INT64_MAX) w.read_by_ns = leat_now_ns() + longest_unread_ns_;
  (void)loop_.watch(w.socket.get(), first_token_ + i, !w.outbox.empty() && w.resend_ns == INT64_MAX);
}

void Supervisor::on_ready(const Readiness& ready, std::int64_t now) {
  const auto which = static_cast<std::uint32_t>(ready.token - first_token_);
  if (which < count()) return on_socket(which, ready, now);
  if (which < 2 * count()) on_output(which - count(), now);
}

// A worker that prints without end is looked at now and then.
void Supervisor::on_output(std::uint32_t i, std::int64_t now) {
  WorkerOutput& output = workers_[i].output;
  if (output.fd() < 0) return;
  const int fd = output.fd();
  const bool paused = output.next_ns() != INT64_MAX;
  bool goes_on = false;
  workers_[i].calls.timed([&] { goes_on = output.pass_on(now); });
  if (output.fd() < 0 || (!goes_on && !paused)) loop_.unwatch(fd);
  if (output.fd() >= 0 && goes_on && paused) (void)loop_.watch(fd, first_token_ + count() + i);
}

void Supervisor::on_socket(std::uint32_t i, const Readiness& ready, std::int64_t now) {
  Worker& w = workers_[i];
  if (!w.socket) return;
  if (ready.writable) flush(i);
  std::vector<std::byte> packet;
  std::string text;
  for (int n = 0; n < kMessagesPerWorkerTurn; ++n) {
    std::vector<shm::Fd> fds;
    const bool takes = w.state == WorkerState::starting && !w.setup.device.plugin.empty();
    shm::Got got{};
    w.calls.timed([&] { got = shm::receive(w.socket.get(), false, &packet, takes ? &fds : nullptr, &text); });
    if (got == shm::Got::message) {
      handle(i, packet, std::move(fds), now);
      continue;
    }
    if (got == shm::Got::descriptors) kill(i);
    if (got != shm::Got::nothing) loop_.unwatch(w.socket.get());  // it is ending: SIGCHLD tells when
    return;
  }
}

void Supervisor::handle(std::uint32_t i, const std::vector<std::byte>& packet, std::vector<shm::Fd> fds,
                        std::int64_t now) {
  Worker& w = workers_[i];
  const auto type = worker::type_of(packet);
  if (type.ok() && type.value() == worker::ControlType::failed) {
    std::string line = worker::decode_failed(packet);
    const bool known =
        std::any_of(w.complaints.begin(), w.complaints.end(), [&](const auto& c) { return c.line == line; });
    if (!known && w.complaints.size() <= w.setup.modules.size()) w.complaints.push_back({w.opening, std::move(line)});
    return;
  }
  if (type.ok() && type.value() == worker::ControlType::opening && w.state == WorkerState::starting) {
    if (const auto module = worker::decode_opening(packet); module.ok() && *module < w.setup.modules.size()) {
      w.opening = *module;
      w.measuring = {};
      return;
    }
  }
  if (type.ok() && type.value() == worker::ControlType::measuring && w.state == WorkerState::starting) {
    if (const auto progress = worker::decode_measuring(packet); progress.ok() && w.opening) {
      w.measuring = *progress;
      return;
    }
  }
  if (type.ok() && type.value() == worker::ControlType::ready && w.state == WorkerState::starting && !w.ready) {
    if (auto message = worker::decode_ready(packet); message.ok()) {
      w.ready = std::move(*message);
      return announce_ready(i, now);
    }
  }
  if (type.ok() && type.value() == worker::ControlType::memory && w.state == WorkerState::up) {
    if (const auto memory = worker::decode_memory(packet); memory.ok()) {
      w.device.memory = *memory;
      return;
    }
  }
  if (type.ok() && type.value() == worker::ControlType::measured && w.state == WorkerState::up && w.asked) {
    if (const auto found = worker::decode_measured(packet); found.ok() && found->module == *w.asked) {
      w.asked.reset();
      return listener_.worker_measured(i, *found);
    }
  }
  w.last_line = "its worker sent a message leatd does not understand; install leatd and leat-worker of one release";
  if (type.ok() && type.value() == worker::ControlType::edge_made && w.state == WorkerState::starting) {
    const Status made = edge_made(i, packet, std::move(fds));
    w.last_line = made.ok() ? std::string() : made.error();
    if (made.ok()) return;
  }
  kill(i);
}

// Not before it has been told of every pool: frames may be in any of them.
void Supervisor::announce_ready(std::uint32_t i, std::int64_t now) {
  Worker& w = workers_[i];
  if (!w.ready || !w.outbox.empty()) return;
  const worker::Ready ready = *std::exchange(w.ready, std::nullopt);
  w.state = WorkerState::up;
  shm::refuse_descriptors(w.socket.get());  // what edges it makes are made
  w.ready_by_ns = INT64_MAX;
  w.ready_ns = now;
  w.why_down.clear();
  if (auto status = keep_words(ready, w.setup); !status) log_warning(status.error());
  w.sandbox = ready.sandbox;
  w.device = ready.device;
  listener_.worker_ready(i, w.port.get(), ready);
  if (w.restarts != 0) return;  // a frame can end a worker: what it says of its device is said once
  for (std::size_t m = 0; m < std::min(ready.device.modules.size(), w.setup.modules.size()); ++m)
    if (const std::string text = exec::text_of(ready.device.modules[m].graphs); !text.empty())
      log_info("partition '" + w.setup.partition + "': " + w.setup.modules[m].application + "/" +
               w.setup.modules[m].name + ": " + text);
}

// Signals of several children may come as one.
void Supervisor::on_child(std::int64_t now) {
  for (std::uint32_t i = 0; i < count(); ++i) {
    if (workers_[i].process.has_ended()) on_exit(i, now);
  }
}

void Supervisor::on_exit(std::uint32_t i, std::int64_t now) {
  Worker& w = workers_[i];
  on_socket(i, {}, now);  // its last words
  loop_.unwatch(w.socket.get());
  w.socket = shm::Fd();
  if (w.output.fd() >= 0) loop_.unwatch(w.output.fd());
  w.output.close(now);
  w.outbox.clear();
  w.ready.reset();
  w.resend_ns = w.read_by_ns = INT64_MAX;
  const subprocess::Ending ending = w.process.wait(subprocess::Clock::now());
  w.ready_by_ns = INT64_MAX;
  const bool was_up = w.state == WorkerState::up;
  w.state = WorkerState::lost;
  w.last_end = how_it_ended(ending);
  w.device = {};
  if (was_up && now - w.ready_ns >= kSettledNs) w.failures = 0;
  ++w.failures;
  w.backoff_ns = backoff_after(was_up ? w.failures - 1 : w.failures);
  for (worker::EdgeSetup& e : w.setup.edges) e.make = false;
  if (ending.how == subprocess::Ending::How::exited && ending.code == worker::kDeviceLost)
    lose_group(w.setup.device.group, now);
  if (was_up) return listener_.worker_lost(i, w.last_end);
  if (!w.last_line.empty()) w.complaints = {{w.opening, w.last_line}};
  if (w.complaints.empty())
    w.complaints = {{w.opening, "its worker " + w.last_end +
                                    " before it was ready; the model, its executor or the runtime ended it"}};
  w.why_down = w.complaints.front().line;
  for (const Worker::Complaint& c : w.complaints) {
    w.opening = c.opening;
    listener_.worker_failed(i, c.line);
  }
  released(i, false, now);
}

void Supervisor::released(std::uint32_t i, bool excused, std::int64_t now) {
  Worker& w = workers_[i];
  w.port.reset();
  if (excused) {
    w.failures -= std::min(w.failures, 1u);
    w.backoff_ns = 0;
  }
  if (stopping_) {
    w.state = WorkerState::down;
    return;
  }
  w.due_ns = now + w.backoff_ns;
  end_lost_group(w.setup.device.group, now);
}

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

// A fault in one share has made the device useless for all of them.
void Supervisor::lose_group(const std::string& group, std::int64_t now) {
  if (group.empty() || !lost_groups_.insert(group).second) return;
  first_lost_ns_.emplace(group, now);
  for (std::uint32_t i = 0; i < count(); ++i)
    if (workers_[i].setup.device.group == group) kill(i);
  end_lost_group(group, now);
}

bool Supervisor::waits_for_device(std::uint32_t i, std::int64_t now) const noexcept {
  const std::string& group = workers_[i].setup.device.group;
  if (!lost_groups_.contains(group)) return false;
  const auto first = first_lost_ns_.find(group);
  return first != first_lost_ns_.end() && now - first->second < worker_start_timeout_ns_;
}

void Supervisor::end_lost_group(const std::string& group, std::int64_t now) {
  if (!lost_groups_.contains(group)) return;
  for (const Worker& w : workers_)
    if (w.setup.device.group == group && (w.process || w.port)) return;  // its end is still to come
  std::set<std::uint32_t> edges;
  for (Worker& w : workers_) {
    if (w.setup.device.group != group) continue;
    for (const worker::EdgeSetup& e : w.setup.edges)
      if (e.device) edges.insert(e.edge);
    w.due_ns = std::max(w.due_ns == INT64_MAX ? now : w.due_ns, now);
  }
  for (const std::uint32_t edge : edges) {
    if (!edge_memory_[edge]) continue;  // it was lost before, or never came about
    edge_memory_[edge] = shm::Fd();
    listener_.features_lost(edge);
  }
  lost_groups_.erase(group);
}

void Supervisor::ask_to_measure(std::uint32_t i, const worker::Measure& what) {
  workers_[i].asked = what.module;
  send(i, {worker::encode(what), {}});
}

void Supervisor::kill(std::uint32_t i) { workers_[i].process.signal(SIGKILL); }

std::int64_t Supervisor::next_due() const noexcept {
  std::int64_t due = INT64_MAX;
  for (const auto& w : workers_)
    due = std::min({due, lost_groups_.contains(w.setup.device.group) ? INT64_MAX : w.due_ns, w.resend_ns, w.ready_by_ns,
                    w.state == WorkerState::up ? w.read_by_ns : INT64_MAX, w.output.next_ns()});
  return due;
}

void Supervisor::advance(std::int64_t now) {
  for (std::uint32_t i = 0; i < count(); ++i) {
    Worker& w = workers_[i];
    if (w.resend_ns <= now) flush(i);
    if (w.output.next_ns() <= now) on_output(i, now);
    announce_ready(i, now);
    end_late(i, now);
    end_dear(i);
    if (w.due_ns > now || lost_groups_.contains(w.setup.device.group)) continue;
    w.due_ns = INT64_MAX;
    ++w.restarts;
    if (auto status = start(i, now); !status) {
      w.backoff_ns = backoff_after(++w.failures);
      kill(i);
      listener_.worker_failed(i, status.error());
      if (!w.process) released(i, false, now);
    }
  }
}

void Supervisor::end_late(std::uint32_t i, std::int64_t now) {
  Worker& w = workers_[i];
  if (w.ready_by_ns <= now) {
    w.ready_by_ns = INT64_MAX;
    w.last_line =
        "its worker has been loading for " + text::time_text(worker_start_timeout_ns_) +
        " and is not ready; look whether the model loads at all, or raise worker_start_timeout_ms in [workers]";
    kill(i);
  }
  if (w.state == WorkerState::up && w.read_by_ns <= now) {
    w.read_by_ns = INT64_MAX;
    log_error("partition '" + w.setup.partition + "': its worker reads no messages; killing it");
    kill(i);
  }
}

// It polls its sockets from so many places that to write to them, or to read, takes leatd's time.
void Supervisor::end_dear(std::uint32_t i) {
  Worker& w = workers_[i];
  if (!w.calls.too_dear()) return;
  w.calls = {};
  log_error("partition '" + w.setup.partition + "': its worker makes it dear to talk to it; killing it");
  kill(i);
}

void Supervisor::stop_all() {
  stopping_ = true;
  for (std::uint32_t i = 0; i < count(); ++i) {
    Worker& w = workers_[i];
    w.due_ns = INT64_MAX;
    if (!w.process) w.state = WorkerState::down;
    if (w.process) send(i, {worker::encode_stop(), {}});
  }
}

bool Supervisor::all_down() const noexcept {
  return std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return !w.process; });
}

Supervisor::Message Supervisor::pool_message(const Pool& pool) {
  return {worker::encode(worker::AddPool{pool.id, pool.generation, pool.pool->spec()}), {}, pool};
}

bool Supervisor::serves(const Worker& w, const std::string& application) noexcept {
  return std::any_of(w.setup.modules.begin(), w.setup.modules.end(),
                     [&](const worker::ModuleSetup& m) { return m.application == application; });
}

void Supervisor::add_pool(std::uint32_t id, std::uint32_t generation, const shm::StreamPool& pool,
                          const std::string& application) {
  pools_.push_back({id, generation, &pool, application});
  for (std::uint32_t i = 0; i < count(); ++i)
    if (workers_[i].process && serves(workers_[i], application)) send(i, pool_message(pools_.back()));
}

void Supervisor::forget_pool(std::uint32_t id) {
  const auto it = std::find_if(pools_.begin(), pools_.end(), [&](const Pool& p) { return p.id == id; });
  if (it == pools_.end()) return;
  for (std::uint32_t i = 0; i < count(); ++i) {
    Worker& w = workers_[i];
    if (!w.process || !serves(w, it->application)) continue;
    const auto of_it = [&](const Message& m) { return m.pool && m.pool->id == id; };
    if (std::erase_if(w.outbox, of_it) == 0)  // else it never heard of it
      send(i, {worker::encode(worker::ForgetPool{id, it->generation}), {}});
  }
  pools_.erase(it);
}

bool Supervisor::pool_known(std::uint32_t id) const noexcept {
  return std::none_of(workers_.begin(), workers_.end(), [&](const Worker& w) {
    return std::any_of(w.outbox.begin(), w.outbox.end(), [&](const Message& m) { return m.pool && m.pool->id == id; });
  });
}

}  // namespace leat::daemon
