#include "engine/daemon/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "shm/src/protocol.h"

extern char** environ;

namespace leat::daemon {
namespace {

constexpr std::int64_t kFirstBackoffNs = 100'000'000;
constexpr std::int64_t kLongestBackoffNs = 5'000'000'000;
constexpr int kSpareFd = 100;  // where the child's end waits until it is moved to worker::kControlFd

// 0.1 s, 0.2 s, ... 5 s; at once after a life that got as far as ready.
std::int64_t backoff_ns(std::uint32_t failures) {
  if (failures == 0) return 0;
  return std::min(kFirstBackoffNs << std::min(failures - 1, 10u), kLongestBackoffNs);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return std::string("killed by signal ") + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Supervisor::Supervisor(EventLoop& loop, Listener& listener, Tokens tokens, std::string binary, std::vector<worker::Setup> setups, std::span<const shm::FeaturePool> features, int daemon_bell)
    : loop_(loop), listener_(listener), tokens_(tokens), binary_(std::move(binary)), features_(features), daemon_bell_(daemon_bell) {
  workers_.resize(setups.size());
  for (std::size_t i = 0; i < setups.size(); ++i) workers_[i].setup = std::move(setups[i]);
}

Supervisor::~Supervisor() {
  for (auto& w : workers_) {
    if (w.pid == 0) continue;
    loop_.unwatch(w.socket.get());
    loop_.unwatch(w.process.get());
    (void)::kill(w.pid, SIGKILL);
    (void)waitpid(w.pid, nullptr, 0);
  }
}

Status Supervisor::start_all() {
  for (std::uint32_t i = 0; i < count(); ++i)
    if (auto status = start(i); !status) return status;
  return Done{};
}

void Supervisor::calibrated() noexcept {
  for (auto& w : workers_) w.setup.calibrate = false;
}

Status Supervisor::start(std::uint32_t i) {
  Worker& w = workers_[i];
  const auto trouble = [&](const std::string& what) { return Error{"partition '" + w.setup.partition + "': " + what}; };
  auto port = WorkerPort::create();
  if (!port) return trouble(port.error());
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) return trouble(std::string("no socket pair: ") + std::strerror(errno));
  w.socket = shm::Fd(pair[0]);
  shm::Fd child(pair[1]);
  if (auto status = spawn(w, child.get()); !status) return trouble(status.error());
  w.port = std::move(*port);
  w.state = WorkerState::starting;
  w.due_ns = INT64_MAX;
  w.outbox.clear();
  w.last_line.clear();
  if (auto status = loop_.watch(w.process.get(), tokens_.process + i); !status) return status;
  if (auto status = loop_.watch(w.socket.get(), tokens_.socket + i); !status) return status;
  Message setup{worker::encode(w.setup), {}};
  for (const int fd : {w.port->channel_fd(), w.port->bell_fd(), daemon_bell_}) {
    auto copy = shm::duplicate(fd);
    if (!copy) return trouble(copy.error());
    setup.fds.push_back(std::move(*copy));
  }
  send(i, std::move(setup), true);
  if (auto status = send_edges(i); !status) return trouble(status.error());
  for (const auto& pool : pools_) {
    auto message = pool_message(pool);
    if (!message) return trouble(message.error());
    send(i, std::move(*message), true);
  }
  return Done{};
}

Status Supervisor::send_edges(std::uint32_t i) {
  for (const worker::EdgeSetup& e : workers_[i].setup.edges) {
    auto fd = e.writes ? features_[e.edge].for_producer() : features_[e.edge].for_consumer();
    if (!fd) return Error{fd.error()};
    Message message{worker::encode_edge(), {}};
    message.fds.push_back(std::move(*fd));
    send(i, std::move(message), true);
  }
  return Done{};
}

Status Supervisor::spawn(Worker& w, int child_socket) {
  shm::Fd spare(fcntl(child_socket, F_DUPFD_CLOEXEC, kSpareFd));
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, spare.get(), worker::kControlFd);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string name = w.setup.partition;
  char* argv[] = {binary_.data(), name.data(), nullptr};
  const int error = posix_spawn(&w.pid, binary_.c_str(), &actions, &attributes, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    w.pid = 0;
    return Error{"cannot start " + binary_ + ": " + std::strerror(error) + "; install leat-worker beside leatd or name it with --worker"};
  }
  w.process = shm::Fd(static_cast<int>(syscall(SYS_pidfd_open, w.pid, 0)));
  if (!w.process) return Error{std::string("no pidfd: ") + std::strerror(errno) + "; Linux 5.3 or newer is needed"};
  (void)fcntl(w.process.get(), F_SETFD, FD_CLOEXEC);
  return Done{};
}

void Supervisor::send(std::uint32_t i, Message message, bool counted) {
  Worker& w = workers_[i];
  if (counted) w.port->control_sent();
  w.outbox.push_back(std::move(message));
  flush(i);
}

void Supervisor::flush(std::uint32_t i) {
  Worker& w = workers_[i];
  while (!w.outbox.empty()) {
    std::vector<int> fds;
    for (const auto& fd : w.outbox.front().fds) fds.push_back(fd.get());
    if (!shm::send_bytes(w.socket.get(), w.outbox.front().packet, fds).ok()) break;  // full, or the worker has died: its pidfd tells
    w.outbox.pop_front();
  }
  (void)loop_.watch(w.socket.get(), tokens_.socket + i, !w.outbox.empty());
}

void Supervisor::on_socket(std::uint32_t i, const Readiness& ready) {
  Worker& w = workers_[i];
  if (!w.socket) return;
  if (ready.writable) flush(i);
  std::vector<std::byte> packet;
  std::string text;
  while (true) {
    const shm::Got got = shm::receive(w.socket.get(), false, &packet, nullptr, &text);
    if (got == shm::Got::message) {
      handle(i, packet);
      continue;
    }
    if (got != shm::Got::nothing) loop_.unwatch(w.socket.get());  // it is ending: the pidfd tells when
    return;
  }
}

void Supervisor::handle(std::uint32_t i, const std::vector<std::byte>& packet) {
  Worker& w = workers_[i];
  const auto type = worker::type_of(packet);
  if (type.ok() && type.value() == worker::ControlType::failed) {
    w.last_line = worker::decode_failed(packet);
    return;
  }
  if (type.ok() && type.value() == worker::ControlType::ready && w.state == WorkerState::starting) {
    if (const auto message = worker::decode_ready(packet); message.ok()) {
      w.state = WorkerState::up;
      w.failures = 0;
      return listener_.worker_ready(i, w.port.get(), message.value());
    }
  }
  w.last_line = "its worker sent a message leatd does not understand; install leatd and leat-worker of one release";
  kill(i);
}

void Supervisor::on_exit(std::uint32_t i, std::int64_t now) {
  Worker& w = workers_[i];
  int status = 0;
  if (w.pid == 0 || waitpid(w.pid, &status, WNOHANG) != w.pid) return;
  on_socket(i, {});  // its last words
  loop_.unwatch(w.socket.get());
  loop_.unwatch(w.process.get());
  w.socket = shm::Fd();
  w.process = shm::Fd();
  w.outbox.clear();
  w.pid = 0;
  const bool was_up = w.state == WorkerState::up;
  w.state = WorkerState::lost;
  if (was_up) return listener_.worker_lost(i, how_it_ended(status));
  ++w.failures;
  listener_.worker_failed(i, w.last_line.empty() ? "its worker " + how_it_ended(status) + " before it was ready" : w.last_line);
  released(i, now);
}

void Supervisor::released(std::uint32_t i, std::int64_t now) {
  Worker& w = workers_[i];
  w.port.reset();
  if (stopping_) {
    w.state = WorkerState::down;
    return;
  }
  w.due_ns = now + backoff_ns(w.failures);
}

void Supervisor::kill(std::uint32_t i) {
  if (workers_[i].pid != 0) (void)::kill(workers_[i].pid, SIGKILL);
}

std::int64_t Supervisor::next_due() const noexcept {
  std::int64_t due = INT64_MAX;
  for (const auto& w : workers_) due = std::min(due, w.due_ns);
  return due;
}

void Supervisor::advance(std::int64_t now) {
  for (std::uint32_t i = 0; i < count(); ++i) {
    Worker& w = workers_[i];
    if (w.due_ns > now) continue;
    w.due_ns = INT64_MAX;
    ++w.restarts;
    if (auto status = start(i); !status) {
      ++w.failures;
      kill(i);
      listener_.worker_failed(i, status.error());
      if (w.pid == 0) released(i, now);
    }
  }
}

void Supervisor::stop_all() {
  stopping_ = true;
  for (std::uint32_t i = 0; i < count(); ++i) {
    Worker& w = workers_[i];
    w.due_ns = INT64_MAX;
    if (w.pid == 0) w.state = WorkerState::down;
    if (w.pid != 0) send(i, {worker::encode_stop(), {}}, true);
  }
}

bool Supervisor::all_down() const noexcept {
  return std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.pid == 0; });
}

Result<Supervisor::Message> Supervisor::pool_message(const Pool& pool) const {
  auto frames = pool.pool->frames_for_worker();
  if (!frames) return Error{frames.error()};
  auto results = pool.pool->results_for_worker();
  if (!results) return Error{results.error()};
  Message message{worker::encode(worker::AddPool{pool.id, pool.generation, pool.pool->spec()}), {}};
  message.fds.push_back(std::move(*frames));
  message.fds.push_back(std::move(*results));
  return message;
}

void Supervisor::add_pool(std::uint32_t id, std::uint32_t generation, const shm::StreamPool& pool) {
  pools_.push_back({id, generation, &pool});
  for (std::uint32_t i = 0; i < count(); ++i) {
    if (workers_[i].pid == 0) continue;
    auto message = pool_message(pools_.back());
    if (message.ok())
      send(i, std::move(*message), true);
    else
      kill(i);  // no descriptor could be made for it: it starts again and gets all pools anew
  }
}

void Supervisor::forget_pool(std::uint32_t id) {
  const auto it = std::find_if(pools_.begin(), pools_.end(), [&](const Pool& p) { return p.id == id; });
  if (it == pools_.end()) return;
  for (std::uint32_t i = 0; i < count(); ++i)
    if (workers_[i].pid != 0) send(i, {worker::encode(worker::ForgetPool{id, it->generation}), {}}, true);
  pools_.erase(it);
}

}  // namespace leat::daemon
