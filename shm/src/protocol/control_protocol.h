// The control protocol: one SOCK_SEQPACKET Unix socket, one message per packet, request and reply. Frames never pass
// here.
//
//   client   hello -> welcome {uplink, downlink, bell}, mapped -> secured
//            open_stream -> stream_opened {frames, results}, mapped -> secured; then it may submit
//            close_stream -> stream_closed                      anything -> refused(error, text)
//   observer hello(role observer) -> welcome, no descriptors    observe -> observed {counters}     status_request ->
//   status(JSON)     change(TOML, or a path) -> change_begun(number), of root and leatd's own user alone
//
// Descriptors travel by SCM_RIGHTS from the daemon only, after SO_PEERCRED; the daemon never accepts any (its sockets
// refuse them where the kernel can, and receive() leaves a packet that carries some where it is). Every message is a
// fixed, trivially copyable struct that begins with Header; some have a tail of text after it. decode() is the one
// gate: it checks length, magic, version, type and, by problem(), every field. It returns nullptr, or one line that
// says what is wrong. The daemon ends a client that sends an invalid message (Violation::control_message). A message of
// another version is answered by refused(wrong_version), whose layout never changes. Strings are NUL-terminated inside
// fixed arrays.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "leat/leat.h"
#include "leat/result.hpp"
#include "shm/src/protocol/stream_settings.h"
#include "shm/src/segments/segment.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::shm {

inline constexpr std::uint32_t kProtocolMagic = 0x7461'656c;  // "leat"
inline constexpr std::uint16_t kProtocolVersion = 8;
inline constexpr std::size_t kMaxMessage = 128 * 1024;

// LEAT_MESSAGES(X): X(type, name, value). Every message there is; tests and fuzzers take their lists from here.
#define LEAT_MESSAGES(X)              \
  X(Hello, hello, 1)                  \
  X(OpenStream, open_stream, 2)       \
  X(CloseStream, close_stream, 3)     \
  X(Observe, observe, 4)              \
  X(StatusRequest, status_request, 5) \
  X(Mapped, mapped, 6)                \
  X(Change, change, 7)                \
  X(Welcome, welcome, 16)             \
  X(StreamOpened, stream_opened, 17)  \
  X(StreamClosed, stream_closed, 18)  \
  X(Refused, refused, 19)             \
  X(Observed, observed, 20)           \
  X(StatusReply, status, 21)          \
  X(Secured, secured, 22)             \
  X(ChangeBegun, change_begun, 23)

enum class MessageType : std::uint16_t {
#define X(type, name, value) name = value,
  LEAT_MESSAGES(X)
#undef X
};

struct Header {
  std::uint32_t magic = kProtocolMagic;
  std::uint16_t version = kProtocolVersion;
  MessageType type{};
  std::uint32_t bytes = 0;    // of the whole message, tail included; send() fills it in
  std::uint32_t request = 0;  // the asker's number, from 1; the reply repeats it. Refused 0: the connection is
};

enum class PeerRole : std::uint32_t { client = 0, observer = 1 };

struct Hello {
  static constexpr MessageType kType = MessageType::hello;
  Header header;
  PeerRole role = PeerRole::client;
  std::uint32_t abi = LEAT_ABI_VERSION;
  char name[32] = {};
};
struct Welcome {  // descriptors for a client: uplink, downlink, bell
  static constexpr MessageType kType = MessageType::welcome;
  Header header;
  std::uint32_t layout_version = kLayoutVersion;
  std::uint32_t client = 0;  // index of the client's counters record
  std::uint32_t daemon_pid = 0;
  std::uint32_t reserved = 0;
  char daemon_version[32] = {};
};
struct OpenStream {
  static constexpr MessageType kType = MessageType::open_stream;
  Header header;
  char application[64] = {};
  char name[32] = {};  // shown by leat top; empty: the client's and a number
  PoolSpec pool;       // slots as wanted
  StreamSettings settings;
  std::uint32_t fewer_slots = 0;  // 1: the client has named no number, and leatd may give fewer
  std::uint32_t reserved = 0;
};
struct StreamOpened {  // descriptors: frames, results. Tail: class names, one line per head, names separated by tabs
  static constexpr MessageType kType = MessageType::stream_opened;
  Header header;
  std::uint32_t stream = 0;  // the client's index, for descriptors and close_stream
  PoolSpec pool;             // as granted; strides filled in
  std::uint32_t depth = 0;
  std::uint32_t record = 0;  // index of the stream's counters record
  std::int64_t slo_ns = 0;   // as granted
};
// The client has mapped what it was given for writing, and from now on nobody can do so again, nor punch a hole into
// it: whoever reads it must not wait for its writer. Only then is it used.
inline constexpr std::uint32_t kLinks = UINT32_MAX;
struct Mapped {
  static constexpr MessageType kType = MessageType::mapped;
  Header header;
  std::uint32_t stream = kLinks;  // kLinks: uplink and downlink
  std::uint32_t reserved = 0;
};
struct Secured {
  static constexpr MessageType kType = MessageType::secured;
  Header header;
  std::uint32_t stream = kLinks;
  std::uint32_t reserved = 0;
};
struct CloseStream {
  static constexpr MessageType kType = MessageType::close_stream;
  Header header;
  std::uint32_t stream = 0;
  std::uint32_t reserved = 0;
};
struct StreamClosed {
  static constexpr MessageType kType = MessageType::stream_closed;
  Header header;
  std::uint32_t stream = 0;
  std::uint32_t reserved = 0;
};
struct Refused {  // the layout of this one is frozen over all versions
  static constexpr MessageType kType = MessageType::refused;
  Header header;
  std::uint32_t error = 0;  // leat_error
  char text[244] = {};      // one line: what and what to do
};
struct Observe {
  static constexpr MessageType kType = MessageType::observe;
  Header header;
};
struct Observed {  // descriptor: counters, read-only
  static constexpr MessageType kType = MessageType::observed;
  Header header;
  std::uint64_t bytes = 0;
};
struct StatusRequest {
  static constexpr MessageType kType = MessageType::status_request;
  Header header;
};
struct StatusReply {  // tail: one JSON object
  static constexpr MessageType kType = MessageType::status;
  Header header;
};

// What leatd is to become while it serves (engine/daemon/changes/wanted.h). Tail: the plan's or the model's path, or
// the applications to load as TOML.
enum class ChangeKind : std::uint32_t { reload = 1, plan = 2, load = 3, unload = 4, replace = 5 };
struct Change {
  static constexpr MessageType kType = MessageType::change;
  Header header;
  ChangeKind kind = ChangeKind::reload;
  std::uint32_t dry_run = 0;  // 1: only what would be done
  std::int64_t trial_ns = 0;  // how long a new version of a model is watched
  char name[160] = {};        // an application's, or "application/module"
};
struct ChangeBegun {
  static constexpr MessageType kType = MessageType::change_begun;
  Header header;
  std::uint64_t number = 0;  // by which the status says what becomes of it
};

// Field checks of each message; nullptr or one line.
#define X(type, name, value) const char* problem(const type& m) noexcept;
LEAT_MESSAGES(X)
#undef X
#define X(type, name, value) +1
inline constexpr std::uint32_t kMessages = LEAT_MESSAGES(X);
#undef X
// Calls use(M{}) for each message M.
template <class Use>
void for_each_message(const Use& use) {
#define X(type, name, value) use(type{});
  LEAT_MESSAGES(X)
#undef X
}

inline constexpr std::string_view kVersionProblem = "message of another protocol version";

// Checks the header against the packet; on nullptr *out is a copy of it.
const char* decode_header(std::span<const std::byte> packet, Header* out) noexcept;

// Precondition: none; `packet` may be anything. On nullptr *out is a valid copy and *tail (when wanted) the text behind
// it.
template <class M>
const char* decode(std::span<const std::byte> packet, M* out, std::string_view* tail = nullptr) noexcept {
  static_assert(std::is_trivially_copyable_v<M>);
  Header header;
  if (const char* text = decode_header(packet, &header)) return text;
  if (header.type != M::kType) return "message of another type than expected";
  if (packet.size() < sizeof(M)) return "message shorter than its type";
  constexpr bool kHasTail =
      std::is_same_v<M, StreamOpened> || std::is_same_v<M, StatusReply> || std::is_same_v<M, Change>;
  if (!kHasTail && packet.size() != sizeof(M)) return "message longer than its type";
  std::memcpy(out, packet.data(), sizeof(M));
  if (tail) *tail = {reinterpret_cast<const char*>(packet.data()) + sizeof(M), packet.size() - sizeof(M)};
  return problem(*out);
}

// Copies text into a fixed array, cut to fit, NUL-terminated, the rest zero.
template <std::size_t N>
void set_text(char (&to)[N], std::string_view text) noexcept {
  std::memset(to, 0, N);
  std::memcpy(to, text.data(), text.size() < N ? text.size() : N - 1);
}
// Precondition: the message was decoded (so the array is terminated).
template <std::size_t N>
std::string_view text_of(const char (&from)[N]) noexcept {
  return {from, strnlen(from, N)};
}

// ---- transport ----
// nothing: would block; broken: see *text; descriptors: the next packet carries some, and none are accepted
enum class Got : std::uint8_t { message, nothing, closed, broken, descriptors };

// One packet. `fds`: where to put received descriptors; nullptr (the daemon): none are accepted, and a packet that
// carries any stays where it is, because whoever takes or drops it closes them, for as long as their maker likes: close
// the socket where nobody waits for that. Never blocks if !blocking. The buffer's capacity is kept between calls.
Got receive(int socket, bool blocking, std::vector<std::byte>* packet, std::vector<Fd>* fds, std::string* text);

// One packet, never blocking. full: the peer does not read; exhausted: this side is out of what sending takes
// (descriptors in flight, memory), which is not the peer's fault; gone: the peer has closed.
enum class Sent : std::uint8_t { sent, full, exhausted, gone };
Sent send_packet(int socket, std::span<const std::byte> packet, std::span<const int> fds) noexcept;
// The peer has read everything that was sent: no descriptor is on its way to it.
bool all_read(int socket) noexcept;
// Takes up to `most` packets that came and forgets them, with the descriptors they carry. Never blocks.
void throw_away(int socket, std::uint32_t most) noexcept;

// The same with a text, for who needs no distinction.
Status send_bytes(int socket, std::vector<std::byte> packet, std::span<const int> fds);
// The header's type and length are filled in.
template <class M>
std::vector<std::byte> encode(M message, std::string_view tail = {}) {
  static_assert(std::is_trivially_copyable_v<M>);
  message.header.type = M::kType;
  message.header.bytes = static_cast<std::uint32_t>(sizeof(M) + tail.size());
  std::vector<std::byte> packet(sizeof(M) + tail.size());
  std::memcpy(packet.data(), &message, sizeof(M));
  if (!tail.empty()) std::memcpy(packet.data() + sizeof(M), tail.data(), tail.size());
  return packet;
}
template <class M>
Status send(int socket, M message, std::span<const int> fds = {}, std::string_view tail = {}) {
  return send_bytes(socket, encode(message, tail), fds);
}
Status refuse(int socket, std::uint32_t request, leat_error error, std::string_view text);

// Client's and observer's side; the daemon's is listener.h. Waits at most timeout_ns where others wait to be accepted.
// *error says which: daemon_absent, not_permitted, timed_out or system.
inline constexpr std::int64_t kConnectNs = 2'000'000'000;
Result<Fd> connect_to(const std::string& path, leat_error* error, std::int64_t timeout_ns = kConnectNs);
// Waits for the reply to `request`, at most timeout_ns. A refusal of it, or of the whole connection (request 0),
// becomes an error text and *error. The reply's packet is returned still encoded; decode it.
struct Reply {
  std::vector<std::byte> packet;
  std::vector<Fd> fds;
};
Result<Reply> await_reply(int socket, std::uint32_t request, std::int64_t timeout_ns, leat_error* error);

// What `leat top` and `leat status` use: connect, say hello as an observer, and ask. Each of these waits for leatd's
// reply, at most patience_ns.
class Observer {
 public:
  static Result<Observer> connect(const std::string& path, leat_error* error, std::int64_t patience_ns = kConnectNs);
  struct Counters {
    Fd fd;
    std::uint64_t bytes = 0;
  };
  Result<Counters> counters(leat_error* error);
  Result<std::string> status(leat_error* error);                                               // JSON
  Result<std::uint64_t> change(const Change& what, std::string_view text, leat_error* error);  // its number
  int fd() const noexcept { return socket_.get(); }  // hung up when the daemon is gone

 private:
  template <class M>
  Result<Reply> ask(M message, leat_error* error, std::string_view tail = {});
  Fd socket_;
  std::int64_t patience_ns_ = kConnectNs;
  std::uint32_t request_ = 1;
};

}  // namespace leat::shm
