#include "engine/daemon/clients/client_sessions.h"

#include <algorithm>

#include "shm/src/rings/clock.h"
#include "tools/base/text/units.h"

namespace leat::daemon {
namespace {

using shm::ClientCounter;
using shm::DaemonCounter;
using shm::RecordKind;
using shm::StreamCounter;

constexpr double kStatusCost = 7;  // messages' worth, beside itself
constexpr std::uint32_t kDefaultDepth = 4;
constexpr std::uint32_t kSpareSlots = 3;  // one being written, one being read, one spare

std::string text_of(const leat_tensor_shape& t) {
  std::string out = "[";
  for (std::uint32_t d = 0; d < t.rank; ++d) out += (d == 0 ? "" : ", ") + std::to_string(t.dims[d]);
  return out + "] " + leat_dtype_name(t.dtype);
}

// Empty: the stream's frames are what the application takes. A leading dimension of one item may be there or not.
std::string problem_of_tensors(const shm::PoolSpec& pool, const std::vector<leat_tensor_shape>& wanted) {
  if (wanted.empty() != (pool.format != LEAT_FORMAT_tensors))
    return wanted.empty() ? "takes pictures, not tensors"
                          : "takes tensors, not pictures; open the stream with the format 'tensors'";
  std::string shapes;
  for (const auto& w : wanted) shapes += (shapes.empty() ? "" : ", ") + text_of(w);
  bool same = pool.tensor_count == wanted.size();
  for (std::uint32_t i = 0; same && i < pool.tensor_count; ++i) {
    const leat_tensor_shape &given = pool.tensors[i], &w = wanted[i];
    const std::uint32_t skip = given.rank == w.rank + 1 && given.dims[0] == 1 ? 1 : 0;
    same =
        given.dtype == w.dtype && given.rank == w.rank + skip && std::equal(w.dims, w.dims + w.rank, given.dims + skip);
  }
  return same ? std::string() : "takes other tensors: " + shapes;
}

// Of a session, so that nobody can join another client's.
std::uint64_t group_of(std::uint64_t serial, const shm::OpenStream& m) {
  return m.task_group == 0 ? 0 : (serial + 1) << 32 | m.task_group;
}

}  // namespace

// ---- messages ----

void ClientSessions::handle(std::uint32_t index, const std::vector<std::byte>& packet) {
  Session& s = sessions_[index];
  shm::Header header;
  if (const char* problem = shm::decode_header(packet, &header)) {
    if (problem == shm::kVersionProblem) {
      (void)shm::refuse(s.socket.get(), header.request, LEAT_ERROR_wrong_version,
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
    default:
      return violate(s, shm::Violation::control_message);
  }
}

ClientSessions::Objection ClientSessions::objection_to(const Session& s, const shm::OpenStream& m, std::uint64_t bytes,
                                                       const ServedApplication& application) const {
  static constexpr const char* kPriorities[] = {"background", "normal", "high", "protected"};
  static constexpr const char* kRules[] = {"fifo", "latest", "latest_per_key", "never_drop"};
  using shm::Refusal;
  const LimitsConfig& limits = env_.config.limits;
  const std::string user = "user " + s.login.who + " may ";
  const auto mib = [](std::uint64_t b) { return std::to_string((b + (1u << 20) - 1) >> 20) + " MiB"; };
  if (const char* why = env_.not_ready()) return {LEAT_ERROR_not_ready, Refusal::not_ready, why};
  if (s.slots + m.pool.slots > shm::kMaxSlotsPerClient)
    return {LEAT_ERROR_no_room, Refusal::bad_stream, "a client may have 512 frame slots; open shallower streams"};
  if (std::none_of(s.stream.begin(), s.stream.end(), [](const StreamEntry& e) { return e.state == StreamState::none; }))
    return {LEAT_ERROR_no_room, Refusal::bad_stream, "a client may have 64 streams; close one"};
  if (m.priority > s.limits.priority)
    return {LEAT_ERROR_not_permitted, Refusal::priority,
            user + "ask for priority '" + kPriorities[s.limits.priority] + "' at most, not '" +
                kPriorities[m.priority] + "'; ask for less, or raise priority in [limits.user]"};
  if ((s.limits.overload_set >> m.overload & 1u) == 0)
    return {LEAT_ERROR_not_permitted, Refusal::overload,
            user + "not use the overload rule '" + kRules[m.overload] +
                "'; use another, or add it to overload in [limits.user]"};
  if (m.sla_drop_ppm != 0 && s.limits.coordinated_share <= 0)
    return {LEAT_ERROR_not_permitted, Refusal::accuracy,
            user +
                "have no coordinated streams; open it without an accuracy, or raise coordinated_share in "
                "[limits.user]"};
  const std::uint64_t group = group_of(s.serial, m);
  if (group != 0 && std::count_if(s.stream.begin(), s.stream.end(), [&](const StreamEntry& e) {
                      return e.state != StreamState::none && e.open.config.terms.group == group;
                    }) >= core::streams::kGroupTasks)
    return {LEAT_ERROR_no_room, Refusal::bad_stream, "a group has four tasks at most; give others another task_group"};
  const std::int64_t slo_ns = m.slo_ns > 0 ? m.slo_ns : application.slo_ns;
  const std::int64_t asked_ns = m.max_age_ns > 0 ? std::min(slo_ns, m.max_age_ns) : slo_ns;
  if (const std::int64_t least_ns = s.limits.min_slo_of(application.slo_ns); asked_ns < least_ns)
    return {LEAT_ERROR_not_permitted, Refusal::slo,
            user + "ask '" + application.name + "' for an SLO of " + text::exact_time_text(least_ns + 499) +
                " at least, not " + text::exact_time_text(std::max<std::int64_t>(0, asked_ns - 499)) +
                "; ask for more, or lower min_slo_ms in [limits.user]"};
  if (s.account->streams >= s.limits.streams)
    return {
        LEAT_ERROR_no_room, Refusal::streams,
        user + "have " + std::to_string(s.limits.streams) + " streams; close one, or raise streams in [limits.user]"};
  if (streams_ + (s.trusted ? 0 : kept_of(limits.streams)) >= limits.streams)
    return {LEAT_ERROR_no_room, Refusal::streams, "leatd serves as many streams as it may; raise [limits] streams"};
  if (m.depth > s.limits.requests - std::min(s.limits.requests, s.account->requests))
    return {LEAT_ERROR_no_room, Refusal::requests,
            user + "have " + std::to_string(s.limits.requests) + " requests in flight and has streams for " +
                std::to_string(s.account->requests) + "; open shallower streams, or raise requests in [limits.user]"};
  if (!limits.memory_capped_by.empty() && bytes_ + bytes > limits.memory_bytes)
    return {LEAT_ERROR_no_memory, Refusal::no_memory,
            "its slots need " + mib(bytes) + " and " + limits.memory_capped_by + " leaves " + mib(limits.memory_bytes) +
                " for all clients; lower slots or frame size, or raise that limit"};
  if (s.account->memory_bytes + bytes > s.limits.memory_bytes)
    return {LEAT_ERROR_no_memory, Refusal::memory,
            "its slots need " + mib(bytes) + " and " + user + "hold " + mib(s.limits.memory_bytes) +
                "; lower slots or frame size, or raise memory_mib in [limits.user]"};
  if (s.bytes + bytes > limits.client_memory_bytes)
    return {LEAT_ERROR_no_memory, Refusal::memory,
            "its slots need " + mib(bytes) + " and a client may hold " + mib(limits.client_memory_bytes) +
                "; lower slots or frame size, or raise [limits] client_memory_mib"};
  if (bytes_ + bytes > limits.memory_bytes)
    return {LEAT_ERROR_no_memory, Refusal::memory,
            "its slots need " + mib(bytes) + " and leatd may hold " + mib(limits.memory_bytes) +
                " for all clients; lower slots or frame size, or raise [limits] memory_mib"};
  if (few_descriptors(s.socket.get(), s.trusted))
    return {LEAT_ERROR_no_room, Refusal::no_files,
            "leatd has few file descriptors left; raise its limit (ulimit -n, LimitNOFILE)"};
  return {};
}

void ClientSessions::open_stream(Session& s, const std::vector<std::byte>& packet) {
  shm::OpenStream m;
  if (shm::decode(packet, &m)) return violate(s, shm::Violation::control_message);
  if (s.links != Links::secured) return violate(s, shm::Violation::control_order);
  const std::uint32_t request = m.header.request;
  const auto name = shm::text_of(m.application);
  const auto application =
      std::find_if(env_.applications.begin(), env_.applications.end(), [&](const auto& a) { return a.name == name; });
  if (application == env_.applications.end()) {
    std::string known;
    for (const auto& a : env_.applications) known += (known.empty() ? "" : ", ") + a.name;
    return refuse(s, request, LEAT_ERROR_no_such_application, shm::Refusal::bad_stream,
                  "no application '" + std::string(name) + "'; there are: " + known);
  }
  if (m.depth == 0) m.depth = kDefaultDepth;
  if (m.pool.slots == 0) m.pool.slots = std::min(m.depth + kSpareSlots, shm::kMaxSlotsPerStream);
  if (const char* problem = shm::problem(m.pool))
    return refuse(s, request, LEAT_ERROR_format_mismatch, shm::Refusal::bad_stream, problem);
  if (const std::string problem = problem_of_tensors(m.pool, application->tensors); !problem.empty())
    return refuse(s, request, LEAT_ERROR_format_mismatch, shm::Refusal::bad_stream,
                  "application '" + application->name + "' " + problem);
  m.pool.result_bytes = application->results.result_bytes;
  const shm::PoolLayout layout = shm::pool_layout(m.pool);
  const std::uint64_t bytes = layout.frames_bytes + layout.results_bytes;
  if (const Objection no = objection_to(s, m, bytes, *application); no.error != LEAT_ERROR_ok)
    return refuse(s, request, no.error, no.why, no.text);
  const auto index = static_cast<std::uint32_t>(
      std::find_if(s.stream.begin(), s.stream.end(), [](const auto& e) { return e.state == StreamState::none; }) -
      s.stream.begin());
  for (std::uint32_t p = 0; p < layout.planes; ++p) m.pool.strides[p] = layout.strides[p];
  StreamEntry& e = s.stream[index];
  const auto free =
      static_cast<std::uint32_t>(std::find(pool_used_.begin(), pool_used_.end(), false) - pool_used_.begin());
  pool_used_[free] = true;
  e = StreamEntry{};
  e.state = StreamState::building;
  e.request = request;
  e.pool_id = free;
  e.bytes = bytes;
  e.slots = m.pool.slots;
  e.depth = m.depth;
  e.slo_ns = m.slo_ns > 0 ? m.slo_ns : application->slo_ns;
  s.bytes += bytes;
  bytes_ += bytes;
  s.slots += e.slots;
  ++s.streams;
  ++streams_;
  s.account->memory_bytes += bytes;
  s.account->requests += e.depth;
  ++s.account->streams;
  shm::Record record = env_.board.writer().begin(RecordKind::stream, e.pool_id,
                                                 s.name + ":" + std::to_string(index) + " " + application->name);
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
  e.open.config.application = static_cast<std::uint32_t>(application - env_.applications.begin());
  e.open.config.slo_ns = m.slo_ns;
  e.open.config.max_age_ns = m.max_age_ns;
  e.open.config.period_ns = m.period_ns;
  e.open.config.depth = m.depth;
  e.open.config.supersede = static_cast<core::Supersede>(m.overload);
  e.open.config.priority = static_cast<core::Priority>(m.priority);
  e.open.config.user = s.login.uid;
  e.open.config.user_weight = s.limits.share_permille;
  e.open.record = e.open.pool = free;
  e.open.pool_generation = ++pool_generation_[free];
  e.open.frame_bytes = layout.frame_bytes;
  e.open.slo_ns = e.slo_ns;
  e.open.sla_drop_ppm = m.sla_drop_ppm;
  e.open.config.terms = {.sla_drop = 1e-6 * m.sla_drop_ppm,
                         .period_ns = m.period_ns,
                         .weight = 1e-3 * s.limits.share_permille,
                         .max_share = s.limits.coordinated_share,
                         .group = group_of(s.serial, m),
                         .task_weight = m.task_weight == 0 ? 1 : 1e-3 * m.task_weight,
                         .local = m.local_drop_ppm == 0 ? 1 : 1e-6 * m.local_drop_ppm};
  PoolJob job;
  job.user = s.login.uid;
  job.session = s.serial;
  job.stream = index;
  job.spec = m.pool;
  job.directory = application->results.parts;
  env_.pools.ask(std::move(job));
}

void ClientSessions::observe(Session& s, std::uint32_t request) {
  if (s.counters_given)
    return refuse(s, request, LEAT_ERROR_no_room, shm::Refusal::repeated,
                  "this connection has the counters already; read them there");
  const bool all = sees_all(s);
  const auto give = [&]() -> Result<ObserverViews::Given> {
    if (!all) return views_.given(s.account->index, shm::monotonic_ns());
    auto fd = env_.board.writer().share();
    if (!fd.ok()) return Error{fd.error()};
    return ObserverViews::Given{std::move(*fd), env_.board.writer().bytes()};
  };
  const auto given = give();
  if (!given.ok())
    return refuse(s, request, LEAT_ERROR_no_memory, all ? shm::Refusal::no_files : shm::Refusal::no_memory,
                  given.error());
  s.viewing = !all;
  s.counters_given = true;
  shm::Observed m;
  m.bytes = given->bytes;
  const int fds[] = {given->fd.get()};
  if (!reply(s, m, request, fds)) stop_viewing(s);
}

void ClientSessions::status(Session& s, std::uint32_t request) {
  s.messages.charge(kStatusCost);
  if (status_.empty()) status_ = env_.status_json();
  if (status_.size() + sizeof(shm::StatusReply) > shm::kMaxMessage)
    return refuse(s, request, LEAT_ERROR_no_room, shm::Refusal::none,
                  "the status is longer than a message may be; `leat top --once` has the figures");
  reply(s, shm::StatusReply{}, request, {}, status_);
}

void ClientSessions::publish(const Session& s) {
  shm::Record record = env_.board.of(RecordKind::client, s.client);
  record.set(ClientCounter::streams, s.streams);
  record.set(ClientCounter::memory_bytes, s.bytes);
  shm::Record daemon = env_.board.daemon();
  daemon.set(DaemonCounter::clients, clients_);
  daemon.set(DaemonCounter::streams, streams_);
  daemon.set(DaemonCounter::memory_bytes, bytes_);
  accounts_.publish(*s.account);
}

}  // namespace leat::daemon
