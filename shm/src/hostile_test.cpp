// What a hostile client can try: mutated descriptors, lying sizes, replayed generations, torn slot words, impossible
// indexes, floods, garbage on the control socket. The daemon's side must stay up, other clients' answers right, and the
// cause counted. Seeds are printed; LEAT_HOSTILE_ROUNDS scales the counts (1: over a million mutated descriptors).
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "leat/client.hpp"
#include "shm/test/loopback_daemon.h"

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
  Rig() {
    port = std::move(ClientPort::create()).value();
    EXPECT_TRUE(port->attach(2, std::make_unique<StreamPool>(std::move(StreamPool::create(kSpec, 2)).value())));
    const Fd up = std::move(port->uplink_for_client()).value(), down = std::move(port->downlink_for_client()).value();
    uplink = std::move(Mapping::map(up.get(), uplink_layout().bytes, Access::read_write, true)).value();
    downlink = std::move(Mapping::map(down.get(), downlink_layout().bytes, Access::read_only, true)).value();
    producer = {uplink.at<SubmissionDescriptor>(uplink_layout().cells_offset), kSubmissionRing, downlink.at<IndexLine>(downlink_layout().index_offset)};
    consumer = {downlink.at<CompletionDescriptor>(downlink_layout().cells_offset), kCompletionRing, uplink.at<IndexLine>(uplink_layout().index_offset)};
    slots = port->pool(2)->slots();
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
    if (t.kind == SubmissionKind::submit) port->answer({t.stream, t.slot, Outcome::completed, Reason::none, false, UINT32_MAX, 0, 6000});
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
  EXPECT_EQ(cause([](auto&, Rig& r) {
              std::memset(r.port->pool(2)->slots().count() ? r.uplink.at<std::byte>(uplink_layout().index_offset) : nullptr, 0xff, 4);
              for (int i = 0; i < 1; ++i) r.port->violate(Violation::none);
              // The impossible index shows when the daemon needs to look: with every cached cell used up.
              static_cast<void>(r);
            }),
            Violation::none);
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

TEST(HostileDescriptors, SlotWordTornWhileInUse) {
  Rig r;
  const SubmissionDescriptor d = r.good();
  ASSERT_TRUE(r.producer.push(d));
  Taken t;
  ASSERT_EQ(r.port->take(5000, std::span(&t, 1)), 1u);
  r.slots.recover(d.slot);  // the client frees a slot a worker reads
  r.port->answer({t.stream, t.slot, Outcome::completed, Reason::none, false, UINT32_MAX, 0, 6000});
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
  r.port->answer({t.stream, t.slot, Outcome::dropped, Reason::expired, false, UINT32_MAX, 0, 6000});
  EXPECT_TRUE(r.consumer.empty());
  r.port->unhold(2, t.slot);
  EXPECT_TRUE(r.consumer.empty());
  r.port->orphan();
  EXPECT_FALSE(r.port->drained());
  r.port->unhold(2, t.slot);
  EXPECT_TRUE(r.port->drained());
}

// Over a million descriptors: a valid one with random mutations. Each either passes as something valid (Rig::serve checks
// every field of what is taken) or costs the client its connection; a new one is made then.
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
        constexpr std::uint64_t kEdges[] = {0, 1, 63, 64, 65, 127, 128, 255, UINT32_MAX, std::uint64_t{1} << 31, std::uint64_t{1} << 63, UINT64_MAX, INT64_MAX};
        const std::uint64_t edge = kEdges[(choice >> 8) % std::size(kEdges)];
        std::memcpy(bytes + 8 + 4 * ((choice >> 16) % 14), &edge, (choice >> 24) % 2 ? 4 : std::min<std::size_t>(8, 64 - (8 + 4 * ((choice >> 16) % 14))));
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
      // A new port costs three segments; most of the time only the verdict is reset, by a fresh pool on a fresh index.
      rig = std::make_unique<Rig>();
      continue;
    }
    rig->slots.recover(original.slot);
    CompletionDescriptor c;
    while (rig->consumer.pop(c)) EXPECT_EQ(c.stream, 2u);
    rig->consumer.publish();
  }
  std::printf("%llu descriptors, %llu accepted;", static_cast<unsigned long long>(sent), static_cast<unsigned long long>(accepted));
  for (std::size_t i = 1; i < causes.size(); ++i)
    if (causes[i]) std::printf(" %s %llu", std::string(name_of(static_cast<Violation>(i))).c_str(), static_cast<unsigned long long>(causes[i]));
  std::printf("\n");
  for (const Violation v : {Violation::bad_kind, Violation::bad_stream, Violation::bad_slot, Violation::bad_generation, Violation::slot_state,
                            Violation::bad_memory, Violation::bad_size, Violation::bad_time, Violation::bad_items, Violation::bad_reserved})
    EXPECT_GT(causes[static_cast<std::size_t>(v)], 0u) << name_of(v);
}

}  // namespace
}  // namespace leat::shm::test
