// Validation of control messages. Pure functions of bytes; the transport is in control_socket.cpp.
#include "shm/src/protocol/protocol.h"

namespace leat::shm {

namespace {

template <std::size_t N>
bool terminated(const char (&text)[N]) noexcept {
  return strnlen(text, N) < N;
}

// Names end up in logs, counters and terminals: printable ASCII only.
template <std::size_t N>
bool printable(const char (&text)[N]) noexcept {
  for (std::size_t i = 0; i < N && text[i] != '\0'; ++i)
    if (text[i] < ' ' || text[i] > '~') return false;
  return true;
}

constexpr std::int64_t kMaxSpanNs = 24ll * 3600 * 1'000'000'000;  // a day: SLO, age and period beyond it are mistakes
constexpr std::uint32_t kMostDropPpm = 500'000;
constexpr std::uint32_t kMostTaskWeight = 1'000'000;  // thousandths
constexpr std::int64_t kLeastCameraNs = 4'000'000, kMostCameraNs = 2'000'000'000;
bool span_ok(std::int64_t ns) noexcept { return ns >= 0 && ns <= kMaxSpanNs; }

}  // namespace

const char* decode_header(std::span<const std::byte> packet, Header* out) noexcept {
  if (packet.size() < sizeof(Header)) return "message shorter than its header";
  if (packet.size() > kMaxMessage) return "message longer than any may be";
  std::memcpy(out, packet.data(), sizeof(Header));
  if (out->magic != kProtocolMagic) return "not a message of this protocol";
  if (out->version != kProtocolVersion && out->type != MessageType::refused) return kVersionProblem.data();
  if (out->bytes != packet.size()) return "message length differs from the one in its header";
  return nullptr;
}

const char* problem(const Hello& m) noexcept {
  if (m.role != PeerRole::client && m.role != PeerRole::observer) return "hello: unknown role";
  if (!terminated(m.name) || !printable(m.name)) return "hello: name is not printable text";
  return nullptr;
}

const char* problem(const Welcome& m) noexcept {
  if (m.layout_version != kLayoutVersion) return "welcome: another layout version";
  if (!terminated(m.daemon_version)) return "welcome: version is not text";
  return nullptr;
}

const char* problem(const OpenStream& m) noexcept {
  if (!terminated(m.application) || !printable(m.application) || m.application[0] == '\0')
    return "open_stream: application is not a printable name";
  if (const char* text = problem(m.pool)) return text;
  if (m.pool.result_bytes != 0) return "open_stream: the size of results is not the client's to choose";
  if (m.reserved != 0) return "open_stream: a reserved field is not zero";
  if (m.depth == 0 || m.depth > kMaxDepth) return "open_stream: depth must be 1..64";
  if (m.pool.slots < m.depth) return "open_stream: fewer slots than depth";
  if (m.overload > LEAT_OVERLOAD_never_drop) return "open_stream: unknown overload rule";
  if (m.priority > LEAT_PRIORITY_PROTECTED) return "open_stream: unknown priority";
  if (!span_ok(m.slo_ns) || !span_ok(m.max_age_ns) || !span_ok(m.period_ns))
    return "open_stream: slo, max_age and period must be 0 to one day";
  if (m.sla_drop_ppm > kMostDropPpm) return "open_stream: an accuracy of over 0.5 can be spared by nobody";
  if (m.sla_drop_ppm != 0 && (m.period_ns < kLeastCameraNs || m.period_ns > kMostCameraNs))
    return "open_stream: a coordinated stream needs its camera's period, 4 ms to 2 s";
  if (m.sla_drop_ppm == 0 && (m.task_group != 0 || m.task_weight != 0 || m.local_drop_ppm != 0))
    return "open_stream: only coordinated streams are tasks of a group; give sla_drop_ppm too";
  if (m.task_weight > kMostTaskWeight || m.local_drop_ppm > 1'000'000)
    return "open_stream: a task's weight is 1000000 thousandths at most, its local algorithm loses 1000000 millionths "
           "at most";
  return nullptr;
}

const char* problem(const StreamOpened& m) noexcept {
  if (m.stream >= kMaxStreamsPerClient) return "stream_opened: stream index out of range";
  if (!span_ok(m.slo_ns)) return "stream_opened: slo out of range";
  return problem(m.pool);
}

namespace {
bool part_ok(std::uint32_t stream) noexcept { return stream == kLinks || stream < kMaxStreamsPerClient; }
}  // namespace

const char* problem(const Mapped& m) noexcept {
  if (!part_ok(m.stream)) return "mapped: stream index out of range";
  if (m.reserved != 0) return "mapped: a reserved field is not zero";
  return nullptr;
}

const char* problem(const Secured& m) noexcept {
  return part_ok(m.stream) ? nullptr : "secured: stream index out of range";
}

const char* problem(const CloseStream& m) noexcept {
  if (m.stream >= kMaxStreamsPerClient) return "close_stream: stream index out of range";
  if (m.reserved != 0) return "close_stream: a reserved field is not zero";
  return nullptr;
}

const char* problem(const StreamClosed& m) noexcept {
  return m.stream >= kMaxStreamsPerClient ? "stream_closed: stream index out of range" : nullptr;
}

const char* problem(const Refused& m) noexcept {
  return terminated(m.text) ? nullptr : "refused: text is not terminated";
}
const char* problem(const Observe&) noexcept { return nullptr; }
const char* problem(const Observed&) noexcept { return nullptr; }
const char* problem(const StatusRequest&) noexcept { return nullptr; }
const char* problem(const StatusReply&) noexcept { return nullptr; }

}  // namespace leat::shm
