// Validation of control messages. Pure functions of bytes; the transport is in control_socket.cpp.
#include "shm/src/protocol/control_protocol.h"

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
  if (!terminated(m.name) || !printable(m.name)) return "open_stream: name is not printable text";
  if (const char* text = problem(m.pool)) return text;
  if (m.pool.result_bytes != 0) return "open_stream: the size of results is not the client's to choose";
  if (const char* text = problem(m.settings)) return text;
  if (m.pool.slots < m.settings.depth) return "open_stream: fewer slots than depth";
  if (m.fewer_slots > 1 || m.reserved != 0) return "open_stream: a reserved field is not zero";
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

const char* problem(const Change& m) noexcept {
  constexpr std::int64_t kMaxTrialNs = 3'600'000'000'000;
  if (m.kind < ChangeKind::reload || m.kind > ChangeKind::replace) return "change: unknown kind";
  if (m.dry_run > 1) return "change: dry_run is neither 0 nor 1";
  if (m.trial_ns < 0 || m.trial_ns > kMaxTrialNs) return "change: trial out of range";
  if (!terminated(m.name) || !printable(m.name)) return "change: name is not printable text";
  return nullptr;
}
const char* problem(const ChangeBegun&) noexcept { return nullptr; }

}  // namespace leat::shm
