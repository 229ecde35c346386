// The life of a stream, and of a client's links: what the pool builder and the scheduler thread do for them, step by
// step. See client_sessions.h.
#include <algorithm>

#include "engine/daemon/clients/client_sessions.h"
#include "shm/src/rings/clock.h"

namespace leat::daemon {

using shm::RecordKind;

ClientSessions::Session* ClientSessions::of_client(std::uint32_t client) {
  const std::uint32_t index = session_of_[client];
  return index == UINT32_MAX ? nullptr : &sessions_[index];
}

ClientSessions::Session* ClientSessions::of_serial(std::uint64_t serial) {
  const auto it =
      std::find_if(sessions_.begin(), sessions_.end(), [&](const Session& s) { return s.used && s.serial == serial; });
  return it == sessions_.end() ? nullptr : &*it;
}

// ---- what the client says ----

void ClientSessions::mapped(Session& s, const std::vector<std::byte>& packet) {
  shm::Mapped m;
  if (shm::decode(packet, &m)) return violate(s, shm::Violation::control_message);
  PoolJob job;
  job.user = s.login.uid;
  job.session = s.serial;
  if (m.stream == shm::kLinks) {
    if (s.links != Links::unmapped) return violate(s, shm::Violation::control_order);
    s.links = Links::securing;
    s.links_request = m.header.request;
    job.work = PoolJob::Work::secure_links;
    job.port = s.port;
  } else {
    if (m.stream >= s.stream.size() || s.stream[m.stream].state != StreamState::unmapped)
      return violate(s, shm::Violation::control_order);
    StreamEntry& e = s.stream[m.stream];
    e.state = StreamState::securing;
    e.request = m.header.request;
    job.work = PoolJob::Work::secure;
    job.stream = m.stream;
    job.pool = std::move(e.pool);
  }
  env_.pools.ask(std::move(job));
}

void ClientSessions::close_stream(Session& s, const std::vector<std::byte>& packet) {
  shm::CloseStream m;
  if (shm::decode(packet, &m)) return violate(s, shm::Violation::control_message);
  const StreamState state = m.stream < s.stream.size() ? s.stream[m.stream].state : StreamState::none;
  if (state != StreamState::open && state != StreamState::unmapped) return violate(s, shm::Violation::control_order);
  StreamEntry& e = s.stream[m.stream];
  e.request = m.header.request;
  e.reply = true;
  if (state == StreamState::unmapped) return discard(s, m.stream, std::move(e.pool));
  e.state = StreamState::closing;
  env_.command({.kind = Command::Kind::close_stream, .client = s.client, .stream = m.stream});
}

// ---- what the pool builder has done ----

void ClientSessions::on_pools() {
  constexpr int kJobsPerTurn = 32;
  PoolJob job;
  for (int i = 0; i < kJobsPerTurn && env_.pools.next(job); ++i) {
    Session* s = of_serial(job.session);
    if (job.work == PoolJob::Work::overdue) {
      overdue(s, job.user);
      continue;
    }
    if (job.session == 0) --let_go_;  // the only jobs of no session
    if (s == nullptr) continue;
    switch (job.work) {
      case PoolJob::Work::link:
        linked(*s, std::move(job));
        break;
      case PoolJob::Work::ring:
      case PoolJob::Work::drain:
        bell_done(*s, job);
        break;
      case PoolJob::Work::close:
        s->links = Links::none;
        release(*s);
        break;
      case PoolJob::Work::hang_up:
      case PoolJob::Work::overdue:
        break;
      case PoolJob::Work::secure_links:
        links_secured(*s, job.error);
        break;
      case PoolJob::Work::build:
        stream_built(*s, std::move(job));
        break;
      case PoolJob::Work::secure:
        stream_secured(*s, std::move(job));
        break;
      case PoolJob::Work::discard:
        stream_gone(*s, job.stream);
        break;
    }
  }
}

// A step that should take milliseconds takes over a second, and his lane waits for it. Where his connection is gone
// already, its user is named all the same.
void ClientSessions::overdue(Session* s, std::uint32_t user) {
  if (s != nullptr && s->connected) return violate(*s, shm::Violation::slow_release);
  UserAccount* account = accounts_.of_uid(user);
  shm::Record daemon = env_.board.daemon();
  daemon.cause(static_cast<std::uint32_t>(shm::Violation::slow_release));
  if (account != nullptr)
    accounts_.violated(*account, shm::Violation::slow_release, "a connection", shm::monotonic_ns());
}

void ClientSessions::links_secured(Session& s, const std::string& error) {
  if (!s.connected || !error.empty()) {
    s.links = Links::drained;
    if (s.connected) return violate(s, shm::Violation::unsealed);
    return finish_client(s);
  }
  s.links = Links::secured;
  s.bell.apart = shm::monotonic_ns() < s.account->dear_until_ns;
  env_.command({.kind = Command::Kind::add_client, .client = s.client, .port = s.port.get(), .apart = s.bell.apart});
  if (s.bell.apart) watch_bell(s);
  reply(s, shm::Secured{}, s.links_request);
}

void ClientSessions::stream_built(Session& s, PoolJob job) {
  StreamEntry& e = s.stream[job.stream];
  if (!s.connected) return discard(s, job.stream, std::move(job.pool));
  const auto give_up = [&](leat_error error, shm::Refusal why, const std::string& text) {
    refuse(s, e.request, error, why, text);
    discard(s, job.stream, std::move(job.pool));
  };
  if (!job.error.empty()) return give_up(LEAT_ERROR_no_memory, shm::Refusal::no_memory, job.error);
  auto frames = job.pool->frames_for_client();
  auto results = job.pool->results_for_client();
  if (!frames.ok() || !results.ok())
    return give_up(LEAT_ERROR_no_room, shm::Refusal::no_files,
                   "leatd has no file descriptor left for another stream; raise its limit (ulimit -n, LimitNOFILE)");
  shm::StreamOpened m;
  m.stream = job.stream;
  m.pool = job.pool->spec();
  m.depth = e.depth;
  m.record = e.pool_id;
  m.slo_ns = e.slo_ns;
  const int fds[] = {frames->get(), results->get()};
  e.state = StreamState::unmapped;
  e.pool = std::move(job.pool);
  // Where it does not go out its client was told so, or is gone.
  if (!reply(s, m, e.request, fds, env_.applications[e.open.config.application].class_names) && s.connected)
    discard(s, job.stream, std::move(e.pool));
}

void ClientSessions::stream_secured(Session& s, PoolJob job) {
  StreamEntry& e = s.stream[job.stream];
  if (!s.connected || !job.error.empty()) {
    discard(s, job.stream, std::move(job.pool));
    return violate(s, shm::Violation::unsealed);
  }
  env_.supervisor.add_pool(e.pool_id, e.open.pool_generation, *job.pool,
                           env_.applications[e.open.config.application].name);
  e.state = StreamState::announced;
  e.pool = std::move(job.pool);
  ++announced_;
  open_announced(s);
}

void ClientSessions::open_announced(Session& s) {
  for (std::uint32_t i = 0; i < s.stream.size(); ++i) {
    StreamEntry& e = s.stream[i];
    if (e.state != StreamState::announced || !env_.supervisor.pool_known(e.pool_id)) continue;
    e.state = StreamState::opening;
    --announced_;
    env_.command({.kind = Command::Kind::open_stream,
                  .client = s.client,
                  .stream = i,
                  .pool = e.pool.release(),
                  .open = e.open});
  }
}

// ---- what the scheduler thread has done ----

void ClientSessions::on_notice(const Notice& n) {
  Session* s = of_client(n.client);
  if (s == nullptr) return;
  std::unique_ptr<shm::StreamPool> pool(n.pool);
  switch (n.kind) {
    case Notice::Kind::client_violated:
      return violate(*s, n.violation);
    case Notice::Kind::bell_apart:
      return set_apart(*s);
    case Notice::Kind::ring:
      return ring(*s);
    case Notice::Kind::client_drained:
      s->links = Links::drained;
      return finish_client(*s);
    case Notice::Kind::stream_opened:
      return stream_opened(*s, n.stream);
    case Notice::Kind::stream_refused:
      if (s->connected)
        refuse(*s, s->stream[n.stream].request, LEAT_ERROR_no_room, shm::Refusal::streams,
               s->stream[n.stream].open.sla_drop_ppm == 0
                   ? "leatd serves as many streams as it may; raise [limits] streams"
                   : "leatd coordinates streams of applications that are one uncut module, " +
                         std::to_string(kMaxCoordinated) + " of each at most; open it without an accuracy");
      [[fallthrough]];
    case Notice::Kind::stream_closed:
      env_.supervisor.forget_pool(s->stream[n.stream].pool_id);
      return discard(*s, n.stream, std::move(pool));
    default:
      return;
  }
}

void ClientSessions::stream_opened(Session& s, std::uint32_t index) {
  StreamEntry& e = s.stream[index];
  e.state = StreamState::open;
  if (!s.connected) return;  // stream_closed follows
  shm::Secured m;
  m.stream = index;
  reply(s, m, e.request);
}

// ---- the end ----

void ClientSessions::discard(Session& s, std::uint32_t index, std::unique_ptr<shm::StreamPool> pool) {
  s.stream[index].state = StreamState::discarding;
  PoolJob job;
  job.work = PoolJob::Work::discard;
  job.user = s.login.uid;
  job.session = s.serial;
  job.stream = index;
  job.pool = std::move(pool);
  env_.pools.ask(std::move(job));
}

void ClientSessions::stream_gone(Session& s, std::uint32_t index) {
  StreamEntry& e = s.stream[index];
  pool_used_[e.pool_id] = false;
  env_.board.writer().end(RecordKind::stream, e.pool_id);
  s.bytes -= e.bytes;
  bytes_ -= e.bytes;
  s.slots -= e.slots;
  --s.streams;
  --streams_;
  s.account->memory_bytes -= e.bytes;
  s.account->requests -= e.depth;
  --s.account->streams;
  publish(s);
  const StreamEntry was = std::exchange(e, StreamEntry{});
  if (!s.connected) return finish_client(s);
  shm::StreamClosed m;
  m.stream = index;
  if (was.reply) reply(s, m, was.request);
}

void ClientSessions::leave(Session& s) {
  env_.pools.cancel(s.serial);
  for (std::uint32_t i = 0; i < s.stream.size(); ++i) {
    StreamEntry& e = s.stream[i];
    if (e.state == StreamState::announced) {
      env_.supervisor.forget_pool(e.pool_id);
      --announced_;
    }
    if (e.state == StreamState::announced || e.state == StreamState::unmapped) discard(s, i, std::move(e.pool));
  }
  if (s.bell.watched) env_.loop.unwatch(s.port->bell_fd());
  s.bell.watched = false;
  if (s.port) ask_of_port(s, PoolJob::Work::hang_up, s.port);
  if (s.links == Links::secured) return env_.command({.kind = Command::Kind::remove_client, .client = s.client});
  if (s.links == Links::unmapped) s.links = Links::drained;
  finish_client(s);
}

void ClientSessions::finish_client(Session& s) {
  if (s.connected || s.links != Links::drained || s.streams != 0) return;
  bytes_ -= s.bytes;
  s.account->memory_bytes -= s.bytes;
  s.bytes = 0;
  --clients_;
  --s.account->clients;
  session_of_[s.client] = UINT32_MAX;
  env_.board.writer().end(RecordKind::client, s.client);
  publish(s);
  s.links = Links::closing;
  ask_of_port(s, PoolJob::Work::close, std::move(s.port));
}

}  // namespace leat::daemon
