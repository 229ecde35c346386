// Hostile clients against a live leatd: mutated descriptors, replays, torn slot words, impossible indexes, floods,
// lying and truncated control messages, wrong users. The daemon stays up, an honest client's answers stay right (the
// emulated executor's checksum proves it), its ledger exact, and the counters name the cause. No library: raw segments
// and sockets.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "shm/src/client/client_port.h"
#include "shm/src/protocol/control_protocol.h"
#include "shm/src/rings/ring.h"
#include "tests/attacks/arena/raw_client.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/text/sanitized.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using shm::DaemonCounter;
using shm::RecordKind;
using shm::StreamCounter;
using shm::SubmissionDescriptor;

constexpr std::uint64_t kDescriptors = kSanitized ? 250'000 : 1'000'000;

std::string config() {
  return "[daemon]\nsocket_mode = \"0666\"\nallow_uids = [" + std::to_string(getuid()) + R"(]
[limits]
clients = 16
streams = 32
client_memory_mib = 16
[[partition]]
name = "p"
kind = "emulated"
count = 2
[[application]]
name = "echo"
slo_ms = 60000
  [[application.module]]
  name = "sum"
  latency_ms = [0.1, 0.15, 0.2, 0.25]
)";
}

class Assault {
 public:
  Assault(std::string path, std::uint64_t seed, std::uint64_t wanted)
      : path_(std::move(path)), random_(seed), wanted_(wanted) {}

  void run() {
    static constexpr void (Assault::*kTricks[])(RawClient&) = {
        &Assault::mutate,      &Assault::mutate,      &Assault::mutate,      &Assault::cancels,
        &Assault::replay,      &Assault::tear_words,  &Assault::lie_index,   &Assault::vanish,
        &Assault::hammer_bell, &Assault::wrong_field, &Assault::wrong_field, &Assault::wrong_field};
    for (std::uint64_t round = 0; pushed_ < wanted_; ++round) {
      RawClient a;
      if (!a.connect(path_)) continue;
      if (round % 4 == 3) {
        garbage(a);
        continue;
      }
      if (!a.hello() || !a.open()) continue;
      // Each in turn, then as chance will have it: bits turned by chance do not reach every cause in a short run.
      const std::uint64_t trick = sessions_ < std::size(kTricks) ? sessions_ : random_() % std::size(kTricks);
      ++sessions_;
      (this->*kTricks[trick])(a);
    }
  }
  std::uint64_t pushed() const { return pushed_; }
  std::uint64_t sessions() const { return sessions_; }

 private:
  void push(RawClient& a, SubmissionDescriptor d) {
    if (a.push(d)) ++pushed_;
  }
  void flip(SubmissionDescriptor& d) {
    auto* bytes = reinterpret_cast<unsigned char*>(&d) + sizeof(d.sequence);
    for (std::uint64_t i = 0, n = 1 + random_() % 3; i < n; ++i)
      bytes[random_() % (sizeof(d) - sizeof(d.sequence))] ^= static_cast<unsigned char>(1u << random_() % 8);
  }
  // Good descriptors with random bits turned, as many as the ring takes.
  void mutate(RawClient& a) {
    for (int i = 0; i < 4; ++i) push(a, a.good());
    for (std::uint32_t i = 0; i < shm::kSubmissionRing; ++i) {
      SubmissionDescriptor d = a.good();
      flip(d);
      push(a, d);
    }
    a.ring();
    expect_end(a);
  }
  // Well-formed cancels of requests that are not, without end: allowed, and useless.
  void cancels(RawClient& a) {
    for (int i = 0; i < 8000; ++i) {
      SubmissionDescriptor d;
      d.kind = shm::SubmissionKind::cancel;
      d.stream = static_cast<std::uint16_t>(a.stream);
      d.slot = static_cast<std::uint32_t>(random_() % 16);
      d.generation = static_cast<std::uint32_t>(random_());
      push(a, d);
      if (i % 64 == 0) a.ring();
    }
  }
  void wrong_field(RawClient& a) {
    SubmissionDescriptor d = a.good();
    switch (wrong_++ % 3) {
      case 0:
        d.kind = static_cast<shm::SubmissionKind>(200 + random_() % 50);
        break;
      case 1:
        d.stream = static_cast<std::uint16_t>(a.stream + 1 + random_() % 10'000);
        break;
      default:
        d.slot += 1000 + static_cast<std::uint32_t>(random_() % 1'000'000);
        break;
    }
    push(a, d);
    a.ring();
    expect_end(a);
  }
  void replay(RawClient& a) {
    const SubmissionDescriptor d = a.good();
    for (int i = 0; i < 3; ++i) push(a, d);
    a.ring();
    expect_end(a);
  }
  void tear_words(RawClient& a) {
    const SubmissionDescriptor d = a.good();
    a.tear_words(random_());
    push(a, d);
    a.ring();
    expect_end(a);
  }
  void lie_index(RawClient& a) {
    auto* index = a.uplink.at<shm::IndexLine>(shm::uplink_layout().index_offset);
    std::atomic_ref(index->value).store(static_cast<std::uint32_t>(random_()) | 0x8000'0000u);
    // leatd looks at the index once its ring of completions seems full: as many answers as it takes.
    EXPECT_TRUE(eventually([&] {
      for (std::uint32_t slot = 0; slot < a.view.slots().count(); ++slot) {
        const shm::SlotValue v = a.view.slots().load(slot);
        if (v.state == shm::SlotState::released) (void)a.view.slots().free(slot, v.generation);
        if (v.state == shm::SlotState::free || v.state == shm::SlotState::released) push(a, a.good());
      }
      a.ring();
      return a.hung_up();
    })) << "an impossible index did not cost the connection";
  }
  void vanish(RawClient& a) {
    for (int i = 0; i < 12; ++i) push(a, a.good());
    a.ring();
  }
  void hammer_bell(RawClient& a) {
    for (int i = 0; i < 2000; ++i) a.ring();
    (void)shutdown(a.bell.get(), SHUT_RDWR);
    push(a, a.good());
  }

  // Control messages: noise, truncated, lying about their length or type, out of order, unread.
  void garbage(RawClient& a) {
    std::vector<std::byte> packet;
    const auto raw = [&](std::span<const std::byte> bytes) {
      (void)::send(a.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    };
    shm::Hello hello;
    hello.header.type = shm::MessageType::hello;
    hello.header.bytes = sizeof(hello);
    const auto as_bytes = [](auto& m) { return std::as_bytes(std::span(&m, 1)); };
    switch (random_() % 7) {
      case 0:
        packet.resize(1 + random_() % 4096);
        for (auto& b : packet) b = static_cast<std::byte>(random_());
        raw(packet);
        break;
      case 1:
        raw(as_bytes(hello).first(random_() % sizeof(hello)));
        break;
      case 2:
        hello.header.bytes = static_cast<std::uint32_t>(random_());
        raw(as_bytes(hello));
        break;
      case 3:
        hello.header.type = static_cast<shm::MessageType>(random_() % 32);
        raw(as_bytes(hello));
        break;
      case 4: {  // out of order
        shm::OpenStream open;
        (void)shm::send(a.socket.get(), open);
        break;
      }
      case 5: {  // absurd sizes, and a stream that is not there
        if (!a.hello()) return;
        shm::OpenStream open;
        shm::set_text(open.application, "echo");
        open.pool = {static_cast<std::uint32_t>(1 + random_() % 5), static_cast<std::uint32_t>(random_() % 70000),
                     static_cast<std::uint32_t>(random_() % 70000), {},
                     static_cast<std::uint32_t>(random_() % 200),   LEAT_SLOT_HOST};
        (void)a.ask(open);
        shm::CloseStream close;
        close.stream = static_cast<std::uint32_t>(random_());
        (void)shm::send(a.socket.get(), close);
        break;
      }
      default: {  // asks without reading
        hello.role = shm::PeerRole::observer;
        raw(as_bytes(hello));
        for (int i = 0; i < 300; ++i) (void)shm::send(a.socket.get(), shm::StatusRequest{});
        break;
      }
    }
    if (random_() % 2 == 0) (void)eventually([&] { return a.hung_up(); }, 20ms);
  }

  void expect_end(RawClient& a) {
    // Replies may wait unread in front of the hang-up, but none is expected after StreamOpened.
    EXPECT_TRUE(eventually([&] { return a.hung_up(); })) << "a violation did not cost the connection";
  }

  std::string path_;
  std::mt19937_64 random_;
  std::uint64_t wanted_, pushed_ = 0, sessions_ = 0, wrong_ = 0;
};

// Serves itself all the while and counts what is wrong.
class Honest {
 public:
  explicit Honest(const std::string& socket) : socket_(socket) {
    thread_ = std::thread([this] { live(); });
  }
  void end() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
  }
  ~Honest() { end(); }
  std::uint64_t answers = 0, wrong = 0, lost = 0, completed = 0;
  bool balanced = false;

 private:
  void live() {
    auto client = Client::connect(socket_, "honest");
    if (!client.ok()) return;
    leat_stream_options o;
    leat_stream_options_init(&o);
    o.application = "echo";
    o.format = LEAT_FORMAT_nv12;
    o.width = 96;
    o.height = 32;
    o.depth = o.slots = 4;
    o.overload = LEAT_OVERLOAD_fifo;
    auto stream = client->open_stream(o);
    if (!stream.ok()) return;
    std::uint64_t sent = 0;
    const auto take = [&](std::chrono::nanoseconds limit) {
      auto answer = client->next_answer(limit);
      if (!answer) return false;
      ++answers;
      completed += answer->outcome() == Outcome::completed;
      if (answer->result() != nullptr && answer->result()->checksum != answer->raw().cookie) ++wrong;
      return true;
    };
    while (!ending_ && client->connected()) {
      while (auto frame = stream->acquire()) {
        leat_submit_options s{};
        s.cookie = paint(frame->raw(), ++sent);
        if (frame->submit(s) != LEAT_ERROR_ok) break;
      }
      (void)take(5ms);
    }
    while (answers < sent && take(60s)) {
    }
    lost = sent - answers;
  }
  std::string socket_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

TEST(Hostile, ManyDescriptorsHarmNobodyElse) {
  const std::uint64_t seed = std::getenv("LEAT_SEED") != nullptr ? std::strtoull(std::getenv("LEAT_SEED"), nullptr, 10)
                                                                 : std::random_device{}();
  std::printf("seed %llu (LEAT_SEED repeats it)\n", static_cast<unsigned long long>(seed));
  Leatd leatd(config());
  ASSERT_TRUE(leatd.alive());
  const auto workers = leatd.workers();
  Honest first(leatd.socket()), second(leatd.socket());
  Assault assault(leatd.socket(), seed, kDescriptors);
  assault.run();
  first.end();
  second.end();
  ASSERT_TRUE(leatd.alive()) << leatd.log();
  for (const Honest* h : {&first, &second}) {
    EXPECT_GT(h->answers, 100U);
    EXPECT_EQ(h->wrong, 0U);
    EXPECT_EQ(h->lost, 0U);
    EXPECT_EQ(h->completed, h->answers) << "a minute of slack is enough for everybody";
  }
  EXPECT_EQ(leatd.workers(), workers) << "no worker died";
  const auto daemon = leatd.record(RecordKind::daemon, 0);
  ASSERT_TRUE(daemon.has_value());
  std::uint64_t sum = 0;
  std::printf("%llu descriptors over %llu sessions;", static_cast<unsigned long long>(assault.pushed()),
              static_cast<unsigned long long>(assault.sessions()));
  for (std::uint32_t c = 0; c <= static_cast<std::uint32_t>(shm::Violation::bad_color); ++c) {
    sum += daemon->causes[c];
    if (daemon->causes[c] != 0)
      std::printf(" %s %llu", std::string(shm::name_of(static_cast<shm::Violation>(c))).c_str(),
                  static_cast<unsigned long long>(daemon->causes[c]));
  }
  std::printf("\n");
  EXPECT_EQ(daemon->value(DaemonCounter::clients_violated), sum);
  using V = shm::Violation;
  for (const V v : {V::bad_kind, V::bad_stream, V::bad_slot, V::slot_state, V::bad_index, V::bad_color,
                    V::control_message, V::control_order})
    EXPECT_GT(daemon->causes[static_cast<std::size_t>(v)], 0U) << shm::name_of(v);
  EXPECT_TRUE(eventually([&] {
    const auto d = leatd.record(RecordKind::daemon, 0);
    return d->value(DaemonCounter::clients) == 0U && d->value(DaemonCounter::memory_bytes) == 0U;
  })) << "what attackers held is not given back";
  const auto total = leatd.total();
  EXPECT_TRUE(balances(*total));
  EXPECT_EQ(value(*total, StreamCounter::in_flight), 0U);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

TEST(Hostile, AnotherUserIsRefused) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
  Leatd leatd(config());
  const std::string folder = leatd.socket().substr(0, leatd.socket().rfind('/'));
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (setresuid(kNobody, kNobody, kNobody) != 0) _exit(3);
    leat_client* client = nullptr;
    leat_connect_options options{};
    options.socket = leatd.socket().c_str();
    _exit(leat_connect(&options, &client) == LEAT_ERROR_not_permitted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_GT(leatd.record(RecordKind::daemon, 0)->value(DaemonCounter::clients_refused).value_or(0), 0U);
  bool named = false;
  for (std::uint32_t i = 0; i < 64 && !named; ++i) {
    const auto user = leatd.record(RecordKind::user, i);
    named = user && user->value(shm::UserCounter::uid) == 65534U &&
            user->causes[static_cast<std::size_t>(shm::Refusal::not_allowed)] > 0;
  }
  EXPECT_TRUE(named) << "the counters do not name the user and the reason";
}

}  // namespace
}  // namespace leat::test
