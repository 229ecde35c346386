// Several users: who is admitted beside whom, what everybody gets, and what one's reports do to the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "engine/core/streams/test_world.h"

namespace leat::core::streams {
namespace {

using testing::DoubleNear;
using Ids = std::vector<std::uint32_t>;

constexpr TimeNs kTick = 200'000'000;
constexpr std::uint32_t kGreedy = 1, kHonest = 2;

Ids open(World& w, int streams, double slope, const CoordinatedStream& spec) {
  Ids out;
  for (int i = 0; i < streams; ++i) out.push_back(w.add(slope, spec));
  return out;
}

double load_of(const World& w, const Ids& streams) {
  double load = 0;
  for (const std::uint32_t id : streams) load += w.c.admitted(id) ? w.c.view(id).setting.load : 0;
  return load;
}

std::uint32_t admitted(const World& w, const Ids& streams) {
  return static_cast<std::uint32_t>(std::ranges::count_if(streams, [&](auto id) { return w.c.admitted(id); }));
}

std::uint32_t evictions(const World& w, const Ids& streams) {
  std::uint32_t sum = 0;
  for (const std::uint32_t id : streams) sum += w.c.view(id).evictions;
  return sum;
}

struct Loads {
  double a = 0, b = 0;
};
// In the mean from now until then.
Loads mean_loads(World& w, const Ids& a, const Ids& b, TimeNs until) {
  Loads sum;
  int ticks = 0;
  for (; w.now < until; ++ticks) {
    w.run(w.now + kTick);
    sum.a += load_of(w, a);
    sum.b += load_of(w, b);
  }
  return {sum.a / ticks, sum.b / ticks};
}

TEST(FairLevel, GivesWhatIsNotWantedToThoseWhoWantMore) {
  const auto level = [](std::initializer_list<Portion> portions) { return fair_level({portions}, 1); };
  EXPECT_EQ(level({{.wants = 0.4}, {.wants = 0.5}}), std::numeric_limits<double>::infinity());
  EXPECT_THAT(level({{.wants = 4}, {.wants = 0.2}}), DoubleNear(0.8, 1e-6));
  EXPECT_THAT(level({{.wants = 4}, {.wants = 3}, {.wants = 0.2}}), DoubleNear(0.4, 1e-6));
  EXPECT_THAT(level({{.weight = 3, .wants = 4}, {.wants = 3}}), DoubleNear(0.25, 1e-6));
  EXPECT_THAT(level({{.elsewhere = 0.5, .wants = 4}, {.wants = 3}}), DoubleNear(0.75, 1e-6));
  EXPECT_THAT(level({{.elsewhere = 5, .wants = 4}, {.wants = 3}}), DoubleNear(1, 1e-6));
}

TEST(CoordinatedUsers, EightStreamsComeInBesideAHundredAndTwentyThatWereFirst) {
  for (const std::size_t partitions : {1, 2}) {
    World w(partitions, {});
    const Ids greedy = open(w, 120, 0.012, {.sla_drop = 0.03, .max_share = 0.5, .user = kGreedy});
    w.run(10 * kSecond);
    const std::uint32_t before = admitted(w, greedy);
    ASSERT_LT(before, 120u);
    const Ids honest = open(w, 8, 0.004, {.sla_drop = 0.06, .max_share = 0.5, .user = kHonest});
    w.run(w.now + 5 * kSecond);
    EXPECT_EQ(admitted(w, honest), 8u);
    w.run(w.now + 10 * kSecond);
    EXPECT_EQ(admitted(w, honest), 8u);
    EXPECT_EQ(evictions(w, honest), 0u);
    for (const std::uint32_t id : honest) EXPECT_LE(w.c.view(id).measured_drop, 0.06) << id;
    EXPECT_GE(admitted(w, greedy), before * 3 / 4);  // what nobody else wants is theirs
  }
}

// Of many streams, of few that are dear, of four that no plan can satisfy.
TEST(CoordinatedUsers, EachGetsHalfWhereBothWantMore) {
  struct Greedy {
    int streams;
    double slope, sla_drop;
  };
  for (const Greedy& g : {Greedy{100, 0.012, 0.03}, Greedy{20, 0.05, 0.03}, Greedy{4, 0.2, 0.001}}) {
    for (const std::size_t partitions : {1, 2}) {
      World w(partitions, {});
      const Ids greedy = open(w, g.streams, g.slope, {.sla_drop = g.sla_drop, .max_share = 0.5, .user = kGreedy});
      w.run(10 * kSecond);
      const Ids honest = open(w, 100, 0.006, {.sla_drop = 0.03, .max_share = 0.5, .user = kHonest});
      w.run(w.now + 5 * kSecond);
      const auto [his, others] = mean_loads(w, honest, greedy, w.now + 20 * kSecond);
      EXPECT_GE(his, 0.9 * (his + others) / 2) << g.streams;
      EXPECT_GE(his, 0.4 * static_cast<double>(partitions)) << g.streams;
    }
  }
}

TEST(CoordinatedUsers, GetByTheirWeights) {
  World w(1, {});
  const Ids heavy = open(w, 100, 0.008, {.sla_drop = 0.03, .user = 1, .user_weight = 3});
  const Ids light = open(w, 100, 0.008, {.sla_drop = 0.03, .user = 2, .user_weight = 1});
  w.run(15 * kSecond);
  const auto [heavies, lights] = mean_loads(w, heavy, light, 35 * kSecond);
  EXPECT_THAT(heavies / lights, DoubleNear(3, 0.6));
}

// A plan that does not hold for one user's streams, whatever they get, costs nobody else his place nor the way in.
TEST(CoordinatedUsers, WhoBreaksAPlanPaysForIt) {
  World w(1, {});
  const Ids first = open(w, 10, 0.004, {.sla_drop = 0.06, .user = kHonest});
  w.run(5 * kSecond);
  const Ids wild = open(w, 30, 0.004, {.sla_drop = 0.06, .user = kGreedy});
  std::mt19937 random(3);
  const auto go_on = [&](TimeNs until) {
    while (w.now < until) {
      for (const std::uint32_t id : wild) w.slopes[id] = random() % 4 == 0 ? 0.04 : 0.0005;
      w.run(w.now + kTick);
    }
  };
  go_on(15 * kSecond);
  ASSERT_GT(evictions(w, wild), 10u);
  const Ids later = open(w, 10, 0.004, {.sla_drop = 0.06, .user = kHonest});
  go_on(w.now + 5 * kSecond);
  EXPECT_EQ(admitted(w, first), 10u);
  EXPECT_EQ(admitted(w, later), 10u);
  go_on(w.now + 10 * kSecond);
  EXPECT_LE(evictions(w, first) + evictions(w, later), 6u);
}

TEST(CoordinatedUsers, NobodyTakesMoreThanHisPartOfThePlaces) {
  CoordinatorSettings settings;
  settings.streams = 16;
  World w(1, settings);
  for (int i = 0; i < 8; ++i) EXPECT_NE(w.add(0.004, {.max_share = 0.5, .user = 1}), kNone);
  EXPECT_EQ(w.add(0.004, {.max_share = 0.5, .user = 1}), kNone);
  std::uint32_t task = 0;
  for (std::uint64_t i = 0; i < 7; ++i) {
    task = w.add(0.004, {.max_share = 0.5, .user = 2, .group = i < 4 ? 1u : 0u});
    EXPECT_NE(task, kNone) << i;
  }
  EXPECT_EQ(w.add(0.004, {.max_share = 0.5, .user = 2}), kNone);  // a group's lead has one too
  w.c.close(w.now, task);
  EXPECT_NE(w.add(0.004, {.max_share = 0.5, .user = 2}), kNone);
}

// ---- reports ----

// Everything that a client may say, and what it may not.
void rave(Coordinator& c, TimeNs now, std::uint32_t id, std::mt19937& random) {
  constexpr double kNever = std::numeric_limits<double>::quiet_NaN();
  constexpr std::array kDrops = {0.0, 1.0, 0.9, 1e-300, kNever, 1e300, -1e300, std::numeric_limits<double>::infinity()};
  constexpr std::array kStrides = {1u, 2u, 60u, 255u, 0u, 256u, UINT32_MAX};
  for (int n = 0; n < 20; ++n)
    (void)c.observe(now, id, kStrides[random() % kStrides.size()], kDrops[random() % kDrops.size()], random() % 2 == 0);
  c.frame_clock(id, now - static_cast<TimeNs>(random() % 100'000'000),
                static_cast<TimeNs>(random()) << (random() % 32));
}

// One user is on one partition, another on another.
TEST(Reports, OfOneUserMoveNothingOfAnothersPlan) {
  const auto play = [](bool raves) {
    World w(std::vector<BatchTimes>{{profile(6, 1.5), {}}, {{}, profile(6, 1.5)}}, {});
    Ids honest = open(w, 20, 0.004, {.sla_drop = 0.04, .module = 0, .user = kHonest});
    Ids wild = open(w, 40, 0.008, {.sla_drop = 0.03, .module = 1, .max_share = 0.5, .user = kGreedy});
    std::mt19937 random(5);
    std::vector<double> seen;
    for (int tick = 0; tick < 100; ++tick) {
      for (const std::uint32_t id : wild)
        if (raves) rave(w.c, w.now, id, random), w.liars.insert(id);
      if (tick == 40) honest.push_back(w.add(0.006, {.sla_drop = 0.04, .module = 0, .user = kHonest}));
      if (tick == 50) wild.push_back(w.add(0.008, {.sla_drop = 0.03, .module = 1, .user = kGreedy}));
      w.run(w.now + kTick);
      for (const std::uint32_t id : honest) {
        const StreamView v = w.c.view(id);
        seen.insert(seen.end(), {v.setting.interval, v.setting.load, v.slope, v.jitter, v.margin, v.planned_drop,
                                 v.measured_drop, static_cast<double>(v.evictions)});
      }
    }
    for (const World::Slot& s : w.slots)
      if (s.partition == 0) seen.insert(seen.end(), {static_cast<double>(s.start), static_cast<double>(s.id)});
    return seen;
  };
  const std::vector<double> beside = play(true), alone = play(false);
  EXPECT_GT(alone.size(), 20'000u);
  EXPECT_TRUE(beside == alone);  // to the digit
}

// All on one partition. What streams are planned for goes by their own reports alone.
TEST(Reports, OfOneUserMoveNobodysEstimates) {
  const auto play = [](bool raves) {
    Coordinator c({BatchTimes(1, profile(2, 0.5, 1))}, {});
    std::mt19937 random(5);
    TimeNs now = kSecond;
    Ids honest, wild;
    const auto come = [&](Ids& to, std::uint32_t user) {
      to.push_back(c.open(now, {.max_share = 0.05, .user = user}));
    };
    for (int i = 0; i < 4; ++i) come(honest, kHonest), come(wild, kGreedy);
    std::vector<double> seen;
    for (int tick = 0; tick < 200; ++tick, now += kTick) {
      c.tick(now);
      if (tick == 100) come(honest, kHonest), come(honest, 3);
      for (const Ids* ids : {&honest, &wild})
        for (const std::uint32_t id : *ids) {
          (void)c.observe(now, id, 8 + id % 4, 0.09 + 0.01 * (tick % 3));
          c.answered(now, id, now - 40'000'000);
        }
      for (const std::uint32_t id : wild)
        if (raves) rave(c, now, id, random);
      for (const std::uint32_t id : honest) {
        const StreamView v = c.view(id);
        EXPECT_EQ(v.evictions, 0u);
        seen.insert(seen.end(), {v.slope, v.jitter, v.margin});
      }
    }
    return seen;
  };
  const std::vector<double> beside = play(true), alone = play(false);
  EXPECT_TRUE(beside == alone);  // to the digit
}

TEST(Reports, AreWhereStreamsOfTheSameUserBegin) {
  World w(1, {});
  open(w, 4, 0.03, {.sla_drop = 0.2, .user = 1});
  const StreamView neutral = w.c.view(0);
  w.run(20 * kSecond);
  const StreamView own = w.c.view(w.add(0.004, {.sla_drop = 0.2, .user = 1}));
  const StreamView others = w.c.view(w.add(0.004, {.sla_drop = 0.2, .user = 2}));
  EXPECT_GT(own.slope, 0.02);
  EXPECT_NE(own.margin, neutral.margin);
  EXPECT_EQ(others.slope, neutral.slope);
  EXPECT_EQ(others.margin, neutral.margin);
}

// The same number of a group, and many groups whose turns are dear to decide.
TEST(Reports, GroupsAreOfOneUser) {
  World w(1, {});
  const std::uint32_t mine = w.add(0.004, {.sla_drop = 0.06, .user = kHonest, .group = 7});
  const std::uint32_t other = w.add(0.02, {.sla_drop = 0.06, .user = kGreedy, .group = 7});
  w.liars.insert(other);
  w.run(8 * kSecond);
  EXPECT_THAT(w.c.view(mine).slope, DoubleNear(0.004, 0.001));
  EXPECT_NE(w.c.view(mine).setting.interval, w.c.view(other).setting.interval);
  EXPECT_EQ(w.c.admitted_streams(), 2u);
}

}  // namespace
}  // namespace leat::core::streams
