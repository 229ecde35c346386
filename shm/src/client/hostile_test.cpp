// What a hostile client can try: mutated descriptors, lying sizes, replayed generations, torn slot words, impossible
// indexes, floods, garbage on the control socket. The daemon's side must stay up, other clients' answers right, and the
// cause counted. Seeds are printed.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "leat/client.hpp"
#include "shm/test/loopback_daemon.h"

namespace leat::shm {
struct PortTestAccess {
  static void pardon(ClientPort& port) { port.violation_ = Violation::none; }
};
}  // namespace leat::shm

namespace leat::shm::test {
namespace {

constexpr PoolSpec kSpec{LEAT_FORMAT_gray8, 64, 16, {}, 8, LEAT_SLOT_HOST};

std::uint64_t seeded() {
  const char* given = std::getenv("LEAT_SEED");
  const std::uint64_t seed = given ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("seed %llu (LEAT_SEED)\n", static_cast<unsigned long long>(seed));
  return seed;
}

// A port and a client of it that writes what it likes: raw mappings, no library.
struct Rig {
  explicit Rig(const PoolSpec& spec = kSpec) {
    port = std::move(ClientPort::create()).value();
    EXPECT_TRUE(port->attach(2, std::make_unique<StreamPool>(std::move(StreamPool::create(spec)).value())));
    const Fd up = std::move(port->uplink_for_client()).value(), down = std::move(port->downlink_for_client()).value();
    uplink = std::move(Mapping::map(up.get(), uplink_layout().bytes, Access::read_write, true)).value();
    downlink = std::move(Mapping::map(down.get(), downlink_layout().bytes, Access::read_only, true)).value();
    producer = {uplink.at<SubmissionDescriptor>(uplink_layout().cells_offset), kSubmissionRing,
                downlink.at<IndexLine>(downlink_layout().index_offset)};
    consumer = {downlink.at<CompletionDescriptor>(downlink_layout().cells_offset), kCompletionRing,
                uplink.at<IndexLine>(uplink_layout().index_offset)};
    slots = FrameSlots(uplink.at<SlotWord>(uplink_layout().stream_words(2)), kSpec.slots, 2);
    EXPECT_TRUE(port->secure());
  }
  SubmissionDescriptor good() {
    const auto got = slots.acquire();
    EXPECT_TRUE(got);
    EXPECT_TRUE(slots.submit(got->slot, got->generation));
    SubmissionDescriptor d;
    d.stream = 2;
    d.slot = got->slot;
    d.generation = got->generation;
    d.capture_ns = 1000;
    return d;
  }
  // The one descriptor taken, answered and released. False: refused.
  bool serve() {
    Taken t;
    if (port->take(5000, std::span(&t, 1)) != 1) return false;
    EXPECT_EQ(t.stream, 2u);
    EXPECT_LT(t.slot, kSpec.slots);
    EXPECT_GE(t.items, 1u);
    EXPECT_LE(t.items, kMaxItems);
    EXPECT_LE(t.bytes, pool_layout(kSpec).frame_bytes);
    EXPECT_GT(t.capture_ns, 0);
    EXPECT_LE(t.capture_ns, 5000);
    EXPECT_GE(t.deadline_ns, 0);
    if (t.kind == SubmissionKind::submit)
      port->answer({t.stream, t.slot, Outcome::completed, Reason::none, false, t.color, UINT32_MAX, 0, 6000});
    return true;
  }
  std::unique_ptr<ClientPort> port;
  Mapping uplink, downlink;
  RingProducer<SubmissionDescriptor> producer;
  RingConsumer<CompletionDescriptor> consumer;
  FrameSlots slots;
};

TEST(HostileDescriptors, EachCauseIsNamed) {
  const auto cause = [](auto change) {
    Rig r;
    SubmissionDescriptor d = r.good();
    change(d, r);
    EXPECT_TRUE(r.producer.push(d));
    EXPECT_FALSE(r.serve());
    EXPECT_FALSE(r.port->has_submissions()) << "nothing more is taken from it";
    return r.port->violation();
  };
  EXPECT_EQ(cause([](auto& d, Rig&) { d.kind = SubmissionKind{9}; }), Violation::bad_kind);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.kind = SubmissionKind::observe; }), Violation::bad_reserved);  // and a frame
  EXPECT_EQ(cause([](auto& d, Rig&) { d.stream = 3; }), Violation::bad_stream);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.stream = 65535; }), Violation::bad_stream);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.slot = kSpec.slots; }), Violation::bad_slot);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.slot = UINT32_MAX; }), Violation::bad_slot);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.generation = UINT32_MAX; }), Violation::bad_generation);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.generation += 1; }), Violation::slot_state);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.slot = (d.slot + 1) % kSpec.slots; }), Violation::slot_state);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.memory = LEAT_SLOT_DEVICE; }), Violation::bad_memory);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.bytes = pool_layout(kSpec).frame_bytes + 1; }), Violation::bad_size);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.bytes = UINT64_MAX; }), Violation::bad_size);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.capture_ns = 0; }), Violation::bad_time);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.capture_ns = INT64_MAX; }), Violation::bad_time);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.deadline_ns = INT64_MIN; }), Violation::bad_time);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.items = 0; }), Violation::bad_items);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.items = kMaxItems + 1; }), Violation::bad_items);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.reserved = 1; }), Violation::bad_reserved);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.gap = 1; }), Violation::bad_reserved);  // pixels have none
  EXPECT_EQ(cause([](auto& d, Rig&) { d.damaged = 2; }), Violation::bad_reserved);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.color.range = 3; }), Violation::bad_color);
  EXPECT_EQ(cause([](auto& d, Rig&) { d.color.matrix = 4; }), Violation::bad_color);
}

TEST(HostileDescriptors, AccessUnitsHaveALengthWithinTheirSlot) {
  PoolSpec spec{LEAT_FORMAT_nv12, 64, 16, {1000, 0, 0}, 8, LEAT_SLOT_BITSTREAM};
  spec.codec = LEAT_CODEC_h264;
  ASSERT_EQ(problem(spec), nullptr);
  const auto cause = [&](auto change) {
    Rig r(spec);
    SubmissionDescriptor d = r.good();
    d.memory = LEAT_SLOT_BITSTREAM;
    d.bytes = 900;
    change(d);
    EXPECT_TRUE(r.producer.push(d));
    Taken t;
    if (r.port->take(5000, std::span(&t, 1)) == 1) {
      EXPECT_EQ(t.bytes, d.bytes);
    }
    return r.port->violation();
  };
  EXPECT_EQ(cause([](auto&) {}), Violation::none);
  EXPECT_EQ(cause([](auto& d) { d.gap = 1; }), Violation::none);
  EXPECT_EQ(cause([](auto& d) { d.gap = 2; }), Violation::bad_reserved);
  EXPECT_EQ(cause([](auto& d) { d.bytes = 0; }), Violation::bad_size);
  EXPECT_EQ(cause([&](auto& d) { d.bytes = pool_layout(spec).frame_bytes + 1; }), Violation::bad_size);
  EXPECT_EQ(cause([](auto& d) { d.bytes = UINT64_MAX; }), Violation::bad_size);
  EXPECT_EQ(cause([](auto& d) { d.items = 2; }), Violation::bad_items);
  EXPECT_EQ(cause([](auto& d) { d.memory = LEAT_SLOT_HOST; }), Violation::bad_memory);
}

TEST(HostileDescriptors, BitstreamsThatCannotBeAreRefusedInOneLine) {
  PoolSpec good{LEAT_FORMAT_nv12, 640, 360, {}, 8, LEAT_SLOT_BITSTREAM};
  good.codec = LEAT_CODEC_hevc;
  ASSERT_EQ(problem(good), nullptr);
  const auto refused = [&](auto change) {
    PoolSpec spec = good;
    change(spec);
    return problem(spec) != nullptr;
  };
  EXPECT_TRUE(refused([](PoolSpec& s) { s.codec = 0; }));
  EXPECT_TRUE(refused([](PoolSpec& s) { s.codec = UINT32_MAX; }));
  EXPECT_TRUE(refused([](PoolSpec& s) { s.codec = LEAT_CODEC_jpeg; })) << "its pictures are rgb24";
  EXPECT_TRUE(refused([](PoolSpec& s) { s.memory = LEAT_SLOT_HOST; })) << "a codec of pixels";
  EXPECT_TRUE(refused([](PoolSpec& s) { s.memory = LEAT_SLOT_DEVICE; }));
  EXPECT_TRUE(refused([](PoolSpec& s) { s.slots = kMaxBitstreamSlots + 1; }));
  EXPECT_TRUE(refused([](PoolSpec& s) { s.width = s.height = kMaxDimension; })) << "more than the device is to hold";
  EXPECT_TRUE(refused([](PoolSpec& s) { s.strides[0] = kMaxAccessUnit + 1; }));
  EXPECT_TRUE(refused([](PoolSpec& s) { s.strides[1] = 1; }));
  EXPECT_TRUE(refused([](PoolSpec& s) { s.width = 641; }));
}

TEST(HostileDescriptors, ReplayedGenerations) {
  Rig r;
  const SubmissionDescriptor d = r.good();
  ASSERT_TRUE(r.producer.push(d));
  ASSERT_TRUE(r.serve());
  ASSERT_TRUE(r.slots.free(d.slot, d.generation));
  ASSERT_TRUE(r.producer.push(d));  // the same again
  EXPECT_FALSE(r.serve());
  EXPECT_EQ(r.port->violation(), Violation::bad_generation);
}

TEST(HostileDescriptors, SlotSubmittedTwiceWhileInUse) {
  Rig r;
  const SubmissionDescriptor d = r.good();
  ASSERT_TRUE(r.producer.push(d));
  ASSERT_TRUE(r.producer.push(d));
  Taken t[2];
  EXPECT_EQ(r.port->take(5000, t), 1u);
  EXPECT_EQ(r.port->violation(), Violation::slot_busy);
}

TEST(HostileDescriptors, AReportIsHandedOnAsItIsAndNeedsNoAnswer) {
  Rig r;
  SubmissionDescriptor d;
  d.kind = SubmissionKind::observe;
  d.stream = 2;
  d.key = d.items = UINT32_MAX;  // nonsense is for the core to ignore
  d.deadline_ns = INT64_MIN;
  ASSERT_TRUE(r.producer.push(d));
  Taken t;
  ASSERT_EQ(r.port->take(5000, std::span(&t, 1)), 1u);
  EXPECT_EQ(t.kind, SubmissionKind::observe);
  EXPECT_EQ(t.items, UINT32_MAX);
  EXPECT_TRUE(r.port->drained());
  EXPECT_EQ(r.port->violation(), Violation::none);
}

// What a client says of its offers is a hint: any words are taken, and a ring is sent only to who sleeps.
TEST(HostileDescriptors, AnyWordsInAnOfferCellDoNothing) {
  Rig r;
  OfferCell* const cell = r.uplink.at<OfferCell>(uplink_layout().offer(2));
  EXPECT_FALSE(r.port->offers(2));
  std::memset(static_cast<void*>(cell), 0xFF, sizeof *cell);
  EXPECT_TRUE(r.port->offers(2));
  EXPECT_EQ(r.port->offered(2), UINT64_MAX);
  EXPECT_EQ(r.port->newest_ns(2), -1);
  Schedule told;
  told.standing = LEAT_STANDING_TURNS;
  told.granted = 1;
  r.port->schedule(2, told);
  EXPECT_TRUE(r.port->awaits_turn(2));
  r.port->urge();
  EXPECT_FALSE(r.port->wants_ring());  // it says that it waits, and does not sleep
  announce_sleep(*r.uplink.at<SleepWord>(uplink_layout().sleep_offset));
  r.port->urge();
  EXPECT_TRUE(r.port->wants_ring());
  r.port->schedule(2, told);
  r.port->urge();
  EXPECT_FALSE(r.port->wants_ring()) << "once for each sleep";
  // Pages and cells of other streams are as they were.
  for (std::uint32_t s = 0; s < kMaxStreamsPerClient; ++s) {
    std::uint64_t seen = 0;
    Schedule read;
    EXPECT_EQ(r.downlink.at<SchedulePage>(downlink_layout().schedule(s))->read(seen, read), s == 2);
  }
  EXPECT_EQ(r.port->violation(), Violation::none);
  ASSERT_TRUE(r.producer.push(r.good()));
  EXPECT_TRUE(r.serve());
}

TEST(HostileDescriptors, SlotWordTornWhileInUse) {
  Rig r;
  const SubmissionDescriptor d = r.good();
  ASSERT_TRUE(r.producer.push(d));
  Taken t;
  ASSERT_EQ(r.port->take(5000, std::span(&t, 1)), 1u);
  r.slots.recover(d.slot);  // the client frees a slot a worker reads
  r.port->answer({t.stream, t.slot, Outcome::completed, Reason::none, false, t.color, UINT32_MAX, 0, 6000});
  EXPECT_EQ(r.port->violation(), Violation::slot_state);
  EXPECT_TRUE(r.port->drained());
}

TEST(HostileDescriptors, ImpossibleCompletionIndex) {
  Rig r;
  for (std::uint32_t i = 0; i <= kCompletionRing; ++i) {
    SubmissionDescriptor d = r.good();
    ASSERT_TRUE(r.producer.push(d));
    if (!r.serve()) break;
    ASSERT_TRUE(r.slots.free(d.slot, d.generation));
    r.uplink.at<IndexLine>(uplink_layout().index_offset)->value = 0x8000'0000;
  }
  EXPECT_EQ(r.port->violation(), Violation::bad_index);
}

TEST(HostileDescriptors, NeverReadingAnswersIsAFlood) {
  Rig r;
  for (std::uint32_t i = 0; i <= kCompletionRing && r.port->violation() == Violation::none; ++i) {
    SubmissionDescriptor d = r.good();
    ASSERT_TRUE(r.producer.push(d));
    if (!r.serve()) break;
    ASSERT_TRUE(r.slots.free(d.slot, d.generation));
  }
  EXPECT_EQ(r.port->violation(), Violation::flood);
}

TEST(HostileDescriptors, HeldSlotsKeepTheirAnswerBack) {
  Rig r;
  const SubmissionDescriptor d = r.good();
  ASSERT_TRUE(r.producer.push(d));
  Taken t;
  ASSERT_EQ(r.port->take(5000, std::span(&t, 1)), 1u);
  r.port->hold(2, t.slot);
  r.port->hold(2, t.slot);
  r.port->answer({t.stream, t.slot, Outcome::dropped, Reason::expired, false, {}, UINT32_MAX, 0, 6000});
  EXPECT_TRUE(r.consumer.empty());
  r.port->unhold(2, t.slot);
  EXPECT_TRUE(r.consumer.empty());
  r.port->orphan();
  EXPECT_FALSE(r.port->drained());
  r.port->unhold(2, t.slot);
  EXPECT_TRUE(r.port->drained());
}

// Over a million descriptors: a valid one with random mutations. Each either passes as something valid (Rig::serve
// checks every field of what is taken) or costs the client its connection; a new one is made then.
TEST(HostileDescriptors, AMillionMutations) {
  std::mt19937_64 random(seeded());
  const std::uint64_t wanted = 1'050'000;
  std::array<std::uint64_t, 32> causes{};
  auto rig = std::make_unique<Rig>();
  std::uint64_t sent = 0, accepted = 0;
  while (sent < wanted) {
    SubmissionDescriptor d = rig->good();
    const SubmissionDescriptor original = d;
    auto* bytes = reinterpret_cast<unsigned char*>(&d);
    const std::uint64_t choice = random();
    switch (choice % 4) {
      case 0:
        bytes[4 + (choice >> 8) % 60] ^= static_cast<unsigned char>(1u << (choice >> 16) % 8);
        break;
      case 1: {
        constexpr std::uint64_t kEdges[] = {
            0,          1,        63, 64, 65, 127, 128, 255, UINT32_MAX, std::uint64_t{1} << 31, std::uint64_t{1} << 63,
            UINT64_MAX, INT64_MAX};
        const std::uint64_t edge = kEdges[(choice >> 8) % std::size(kEdges)];
        std::memcpy(bytes + 8 + 4 * ((choice >> 16) % 14), &edge,
                    (choice >> 24) % 2 ? 4 : std::min<std::size_t>(8, 64 - (8 + 4 * ((choice >> 16) % 14))));
        break;
      }
      case 2:
        for (int i = 4; i < 64; ++i) bytes[i] = static_cast<unsigned char>(random());
        break;
      default:  // the slot word instead of the descriptor
        if ((choice >> 8) % 4 == 0) rig->slots.recover(d.slot);
    }
    ASSERT_TRUE(rig->producer.push(d));
    ++sent;
    const bool taken = rig->serve();
    accepted += taken;
    if (rig->port->violation() != Violation::none) {
      ++causes[static_cast<std::size_t>(rig->port->violation())];
      // A new client costs four segments, so most of the time the port is only pardoned.
      if (sent % 500 == 0) {
        rig = std::make_unique<Rig>();
        continue;
      }
      PortTestAccess::pardon(*rig->port);
    }
    rig->slots.recover(original.slot);
    CompletionDescriptor c;
    while (rig->consumer.pop(c)) EXPECT_EQ(c.stream, 2u);
    rig->consumer.publish();
  }
  std::printf("%llu descriptors, %llu accepted;", static_cast<unsigned long long>(sent),
              static_cast<unsigned long long>(accepted));
  for (std::size_t i = 1; i < causes.size(); ++i)
    if (causes[i])
      std::printf(" %s %llu", std::string(name_of(static_cast<Violation>(i))).c_str(),
                  static_cast<unsigned long long>(causes[i]));
  std::printf("\n");
  for (const Violation v : {Violation::bad_kind, Violation::bad_stream, Violation::bad_slot, Violation::bad_generation,
                            Violation::slot_state, Violation::bad_memory, Violation::bad_size, Violation::bad_time,
                            Violation::bad_items, Violation::bad_reserved})
    EXPECT_GT(causes[static_cast<std::size_t>(v)], 0u) << name_of(v);
}

// ---- control messages ----

std::vector<std::vector<std::byte>> good_messages() {
  OpenStream open;
  set_text(open.application, "echo");
  open.pool = kSpec;
  open.settings.depth = 4;
  return {encode(Hello{}),         encode(open),     encode(CloseStream{}), encode(Observe{}),
          encode(StatusRequest{}), encode(Refused{})};
}

// One random change: bits, bytes, edges, length, or all of it.
void mutate(std::vector<std::byte>& m, std::mt19937_64& random) {
  const std::uint64_t choice = random();
  switch (choice % 5) {
    case 0:
      m[(choice >> 8) % m.size()] ^= static_cast<std::byte>(1u << (choice >> 40) % 8);
      break;
    case 1:
      m.resize((choice >> 8) % (m.size() + 64));
      break;
    case 2: {
      const std::uint32_t edges[] = {0, 1, UINT32_MAX, 0x8000'0000, 0x7fff'ffff, static_cast<std::uint32_t>(random())};
      std::memcpy(m.data() + 4 * ((choice >> 8) % (m.size() / 4)), &edges[(choice >> 40) % std::size(edges)], 4);
      break;
    }
    case 3:
      for (std::size_t i = sizeof(Header); i < m.size(); ++i) m[i] = static_cast<std::byte>(random());
      break;
    default:
      m.resize(1 + (choice >> 8) % 512);
      for (auto& b : m) b = static_cast<std::byte>(random());
  }
}

// What decode() lets through must be harmless: every field in range, every text terminated.
template <class M>
void expect_sound(std::span<const std::byte> packet) {
  M m;
  std::string_view tail;
  if (decode(packet, &m, &tail) != nullptr) return;
  EXPECT_EQ(m.header.bytes, packet.size());
  EXPECT_LE(tail.size(), packet.size() - sizeof(M));
  if constexpr (std::is_same_v<M, OpenStream>) {
    EXPECT_EQ(problem(m.pool), nullptr);
    EXPECT_LT(text_of(m.application).size(), sizeof m.application);
    EXPECT_LE(m.pool.slots, kMaxSlotsPerStream);
    EXPECT_LT(pool_layout(m.pool).frames_bytes, std::uint64_t{1} << 42);
  }
  if constexpr (std::is_same_v<M, CloseStream>) {
    EXPECT_LT(m.stream, kMaxStreamsPerClient);
  }
}

TEST(HostileControl, AMillionMutatedMessagesThroughTheDecoders) {
  std::mt19937_64 random(seeded());
  const auto good = good_messages();
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    auto m = good[i % good.size()];
    mutate(m, random);
    Header header;
    static_cast<void>(decode_header(m, &header));
    for_each_message([&]<class M>(const M&) { expect_sound<M>(m); });
  }
}

struct HostileDaemonTest : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/leat-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    LoopbackDaemon::Options options;
    options.socket = folder + "/leat.sock";
    socket = options.socket;
    daemon = std::make_unique<LoopbackDaemon>(options);
    ASSERT_EQ(daemon->problem(), "");
  }
  void TearDown() override {
    daemon.reset();
    ::rmdir(folder.c_str());
  }
  Fd connect() {
    leat_error error = LEAT_ERROR_ok;
    return std::move(connect_to(socket, &error)).value();
  }
  std::string folder, socket;
  std::unique_ptr<LoopbackDaemon> daemon;
};

// An honest client served beside whatever the test does; its answers must stay right to the end.
struct Honest {
  explicit Honest(const std::string& socket)
      : client(std::move(Client::connect(socket, "honest")).value()), thread([this] { run(); }) {}
  ~Honest() {
    stop = true;
    thread.join();
    EXPECT_GT(answers, 0u);
    EXPECT_EQ(wrong, 0u);
  }
  void run() {
    StreamOptions o;
    o.application = "echo";
    o.format = LEAT_FORMAT_gray8;
    o.width = 64;
    o.height = 16;
    auto stream = client.open_stream(o);
    for (unsigned i = 0; !stop || answers == 0; ++i) {
      auto f = stream ? stream->acquire() : std::nullopt;
      if (!f) {
        ++wrong;
        return;
      }
      for (std::uint32_t b = 0; b < (*f)->bytes; ++b) (*f)->planes[0][b] = static_cast<std::uint8_t>(i * 13 + b);
      const std::uint64_t expected = checksum((*f)->planes[0], (*f)->bytes);
      wrong += f->submit() != LEAT_ERROR_ok;
      auto a = client.next_answer(std::chrono::seconds(20));
      if (!a || a->result() == nullptr || a->result()->checksum != expected) {
        ++wrong;
        return;
      }
      ++answers;
    }
  }
  Client client;
  std::atomic<bool> stop{false};
  std::uint64_t answers = 0, wrong = 0;
  std::thread thread;
};

TEST_F(HostileDaemonTest, GarbageOnTheControlSocket) {
  std::mt19937_64 random(seeded());
  const Honest honest(socket);
  const auto good = good_messages();
  for (int connection = 0; connection < 400; ++connection) {
    const Fd fd = connect();
    for (std::uint64_t i = random() % 8; i > 0; --i) {
      auto m = good[random() % good.size()];
      if (random() % 4) mutate(m, random);
      if (m.empty()) continue;
      if (::send(fd.get(), m.data(), m.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
    }
  }
  EXPECT_GT(daemon->violations(Violation::control_message), 0u);
}

TEST_F(HostileDaemonTest, DescriptorsPushedAtTheDaemonAreDropped) {
  const Honest honest(socket);
  const Fd fd = connect();
  const int fds[] = {fd.get(), fd.get(), fd.get(), fd.get()};
  for (int i = 0; i < 200; ++i)
    if (!send(fd.get(), StatusRequest{}, fds)) break;
}

// Whole clients with real segments that scribble over everything they may write, while an honest one is served.
TEST_F(HostileDaemonTest, ScribblingOverItsOwnSegments) {
  std::mt19937_64 random(seeded());
  const Honest honest(socket);
  for (int round = 0; round < 150; ++round) {
    const Fd fd = connect();
    leat_error error = LEAT_ERROR_ok;
    Hello hello;
    hello.header.request = 1;
    ASSERT_TRUE(send(fd.get(), hello));
    auto welcome = await_reply(fd.get(), 1, 5'000'000'000, &error);
    ASSERT_TRUE(welcome) << welcome.error();
    auto up = Mapping::map(welcome->fds[0].get(), uplink_layout().bytes, Access::read_write, false);
    ASSERT_TRUE(up);
    const auto mapped = [&](std::uint32_t request, std::uint32_t part) {
      Mapped m;
      m.header.request = request;
      m.stream = part;
      return send(fd.get(), m) && await_reply(fd.get(), request, 5'000'000'000, &error);
    };
    ASSERT_TRUE(mapped(4, kLinks));
    OpenStream open;
    open.header.request = 2;
    set_text(open.application, "echo");
    open.pool = kSpec;
    open.settings.depth = 4;
    ASSERT_TRUE(send(fd.get(), open));
    auto opened = await_reply(fd.get(), 2, 5'000'000'000, &error);
    ASSERT_TRUE(opened) << opened.error();
    auto frames = Mapping::map(opened->fds[0].get(), pool_layout(kSpec).frames_bytes, Access::read_write, false);
    ASSERT_TRUE(frames);
    ASSERT_TRUE(mapped(5, 0));
    EXPECT_FALSE(Mapping::map(welcome->fds[1].get(), downlink_layout().bytes, Access::read_write, false));
    EXPECT_FALSE(Mapping::map(opened->fds[1].get(), pool_layout(kSpec).results_bytes, Access::read_write, false));
    EXPECT_NE(::ftruncate(welcome->fds[0].get(), 0), 0);
    auto* cells = up->at<SubmissionDescriptor>(uplink_layout().cells_offset);
    for (std::uint32_t i = 0; i < 300; ++i) {
      SubmissionDescriptor d;
      d.slot = static_cast<std::uint32_t>(random() % 10);
      d.generation = static_cast<std::uint32_t>(random() % 3);
      d.capture_ns = static_cast<std::int64_t>(random() % 3);
      d.sequence = random() % 50 == 0 ? static_cast<std::uint32_t>(random()) : i + 1;
      std::memcpy(static_cast<void*>(cells + i), &d, sizeof d);
      *up->at<std::uint64_t>(uplink_layout().stream_words(0) + kSlotWordBytes * (random() % kSpec.slots)) =
          random() % 2 ? pack({SlotState::submitted, 0, d.generation}) : random();
      *up->at<std::uint32_t>(uplink_layout().index_offset) = static_cast<std::uint32_t>(random());
      *up->at<std::uint32_t>(uplink_layout().sleep_offset) = static_cast<std::uint32_t>(random());
    }
    const char ring = 1;
    static_cast<void>(::send(welcome->fds[2].get(), &ring, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
    if (round % 3 == 0) continue;  // leaves without waiting for the verdict
    // Until the daemon has looked: it answers this, or has ended the connection.
    StatusRequest ask;
    ask.header.request = 3;
    if (send(fd.get(), ask)) static_cast<void>(await_reply(fd.get(), 3, 5'000'000'000, &error));
  }
  EXPECT_GT(daemon->violations(), 0u);
}

}  // namespace
}  // namespace leat::shm::test
