// Users whose frames take more than planned, and users whose frames end partitions, beside one who keeps to the plan:
// with queues, with windows and with reservations.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "engine/core/ledger/latency_scales.h"
#include "engine/core/ledger/quarantine.h"
#include "engine/core/ledger/shares.h"
#include "engine/core/test/test_bench.h"
#include "engine/core/test/test_scheduler.h"

namespace leat::core {
namespace {

using test::affine;
using test::Bench;
using test::chain;
using test::kMs;
using test::kUs;

constexpr std::uint32_t kHonest = 1, kOther = 2;
constexpr std::uint64_t kOthers = 1'000'000;  // tokens of the other user's frames begin there

struct Case {
  const char* name;
  Topology (*topology)(std::uint32_t partitions);
  TimeNs extra;  // what a dear frame takes beyond the plan, each time that it runs
};

// One module of 1 ms, in batches of up to four.
Topology one(std::uint32_t partitions) { return chain(1, partitions, 4, 800 * kUs, 200 * kUs, 100 * kMs); }
Topology shared(std::uint32_t partitions) {
  Topology t = chain(2, partitions, 4, 400 * kUs, 100 * kUs, 100 * kMs);
  t.partitions.resize(partitions);
  t.routes[1].stages[0].pool = t.routes[0].stages[0].pool;
  return t;
}
Topology pipelined(std::uint32_t partitions) {
  Topology t = chain(1, partitions, 4, 400 * kUs, 100 * kUs, 100 * kMs);
  t.routes[0].rate_rps = 300;
  t.routes[0].stages.push_back({.pool = {}, .latency = affine(400 * kUs, 100 * kUs, 4)});
  for (std::uint32_t p = 0; p < partitions; ++p) {
    t.routes[0].stages[1].pool.push_back(static_cast<PartitionId>(t.partitions.size()));
    t.partitions.push_back({});
  }
  return t;
}

class TwoUsers : public testing::TestWithParam<Case> {
 protected:
  static Policy leat() {
    Policy p;
    EXPECT_TRUE(preset("leat", p));
    return p;
  }
  static bool of_other(const test::Running& r) {
    return std::ranges::any_of(r.tokens, [](std::uint64_t t) { return t >= kOthers; });
  }
};
INSTANTIATE_TEST_SUITE_P(With, TwoUsers,
                         testing::Values(Case{"queues", one, 8 * kMs}, Case{"windows", shared, 4 * kMs},
                                         Case{"reservations", pipelined, 4 * kMs}),
                         [](const auto& p) { return std::string(p.param.name); });

// 200 of the other's frames a second are more than the partitions can run.
TEST_P(TwoUsers, DearFramesDelayTheirSenderAlone) {
  Bench b(GetParam().topology(1), leat());
  const StreamId honest = b.open({.slo_ns = 20 * kMs, .user = kHonest});
  const StreamId other = b.open({.slo_ns = 60 * kMs, .depth = 64, .user = kOther});
  std::uint64_t mine = 0, theirs = kOthers;
  for (TimeNs at = kMs; at < 4000 * kMs; at += 5 * kMs) {
    b.run_to(at);
    b.extra[++theirs] = GetParam().extra;
    b.submit(other, theirs, 1, b.now);
    if (at / (5 * kMs) % 2 == 0) b.submit(honest, ++mine, 1, b.now);
  }
  b.run_to(5000 * kMs);
  std::uint64_t in_time = 0;
  for (std::uint64_t t = 1; t <= mine; ++t) in_time += b.answers.at(t).outcome == Outcome::completed ? 1 : 0;
  std::uint64_t others = 0;
  for (std::uint64_t t = kOthers + 1; t <= theirs; ++t) others += b.answers.at(t).outcome == Outcome::completed ? 1 : 0;
  std::printf("honest: %lu of %lu in time; the other: %lu of %lu\n", in_time, mine, others, theirs - kOthers);
  EXPECT_GE(in_time * 100, mine * 97);
  EXPECT_GT(others, 50U) << "what the honest user leaves is the other's";
  const std::size_t learned = b.sent.size() / 10;
  for (std::size_t i = learned; i < b.sent.size(); ++i) {
    if (of_other(b.sent[i])) {
      EXPECT_EQ(b.sent[i].tokens.size(), 1U) << i;
    }
  }
}

// The other's objective is shorter than any run, so that his frames run as canaries or not at all (policy/canary.h);
// and each takes thirty times what is planned. He is found dear and has no more of them; what his took is believed of
// nobody.
TEST_P(TwoUsers, CanariesOfDearFramesHarmNobody) {
  Bench b(GetParam().topology(1), leat());
  const StreamId honest = b.open({.slo_ns = 20 * kMs, .user = kHonest});
  const StreamId other = b.open({.slo_ns = kMs / 2, .depth = 64, .user = kOther});
  std::uint64_t mine = 0, theirs = kOthers;
  for (TimeNs at = kMs; at < 30'000 * kMs; at += 10 * kMs) {
    b.run_to(at);
    b.extra[++theirs] = 30 * kMs;
    b.submit(other, theirs, 1, b.now);
    if (at / (10 * kMs) % 30 == 7) b.submit(honest, ++mine, 1, b.now);
  }
  b.run_to(31'000 * kMs);
  std::uint64_t in_time = 0;
  for (std::uint64_t t = 1; t <= mine; ++t) in_time += b.answers.at(t).outcome == Outcome::completed ? 1 : 0;
  const auto tried = std::ranges::count_if(b.sent, of_other);
  std::printf("honest: %lu of %lu in time; the other's canaries: %ld\n", in_time, mine, tried);
  EXPECT_GE(in_time * 100, mine * 97);
  EXPECT_LE(tried, 10);
}

// The other's frames end whatever runs them. A partition is back after 50 ms.
TEST_P(TwoUsers, FramesThatEndPartitionsNeverTakeTheLastOne) {
  Bench b(GetParam().topology(2), leat());
  const auto partitions = static_cast<PartitionId>(b.topology.partitions.size());
  const StreamId honest = b.open({.slo_ns = 40 * kMs, .user = kHonest});
  const StreamId other = b.open({.slo_ns = 400 * kMs, .depth = 64, .user = kOther});
  std::vector<TimeNs> back(partitions, 0);
  std::uint64_t mine = 0, theirs = kOthers, lost = 0, all_down = 0, convicts = 0;
  for (TimeNs at = kMs; at < 10'000 * kMs; at += kMs) {
    b.run_to(at);
    for (PartitionId p = 0; p < partitions; ++p) {
      if (back[p] == 0 || back[p] > at) continue;
      back[p] = 0;
      b.core.partition_ready(b.now, p);
      b.drain();
    }
    if (at / kMs % 10 == 0) b.submit(honest, ++mine, 1, b.now);
    if (at / kMs % 500 == 100) b.submit(other, ++theirs, 1, b.now);
    const auto ends = std::ranges::find_if(b.running, of_other);
    if (ends == b.running.end()) continue;
    const PartitionId p = ends->at();
    b.core.stage_started(b.now, ends->batch, ends->stage);
    back[p] = at + 50 * kMs;
    b.busy_until[p] = 0;
    std::erase_if(b.running, [&](const test::Running& r) { return r.at() == p; });
    ++lost;
    convicts += b.core.partition_lost(b.now, p) ? 1 : 0;
    b.drain();
    b.core.audit();
    all_down += std::ranges::count(back, 0) == 0 ? 1 : 0;
  }
  b.run_to(11'000 * kMs);
  std::uint64_t in_time = 0, refused = 0;
  for (std::uint64_t t = 1; t <= mine; ++t) in_time += b.answers.at(t).outcome == Outcome::completed ? 1 : 0;
  for (std::uint64_t t = kOthers + 1; t <= theirs; ++t) {
    EXPECT_NE(b.answers.at(t).outcome, Outcome::completed);
    refused += b.answers.at(t).outcome == Outcome::rejected && b.answers.at(t).reason == Reason::poison ? 1 : 0;
  }
  std::printf("honest: %lu of %lu in time; %lu lost, %lu refused\n", in_time, mine, lost, refused);
  EXPECT_GE(in_time * 100, mine * 97);
  EXPECT_EQ(all_down, 0U);
  EXPECT_LE(lost, 7U) << "two, and then after none, 1, 2 and 4 s";
  EXPECT_EQ(convicts + 1, lost);
  EXPECT_GE(refused, 12U);
}

// Alone, a user harms nobody: two are lost for each frame, and it is told that it is poison.
TEST(Quarantine, WhoIsAloneIsNotRefused) {
  Bench b(one(1), test::plain());
  const StreamId other = b.open({.slo_ns = 400 * kMs, .user = kOther});
  for (std::uint64_t token = 1; token <= 5; ++token) {
    b.submit(other, token, 1, b.now);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(b.running.size(), 1U);
      b.core.stage_started(b.now, b.running[0].batch, 0);
      b.running.clear();
      EXPECT_FALSE(b.core.partition_lost(b.now, 0));
      b.core.partition_ready(b.now, 0);
      b.drain();
    }
    EXPECT_EQ(b.answers.at(token).outcome, Outcome::failed);
    EXPECT_EQ(b.answers.at(token).reason, Reason::poison);
  }
}

// A host that does other things too delays now this batch and now that one, and of a short batch by many times its
// time.
TEST(LatencyScales, WhoseFramesAreAlikeAreNotDearForTheHostsDelays) {
  Topology t = chain(2, 2, 4, 1800 * kUs, 200 * kUs, 100 * kMs);
  t.partitions.resize(2);
  t.routes[1].stages[0] = {.pool = {0, 1}, .latency = affine(40 * kUs, 10 * kUs, 4)};
  t.modules[1].fan_out_cap = 4;
  t.modules[1].items_per_request = 3;
  Policy leat;
  ASSERT_TRUE(preset("leat", leat));
  Bench b(t, leat);
  b.fan_out = 3;
  const std::array streams{b.open({.user = kHonest}), b.open({.user = kOther})};
  std::uint64_t token = 0, draw = 1;
  for (TimeNs at = kMs; at < 3000 * kMs; at += 2 * kMs) {
    b.run_to(at);
    draw = draw * 6364136223846793005U + 1442695040888963407U;
    b.extra[++token] = (draw >> 60) < 3 ? kMs : 0;  // each time that one of its tasks runs
    b.submit(streams[token % 2], token, 1, b.now);
  }
  EXPECT_EQ(std::ranges::count(b.sent, true, &test::Running::alone), 0);
}

TEST(Quarantine, GrowsAndIsForgiven) {
  constexpr TimeNs kSecond = 1000 * kMs;
  Quarantine q(4, 2);
  TimeNs now = kSecond;
  q.strike(kOther, 0, now);
  EXPECT_EQ(q.company(kOther, now), Company::nobody);
  EXPECT_EQ(q.company(kHonest, now), Company::anybody);
  EXPECT_FALSE(q.convicted(kOther, now));
  q.strike(kOther, 1, now);
  EXPECT_TRUE(q.convicted(kOther, now));
  EXPECT_FALSE(q.refused(kOther, now));
  for (TimeNs refusal = kSecond; refusal <= 8 * kSecond; refusal *= 2) {
    q.strike(kOther, 0, now);
    EXPECT_TRUE(q.refused(kOther, now + refusal - 1));
    EXPECT_FALSE(q.refused(kOther, now + refusal));
    now += refusal;
  }
  EXPECT_TRUE(q.struck(kOther, now + 60 * kSecond - 1));
  EXPECT_EQ(q.company(kOther, now + 60 * kSecond), Company::anybody);
  q.strike(kOther, 0, now + 60 * kSecond);
  EXPECT_FALSE(q.convicted(kOther, now + 60 * kSecond)) << "all was forgiven";
}

TEST(Quarantine, APartitionThatEndsEverybodysFramesConvictsNobody) {
  Quarantine q(4, 2);
  q.strike(kHonest, 0, kMs);
  for (int i = 0; i < 5; ++i) {
    q.strike(kOther, 0, kMs);
    q.strike(kHonest, 0, kMs);
  }
  EXPECT_FALSE(q.convicted(kHonest, kMs));
  EXPECT_FALSE(q.struck(kOther, kMs));
  q.strike(kOther, 1, kMs);
  q.strike(kOther, 0, kMs);
  EXPECT_TRUE(q.convicted(kOther, kMs)) << "who ends others too does so himself";
}

TEST(Shares, WhoTakesMoreThanPlannedIsOverHisShare) {
  constexpr TimeNs kCost = kMs, kSlo = 100 * kMs;
  Shares shares(8);
  LatencyScales scales(8);
  std::uint32_t within[2] = {0, 0};
  bool dear[2] = {false, false};
  for (TimeNs now = 10 * kMs; now < 5000 * kMs; now += 5 * kMs) {
    for (std::uint32_t user : {0U, 1U}) {
      const Shares::Key key{.user = user};
      const LatencyScales::Key scale{.user = user};
      const auto takes = scales.enter(scale, now);
      const auto cost = static_cast<TimeNs>(takes.scale * kCost);
      const auto s = shares.enter({.key = key, .cost_ns = cost, .slo_ns = kSlo}, now);
      within[user] += s.within ? 1 : 0;
      dear[user] = takes.dear;
      if (!s.competes) continue;
      const double took = user == 1 ? 10 : 1;  // times the plan
      scales.learn(scale, took - scales.of(scale), 1);
      if (s.within) shares.correct(key, took * kCost - static_cast<double>(s.charged_ns));
    }
  }
  EXPECT_GE(within[0], 990U);
  EXPECT_NEAR(within[1], 250, 15) << "half of the time, 10 ms each";
  EXPECT_FALSE(dear[0]);
  EXPECT_TRUE(dear[1]);
}

// A machine that is slower than its profile makes nobody dear, and neither do frames that are cheaper than planned, nor
// those of another application.
TEST(LatencyScales, DearIsWhoTakesMoreThanTheOthersAndThanPlanned) {
  for (const auto& [mine, theirs, apart, dear] : {std::tuple{3., 3., false, false},
                                                  {1., .3, false, false},
                                                  {1.2, 1., false, false},
                                                  {2., 1., false, true},
                                                  {2., 1., true, false}}) {
    LatencyScales scales(8);
    bool was = false;
    for (TimeNs now = 10 * kMs; now < 500 * kMs; now += 5 * kMs) {
      for (std::uint32_t user : {0U, 1U, 2U}) {
        const LatencyScales::Key key{.application = apart && user == 0 ? 1U : 0U, .user = user};
        const auto takes = scales.enter(key, now);
        if (user == 0)
          was = takes.dear;
        else
          EXPECT_FALSE(takes.dear);
        scales.learn(key, (user == 0 ? mine : theirs) - scales.of(key), 1);
      }
    }
    EXPECT_EQ(was, dear) << mine << " beside " << theirs;
  }
}

}  // namespace
}  // namespace leat::core
