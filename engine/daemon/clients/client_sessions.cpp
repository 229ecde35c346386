#include "engine/daemon/clients/client_sessions.h"

#include <algorithm>

#include "shm/src/rings/clock.h"

namespace leat::daemon {
namespace {

using shm::ClientCounter;
using shm::DaemonCounter;
using shm::RecordKind;
using shm::Refusal;
using shm::StreamCounter;

constexpr double kStatusCost = 7;  // messages' worth, beside itself

}  // namespace

// ---- messages ----

void ClientSessions::handle(std::uint32_t index, const std::vector<std::byte>& packet) {
  Session& s = sessions_[index];
  shm::Header header;
  if (const char* problem = shm::decode_header(packet, &header)) {
    if (problem == shm::kVersionProblem) {
      (void)shm::refuse(s.connection.socket.get(), header.request, LEAT_ERROR_wrong_version,
                        "leatd speaks another version of the control protocol; install the same release of both");
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
    case shm::MessageType::mapped:
      return mapped(s, packet);
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
      return status(s, m.header.request);
    }
    case shm::MessageType::change:
      return change(s, packet);
    default:
      return violate(s, shm::Violation::control_message);
  }
}

const ServedApplication* ClientSessions::application_of(std::string_view name) const {
  const auto found = std::ranges::find(env_.applications, name, &ServedApplication::name);
  return found == env_.applications.end() ? nullptr : &*found;
}

Objection ClientSessions::objection_to(const Session& s, const shm::OpenStream& m, std::uint64_t bytes,
                                       const ServedApplication& application) const {
  if (const char* why = env_.not_ready()) return {LEAT_ERROR_not_ready, Refusal::not_ready, why};
  if (Objection no = objection_to_another(s, m); no.error != LEAT_ERROR_ok) return no;
  if (Objection no = objection_to_settings(s.who.login.who, s.who.limits, m.settings, application);
      no.error != LEAT_ERROR_ok)
    return no;
  if (Objection no = objection_to_number(s, m.settings.depth); no.error != LEAT_ERROR_ok) return no;
  if (Objection no = objection_to_memory(s, bytes); no.error != LEAT_ERROR_ok) return no;
  if (few_descriptors(s.connection.socket.get(), s.who.trusted))
    return {LEAT_ERROR_no_room, Refusal::no_files,
            "leatd has few file descriptors left; raise its limit (ulimit -n, LimitNOFILE)"};
  return {};
}

// What one connection may have.
Objection ClientSessions::objection_to_another(const Session& s, const shm::OpenStream& m) {
  if (s.slots + m.pool.slots > shm::kMaxSlotsPerClient)
    return {LEAT_ERROR_no_room, Refusal::bad_stream, "a client may have 512 frame slots; open shallower streams"};
  if (std::ranges::none_of(s.stream, [](const StreamEntry& e) { return e.state == StreamState::none; }))
    return {LEAT_ERROR_no_room, Refusal::bad_stream, "a client may have 64 streams; close one"};
  const auto of_the_group = [&](const StreamEntry& e) {
    return e.state != StreamState::none && e.granted.settings.task_group == m.settings.task_group;
  };
  if (m.settings.task_group != 0 && std::ranges::count_if(s.stream, of_the_group) >= core::streams::kGroupTasks)
    return {LEAT_ERROR_no_room, Refusal::bad_stream, "a group has four tasks at most; give others another task_group"};
  return {};
}

Objection ClientSessions::objection_to_number(const Session& s, std::uint32_t depth) const {
  const std::string user = "user " + s.who.login.who + " may ";
  const UserLimits& his = s.who.limits;
  const LimitsConfig& all = env_.config.limits;
  if (s.who.account->streams >= his.streams)
    return {LEAT_ERROR_no_room, Refusal::streams,
            user + "have " + std::to_string(his.streams) + " streams; close one, or raise streams in [limits.user]"};
  if (totals_.streams + (s.who.trusted ? 0 : kept_of(all.streams)) >= all.streams)
    return {LEAT_ERROR_no_room, Refusal::streams, "leatd serves as many streams as it may; raise [limits] streams"};
  if (depth > his.requests - std::min(his.requests, s.who.account->requests))
    return {LEAT_ERROR_no_room, Refusal::requests,
            user + "have " + std::to_string(his.requests) + " requests in flight and has streams for " +
                std::to_string(s.who.account->requests) +
                "; open shallower streams, or raise requests in [limits.user]"};
  return {};
}

Objection ClientSessions::objection_to_memory(const Session& s, std::uint64_t bytes) const {
  const std::string user = "user " + s.who.login.who + " may ";
  const LimitsConfig& limits = env_.config.limits;
  const auto mib = [](std::uint64_t b) { return std::to_string((b + (1u << 20) - 1) >> 20) + " MiB"; };
  const std::string needs = "its slots need " + mib(bytes) + " and ";
  if (!limits.memory_capped_by.empty() && totals_.bytes + bytes > limits.memory_bytes)
    return {LEAT_ERROR_no_memory, Refusal::no_memory,
            needs + limits.memory_capped_by + " leaves " + mib(limits.memory_bytes) +
                " for all clients; lower slots or frame size, or raise that limit"};
  if (s.who.account->memory_bytes + bytes > s.who.limits.memory_bytes)
    return {LEAT_ERROR_no_memory, Refusal::memory,
            needs + user + "hold " + mib(s.who.limits.memory_bytes) +
                "; lower slots or frame size, or raise memory_mib in [limits.user]"};
  if (s.bytes + bytes > limits.client_memory_bytes)
    return {LEAT_ERROR_no_memory, Refusal::memory,
            needs + "a client may hold " + mib(limits.client_memory_bytes) +
                "; lower slots or frame size, or raise [limits] client_memory_mib"};
  if (totals_.bytes + bytes > limits.memory_bytes)
    return {LEAT_ERROR_no_memory, Refusal::memory,
            needs + "leatd may hold " + mib(limits.memory_bytes) +
                " for all clients; lower slots or frame size, or raise [limits] memory_mib"};
  return {};
}

void ClientSessions::open_stream(Session& s, const std::vector<std::byte>& packet) {
  shm::OpenStream m;
  if (shm::decode(packet, &m)) return violate(s, shm::Violation::control_message);
  if (s.links.state != LinkState::secured) return violate(s, shm::Violation::control_order);
  const std::uint32_t request = m.header.request;
  const auto name = shm::text_of(m.application);
  const ServedApplication* const application = application_of(name);
  if (application == nullptr) {
    std::string known;
    for (const auto& a : env_.applications)
      if (!a.name.empty()) known += (known.empty() ? "" : ", ") + a.name;
    return refuse(s, request, LEAT_ERROR_no_such_application, Refusal::bad_stream,
                  "no application '" + std::string(name) + "'; there are: " + known);
  }
  if (const std::string problem = problem_of_tensors(m.pool, application->tensors); !problem.empty())
    return refuse(s, request, LEAT_ERROR_format_mismatch, Refusal::bad_stream,
                  "application '" + application->name + "' " + problem);
  if (const std::string problem = problem_of_codec(m.pool, *application); !problem.empty())
    return refuse(s, request, LEAT_ERROR_format_mismatch, Refusal::bad_stream,
                  "application '" + application->name + "' " + problem);
  m.pool.result_bytes = application->results.result_bytes;
  if (m.fewer_slots != 0) m.pool.slots = slots_for(m, *application);
  const shm::PoolLayout layout = shm::pool_layout(m.pool);
  const std::uint64_t bytes = layout.frames_bytes + layout.results_bytes;
  if (const Objection no = objection_to(s, m, bytes, *application); no.error != LEAT_ERROR_ok)
    return refuse(s, request, no.error, no.why, no.text);
  std::copy_n(layout.strides, layout.planes, m.pool.strides);
  const std::uint32_t index = grant(s, m, *application, layout);
  PoolJob job;
  job.user = s.who.login.uid;
  job.session = s.who.serial;
  job.stream = index;
  job.spec = m.pool;
  job.directory = application->results.parts;
  env_.pools.ask(std::move(job));
}

// From here on it counts, until the memory is given back.
std::uint32_t ClientSessions::grant(Session& s, const shm::OpenStream& m, const ServedApplication& application,
                                    const shm::PoolLayout& layout) {
  const auto index = static_cast<std::uint32_t>(std::ranges::find(s.stream, StreamState::none, &StreamEntry::state) -
                                                s.stream.begin());
  StreamEntry& e = s.stream[index];
  e = StreamEntry{};
  e.state = StreamState::building;
  e.request = m.header.request;
  e.bytes = layout.frames_bytes + layout.results_bytes;
  e.slots = m.pool.slots;
  const auto [pool, generation] = pool_numbers_.take();
  e.granted = {.settings = m.settings,
               .application = static_cast<std::uint32_t>(&application - env_.applications.data()),
               .slo_ns = m.settings.slo_ns > 0 ? m.settings.slo_ns : application.slo_ns,
               .pool = pool,
               .pool_generation = generation,
               .frame_bytes = layout.frame_bytes,
               .owner = {.user = s.who.login.uid,
                         .record = s.who.account->index,
                         .share_permille = s.who.limits.share_permille,
                         .coordinated_share = s.who.limits.coordinated_share,
                         .session = s.who.serial}};
  s.bytes += e.bytes;
  s.slots += e.slots;
  ++s.streams;
  totals_.bytes += e.bytes;
  ++totals_.streams;
  totals_.requests += e.granted.settings.depth;
  s.who.account->memory_bytes += e.bytes;
  s.who.account->requests += e.granted.settings.depth;
  ++s.who.account->streams;
  const std::string_view name = shm::text_of(m.name);
  begin_record(s, index, m.pool,
               (name.empty() ? s.who.name + ":" + std::to_string(index) : std::string(name)) + " " + application.name);
  publish(s);
  return index;
}

void ClientSessions::begin_record(const Session& s, std::uint32_t index, const shm::PoolSpec& pool,
                                  const std::string& label) {
  const GrantedStream& granted = s.stream[index].granted;
  shm::Record record = env_.metrics.writer().begin(RecordKind::stream, granted.pool, label);
  record.set(StreamCounter::in_flight, 0);
  record.set(StreamCounter::slots, pool.slots);
  record.set(StreamCounter::depth, granted.settings.depth);
  record.set(StreamCounter::slo_ns, static_cast<std::uint64_t>(granted.slo_ns));
  if (granted.settings.period_ns > 0)
    record.set(StreamCounter::period_ns, static_cast<std::uint64_t>(granted.settings.period_ns));
  record.set(StreamCounter::client, s.client);
  record.set(StreamCounter::width, pool.width);
  record.set(StreamCounter::height, pool.height);
  record.set(StreamCounter::format, pool.format);
  record.set(StreamCounter::damaged, 0);
  record.set(StreamCounter::color,
             shm::to_counter(shm::color_fact_of(granted.settings.color(), pool.format, pool.height, pool.bitstream())));
  record.set(StreamCounter::terms, shm::terms_of(granted.settings.priority, granted.settings.overload));
  record.set(StreamCounter::opened_ns, static_cast<std::uint64_t>(shm::monotonic_ns()));
}

void ClientSessions::observe(Session& s, std::uint32_t request) {
  if (s.observing.given)
    return refuse(s, request, LEAT_ERROR_no_room, Refusal::repeated,
                  "this connection has the counters already; read them there");
  const bool all = sees_all(s);
  const auto give = [&]() -> Result<ObserverViews::Given> {
    if (!all) return views_.given(s.who.account->index, shm::monotonic_ns());
    auto fd = env_.metrics.writer().share();
    if (!fd.ok()) return Error{fd.error()};
    return ObserverViews::Given{std::move(*fd), env_.metrics.writer().bytes()};
  };
  const auto given = give();
  if (!given.ok())
    return refuse(s, request, LEAT_ERROR_no_memory, all ? Refusal::no_files : Refusal::no_memory, given.error());
  s.observing.view = !all;
  s.observing.given = true;
  shm::Observed m;
  m.bytes = given->bytes;
  const int fds[] = {given->fd.get()};
  if (!reply(s, m, request, fds)) stop_viewing(s);
}

void ClientSessions::status(Session& s, std::uint32_t request) {
  s.connection.messages.charge(kStatusCost);
  if (status_.empty()) status_ = env_.status_json();
  if (status_.size() + sizeof(shm::StatusReply) > shm::kMaxMessage)
    return refuse(s, request, LEAT_ERROR_no_room, Refusal::none,
                  "the status is longer than a message may be; `leat top --once` has the figures");
  reply(s, shm::StatusReply{}, request, {}, status_);
}

// Who may end leatd may also change it, and nobody else.
void ClientSessions::change(Session& s, const std::vector<std::byte>& packet) {
  shm::Change m;
  std::string_view text;
  if (shm::decode(packet, &m, &text)) return violate(s, shm::Violation::control_message);
  const std::uint32_t request = m.header.request;
  if (!s.who.trusted)
    return refuse(s, request, LEAT_ERROR_not_permitted, Refusal::not_allowed,
                  "only root and leatd's own user may change what it serves");
  const auto begun = env_.change(m, text);
  if (!begun.ok()) return refuse(s, request, LEAT_ERROR_not_ready, Refusal::none, begun.error());
  shm::ChangeBegun reply_to;
  reply_to.number = *begun;
  reply(s, reply_to, request);
}

void ClientSessions::limits_changed() {
  for (Session& s : sessions_) {
    if (!s.used) continue;
    shm::Peer counted = s.who.peer;
    counted.uid = s.who.login.uid;
    s.who.limits = limits_of(env_.config.limits, counted, s.who.trusted);
  }
}

void ClientSessions::publish(const Session& s) {
  shm::Record record = env_.metrics.of(RecordKind::client, s.client);
  record.set(ClientCounter::streams, s.streams);
  record.set(ClientCounter::memory_bytes, s.bytes);
  shm::Record daemon = env_.metrics.daemon();
  daemon.set(DaemonCounter::clients, totals_.clients);
  daemon.set(DaemonCounter::streams, totals_.streams);
  daemon.set(DaemonCounter::memory_bytes, totals_.bytes);
  daemon.set(DaemonCounter::requests, totals_.requests);
  accounts_.publish(*s.who.account);
}

}  // namespace leat::daemon
