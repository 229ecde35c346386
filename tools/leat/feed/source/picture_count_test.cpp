#include "tools/leat/feed/source/picture_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace leat::tools {
namespace {

struct Packet {
  std::int64_t display = 0;
  char kind = 'r';  // 'r': others refer to it; 'b': none does, so it is left out while thinning; 'x': damaged
};

// A decoder that keeps `held` pictures back, fed in decoding order. Places of what comes out, and what should be
// theirs.
void expect_places(const std::vector<Packet>& packets, std::size_t held, bool thins, bool timed) {
  PictureCount count;
  std::vector<std::int64_t> kept, places, displays;
  const auto put_out = [&] {
    const auto first = std::min_element(kept.begin(), kept.end());
    const std::int64_t frames = timed && !displays.empty() ? *first - displays.back() : 0;
    displays.push_back(*first);
    kept.erase(first);
    places.push_back(static_cast<std::int64_t>(count.received(frames)));
  };
  count.thins(thins);
  for (const Packet& p : packets) {
    count.wants_more(static_cast<int>(held));
    count.sent();
    if (p.kind == 'x' || (p.kind == 'b' && thins)) continue;
    kept.push_back(p.display);
    if (kept.size() > held) put_out();
  }
  for (count.wants_more(static_cast<int>(held)); !kept.empty();) put_out();
  EXPECT_EQ(places, displays);
}

TEST(PictureCount, EachPictureHasItsPlaceWhateverIsLeftOut) {
  const std::vector<Packet> plain = {{0}, {1}, {2}, {3}, {4}, {5}};
  const std::vector<Packet> layers = {{0}, {1, 'b'}, {2}, {3, 'b'}, {4}, {5, 'b'}};
  const std::vector<Packet> one_b = {{0}, {2}, {1, 'b'}, {4}, {3, 'b'}, {6}, {5, 'b'}, {7}};
  const std::vector<Packet> two_b = {{0}, {3}, {1, 'b'}, {2, 'b'}, {6}, {4, 'b'}, {5, 'b'}, {7}};
  const std::vector<Packet> pyramid = {{0}, {4}, {2}, {1, 'b'}, {3, 'b'}, {8}, {6}, {5, 'b'}, {7, 'b'}, {9}};
  for (const bool thins : {false, true}) {
    for (const bool timed : {false, true}) {
      expect_places(plain, 0, thins, timed);
      expect_places(layers, 0, thins, timed);
      expect_places(one_b, 1, thins, timed);
      expect_places(two_b, 1, thins, timed);
    }
    expect_places(pyramid, 2, thins, true);
  }
}

TEST(PictureCount, WhatIsDamagedWasNotLeftOutAndTimesThatStepAreNotBelieved) {
  PictureCount count;
  for (int i = 0; i < 3; ++i) count.sent();
  count.wants_more(0);
  count.sent();
  EXPECT_EQ(count.received(4), 0U) << "three were damaged";
  count.sent();
  EXPECT_EQ(count.received(125'000), 1U) << "5000 s later, as it says, and nothing was left out";
  count.thins(true);
  for (int i = 0; i < 2; ++i) count.sent();
  count.wants_more(0);
  count.sent();
  EXPECT_EQ(count.received(-125'000), 4U) << "two were left out";
}

TEST(PictureCount, WhatADecoderKeptBackIsLostWithAJump) {
  PictureCount count;
  for (int i = 0; i < 5; ++i) count.sent();
  EXPECT_EQ(count.received(), 0U);
  EXPECT_EQ(count.received(), 1U);
  EXPECT_EQ(count.received(), 2U);
  EXPECT_EQ(count.emptied(), 2U);
  for (int i = 0; i < 7; ++i) count.passed_over();
  count.sent();
  EXPECT_EQ(count.received(), 12U) << "3 pictures, 2 kept back, 7 passed over";
  EXPECT_EQ(count.emptied(), 0U);
}

}  // namespace
}  // namespace leat::tools
