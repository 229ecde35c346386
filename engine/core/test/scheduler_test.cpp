// The life of a request, case by case.
#include <algorithm>

#include "engine/core/policy/policy_settings.h"
#include "engine/core/test/test_bench.h"
#include "engine/core/test/test_scheduler.h"

namespace leat::core {
namespace {

using test::Bench;
using test::chain;
using test::kMs;

TEST(Scheduler, OneRequestThroughAChainOfThree) {
  Bench b(chain(3, 1, 4, 5 * kMs, 1 * kMs, 100 * kMs), test::plain());
  const StreamId s = b.open();
  EXPECT_TRUE(b.submit(s, 7).index != kNone);
  b.run_to(100 * kMs);
  ASSERT_TRUE(b.answers.contains(7));
  EXPECT_EQ(b.answers[7].outcome, Outcome::completed);
  EXPECT_EQ(b.answers[7].at, 1 + 18 * kMs);
  EXPECT_TRUE(b.core.idle());
  EXPECT_EQ(b.core.next_timer(), kNever);
}

TEST(Scheduler, WhatWaitsFormsOneBatchUpToTheCap) {
  Bench b(chain(1, 1, 4, 5 * kMs, 1 * kMs, 1000 * kMs), test::plain({.oldest_first = true, .drops = false}));
  const StreamId s = b.open({.depth = 100});
  for (std::uint64_t i = 0; i < 7; ++i) b.submit(s, i);
  b.run_to(1000 * kMs);
  ASSERT_EQ(b.sent.size(), 3u);
  EXPECT_EQ(b.sent[0].tokens.size(), 1u);
  EXPECT_EQ(b.sent[1].tokens, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(b.sent[2].tokens, (std::vector<std::uint64_t>{5, 6}));
}

TEST(Scheduler, EarliestDeadlineFirst) {
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 1000 * kMs), test::plain());
  const StreamId slow = b.open({.slo_ns = 500 * kMs}), fast = b.open({.slo_ns = 50 * kMs});
  b.submit(slow, 1);
  b.submit(slow, 2);
  b.submit(fast, 3);
  b.run_to(100 * kMs);
  EXPECT_EQ(b.sent[1].tokens, std::vector<std::uint64_t>{3});
}

TEST(Scheduler, ExpiredIsAnsweredAtTheDeadlineWhileABatchRuns) {
  Bench b(chain(1, 1, 1, 100 * kMs, 0, 30 * kMs), test::plain());
  const StreamId s = b.open();
  b.submit(s, 1);
  b.submit(s, 2);
  b.run_to(40 * kMs);
  ASSERT_TRUE(b.answers.contains(2));
  EXPECT_EQ(b.answers[2].reason, Reason::expired);
  EXPECT_EQ(b.answers[2].at, 1 + 30 * kMs);
  EXPECT_FALSE(b.answers.contains(1)) << "it runs: its answer is its end";
  b.run_to(200 * kMs);
  EXPECT_EQ(b.answers[1].outcome, Outcome::late);
}

TEST(Scheduler, NeverDropWaitsPastItsDeadline) {
  Bench b(chain(1, 1, 1, 20 * kMs, 0, 10 * kMs), test::plain());
  const StreamId s = b.open({.supersede = Supersede::never_drop});
  b.submit(s, 1);
  b.submit(s, 2);
  b.run_to(100 * kMs);
  EXPECT_EQ(b.answers[1].outcome, Outcome::late);
  EXPECT_EQ(b.answers[2].outcome, Outcome::late);
}

TEST(Scheduler, FanOutAndMerge) {
  Topology t = chain(2, 1, 4, 5 * kMs, 1 * kMs, 100 * kMs);
  t.modules[1].fan_out_cap = 5;
  t.modules[1].items_per_request = 3;
  Bench b(t, test::plain());
  const StreamId s = b.open();
  b.fan_out = 3;
  b.submit(s, 1);
  b.run_to(90 * kMs);
  ASSERT_EQ(b.sent.size(), 2u);
  EXPECT_EQ(b.sent[1].tokens.size(), 3u) << "a whole fan-out arrives before the partition chooses";
  EXPECT_EQ(b.answers[1].outcome, Outcome::completed);
  b.fan_out = 0;  // no detections: complete at once
  b.submit(s, 2);
  b.run_to(190 * kMs);
  EXPECT_EQ(b.sent.size(), 3u);
  EXPECT_EQ(b.answers[2].outcome, Outcome::completed);
  b.fan_out = 9;  // capped
  b.submit(s, 3);
  b.run_to(290 * kMs);
  EXPECT_EQ(b.core.counters().modules[1].tasks_run, 3u + 5u);
  EXPECT_EQ(b.core.counters().modules[1].left_out, 4u);
}

// A cap of one is a fan-out too: a detector that found nothing leaves the module behind it nothing to do.
TEST(Scheduler, AFanOutCappedAtOne) {
  Bench b(chain(2, 1, 4, 5 * kMs, 1 * kMs, 100 * kMs), test::plain());
  const StreamId s = b.open();
  b.fan_out = 0;
  b.submit(s, 1);
  b.run_to(90 * kMs);
  EXPECT_EQ(b.answers[1].outcome, Outcome::completed);
  EXPECT_EQ(b.core.counters().modules[1].tasks_run, 0u);
  b.fan_out = 7;
  b.submit(s, 2);
  b.run_to(190 * kMs);
  EXPECT_EQ(b.answers[2].outcome, Outcome::completed);
  EXPECT_EQ(b.core.counters().modules[1].tasks_run, 1u);
}

Topology diamond() {
  Topology t = chain(4, 1, 1, 10 * kMs, 0, 100 * kMs);
  t.modules[0].after = {1, 2};
  t.modules[1].after = {3};
  t.modules[2].before = {0};
  t.modules[2].after = {3};
  t.modules[3].before = {1, 2};
  return t;
}

TEST(Scheduler, ADiamondIsAnsweredOnceWhenItsMergeIsDone) {
  Bench b(diamond(), test::plain());
  b.submit(b.open(), 1);
  b.run_to(90 * kMs);
  EXPECT_EQ(b.answers[1].at, 1 + 30 * kMs);
  EXPECT_EQ(b.sent.size(), 4u);
}

TEST(Scheduler, ADroppedBranchTakesItsSiblingsAlong) {
  Topology t = diamond();
  t.routes[1].stages[0].latency = test::affine(200 * kMs, 0, 1);
  Bench b(t, test::plain());
  const StreamId s = b.open({.slo_ns = 100 * kMs});
  b.submit(s, 1);  // holds module 1's partition past the SLO
  b.submit(s, 2);  // expires behind it; its other branch has run by then
  b.run_to(150 * kMs);
  EXPECT_EQ(b.answers[2].outcome, Outcome::dropped);
  EXPECT_EQ(b.answers[2].at, 1 + 100 * kMs);
  b.run_to(400 * kMs);
  EXPECT_EQ(b.answers[1].reason, Reason::expired) << "at its merge";
}

TEST(Scheduler, OneOfTwoBranchesByChance) {
  Topology t = diamond();
  t.modules[1].items_per_request = t.modules[2].items_per_request = 0.5;
  Bench b(t, test::plain({.drops = false}));
  const StreamId s = b.open({.depth = 1000});
  for (std::uint64_t i = 1; i <= 200; ++i) {
    (void)b.core.submit(b.now, {.stream = s, .token = i, .branch_draw = i * 77});
    b.drain();
  }
  b.run_to(10000 * kMs);
  const Counters& c = b.core.counters();
  EXPECT_EQ(c.modules[1].tasks_run + c.modules[2].tasks_run, 200u);
  EXPECT_GT(c.modules[1].tasks_run, 70u);
  EXPECT_GT(c.modules[2].tasks_run, 70u);
  EXPECT_EQ(c.modules[3].tasks_run, 200u);
}

TEST(Scheduler, ALaterCaptureSupersedesWhatWaits) {
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 100 * kMs), test::plain());
  const StreamId s = b.open({.supersede = Supersede::latest});
  b.now = 50 * kMs;
  b.submit(s, 1, 1, 40 * kMs);
  b.submit(s, 2, 1, 42 * kMs);
  b.submit(s, 3, 1, 45 * kMs);
  EXPECT_EQ(b.answers[2].reason, Reason::superseded);
  b.submit(s, 4, 1, 43 * kMs);  // older than what waits
  EXPECT_EQ(b.answers[4].reason, Reason::superseded);
  b.run_to(90 * kMs);
  EXPECT_EQ(b.answers[1].outcome, Outcome::completed);
  EXPECT_EQ(b.answers[3].outcome, Outcome::completed);
}

TEST(Scheduler, LatestPerKeyKeepsOneOfEachKey) {
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 100 * kMs), test::plain());
  const StreamId s = b.open({.supersede = Supersede::latest_per_key});
  b.submit(s, 1, 1, 0, 9);
  b.submit(s, 2, 1, 0, 1);
  b.submit(s, 3, 1, 0, 2);
  b.submit(s, 4, 1, 0, 1);
  EXPECT_EQ(b.answers[2].reason, Reason::superseded);
  EXPECT_EQ(b.answers.size(), 1u);
}

TEST(Scheduler, DepthIsALimitNotAQueue) {
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 100 * kMs), test::plain());
  const StreamId s = b.open({.depth = 2});
  for (std::uint64_t i = 1; i <= 3; ++i) b.submit(s, i);
  EXPECT_EQ(b.answers[3].outcome, Outcome::rejected);
  EXPECT_EQ(b.answers[3].reason, Reason::queue_full);
}

TEST(Scheduler, CancelAndCloseAnswerWhatWaitsAtOnceAndWhatRunsAtItsEnd) {
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 100 * kMs), test::plain());
  const StreamId s = b.open();
  const RequestHandle runs = b.submit(s, 1);
  const RequestHandle waits = b.submit(s, 2);
  b.submit(s, 3);
  b.core.cancel(b.now, waits);
  b.core.cancel(b.now, runs);
  b.core.cancel(b.now, waits);  // stale: counted, ignored
  b.core.close_stream(b.now, s, Reason::client_gone);
  b.drain();
  EXPECT_EQ(b.answers[2].reason, Reason::cancelled);
  EXPECT_EQ(b.answers[3].reason, Reason::client_gone);
  EXPECT_FALSE(b.answers.contains(1));
  EXPECT_EQ(b.core.counters().stale_events, 1u);
  EXPECT_EQ(b.submit(s, 4).index, kNone);
  b.drain();
  EXPECT_EQ(b.answers[4].outcome, Outcome::rejected);
  EXPECT_EQ(b.answers[4].reason, Reason::stream_closed);
  b.run_to(20 * kMs);
  EXPECT_EQ(b.answers[1].reason, Reason::cancelled);
}

TEST(Scheduler, ALostPartitionsBatchIsRetriedWhileSlackAllows) {
  Bench b(chain(1, 2, 1, 10 * kMs, 0, 50 * kMs), test::plain());
  const StreamId s = b.open();
  b.submit(s, 1);
  b.submit(s, 2);
  b.now = 5 * kMs;
  b.core.partition_lost(b.now, 0);
  b.running.erase(b.running.begin());
  b.drain();
  b.run_to(40 * kMs);
  EXPECT_EQ(b.answers[1].outcome, Outcome::completed);
  EXPECT_EQ(b.core.counters().retries, 1u);
  b.submit(s, 3);
  b.now = 85 * kMs;
  b.core.partition_lost(b.now, 1);
  b.running.clear();
  b.drain();
  EXPECT_EQ(b.answers[3].outcome, Outcome::failed);
  EXPECT_EQ(b.answers[3].reason, Reason::partition_lost);
  b.submit(s, 4);
  b.run_to(200 * kMs);
  EXPECT_EQ(b.answers[4].reason, Reason::no_partition);
  b.core.partition_ready(b.now, 0);
  b.submit(s, 5);
  b.run_to(300 * kMs);
  EXPECT_EQ(b.answers[5].outcome, Outcome::completed);
}

// Frame 2 ends whoever runs it. Whom it was with when that happened first is tried once more, each alone.
TEST(Scheduler, ARequestThatEndsTwoPartitionsIsPoisonAndItsNeighboursAreServed) {
  Bench b(chain(1, 1, 4, 10 * kMs, 0, 500 * kMs), test::plain());
  const StreamId s = b.open();
  b.submit(s, 99);  // the others queue up behind it
  for (std::uint64_t i = 1; i <= 4; ++i) b.submit(s, i);
  b.run_to(11 * kMs);
  std::uint32_t losses = 0;
  std::vector<std::size_t> sizes;
  while (!b.running.empty()) {
    const auto r = b.running.front();
    sizes.push_back(r.tokens.size());
    b.core.stage_started(b.now, r.batch, 0);
    if (std::find(r.tokens.begin(), r.tokens.end(), 2) != r.tokens.end()) {
      ++losses;
      b.core.partition_lost(b.now, 0);
      b.running.clear();
      b.core.partition_ready(b.now, 0);
    } else {
      b.finish(0);
    }
    b.drain();
    b.core.audit();
  }
  EXPECT_EQ(losses, 2u);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{4, 1, 1, 1, 1}));
  EXPECT_EQ(b.answers[2].outcome, Outcome::failed);
  EXPECT_EQ(b.answers[2].reason, Reason::poison);
  for (const std::uint64_t i : {1, 3, 4}) EXPECT_EQ(b.answers[i].outcome, Outcome::completed) << i;
}

// A batch that waited behind another when its partition was lost is not to blame.
TEST(Scheduler, WhatOnlyWaitedAtALostPartitionIsNotSuspected) {
  Policy p = test::plain();
  p.queue_ahead = 1;
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 500 * kMs), p);
  const StreamId s = b.open();
  b.submit(s, 1);
  b.submit(s, 2);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(b.running.size(), 2u);
    b.core.stage_started(b.now, b.running.front().batch, 0);
    b.core.partition_lost(b.now, 0);
    b.running.clear();
    b.core.partition_ready(b.now, 0);
    b.drain();
  }
  b.run_to(300 * kMs);
  EXPECT_EQ(b.answers[1].reason, Reason::poison);
  EXPECT_EQ(b.answers[2].outcome, Outcome::completed);
}

// Where the partition had begun it as well, both are, and from then on each runs with no other beside it.
TEST(Scheduler, WhatRanBesideAnotherAtALostPartitionIsSuspectedTooAndThenRunsAlone) {
  Policy p = test::plain();
  p.queue_ahead = 1;
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 500 * kMs), p);
  const StreamId s = b.open();
  b.submit(s, 1);
  b.submit(s, 2);
  for (const bool suspected : {false, true}) {
    ASSERT_EQ(b.running.size(), 2u);
    for (const auto& r : b.running) EXPECT_EQ(r.alone, suspected);
    b.core.stage_started(b.now, b.running[0].batch, 0);
    if (!suspected) b.core.stage_beside(b.now, b.running[1].batch, 0);
    b.core.partition_lost(b.now, 0);
    b.running.clear();
    b.core.partition_ready(b.now, 0);
    b.drain();
  }
  b.run_to(300 * kMs);
  const bool first = b.answers[1].reason == Reason::poison;
  EXPECT_EQ(b.answers[first ? 1 : 2].reason, Reason::poison);
  EXPECT_EQ(b.answers[first ? 2 : 1].outcome, Outcome::completed);
}

// A batch of 10 ms occupies its partition for 7: the next is sent when those are over, and is expected 10 ms later; the
// partition was busy for 17.
TEST(Scheduler, WhereBatchesOverlapTheNextIsSentBeforeTheEndOfTheLast) {
  Policy p = test::plain();
  p.queue_ahead = 1;
  p.ahead_within_ns = 0;
  Topology t = chain(1, 1, 1, 10 * kMs, 0, 500 * kMs);
  t.routes[0].stages[0].overlap_permille = 300;
  Bench b(t, p);
  const StreamId s = b.open();
  b.submit(s, 1);
  b.submit(s, 2);
  ASSERT_EQ(b.running.size(), 1u);
  b.core.stage_started(b.now, b.running[0].batch, 0);
  EXPECT_EQ(b.core.next_timer(), b.now + 7 * kMs);
  b.now += 7 * kMs;
  b.core.advance(b.now);
  b.drain();
  ASSERT_EQ(b.running.size(), 2u);
  const BatchHandle second = b.running[1].batch;
  b.core.stage_beside(b.now, second, 0);
  b.now += 3 * kMs;
  b.core.stage_started(b.now, second, 0);
  b.finish(0);
  b.drain();
  b.core.audit();
  b.now += 7 * kMs;
  b.finish(0);
  b.drain();
  b.core.audit();
  EXPECT_EQ(b.answers[2].outcome, Outcome::completed);
  EXPECT_EQ(b.core.counters().partitions[0].busy_ns, static_cast<std::uint64_t>(17 * kMs));
}

TEST(Scheduler, AModelErrorFailsItsRequestOnly) {
  Bench b(chain(1, 1, 2, 10 * kMs, 0, 100 * kMs), test::plain());
  const StreamId s = b.open();
  for (std::uint64_t i = 1; i <= 3; ++i) b.submit(s, i);
  b.run_to(10 * kMs + 1);
  ASSERT_EQ(b.running.size(), 1u);
  const TaskResult results[] = {{.ok = false, .reason = Reason::bad_frame}, {}};
  b.core.stage_finished(b.now, b.running[0].batch, 0, results);
  b.drain();
  EXPECT_EQ(b.answers[2].outcome, Outcome::failed);
  EXPECT_EQ(b.answers[3].outcome, Outcome::completed);
}

TEST(Scheduler, StaleAndBackwardEventsAreCountedAndIgnored) {
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 100 * kMs), test::plain());
  const StreamId s = b.open();
  b.now = 20 * kMs;
  b.submit(s, 1);
  b.core.stage_finished(b.now, {5, 9}, 0, {});
  b.core.partition_lost(b.now, 77);
  b.core.close_stream(b.now, 200, Reason::client_gone);
  EXPECT_EQ(b.core.open_stream(b.now, {.application = 4}), kNone);
  EXPECT_EQ(b.core.submit(b.now, {.stream = 999}).index, kNone);
  EXPECT_EQ(b.core.counters().stale_events, 4u);
  b.core.advance(1 * kMs);  // the clock stepped back
  EXPECT_EQ(b.core.counters().clock_steps_back, 1u);
  b.run_to(100 * kMs);
  EXPECT_EQ(b.answers[1].outcome, Outcome::completed);
}

TEST(Scheduler, MoreItemsThanAnyRouteCanRunAreRefused) {
  Bench b(chain(1, 1, 4, 10 * kMs, 0, 100 * kMs), test::plain());
  b.submit(b.open(), 1, 5);
  EXPECT_EQ(b.answers[1].reason, Reason::unschedulable);
}

TEST(Scheduler, StagesOfARouteMoveOnTheirPath) {
  Topology t = chain(1, 1, 2, 10 * kMs, 0, 100 * kMs);
  t.partitions.resize(3);
  t.routes[0].stages.push_back({.pool = {1, 2}, .latency = test::affine(5 * kMs, 0, 2)});
  Bench b(t, test::plain());
  const StreamId s = b.open();
  for (std::uint64_t i = 1; i <= 3; ++i) b.submit(s, i);
  b.run_to(60 * kMs);
  EXPECT_EQ(b.answers[1].at, 1 + 15 * kMs);
  EXPECT_EQ(b.answers[3].at, 1 + 25 * kMs);
  ASSERT_EQ(b.sent[0].path.size(), 2u);
}

// Three seconds of requests whose batches take 40 ms less than planned; the last one's token.
std::uint64_t run_faster(Bench& b, StreamId s) {
  std::uint64_t token = 0;
  for (TimeNs at = 100 * kMs; at < 3'000 * kMs; at += 100 * kMs) {
    b.run_to(at);
    b.extra[++token] = -40 * kMs;
    b.submit(s, token, 1, b.now);
  }
  b.run_to(3'000 * kMs);
  return token;
}

// What batches taught of a module whose latencies are as before stays, also when others were measured anew.
TEST(Scheduler, WhatIsNotMeasuredAnewStaysAsLearned) {
  const Topology said = chain(1, 1, 1, 0, 50 * kMs, 200 * kMs);
  Policy p;
  ASSERT_TRUE(preset("leat", p));
  p.canaries = false;
  Bench b(said, p);
  const StreamId s = b.open();
  std::uint64_t token = run_faster(b, s);
  ReadyPlanPtr plan = b.core.prepare(said);
  ASSERT_TRUE(b.core.replace(b.now, plan, true));
  const StreamId hasty = b.open({.slo_ns = 30 * kMs});
  b.extra[++token] = -40 * kMs;
  b.submit(hasty, token, 1, b.now);
  b.run_to(3'100 * kMs);
  EXPECT_EQ(b.answers.at(token).outcome, Outcome::completed) << "by the plan 50 ms, as learned 10";
}

// Batches teach how their plan's latencies are wrong; that says nothing of latencies that were measured anew.
TEST(Scheduler, WhatIsMeasuredAnewIsBelieved) {
  Topology said = chain(1, 1, 1, 0, 50 * kMs, 200 * kMs), right = chain(1, 1, 1, 0, 10 * kMs, 200 * kMs);
  for (const bool measured_anew : {false, true}) {
    Policy p;
    ASSERT_TRUE(preset("leat", p));
    p.canaries = false;
    Bench b(said, p);
    const StreamId s = b.open();
    std::uint64_t token = run_faster(b, s);
    ReadyPlanPtr plan = b.core.prepare(right);
    ASSERT_TRUE(b.core.replace(b.now, plan, measured_anew));
    b.topology = right;
    // By what was learned of the plan before, 10 ms would be 2.
    const StreamId hasty = b.open({.slo_ns = 5 * kMs});
    b.submit(hasty, ++token, 1, b.now);
    b.run_to(3'100 * kMs);
    EXPECT_EQ(b.answers.at(token).outcome, measured_anew ? Outcome::dropped : Outcome::late);
  }
}

}  // namespace
}  // namespace leat::core
