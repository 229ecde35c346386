// The control protocol: a packet as a socket hands it over. Whatever decode() lets through keeps its promises: texts
// that end, formats and roles that exist, a pool whose layout can be computed. What follows the first packet is
// another, so that receive() sees a queue.
#include <sys/socket.h>
#include <unistd.h>

#include "shm/src/protocol/control_protocol.h"
#include "tests/fuzz/harness.h"

namespace leat::fuzz {
namespace {

template <class M>
std::string packet_of(M message, std::string_view tail = {}) {
  message.header.type = M::kType;
  message.header.bytes = static_cast<std::uint32_t>(sizeof(M) + tail.size());
  return std::string(reinterpret_cast<const char*>(&message), sizeof(M)) + std::string(tail);
}

template <std::size_t N>
void ends(const char (&text)[N]) {
  insist(std::memchr(text, 0, N) != nullptr, "a text without an end");
}

void check(const shm::Hello& m) {
  ends(m.name);
  insist(m.role == shm::PeerRole::client || m.role == shm::PeerRole::observer, "a role that does not exist");
}
void check_pool(const shm::PoolSpec& spec) {
  const shm::PoolLayout layout = shm::pool_layout(spec);
  insist(spec.slots <= shm::kMaxSlotsPerStream, "more slots than a stream may have");
  insist(layout.frames_bytes >= std::uint64_t{spec.slots} * layout.frame_bytes, "slots beyond their segment");
}
void check(const shm::OpenStream& m) {
  ends(m.application);
  insist(m.settings.slo_ns >= 0 && m.settings.max_age_ns >= 0 && m.settings.period_ns >= 0, "a time below zero");
  check_pool(m.pool);
}
void check(const shm::StreamOpened& m) { check_pool(m.pool); }
void check(const shm::Welcome& m) { ends(m.daemon_version); }
void check(const shm::Refused& m) { ends(m.text); }
template <class M>
void check(const M&) {}

void look_at(std::span<const std::byte> packet) {
  shm::for_each_message([&]<class M>(M message) {
    std::string_view tail;
    if (shm::decode(packet, &message, &tail) != nullptr) return;
    insist(sizeof(M) + tail.size() == packet.size(), "a tail that is not the packet's");
    check(message);
  });
}

}  // namespace

std::vector<std::string> seeds() {
  shm::Hello hello;
  shm::set_text(hello.name, "fuzz");
  shm::OpenStream open;
  shm::set_text(open.application, "a");
  open.pool = {LEAT_FORMAT_nv12, 64, 32, {}, 4, LEAT_SLOT_HOST};
  open.settings.depth = 4;
  shm::StreamOpened opened;
  opened.pool = open.pool;
  shm::Refused refused;
  shm::set_text(refused.text, "no");
  std::vector<std::string> out = {packet_of(hello), packet_of(open), packet_of(opened, "x\ty"), packet_of(refused),
                                  packet_of(shm::StatusReply{}, "{}")};
  shm::for_each_message([&](const auto& message) { out.push_back(packet_of(message)); });
  return out;
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat;
  static const int* const kPair = [] {
    static int pair[2];
    fuzz::insist(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) == 0, "no socket pair");
    return pair;
  }();
  static std::vector<std::byte> packet;  // its capacity is kept, as the daemon keeps it
  fuzz::look_at(std::as_bytes(std::span(data, size)));
  if (size == 0) return 0;
  fuzz::insist(send(kPair[0], data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size), "the packet was not sent");
  std::string text;
  const shm::Got got = shm::receive(kPair[1], false, &packet, nullptr, &text);
  fuzz::insist(got == shm::Got::message && packet.size() == size, "a packet that did not come as it was sent");
  fuzz::look_at(packet);
  return 0;
}
