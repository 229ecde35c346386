#include "engine/daemon/client_sessions.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace leat::daemon {
namespace {

using shm::ClientCounter;
using shm::DaemonCounter;
using shm::RecordKind;
using shm::StreamCounter;

constexpr std::uint32_t kObservers = 32;          // sessions beside the clients': observers, and who has not said hello yet
constexpr std::uint32_t kMessagesPerTurn = 16;    // of one session, so that nobody starves the others
constexpr std::uint32_t kDefaultDepth = 4;
constexpr std::uint32_t kSpareSlots = 3;          // one being written, one being read, one spare

std::int64_t clock_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

}  // namespace

ClientSessions::ClientSessions(Environment environment, std::uint64_t first_token) : env_(std::move(environment)), first_token_(first_token) {
  const LimitsConfig& limits = env_.config.limits;
  sessions_.resize(limits.clients + kObservers);
  session_of_.assign(limits.clients, UINT32_MAX);
  pool_generation_.assign(limits.streams, 0);
  pool_used_.assign(limits.streams, false);
}

ClientSessions::~ClientSessions() = default;

bool ClientSessions::allowed(const shm::Peer& peer) const {
  const Config& c = env_.config;
  if (peer.uid == 0 || peer.uid == getuid()) return true;
  if (c.allow_uids.empty() && c.allow_gids.empty()) return true;
  const auto has = [](const std::vector<std::uint32_t>& list, std::uint32_t id) { return std::find(list.begin(), list.end(), id) != list.end(); };
  return has(c.allow_uids, peer.uid) || has(c.allow_gids, peer.gid);
}

// ---- connections ----

void ClientSessions::accept(shm::Fd connection) {
  shm::Record daemon = env_.board.daemon();
  const auto peer = shm::peer_of(connection.get());
  if (!peer.ok()) return;
  auto free = std::find_if(sessions_.begin(), sessions_.end(), [](const Session& s) { return !s.used; });
  if (free == sessions_.end())  // one that never said hello makes room
    free = std::find_if(sessions_.begin(), sessions_.end(), [](const Session& s) { return !s.greeted; });
  if (free == sessions_.end()) {
    daemon.add(DaemonCounter::clients_refused);
    (void)shm::refuse(connection.get(), 0, LEAT_ERROR_no_room, "leatd has no room for another connection; raise [limits] clients");
    return;
  }
  if (free->used) disconnect(*free);
  *free = Session{};
  free->used = free->connected = true;
  free->peer = *peer;
  free->allowed = allowed(*peer);
  free->socket = std::move(connection);
  if (!env_.loop.watch(free->socket.get(), first_token_ + static_cast<std::uint64_t>(free - sessions_.begin())).ok()) disconnect(*free);
}

void ClientSessions::on_ready(std::uint32_t index, const Readiness&) {
  Session& s = sessions_[index];
  std::vector<std::byte> packet;
  std::string text;
  for (std::uint32_t i = 0; i < kMessagesPerTurn && s.used && s.connected; ++i) {
    switch (shm::receive(s.socket.get(), false, &packet, nullptr, &text)) {
      case shm::Got::message:
        handle(index, packet);
        break;
      case shm::Got::nothing:
        return;
      case shm::Got::closed:
        return disconnect(s);
      case shm::Got::broken:
        return violate(s, shm::Violation::control_message);
    }
  }
}

void ClientSessions::disconnect(Session& s) {
  if (!s.connected) return;
  env_.loop.unwatch(s.socket.get());
  s.socket = shm::Fd();
  s.connected = false;
  if (!s.port) {
    s = Session{};
    return;
  }
  env_.command({.kind = Command::Kind::remove_client, .client = s.client});  // its port is destroyed once drained
}

void ClientSessions::violate(Session& s, shm::Violation cause) {
  if (!s.connected) return;
  shm::Record daemon = env_.board.daemon();
  daemon.add(DaemonCounter::clients_violated);
  daemon.cause(static_cast<std::uint32_t>(cause));
  disconnect(s);
}

void ClientSessions::close_all() {
  for (auto& s : sessions_)
    if (s.used) disconnect(s);
}

ClientSessions::Session* ClientSessions::of_client(std::uint32_t client) {
  const std::uint32_t index = session_of_[client];
  return index == UINT32_MAX ? nullptr : &sessions_[index];
}

// ---- replies ----

template <class M>
void ClientSessions::reply(Session& s, M message, std::uint32_t request, std::span<const int> fds, std::string_view tail) {
  message.header.request = request;
  if (!shm::send(s.socket.get(), message, fds, tail).ok()) violate(s, shm::Violation::control_flood);
}

void ClientSessions::refuse(Session& s, std::uint32_t request, leat_error error, const std::string& text) {
  if (!shm::refuse(s.socket.get(), request, error, text).ok()) violate(s, shm::Violation::control_flood);
}

// ---- messages ----

void ClientSessions::handle(std::uint32_t index, const std::vector<std::byte>& packet) {
  Session& s = sessions_[index];
  shm::Header header;
  if (const char* problem = shm::decode_header(packet, &header)) {
    if (problem == shm::kVersionProblem) {
      (void)shm::refuse(s.socket.get(), header.request, LEAT_ERROR_wrong_version, "leatd speaks another version of the control protocol; install the same release of both");
      return disconnect(s);
    }
    return violate(s, shm::Violation::control_message);
  }
  if (!s.greeted && header.type != shm::MessageType::hello) return violate(s, shm::Violation::control_order);
  switch (header.type) {
    case shm::MessageType::hello:
      return hello(s, packet);
    case shm::MessageType::open_stream:
      return open_stream(s, packet);
    case shm::MessageType::close_stream:
      return close_stream(s, packet);
    case shm::MessageType::observe: {
      shm::Observe m;
      if (shm::decode(packet, &m)) return violate(s, shm::Violation::control_message);
      return observe(s, m.header.request);
    }
    case shm::MessageType::status_request: {
      shm::StatusRequest m;
      if (shm::decode(packet, &m)) return violate(s, shm::Violation::control_message);
      return reply(s, shm::StatusReply{}, m.header.request, {}, env_.status_json());
    }
    default:
      return violate(s, shm::Violation::control_message);
  }
}

void ClientSessions::hello(Session& s, const std::vector<std::byte>& packet) {
  shm::Hello m;
  if (shm::decode(packet, &m)) return violate(s, shm::Violation::control_message);
  if (s.greeted) return violate(s, shm::Violation::control_order);
  if (!s.allowed) {  // said now, not at accept: the client reads the reply to its hello
    env_.board.daemon().add(DaemonCounter::clients_refused);
    (void)shm::refuse(s.socket.get(), m.header.request, LEAT_ERROR_not_permitted,
                      "user " + std::to_string(s.peer.uid) + " may not use this leatd; add it to allow_uids, or its group to allow_gids, in the configuration");
    return disconnect(s);
  }
  shm::Welcome welcome;
  welcome.daemon_pid = static_cast<std::uint32_t>(getpid());
  shm::set_text(welcome.daemon_version, LEAT_VERSION);
  s.name = shm::text_of(m.name);
  if (m.role == shm::PeerRole::observer) {
    s.greeted = s.observer = true;
    return reply(s, welcome, m.header.request);
  }
  if (const char* why = env_.not_ready()) return refuse(s, m.header.request, LEAT_ERROR_not_ready, why);
  const auto slot = std::find(session_of_.begin(), session_of_.end(), UINT32_MAX);
  if (slot == session_of_.end()) {
    env_.board.daemon().add(DaemonCounter::clients_refused);
    return refuse(s, m.header.request, LEAT_ERROR_no_room, "leatd serves as many clients as it may; raise [limits] clients");
  }
  auto port = shm::ClientPort::create();
  if (!port.ok()) return refuse(s, m.header.request, LEAT_ERROR_no_memory, port.error());
  auto up = (*port)->uplink_for_client();
  auto down = (*port)->downlink_for_client();
  const shm::Fd bell = (*port)->bell_for_client();
  if (!up.ok() || !down.ok()) return refuse(s, m.header.request, LEAT_ERROR_no_memory, up.ok() ? down.error() : up.error());
  s.greeted = true;
  s.client = static_cast<std::uint32_t>(slot - session_of_.begin());
  *slot = static_cast<std::uint32_t>(&s - sessions_.data());
  s.port = std::move(*port);
  s.stream.resize(shm::kMaxStreamsPerClient);
  s.bytes = s.port->bytes();
  bytes_ += s.bytes;
  ++clients_;
  shm::Record record = env_.board.writer().begin(RecordKind::client, s.client, s.name);
  record.set(ClientCounter::pid, static_cast<std::uint64_t>(s.peer.pid));
  record.set(ClientCounter::uid, s.peer.uid);
  record.set(ClientCounter::connected_ns, static_cast<std::uint64_t>(clock_ns()));
  env_.board.daemon().add(DaemonCounter::clients_accepted);
  publish(s);
  env_.command({.kind = Command::Kind::add_client, .client = s.client, .port = s.port.get()});
  welcome.client = s.client;
  const int fds[] = {up->get(), down->get(), bell.get()};
  reply(s, welcome, m.header.request, fds);
}

leat_error ClientSessions::refuse_reason(const Session& s, const shm::OpenStream& m, std::uint64_t bytes, std::string* text) const {
  const LimitsConfig& limits = env_.config.limits;
  if (const char* why = env_.not_ready()) return *text = why, LEAT_ERROR_not_ready;
  if (m.depth > shm::kMaxDepth) return *text = "depth must be 1..64", LEAT_ERROR_invalid_argument;
  if (s.slots + m.pool.slots > shm::kMaxSlotsPerClient) return *text = "a client may have 512 frame slots; open shallower streams", LEAT_ERROR_no_room;
  if (std::none_of(s.stream.begin(), s.stream.end(), [](const StreamEntry& e) { return e.state == StreamState::none; }))
    return *text = "a client may have 64 streams; close one", LEAT_ERROR_no_room;
  if (streams_ >= limits.streams) return *text = "leatd serves as many streams as it may; raise [limits] streams", LEAT_ERROR_no_room;
  const auto mib = [](std::uint64_t b) { return std::to_string(b >> 20) + " MiB"; };
  if (s.bytes + bytes > limits.client_memory_bytes)
    return *text = "its slots need " + mib(bytes) + " and a client may hold " + mib(limits.client_memory_bytes) + "; lower slots or frame size, or raise [limits] client_memory_mib", LEAT_ERROR_no_memory;
  if (bytes_ + bytes > limits.memory_bytes)
    return *text = "its slots need " + mib(bytes) + " and leatd may hold " + mib(limits.memory_bytes) + " for all clients; lower slots or frame size, or raise [limits] memory_mib", LEAT_ERROR_no_memory;
  return LEAT_ERROR_ok;
}

void ClientSessions::open_stream(Session& s, const std::vector<std::byte>& packet) {
  shm::OpenStream m;
  if (shm::decode(packet, &m)) return violate(s, shm::Violation::control_message);
  if (!s.port) return violate(s, shm::Violation::control_order);
  const std::uint32_t request = m.header.request;
  const auto name = shm::text_of(m.application);
  const auto application = std::find_if(env_.applications.begin(), env_.applications.end(), [&](const auto& a) { return a.name == name; });
  if (application == env_.applications.end()) {
    std::string known;
    for (const auto& a : env_.applications) known += (known.empty() ? "" : ", ") + a.name;
    return refuse(s, request, LEAT_ERROR_no_such_application, "no application '" + std::string(name) + "'; there are: " + known);
  }
  if (m.depth == 0) m.depth = kDefaultDepth;
  if (m.pool.slots == 0) m.pool.slots = std::min(m.depth + kSpareSlots, shm::kMaxSlotsPerStream);
  if (const char* problem = shm::problem(m.pool)) return refuse(s, request, LEAT_ERROR_format_mismatch, problem);
  const shm::PoolLayout layout = shm::pool_layout(m.pool);
  const std::uint64_t bytes = layout.frames_bytes + layout.results_bytes;
  std::string text;
  if (const leat_error error = refuse_reason(s, m, bytes, &text); error != LEAT_ERROR_ok) return refuse(s, request, error, text);
  const auto index = static_cast<std::uint32_t>(std::find_if(s.stream.begin(), s.stream.end(), [](const auto& e) { return e.state == StreamState::none; }) - s.stream.begin());
  for (std::uint32_t p = 0; p < layout.planes; ++p) m.pool.strides[p] = layout.strides[p];
  auto pool = shm::StreamPool::create(m.pool, index);
  if (!pool.ok()) return refuse(s, request, LEAT_ERROR_no_memory, pool.error());

  StreamEntry& e = s.stream[index];
  const auto free = static_cast<std::uint32_t>(std::find(pool_used_.begin(), pool_used_.end(), false) - pool_used_.begin());
  pool_used_[free] = true;
  e = {.state = StreamState::opening, .request = request, .reply = false,
       .application = static_cast<std::uint32_t>(application - env_.applications.begin()), .pool_id = free, .record = free,
       .pool = new shm::StreamPool(std::move(*pool)), .bytes = bytes, .slots = m.pool.slots, .depth = m.depth,
       .slo_ns = m.slo_ns > 0 ? m.slo_ns : application->slo_ns};
  s.bytes += bytes;
  bytes_ += bytes;
  s.slots += e.slots;
  ++s.streams;
  ++streams_;
  shm::Record record = env_.board.writer().begin(RecordKind::stream, e.record, s.name + ":" + std::to_string(index) + " " + application->name);
  record.set(StreamCounter::in_flight, 0);
  record.set(StreamCounter::slots, e.slots);
  record.set(StreamCounter::depth, e.depth);
  record.set(StreamCounter::slo_ns, static_cast<std::uint64_t>(e.slo_ns));
  if (m.period_ns > 0) record.set(StreamCounter::period_ns, static_cast<std::uint64_t>(m.period_ns));
  record.set(StreamCounter::client, s.client);
  record.set(StreamCounter::width, m.pool.width);
  record.set(StreamCounter::height, m.pool.height);
  record.set(StreamCounter::format, m.pool.format);
  publish(s);
  env_.supervisor.add_pool(e.pool_id, ++pool_generation_[free], *e.pool);
  Command command{.kind = Command::Kind::open_stream, .client = s.client, .stream = index, .pool = e.pool};
  command.open.config.application = e.application;
  command.open.config.slo_ns = m.slo_ns;
  command.open.config.max_age_ns = m.max_age_ns;
  command.open.config.period_ns = m.period_ns;
  command.open.config.depth = m.depth;
  command.open.config.supersede = static_cast<core::Supersede>(m.overload);
  command.open.config.priority = static_cast<core::Priority>(m.priority);
  command.open.record = e.record;
  command.open.pool = e.pool_id;
  command.open.pool_generation = pool_generation_[free];
  command.open.frame_bytes = layout.frame_bytes;
  command.open.slo_ns = e.slo_ns;
  env_.command(command);
}

void ClientSessions::close_stream(Session& s, const std::vector<std::byte>& packet) {
  shm::CloseStream m;
  if (shm::decode(packet, &m)) return violate(s, shm::Violation::control_message);
  if (!s.port || m.stream >= s.stream.size() || s.stream[m.stream].state != StreamState::open) return violate(s, shm::Violation::control_order);
  StreamEntry& e = s.stream[m.stream];
  e.state = StreamState::closing;
  e.request = m.header.request;
  e.reply = true;
  env_.command({.kind = Command::Kind::close_stream, .client = s.client, .stream = m.stream});
}

void ClientSessions::observe(Session& s, std::uint32_t request) {
  auto fd = env_.board.writer().share();
  if (!fd.ok()) return refuse(s, request, LEAT_ERROR_no_memory, fd.error());
  shm::Observed m;
  m.bytes = env_.board.writer().bytes();
  const int fds[] = {fd->get()};
  reply(s, m, request, fds);
}

// ---- notices ----

void ClientSessions::on_notice(const Notice& n) {
  Session* s = of_client(n.client);
  if (s == nullptr) return;
  switch (n.kind) {
    case Notice::Kind::client_violated:
      return violate(*s, n.violation);
    case Notice::Kind::client_drained:
      bytes_ -= s->bytes;
      --clients_;
      session_of_[s->client] = UINT32_MAX;
      env_.board.writer().end(RecordKind::client, s->client);
      publish(*s);
      *s = Session{};
      return;
    case Notice::Kind::stream_opened:
      return stream_opened(*s, n.stream);
    case Notice::Kind::stream_refused:
    case Notice::Kind::stream_closed:
      return stream_gone(*s, n);
    default:
      return;
  }
}

void ClientSessions::stream_opened(Session& s, std::uint32_t index) {
  StreamEntry& e = s.stream[index];
  e.state = StreamState::open;
  if (!s.connected) return;  // stream_closed follows
  auto frames = e.pool->frames_for_client();
  auto results = e.pool->results_for_client();
  if (!frames.ok() || !results.ok()) return violate(s, shm::Violation::control_flood);  // out of descriptors: end the client that asks for more
  shm::StreamOpened m;
  m.stream = index;
  m.pool = e.pool->spec();
  m.depth = e.depth;
  m.record = e.record;
  m.slo_ns = e.slo_ns;
  const int fds[] = {frames->get(), results->get()};
  reply(s, m, e.request, fds, env_.applications[e.application].class_names);
}

void ClientSessions::stream_gone(Session& s, const Notice& n) {
  StreamEntry& e = s.stream[n.stream];
  const bool refused = n.kind == Notice::Kind::stream_refused;
  env_.supervisor.forget_pool(e.pool_id);
  pool_used_[e.pool_id] = false;
  env_.board.writer().end(RecordKind::stream, e.record);
  delete n.pool;
  s.bytes -= e.bytes;
  bytes_ -= e.bytes;
  s.slots -= e.slots;
  --s.streams;
  --streams_;
  publish(s);
  const StreamEntry was = std::exchange(e, StreamEntry{});
  if (!s.connected) return;
  if (refused) return refuse(s, was.request, LEAT_ERROR_no_room, "leatd serves as many streams as it may; raise [limits] streams");
  shm::StreamClosed m;
  m.stream = n.stream;
  if (was.reply) reply(s, m, was.request);
}

void ClientSessions::publish(const Session& s) {
  shm::Record record = env_.board.of(RecordKind::client, s.client);
  record.set(ClientCounter::streams, s.streams);
  record.set(ClientCounter::memory_bytes, s.bytes);
  shm::Record daemon = env_.board.daemon();
  daemon.set(DaemonCounter::clients, clients_);
  daemon.set(DaemonCounter::streams, streams_);
  daemon.set(DaemonCounter::memory_bytes, bytes_);
}

}  // namespace leat::daemon
