// Admission: accepting connections, hello, ending them, and what leatd itself is short of. See client_sessions.h.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "engine/daemon/clients/client_sessions.h"
#include "engine/daemon/log.h"
#include "shm/src/rings/clock.h"
#include "tools/base/text/units.h"

namespace leat::daemon {
namespace {

using shm::ClientCounter;
using shm::DaemonCounter;
using shm::RecordKind;
using shm::Refusal;

constexpr std::uint32_t kObservers = 32;    // sessions beside the clients': observers, and who has not said hello yet
constexpr std::uint32_t kMaxClosing = 64;   // connections not closed yet, before more are taken
constexpr std::uint32_t kKeptSessions = 8;  // for root and leatd's own user
constexpr std::uint32_t kMessagesPerTurn = 8;  // of one session, so that nobody starves the others
static_assert(UserAccounts::kAccounts > 64 + kObservers + kKeptSessions);  // limits.clients is 64 at most
constexpr std::uint64_t kKeptDescriptors = 64;   // for workers that start again and for root and leatd's own user
constexpr std::int64_t kSettleNs = 100'000'000;  // between two looks whether descriptors were read

}  // namespace

ClientSessions::ClientSessions(Environment environment, std::uint64_t first_token)
    : env_(std::move(environment)),
      first_token_(first_token),
      accounts_(env_.metrics),
      subordinates_(env_.config.subuid_file, getuid()),
      views_(env_.metrics.writer(), UserAccounts::kAccounts),
      pool_numbers_(env_.config.limits.streams) {
  const LimitsConfig& limits = env_.config.limits;
  sessions_.resize(limits.clients + kObservers + kKeptSessions);
  session_of_.assign(limits.clients, UINT32_MAX);
  rlimit files{};
  open_files_ = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 1024;
}

ClientSessions::~ClientSessions() {
  close_all();
  for (Session& s : sessions_)
    if (s.links.port) ask_of_port(s, PoolJob::Work::close, std::move(s.links.port));
}

bool ClientSessions::allowed(const shm::Peer& peer) const {
  const Config& c = env_.config;
  if (c.allow_uids.empty() && c.allow_gids.empty()) return true;
  return std::find(c.allow_uids.begin(), c.allow_uids.end(), peer.uid) != c.allow_uids.end() ||
         std::any_of(c.allow_gids.begin(), c.allow_gids.end(), [&](const auto gid) { return peer.in_group(gid); });
}

bool ClientSessions::sees_all(const Session& s) const {
  const Config& c = env_.config;
  return s.who.trusted || c.observers_see_all ||
         std::find(c.observer_uids.begin(), c.observer_uids.end(), s.who.peer.uid) != c.observer_uids.end() ||
         std::any_of(c.observer_gids.begin(), c.observer_gids.end(),
                     [&](const auto gid) { return s.who.peer.in_group(gid); });
}

// ---- accepting ----

// The kernel gives the lowest number that is free, so a number near the limit says that few are left.
bool ClientSessions::few_descriptors(int any, bool trusted) const {
  const shm::Fd probe(fcntl(any, F_DUPFD_CLOEXEC, 0));
  const std::uint64_t kept = std::min(kKeptDescriptors, open_files_ / 8) / (trusted ? 2 : 1);
  return !probe || static_cast<std::uint64_t>(probe.get()) + kept >= open_files_;
}

Objection ClientSessions::objection_to(const shm::Peer& peer, const Login& login, const UserAccount& account,
                                       const UserLimits& limits, bool trusted, int connection) {
  const std::string user = "user " + login.who + " may ";
  if (!trusted && !allowed(peer))
    return {LEAT_ERROR_not_permitted, Refusal::not_allowed,
            user + "not use this leatd; add it to allow_uids, or a group of it to allow_gids, in the configuration"};
  if (!trusted && shm::monotonic_ns() < account.barred_until_ns)
    return {LEAT_ERROR_no_room, Refusal::dear_wakes,
            user +
                "not connect for some seconds: waking his sockets took long; look for a program that waits at one "
                "many times over"};
  if (few_descriptors(connection, trusted))
    return {LEAT_ERROR_no_room, Refusal::no_files,
            "leatd has few file descriptors left; raise its limit (ulimit -n, LimitNOFILE)"};
  if (account.sessions >= limits.sessions && !make_room(account, peer, trusted))
    return {LEAT_ERROR_no_room, Refusal::sessions,
            user + "have " + std::to_string(limits.sessions) +
                " connections; close one, or raise sessions in [limits.user]"};
  if (totals_.sessions >= sessions_.size() - (trusted ? 0 : kKeptSessions) && !make_room(account, peer, trusted))
    return {LEAT_ERROR_no_room, Refusal::table_full,
            "leatd has no room for another connection; lower sessions in [limits.user], or raise [limits] clients"};
  return {};
}

// An observer, or who has not said hello, gives way to a newer connection of the same user: the oldest of the process
// that has most of them, if it still has as many as the newcomer's process then. Root and leatd's own user make room
// for each other in any case.
bool ClientSessions::make_room(const UserAccount& account, const shm::Peer& peer, bool trusted) {
  const auto may_go = [&](const Session& s) {
    return s.used && s.connected && s.links.state == LinkState::none &&
           (s.who.account == &account || (trusted && s.who.trusted));
  };
  const auto of_process = [&](pid_t pid) {
    return std::count_if(sessions_.begin(), sessions_.end(),
                         [&](const Session& s) { return may_go(s) && s.who.peer.pid == pid; });
  };
  Session* goes = nullptr;
  std::ptrdiff_t most = trusted ? 0 : of_process(peer.pid) + 1;
  for (Session& s : sessions_) {
    if (!may_go(s)) continue;
    const std::ptrdiff_t count = of_process(s.who.peer.pid);
    if (count > most || (goes != nullptr && count == most && s.who.serial < goes->who.serial)) {
      most = count;
      goes = &s;
    }
  }
  if (goes == nullptr) return false;
  refuse(*goes, 0, LEAT_ERROR_no_room, Refusal::displaced,
         "user " + goes->who.login.who + " has as many connections as he may; this one gave way to a newer one");
  disconnect(*goes);
  return !goes->used;
}

bool ClientSessions::accept(shm::Fd connection) {
  const std::int64_t now = shm::monotonic_ns();
  const auto peer = shm::peer_of(connection.get());
  if (!peer.ok()) {
    turn_away(std::move(connection));
    return totals_.closing < kMaxClosing;
  }
  const bool trusted = peer->uid == 0 || peer->uid == getuid();
  subordinates_.look(now);
  Login login = subordinates_.login_of(peer->uid);
  shm::Peer counted = *peer;
  counted.uid = login.uid;
  const UserLimits limits = limits_of(env_.config.limits, counted, trusted);
  UserAccount& account = accounts_.of(login.uid, limits, now);
  const Objection no = objection_to(*peer, login, account, limits, trusted, connection.get());
  if (no.error != LEAT_ERROR_ok) {
    env_.metrics.daemon().add(DaemonCounter::clients_refused);
    refused(account, no.why, no.text, now);
    if (no.why != Refusal::dear_wakes) (void)shm::refuse(connection.get(), 0, no.error, no.text);
    let_go(login.uid, std::move(connection));
    return totals_.closing < kMaxClosing;
  }
  const auto free = std::find_if(sessions_.begin(), sessions_.end(), [](const Session& s) { return !s.used; });
  *free = Session{};
  free->used = free->connected = true;
  free->who.trusted = trusted;
  free->who.peer = *peer;
  free->who.limits = limits;
  free->who.login = std::move(login);
  free->who.account = &account;
  free->who.serial = ++serial_;
  free->connection.accepted_ns = now;
  free->connection.socket = std::move(connection);
  due_ns_ = std::min(due_ns_, now + env_.config.limits.handshake_timeout_ns);
  ++totals_.sessions;
  ++account.sessions;
  env_.metrics.daemon().set(DaemonCounter::sessions, totals_.sessions);
  accounts_.publish(account);
  if (!env_.loop
           .watch(free->connection.socket.get(), first_token_ + static_cast<std::uint64_t>(free - sessions_.begin()))
           .ok())
    disconnect(*free);
  return totals_.closing < kMaxClosing;
}

// ---- messages ----

void ClientSessions::on_ready(std::uint64_t token) {
  const std::uint64_t index = token - first_token_;
  if (index < sessions_.size()) return on_socket(static_cast<std::uint32_t>(index));
  on_bell(sessions_[index - sessions_.size()]);
}

// A call on one of its sockets took so much of a thread's own time. True: too much too often, and its connection is
// ended.
bool ClientSessions::too_slow(Session& s, SlowCalls& calls, std::int64_t own_ns) {
  if (own_ns <= SlowCalls::kSlowNs) return calls.again(own_ns);
  const std::int64_t now = shm::monotonic_ns();
  s.who.account->slow.slow(now);
  if (!calls.again(own_ns)) return false;
  s.who.account->barred_until_ns = now + SlowUser::kAskanceNs;
  violate(s, shm::Violation::dear_wakes);
  return true;
}

void ClientSessions::on_socket(std::uint32_t index) {
  Session& s = sessions_[index];
  std::vector<std::byte> packet;
  std::string text;
  for (std::uint32_t i = 0; i < kMessagesPerTurn && s.used && s.connected; ++i) {
    if (const std::int64_t now = shm::monotonic_ns();
        !s.connection.messages.take(now)) {  // they wait in the socket, and so does who sends
      env_.loop.unwatch(s.connection.socket.get());
      s.connection.waits_until_ns = s.connection.messages.ready_ns(kMessagesPerTurn);
      due_ns_ = std::min(due_ns_, s.connection.waits_until_ns);
      return;
    }
    const std::int64_t from = own_cpu_ns();
    const shm::Got got = shm::receive(s.connection.socket.get(), false, &packet, nullptr, &text);
    if (too_slow(s, s.connection.calls, own_cpu_ns() - from)) return;
    switch (got) {
      case shm::Got::message:
        handle(index, packet);
        break;
      case shm::Got::nothing:
        return s.connection.messages.charge(-1);  // a look costs nothing
      case shm::Got::closed:
        return disconnect(s);
      case shm::Got::broken:
        return violate(s, shm::Violation::control_message);
      case shm::Got::descriptors:
        return violate(s, shm::Violation::descriptors);
    }
  }
}

namespace {
shm::Welcome welcome() {
  shm::Welcome m;
  m.daemon_pid = static_cast<std::uint32_t>(getpid());
  shm::set_text(m.daemon_version, LEAT_VERSION);
  return m;
}
}  // namespace

void ClientSessions::hello(Session& s, const std::vector<std::byte>& packet) {
  shm::Hello m;
  if (shm::decode(packet, &m)) return violate(s, shm::Violation::control_message);
  if (s.greeted) return violate(s, shm::Violation::control_order);
  const std::uint32_t request = m.header.request;
  s.who.name = shm::text_of(m.name);
  if (m.role == shm::PeerRole::observer) {
    s.greeted = s.observer = true;
    reply(s, welcome(), request);
    return;
  }
  if (const char* why = env_.not_ready()) return refuse(s, request, LEAT_ERROR_not_ready, Refusal::not_ready, why);
  const auto no_room = [&](Refusal why, const std::string& text) {
    env_.metrics.daemon().add(DaemonCounter::clients_refused);
    refuse(s, request, LEAT_ERROR_no_room, why, text);
  };
  const std::uint32_t kept = s.who.trusted ? 0 : kept_of(env_.config.limits.clients);
  const auto slot = std::find(session_of_.begin(), session_of_.end(), UINT32_MAX);
  if (slot == session_of_.end() || totals_.clients + kept >= session_of_.size())
    return no_room(Refusal::clients, "leatd serves as many clients as it may; raise [limits] clients");
  if (!may_send(s, 3))
    return no_room(Refusal::descriptors, "user " + s.who.login.who +
                                             " has not received the descriptors sent to him before; read "
                                             "the replies, or raise descriptors in [limits.user]");
  s.greeted = true;
  s.client = static_cast<std::uint32_t>(slot - session_of_.begin());
  *slot = static_cast<std::uint32_t>(&s - sessions_.data());
  s.stream.resize(shm::kMaxStreamsPerClient);
  s.bytes = shm::ClientPort::kBytes;
  totals_.bytes += s.bytes;
  s.who.account->memory_bytes += s.bytes;
  ++s.who.account->clients;
  ++totals_.clients;
  shm::Record record = env_.metrics.writer().begin(RecordKind::client, s.client, s.who.name);
  record.set(ClientCounter::pid, static_cast<std::uint64_t>(s.who.peer.pid));
  record.set(ClientCounter::uid, s.who.peer.uid);
  record.set(ClientCounter::user, s.who.account->index);
  record.set(ClientCounter::connected_ns, static_cast<std::uint64_t>(shm::monotonic_ns()));
  env_.metrics.daemon().add(DaemonCounter::clients_accepted);
  publish(s);
  s.links.state = LinkState::making;
  s.links.request = request;
  PoolJob job;
  job.work = PoolJob::Work::link;
  job.user = s.who.login.uid;
  job.session = s.who.serial;
  env_.pools.ask(std::move(job));
}

void ClientSessions::linked(Session& s, PoolJob job) {
  s.links.port = std::move(job.port);
  s.links.state = LinkState::unmapped;
  const auto fail = [&](Refusal why, const std::string& text) {
    env_.metrics.daemon().add(DaemonCounter::clients_refused);
    refuse(s, s.links.request, LEAT_ERROR_no_room, why, text);
    disconnect(s);
  };
  if (!s.connected) return leave(s);
  if (!job.error.empty()) return fail(s.links.port ? Refusal::no_files : Refusal::no_memory, job.error);
  shm::Welcome m = welcome();
  m.client = s.client;
  const int fds[] = {job.fds[0].get(), job.fds[1].get(), job.fds[2].get()};
  const bool sent = reply(s, m, s.links.request, fds);
  let_go(s.who.peer.uid, std::move(job.fds[2]));  // the client's end, which it has and may have let go of
  if (!sent) disconnect(s);
}

// ---- replies ----

void ClientSessions::settle_descriptors(Session& s) {
  if (s.connection.descriptors_out == 0 || !shm::all_read(s.connection.socket.get())) return;
  s.who.account->descriptors -= s.connection.descriptors_out;
  totals_.descriptors_out -= s.connection.descriptors_out;
  s.connection.descriptors_out = 0;
  accounts_.publish(*s.who.account);
}

// The kernel counts descriptors in flight against leatd's user and its limit of open files: clients together get a
// quarter of it, so that workers' always go.
bool ClientSessions::may_send(const Session& s, std::uint32_t descriptors) {
  const auto fits = [&] {
    return s.who.account->descriptors + descriptors <= s.who.limits.descriptors &&
           totals_.descriptors_out + descriptors <= open_files_ / 4;
  };
  if (fits()) return true;
  for (Session& other : sessions_)
    if (other.used) settle_descriptors(other);
  return fits();
}

bool ClientSessions::deliver(Session& s, std::uint32_t request, std::span<const std::byte> packet,
                             std::span<const int> fds) {
  if (!s.connected) return false;
  const auto count = static_cast<std::uint32_t>(fds.size());
  if (count != 0 && !may_send(s, count)) {
    refuse(s, request, LEAT_ERROR_no_room, Refusal::descriptors,
           "user " + s.who.login.who +
               " has not received the descriptors sent to him before; read the "
               "replies, or raise descriptors in [limits.user]");
    return false;
  }
  const std::int64_t from = own_cpu_ns();
  const shm::Sent sent = shm::send_packet(s.connection.socket.get(), packet, fds);
  const std::int64_t took_ns = own_cpu_ns() - from;
  switch (sent) {
    case shm::Sent::sent:
      s.connection.descriptors_out += count;
      s.who.account->descriptors += count;
      totals_.descriptors_out += count;
      if (count != 0) accounts_.publish(*s.who.account);
      if (count != 0) due_ns_ = std::min(due_ns_, shm::monotonic_ns() + kSettleNs);
      return !too_slow(s, s.connection.calls, took_ns);
    case shm::Sent::full:
      violate(s, shm::Violation::control_flood);
      return false;
    case shm::Sent::exhausted:  // leatd's own trouble, not the client's
      env_.metrics.daemon().add(DaemonCounter::sends_exhausted);
      if (count != 0)
        refuse(s, request, LEAT_ERROR_no_room, Refusal::no_files,
               "leatd has too many file descriptors in flight; raise its limit (ulimit -n, LimitNOFILE)");
      else
        disconnect(s);
      return false;
    case shm::Sent::gone:
      disconnect(s);
      return false;
  }
  return false;
}

void ClientSessions::refuse(Session& s, std::uint32_t request, leat_error error, Refusal why, const std::string& text) {
  if (why != Refusal::none) refused(*s.who.account, why, text, shm::monotonic_ns());
  shm::Refused m;
  m.header.request = request;
  m.error = static_cast<std::uint32_t>(error);
  shm::set_text(m.text, text);
  (void)deliver(s, request, shm::encode(m), {});
}

// The flight recorder is told of some: whoever is refused decides how often.
void ClientSessions::refused(UserAccount& account, Refusal why, const std::string& text, std::int64_t now) {
  constexpr std::int64_t kEveryNs = 100'000'000;
  accounts_.refused(account, why, text, now);
  if (now - told_refusal_ns_ < kEveryNs) return;
  told_refusal_ns_ = now;
  env_.command({.kind = Command::Kind::user_refused, .client = account.index, .what = static_cast<std::uint32_t>(why)});
}

// ---- the end ----

void ClientSessions::violate(Session& s, shm::Violation cause) {
  if (!s.connected) return;
  shm::Record daemon = env_.metrics.daemon();
  daemon.add(DaemonCounter::clients_violated);
  daemon.cause(static_cast<std::uint32_t>(cause));
  const std::string who = s.greeted ? (s.observer ? "observer '" : "client '") + s.who.name + "'" : "a connection";
  accounts_.violated(*s.who.account, cause,
                     who + " of process " + std::to_string(s.who.peer.pid) +
                         (s.who.login.uid == s.who.peer.uid ? "" : " of " + s.who.login.who),
                     shm::monotonic_ns());
  disconnect(s);
}

void ClientSessions::disconnect(Session& s) {
  if (!s.connected) return;
  env_.loop.unwatch(s.connection.socket.get());
  s.connected = false;
  stop_viewing(s);
  settle_descriptors(s);
  // Descriptors not read are in flight until the other side reads or closes; who ends connections must not get rid of
  // their count. Of those whose count is leatd's own anyway nobody waits for.
  if (s.connection.descriptors_out != 0 && !s.who.trusted) {
    hang_up(s);
    due_ns_ = 0;
  } else {
    let_go(s.who.login.uid, std::move(s.connection.socket));
  }
  if (s.links.state != LinkState::none)
    leave(s);  // its port is destroyed once drained
  else
    release(s);
}

void ClientSessions::stop_viewing(Session& s) {
  if (std::exchange(s.observing.view, false)) views_.ended(s.who.account->index, shm::monotonic_ns());
}

// Its socket stays open until its descriptors were read, but from now on nothing goes in or out.
void ClientSessions::hang_up(Session& s) {
  PoolJob job;
  job.work = PoolJob::Work::hang_up;
  job.user = s.who.login.uid;
  job.session = s.who.serial;
  auto copy = shm::duplicate(s.connection.socket.get());
  if (!copy.ok()) return (void)::shutdown(s.connection.socket.get(), SHUT_RDWR);
  job.fds.push_back(std::move(*copy));
  env_.pools.ask(std::move(job));
}

// To be the last who closes what a client has had, or a connection with something in it, takes as long as he likes.
void ClientSessions::let_go(std::uint32_t user, shm::Fd shared) {
  PoolJob job;
  job.work = PoolJob::Work::close;
  job.user = user;
  job.fds.push_back(std::move(shared));
  ++totals_.closing;
  env_.pools.ask(std::move(job));
}

// Frees the session, unless something of it is still to come.
void ClientSessions::release(Session& s) {
  if (s.links.state != LinkState::none || s.connection.socket) return;
  UserAccount& account = *s.who.account;
  account.descriptors -= s.connection.descriptors_out;
  totals_.descriptors_out -= s.connection.descriptors_out;
  --account.sessions;
  --totals_.sessions;
  s = Session{};
  env_.metrics.daemon().set(DaemonCounter::sessions, totals_.sessions);
  accounts_.publish(account);
}

void ClientSessions::close_all() {
  log_left_out(shm::monotonic_ns());
  for (auto& s : sessions_) {
    if (s.used) disconnect(s);
    if (s.connection.socket) let_go(s.who.login.uid, std::move(s.connection.socket));
  }
}

// ---- time ----

std::int64_t ClientSessions::next_due() const noexcept {
  return std::min({due_ns_, views_.next_due(), left_out_due_ns()});
}

void ClientSessions::advance(std::int64_t now) {
  status_.clear();
  if (now >= left_out_due_ns()) log_left_out(now);
  views_.advance(now);
  for (std::size_t i = 0; totals_.announced != 0 && i < sessions_.size(); ++i) open_announced(sessions_[i]);
  if (now < due_ns_) return;
  due_ns_ = INT64_MAX;
  const std::int64_t handshake_timeout_ns = env_.config.limits.handshake_timeout_ns;
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    Session& s = sessions_[i];
    if (!s.used) continue;
    settle_descriptors(s);
    if (s.connection.descriptors_out != 0) due_ns_ = std::min(due_ns_, now + kSettleNs);
    if (!s.connected) {
      if (s.connection.socket && s.connection.descriptors_out == 0) {
        let_go(s.who.login.uid, std::move(s.connection.socket));
        release(s);
      }
      continue;
    }
    if (!s.greeted && now >= s.connection.accepted_ns + handshake_timeout_ns) {
      refuse(s, 0, LEAT_ERROR_timed_out, Refusal::silent,
             "the connection said no hello within " + text::time_text(handshake_timeout_ns));
      disconnect(s);
      continue;
    }
    if (s.connection.waits_until_ns != 0 && now >= s.connection.waits_until_ns) {
      s.connection.waits_until_ns = 0;
      if (!env_.loop.watch(s.connection.socket.get(), first_token_ + i).ok()) disconnect(s);
    }
    if (s.connection.waits_until_ns != 0) due_ns_ = std::min(due_ns_, s.connection.waits_until_ns);
    if (s.connected && !s.greeted) due_ns_ = std::min(due_ns_, s.connection.accepted_ns + handshake_timeout_ns);
  }
}

}  // namespace leat::daemon
