// What a partition goes on with by itself (sequels.cpp).
#include <algorithm>
#include <array>

#include "engine/core/test/test_bench.h"

namespace leat::core {
namespace {

using test::Bench;
using test::chain;
using test::kMs;

constexpr TimeNs kRunNs = 5 * kMs;

// A detector and what looks at each of up to four things that it finds, both on one partition.
Topology detector() {
  Topology t = chain(2, 1, 4, kRunNs, 0, 100 * kMs);
  t.partitions.resize(1);
  t.routes[1].stages[0].pool = {0};
  t.modules[1].fan_out_cap = 4;
  t.modules[1].items_per_request = 3;
  return t;
}

Policy going_on() {
  Policy leat;
  EXPECT_TRUE(preset("leat", leat));
  leat.goes_on_within_ns = kRunNs;
  return leat;
}

TEST(Sequels, WhatAPartitionHasGoneOnWithIsABatchThatRuns) {
  Bench b(detector(), going_on());
  const StreamId s = b.open();
  b.submit(s, 7);
  ASSERT_EQ(b.sent.size(), 1U);
  EXPECT_EQ(b.sent[0].then, 1U);
  b.submit(s, 8);  // waits
  const TaskResult found{.ok = true, .reason = Reason::none, .fan_out = 3};
  b.now = 6 * kMs;
  b.core.stage_finished(b.now, b.sent[0].batch, 0, std::array{found}, kRunNs);
  b.drain();
  ASSERT_EQ(b.sent.size(), 2U) << "and nothing else, since the partition is at work";
  EXPECT_TRUE(b.sent[1].went_on);
  EXPECT_EQ(b.sent[1].then, kNone);
  EXPECT_EQ(b.sent[1].tokens, (std::vector<std::uint64_t>{7, 7, 7}));
  b.core.audit();
  b.core.stage_finished(b.now, b.sent[1].batch, 0, {});
  b.drain();
  EXPECT_EQ(b.answers[7].outcome, Outcome::completed);
  ASSERT_EQ(b.sent.size(), 3U);
  EXPECT_EQ(b.sent[2].tokens.front(), 8U);
  EXPECT_EQ(b.core.counters().modules[0].busy_ns, static_cast<std::uint64_t>(kRunNs) - 1) << "as it said";
}

TEST(Sequels, OfWhatNobodyWantsAnyMoreThereIsNone) {
  Bench b(detector(), going_on());
  const RequestHandle request = b.submit(b.open(), 7);
  b.core.cancel(b.now, request);
  b.now = 6 * kMs;
  b.core.stage_finished(b.now, b.sent[0].batch, 0, {}, kRunNs);
  b.drain();
  EXPECT_EQ(b.sent.size(), 1U);
  EXPECT_EQ(b.answers[7].reason, Reason::cancelled);
  EXPECT_TRUE(b.core.idle());
}

TEST(Sequels, LongWorkAndModulesThatWaitForOthersAreAskedFor) {
  Policy brief = going_on();
  brief.goes_on_within_ns = kRunNs - 1;
  Bench longer(detector(), brief);
  longer.submit(longer.open(), 7);
  EXPECT_EQ(longer.sent[0].then, kNone);
  Topology t = chain(3, 1, 4, kRunNs, 0, 100 * kMs);
  t.partitions.resize(1);
  for (RouteId r = 1; r < 3; ++r) t.routes[r].stages[0].pool = {0};
  t.modules[0].after = {1, 2};
  t.modules[1].after = {2};
  t.modules[2].before = {0, 1};
  Bench two_before(t, going_on());
  two_before.submit(two_before.open(), 7);
  EXPECT_EQ(two_before.sent[0].then, kNone);
}

// Whose batches take long is to be found out, and each user's frames ride apart from the other's.
TEST(Sequels, WhoRidesApartGoesOnToo) {
  Bench b(detector(), going_on());
  const StreamId mine = b.open({.user = 1}), theirs = b.open({.user = 2});
  b.submit(mine, 1);
  b.submit(theirs, 2);
  b.submit(mine, 3);
  b.extra[3] = 10 * kRunNs;
  b.run_to(100 * kMs);
  const auto entry = [&](std::vector<std::uint64_t> tokens) {
    return std::ranges::find_if(b.sent,
                                [&](const test::Running& batch) { return batch.route == 0 && batch.tokens == tokens; });
  };
  ASSERT_NE(entry({2, 3}), b.sent.end()) << "of both, and it takes long";
  b.submit(mine, 4);
  b.submit(theirs, 5);
  b.submit(mine, 6);
  b.run_to(200 * kMs);
  for (const std::vector<std::uint64_t>& tokens : {std::vector<std::uint64_t>{5}, {6}}) {
    ASSERT_NE(entry(tokens), b.sent.end()) << "apart";
    EXPECT_EQ(entry(tokens)->then, 1U);
  }
}

// Who takes several of a batch's places would not be known to the worker.
TEST(Sequels, TasksThatDifferInSizeAreAskedFor) {
  Topology t = detector();
  t.modules[1].differs_in_size = true;
  Bench b(t, going_on());
  b.submit(b.open(), 7);
  EXPECT_EQ(b.sent[0].then, kNone);
}

// Where batches overlap, one that is alone goes on; one that waits behind another, or before others, leaves room.
TEST(Sequels, WhereBatchesOverlapOneGoesOnOnlyWhereNothingElseWaits) {
  Topology t = detector();
  t.routes[0].stages[0].overlap_permille = 300;
  Policy ahead = going_on();
  ahead.queue_ahead = 1;
  ahead.ahead_within_ns = kRunNs;
  Bench b(t, ahead);
  const StreamId s = b.open();
  b.submit(s, 7);
  ASSERT_EQ(b.sent.size(), 1U);
  EXPECT_EQ(b.sent[0].then, 1U) << "nothing else is there";
  b.submit(s, 8);
  ASSERT_EQ(b.sent.size(), 2U);
  EXPECT_EQ(b.sent[1].then, kNone) << "another is at work";
  const TaskResult found{.ok = true, .reason = Reason::none, .fan_out = 3};
  b.now = kRunNs;
  b.core.stage_finished(b.now, b.sent[0].batch, 0, std::array{found}, kRunNs);
  b.drain();
  b.core.audit();
  ASSERT_GE(b.sent.size(), 3U);
  EXPECT_TRUE(b.sent[2].went_on);
}

TEST(Sequels, WhereBatchesOverlapOneThatOthersWaitBehindDoesNotGoOn) {
  Topology t = detector();
  t.routes[0].stages[0].overlap_permille = 300;
  t.routes[0].batch = 1;
  t.routes[0].stages[0].latency.p50_ns.resize(1);
  t.routes[0].stages[0].latency.p99_ns.resize(1);
  Bench b(t, going_on());
  const StreamId s = b.open();
  for (const std::uint64_t token : {7, 8, 9}) b.submit(s, token);
  ASSERT_EQ(b.sent.size(), 1U);
  b.now = kRunNs;
  b.core.stage_finished(b.now, b.sent[0].batch, 0, std::array{TaskResult{.ok = true}});
  b.drain();
  ASSERT_EQ(b.sent.size(), 2U);
  EXPECT_EQ(b.sent[1].then, kNone) << "one more waits";
}

// A batch that ends sooner than planned makes room sooner for what is behind it, however many have done so.
TEST(Ahead, WhenAPartitionIsFreeIsNotBelievedLaterAndLater) {
  Policy leat;
  ASSERT_TRUE(preset("leat", leat));
  leat.queue_ahead = 1;
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 60 * kMs), leat);
  const StreamId s = b.open({.depth = 4});
  std::uint64_t token = 0;
  b.submit(s, token++);
  b.submit(s, token++);
  for (int i = 0; i < 40; ++i) {  // each takes a tenth of what is planned
    ASSERT_EQ(b.running.size(), 2U) << i;
    b.core.stage_started(b.now, b.running.front().batch, 0);
    b.now += 1 * kMs;
    const BatchHandle ended = b.running.front().batch;
    b.running.erase(b.running.begin());
    b.core.stage_started(b.now, b.running.front().batch, 0);
    b.core.stage_finished(b.now, ended, 0, {});
    b.drain();
    b.submit(s, token++);
  }
  for (const auto& [t, answer] : b.answers) EXPECT_EQ(answer.outcome, Outcome::completed) << t;
}

}  // namespace
}  // namespace leat::core
