// frame_slots.h against a naive twin; layouts; recovery.
#include "shm/src/segments/frame_slots.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace leat::shm {
namespace {

TEST(FrameSlots, PackUnpack) {
  const SlotValue v{SlotState::in_use, 0xabcdef, 0x12345678};
  EXPECT_EQ(unpack(pack(v)), v);
}

TEST(FrameSlots, OneTurn) {
  SlotWord words[2]{};
  FrameSlots client(words, 2, 7), daemon(words, 2, 7);
  const auto a = client.acquire();
  ASSERT_TRUE(a);
  EXPECT_FALSE(daemon.take(a->slot, a->generation)) << "still being written";
  ASSERT_TRUE(client.submit(a->slot, a->generation));
  EXPECT_FALSE(client.submit(a->slot, a->generation));
  ASSERT_TRUE(daemon.take(a->slot, a->generation));
  EXPECT_FALSE(client.withdraw(a->slot, a->generation));
  EXPECT_FALSE(client.free(a->slot, a->generation)) << "in use";
  ASSERT_TRUE(daemon.release(a->slot, a->generation));
  ASSERT_TRUE(client.free(a->slot, a->generation));
  EXPECT_FALSE(client.free(a->slot, a->generation));
  EXPECT_EQ(client.load(a->slot), (SlotValue{SlotState::free, 0, a->generation + 1}));
}

// The twin says for every operation what must happen; the words must agree after each.
TEST(FrameSlots, AgainstTwin) {
  const std::uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  constexpr std::uint32_t kCount = 5, kOwner = 3;
  SlotWord words[kCount]{};
  FrameSlots slots(words, kCount, kOwner);
  struct Twin {
    SlotState state = SlotState::free;
    std::uint32_t generation = 0;
  } twin[kCount];
  for (int step = 0; step < 200000; ++step) {
    const auto slot = static_cast<std::uint32_t>(random() % kCount);
    Twin& t = twin[slot];
    const std::uint32_t generation =
        random() % 8 == 0 ? t.generation + static_cast<std::uint32_t>(random() % 3) - 1 : t.generation;
    const auto expect = [&](bool moved, SlotState from, SlotState to) {
      ASSERT_EQ(moved, t.state == from && generation == t.generation);
      if (!moved) return;
      t.state = to;
      if (to == SlotState::free) ++t.generation;
    };
    switch (random() % 8) {
      case 0: {
        const bool any =
            std::any_of(std::begin(twin), std::end(twin), [](const Twin& x) { return x.state == SlotState::free; });
        const auto got = slots.acquire();
        ASSERT_EQ(got.has_value(), any);
        if (!got) break;
        ASSERT_EQ(twin[got->slot].state, SlotState::free);
        ASSERT_EQ(twin[got->slot].generation, got->generation);
        twin[got->slot].state = SlotState::writing;
        break;
      }
      case 1:
        expect(slots.abandon(slot, generation), SlotState::writing, SlotState::free);
        break;
      case 2:
        expect(slots.submit(slot, generation), SlotState::writing, SlotState::submitted);
        break;
      case 3:
        expect(slots.withdraw(slot, generation), SlotState::submitted, SlotState::writing);
        break;
      case 4:
        expect(slots.take(slot, generation), SlotState::submitted, SlotState::in_use);
        break;
      case 5:
        expect(slots.release(slot, generation), SlotState::in_use, SlotState::released);
        break;
      case 6:
        expect(slots.free(slot, generation), SlotState::released, SlotState::free);
        break;
      default:
        if (random() % 10 != 0) break;
        slots.recover(slot);
        if (t.state != SlotState::free) t = {SlotState::free, t.generation + 1};
    }
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const SlotValue v = slots.load(i);
      ASSERT_EQ(v.state, twin[i].state);
      ASSERT_EQ(v.generation, twin[i].generation);
      ASSERT_EQ(v.owner, v.state == SlotState::free ? 0 : kOwner);
    }
  }
}

TEST(PoolLayout, NothingOverlapsAndEverythingIsAligned) {
  const std::uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20000; ++i) {
    PoolSpec s;
    s.format = static_cast<std::uint32_t>(random() % 7);
    s.width = static_cast<std::uint32_t>(random() % 4000);
    s.height = static_cast<std::uint32_t>(random() % 3000);
    s.slots = static_cast<std::uint32_t>(random() % 100);
    for (auto& stride : s.strides) stride = random() % 2 ? 0 : static_cast<std::uint32_t>(random() % 20000);
    if (problem(s) != nullptr) continue;
    const PoolLayout l = pool_layout(s);
    std::uint64_t end = 0;
    for (std::uint32_t p = 0; p < l.planes; ++p) {
      ASSERT_GE(l.plane_offset[p], end);
      ASSERT_EQ(l.plane_offset[p] % kLine, 0u);
      ASSERT_GE(l.strides[p], l.row_bytes[p]);
      end = l.plane_offset[p] + std::uint64_t{l.strides[p]} * l.rows[p];
    }
    ASSERT_LE(end, l.frame_bytes);
    ASSERT_LE(l.frame_bytes, l.slot_stride);
    ASSERT_GE(l.slots_offset, sizeof(SegmentHeader));
    ASSERT_EQ(l.frame_offset(s.slots - 1) + l.slot_stride, l.frames_bytes);
    ASSERT_EQ(l.result_offset(s.slots - 1) + sizeof(leat_result), l.results_bytes);
  }
}

TEST(PoolLayout, SaysWhatIsWrong) {
  const PoolSpec good{LEAT_FORMAT_nv12, 640, 360, {}, 4, LEAT_SLOT_HOST};
  EXPECT_EQ(problem(good), nullptr);
  const auto with = [&](auto change) {
    PoolSpec s = good;
    change(s);
    return problem(s);
  };
  EXPECT_NE(with([](PoolSpec& s) { s.format = 0; }), nullptr);
  EXPECT_NE(with([](PoolSpec& s) { s.format = 6; }), nullptr);
  EXPECT_NE(with([](PoolSpec& s) { s.width = 641; }), nullptr);
  EXPECT_NE(with([](PoolSpec& s) { s.height = 0; }), nullptr);
  EXPECT_NE(with([](PoolSpec& s) { s.width = kMaxDimension + 2; }), nullptr);
  EXPECT_NE(with([](PoolSpec& s) { s.slots = 0; }), nullptr);
  EXPECT_NE(with([](PoolSpec& s) { s.strides[0] = 639; }), nullptr);
  EXPECT_NE(with([](PoolSpec& s) { s.strides[2] = 64; }), nullptr);
  EXPECT_NE(with([](PoolSpec& s) { s.memory = LEAT_SLOT_DEVICE; }), nullptr);
}

}  // namespace
}  // namespace leat::shm
