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
  const auto it = std::find_if(sessions_.begin(), sessions_.end(),
                               [&](const Session& s) { return s.used && s.who.serial == serial; });
  return it == sessions_.end() ? nullptr : &*it;
}

// ---- what the client says ----

void ClientSessions::mapped(Session& s, const std::vector<std::byte>& packet) {
  shm::Mapped m;
  if (shm::decode(packet, &m)) return violate(s, shm::Violation::control_message);
  PoolJob job;
  job.user = s.who.login.uid;
  job.session = s.who.serial;
  if (m.stream == shm::kLinks) {
    if (s.links.state != LinkState::unmapped) return violate(s, shm::Violation::control_order);
    s.links.state = LinkState::securing;
    s.links.request = m.header.request;
    job.work = PoolJob::Work::secure_links;
    job.port = s.links.port;
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
    if (job.session == 0) --totals_.closing;  // the only jobs of no session
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
        s->links.state = LinkState::none;
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

// A step that should take milliseconds takes seconds, and his other jobs wait for it. Where his connection is
// gone already, its user is named all the same.
void ClientSessions::overdue(Session* s, std::uint32_t user) {
  if (s != nullptr && s->connected) return violate(*s, shm::Violation::slow_release);
  UserAccount* account = accounts_.of_uid(user);
  shm::Record daemon = env_.metrics.daemon();
  daemon.cause(static_cast<std::uint32_t>(shm::Violation::slow_release));
  if (account != nullptr)
    accounts_.violated(*account, shm::Violation::slow_release, "a connection", shm::monotonic_ns());
}

void ClientSessions::links_secured(Session& s, const std::string& error) {
  if (!s.connected || !error.empty()) {
    s.links.state = LinkState::drained;
    if (s.connected) return violate(s, shm::Violation::unsealed);
    return finish_client(s);
  }
  s.links.state = LinkState::secured;
  s.bell.apart = s.who.account->slow.newcomers_apart(shm::monotonic_ns());
  env_.command({.kind = Command::Kind::add_client,
                .client = s.client,
                .pid = s.who.peer.pid,
                .uid = s.who.peer.uid,
                .port = s.links.port.get(),
                .apart = s.bell.apart});
  if (s.bell.apart) watch_bell(s);
  reply(s, shm::Secured{}, s.links.request);
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
  m.depth = e.granted.settings.depth;
  m.record = e.granted.pool;
  m.slo_ns = e.granted.slo_ns;
  const int fds[] = {frames->get(), results->get()};
  e.state = StreamState::unmapped;
  e.pool = std::move(job.pool);
  // Where it does not go out its client was told so, or is gone.
  if (!reply(s, m, e.request, fds, env_.applications[e.granted.application].class_names) && s.connected)
    discard(s, job.stream, std::move(e.pool));
}

void ClientSessions::stream_secured(Session& s, PoolJob job) {
  StreamEntry& e = s.stream[job.stream];
  if (!s.connected || !job.error.empty()) {
    discard(s, job.stream, std::move(job.pool));
    return violate(s, shm::Violation::unsealed);
  }
  env_.supervisor.add_pool(e.granted.pool, e.granted.pool_generation, *job.pool,
                           env_.applications[e.granted.application].name);
  e.state = StreamState::announced;
  e.pool = std::move(job.pool);
  ++totals_.announced;
  open_announced(s);
}

void ClientSessions::open_announced(Session& s) {
  for (std::uint32_t i = 0; i < s.stream.size(); ++i) {
    StreamEntry& e = s.stream[i];
    if (e.state != StreamState::announced || !env_.supervisor.pool_known(e.granted.pool)) continue;
    e.state = StreamState::opening;
    --totals_.announced;
    env_.command({.kind = Command::Kind::open_stream,
                  .client = s.client,
                  .stream = i,
                  .pool = e.pool.release(),
                  .granted = e.granted});
  }
}

// ---- what the scheduler thread has done ----

void ClientSessions::on_scheduler_event(const SchedulerEvent& n) {
  Session* s = of_client(n.client);
  if (s == nullptr) return;
  std::unique_ptr<shm::StreamPool> pool(n.pool);
  switch (n.kind) {
    case SchedulerEvent::Kind::client_violated:
      return violate(*s, n.violation);
    case SchedulerEvent::Kind::bell_apart:
      return set_apart(*s);
    case SchedulerEvent::Kind::ring:
      return ring(*s);
    case SchedulerEvent::Kind::client_drained:
      s->links.state = LinkState::drained;
      return finish_client(*s);
    case SchedulerEvent::Kind::stream_opened:
      return stream_opened(*s, n.stream);
    case SchedulerEvent::Kind::stream_refused:
      if (s->connected)
        refuse(*s, s->stream[n.stream].request, LEAT_ERROR_no_room, shm::Refusal::streams,
               s->stream[n.stream].granted.settings.sla_drop_ppm == 0
                   ? "leatd serves as many streams as it may; raise [limits] streams"
                   : "leatd coordinates streams of applications that are one uncut module, " +
                         std::to_string(kMaxCoordinated) + " of each at most; open it without an accuracy");
      [[fallthrough]];
    case SchedulerEvent::Kind::stream_closed:
      env_.supervisor.forget_pool(s->stream[n.stream].granted.pool);
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
  job.user = s.who.login.uid;
  job.session = s.who.serial;
  job.stream = index;
  job.pool = std::move(pool);
  env_.pools.ask(std::move(job));
}

void ClientSessions::stream_gone(Session& s, std::uint32_t index) {
  StreamEntry& e = s.stream[index];
  pool_numbers_.give_back(e.granted.pool);
  env_.metrics.writer().end(RecordKind::stream, e.granted.pool);
  s.bytes -= e.bytes;
  totals_.bytes -= e.bytes;
  s.slots -= e.slots;
  --s.streams;
  --totals_.streams;
  totals_.requests -= e.granted.settings.depth;
  s.who.account->memory_bytes -= e.bytes;
  s.who.account->requests -= e.granted.settings.depth;
  --s.who.account->streams;
  publish(s);
  const StreamEntry was = std::exchange(e, StreamEntry{});
  if (!s.connected) return finish_client(s);
  shm::StreamClosed m;
  m.stream = index;
  if (was.reply) reply(s, m, was.request);
}

void ClientSessions::leave(Session& s) {
  env_.pools.cancel(s.who.serial);
  for (std::uint32_t i = 0; i < s.stream.size(); ++i) {
    StreamEntry& e = s.stream[i];
    if (e.state == StreamState::announced) {
      env_.supervisor.forget_pool(e.granted.pool);
      --totals_.announced;
    }
    if (e.state == StreamState::announced || e.state == StreamState::unmapped) discard(s, i, std::move(e.pool));
  }
  if (s.bell.watched) env_.loop.unwatch(s.links.port->bell_fd());
  s.bell.watched = false;
  if (s.links.port) ask_of_port(s, PoolJob::Work::hang_up, s.links.port);
  if (s.links.state == LinkState::secured)
    return env_.command({.kind = Command::Kind::remove_client, .client = s.client});
  if (s.links.state == LinkState::unmapped) s.links.state = LinkState::drained;
  finish_client(s);
}

void ClientSessions::finish_client(Session& s) {
  if (s.connected || s.links.state != LinkState::drained || s.streams != 0) return;
  totals_.bytes -= s.bytes;
  s.who.account->memory_bytes -= s.bytes;
  s.bytes = 0;
  --totals_.clients;
  --s.who.account->clients;
  session_of_[s.client] = UINT32_MAX;
  env_.metrics.writer().end(RecordKind::client, s.client);
  publish(s);
  s.links.state = LinkState::closing;
  ask_of_port(s, PoolJob::Work::close, std::move(s.links.port));
}

}  // namespace leat::daemon
