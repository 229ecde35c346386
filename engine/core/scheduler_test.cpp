// The life of a request, case by case.
#include <algorithm>

#include "engine/core/policy_words.h"
#include "engine/core/test_bench.h"

namespace leat::core {
namespace {

using test::Bench;
using test::chain;
using test::kMs;

Policy policy(Order order, Drop drop) {
  Policy p;
  p.order = order;
  p.drop = drop;
  return p;
}

TEST(Scheduler, OneRequestThroughAChainOfThree) {
  Bench b(chain(3, 1, 4, 5 * kMs, 1 * kMs, 100 * kMs), policy(Order::lbf, Drop::expired));
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
  Bench b(chain(1, 1, 4, 5 * kMs, 1 * kMs, 1000 * kMs), policy(Order::fcfs, Drop::none));
  const StreamId s = b.open({.depth = 100});
  for (std::uint64_t i = 0; i < 7; ++i) b.submit(s, i);
  b.run_to(1000 * kMs);
  ASSERT_EQ(b.sent.size(), 3u);
  EXPECT_EQ(b.sent[0].tokens.size(), 1u);
  EXPECT_EQ(b.sent[1].tokens, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(b.sent[2].tokens, (std::vector<std::uint64_t>{5, 6}));
}

TEST(Scheduler, EarliestDeadlineFirst) {
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 1000 * kMs), policy(Order::lbf, Drop::expired));
  const StreamId slow = b.open({.slo_ns = 500 * kMs}), fast = b.open({.slo_ns = 50 * kMs});
  b.submit(slow, 1);
  b.submit(slow, 2);
  b.submit(fast, 3);
  b.run_to(100 * kMs);
  EXPECT_EQ(b.sent[1].tokens, std::vector<std::uint64_t>{3});
}

TEST(Scheduler, ExpiredIsAnsweredAtTheDeadlineWhileABatchRuns) {
  Bench b(chain(1, 1, 1, 100 * kMs, 0, 30 * kMs), policy(Order::lbf, Drop::expired));
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
  Bench b(chain(1, 1, 1, 20 * kMs, 0, 10 * kMs), policy(Order::lbf, Drop::expired));
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
  Bench b(t, policy(Order::lbf, Drop::expired));
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
}

// A cap of one is a fan-out too: a detector that found nothing leaves the module behind it nothing to do.
TEST(Scheduler, AFanOutCappedAtOne) {
  Bench b(chain(2, 1, 4, 5 * kMs, 1 * kMs, 100 * kMs), policy(Order::lbf, Drop::expired));
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
  Bench b(diamond(), policy(Order::lbf, Drop::expired));
  b.submit(b.open(), 1);
  b.run_to(90 * kMs);
  EXPECT_EQ(b.answers[1].at, 1 + 30 * kMs);
  EXPECT_EQ(b.sent.size(), 4u);
}

TEST(Scheduler, ADroppedBranchTakesItsSiblingsAlong) {
  Topology t = diamond();
  t.routes[1].stages[0].latency = test::affine(200 * kMs, 0, 1);
  Bench b(t, policy(Order::lbf, Drop::expired));
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
  Bench b(t, policy(Order::lbf, Drop::none));
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
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 100 * kMs), policy(Order::lbf, Drop::expired));
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
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 100 * kMs), policy(Order::lbf, Drop::expired));
  const StreamId s = b.open({.supersede = Supersede::latest_per_key});
  b.submit(s, 1, 1, 0, 9);
  b.submit(s, 2, 1, 0, 1);
  b.submit(s, 3, 1, 0, 2);
  b.submit(s, 4, 1, 0, 1);
  EXPECT_EQ(b.answers[2].reason, Reason::superseded);
  EXPECT_EQ(b.answers.size(), 1u);
}

TEST(Scheduler, DepthIsALimitNotAQueue) {
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 100 * kMs), policy(Order::lbf, Drop::expired));
  const StreamId s = b.open({.depth = 2});
  for (std::uint64_t i = 1; i <= 3; ++i) b.submit(s, i);
  EXPECT_EQ(b.answers[3].outcome, Outcome::rejected);
  EXPECT_EQ(b.answers[3].reason, Reason::queue_full);
}

TEST(Scheduler, CancelAndCloseAnswerWhatWaitsAtOnceAndWhatRunsAtItsEnd) {
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 100 * kMs), policy(Order::lbf, Drop::expired));
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
  Bench b(chain(1, 2, 1, 10 * kMs, 0, 50 * kMs), policy(Order::lbf, Drop::expired));
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
  Bench b(chain(1, 1, 4, 10 * kMs, 0, 500 * kMs), policy(Order::lbf, Drop::expired));
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
    b.core.check();
  }
  EXPECT_EQ(losses, 2u);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{4, 1, 1, 1, 1}));
  EXPECT_EQ(b.answers[2].outcome, Outcome::failed);
  EXPECT_EQ(b.answers[2].reason, Reason::poison);
  for (const std::uint64_t i : {1, 3, 4}) EXPECT_EQ(b.answers[i].outcome, Outcome::completed) << i;
}

// A batch that waited behind another when its partition was lost is not to blame.
TEST(Scheduler, WhatOnlyWaitedAtALostPartitionIsNotSuspected) {
  Policy p = policy(Order::lbf, Drop::expired);
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

TEST(Scheduler, AModelErrorFailsItsRequestOnly) {
  Bench b(chain(1, 1, 2, 10 * kMs, 0, 100 * kMs), policy(Order::lbf, Drop::expired));
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
  Bench b(chain(1, 1, 1, 10 * kMs, 0, 100 * kMs), policy(Order::lbf, Drop::expired));
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
  Bench b(chain(1, 1, 4, 10 * kMs, 0, 100 * kMs), policy(Order::lbf, Drop::expired));
  b.submit(b.open(), 1, 5);
  EXPECT_EQ(b.answers[1].reason, Reason::unschedulable);
}

TEST(Scheduler, StagesOfARouteMoveOnTheirPath) {
  Topology t = chain(1, 1, 2, 10 * kMs, 0, 100 * kMs);
  t.partitions.resize(3);
  t.routes[0].stages.push_back({.pool = {1, 2}, .latency = test::affine(5 * kMs, 0, 2)});
  Bench b(t, policy(Order::lbf, Drop::expired));
  const StreamId s = b.open();
  for (std::uint64_t i = 1; i <= 3; ++i) b.submit(s, i);
  b.run_to(60 * kMs);
  EXPECT_EQ(b.answers[1].at, 1 + 15 * kMs);
  EXPECT_EQ(b.answers[3].at, 1 + 25 * kMs);
  ASSERT_EQ(b.sent[0].path.size(), 2u);
}

// PARIS and ELSA, figure 10: the large partition is busy, the small one idle. FIFS puts A on the small one, where it
// violates its SLA; ELSA waits for the large one.
TEST(Elsa, Figure10) {
  Topology t = chain(1, 2, 1, 0, 0, 100 * kMs);
  t.routes[0].stages[0].latency = test::affine(120 * kMs, 0, 1);
  t.routes[0].stages[0].pool = {0};
  t.routes.push_back(
      {.module = 0, .batch = 1, .rate_rps = 0, .stages = {{.pool = {1}, .latency = test::affine(40 * kMs, 0, 1)}}});
  t.modules[0].routes = {0, 1};
  t.partitions[0].size = 1;
  t.partitions[1].size = 7;
  Policy elsa, fifs;
  ASSERT_TRUE(preset("elsa", elsa) && preset("fifs", fifs));
  for (const bool smart : {false, true}) {
    Topology order = t;
    if (!smart)
      std::swap(order.modules[0].routes[0], order.modules[0].routes[1]);  // FIFS: the first query meets the large one
    Bench b(order, smart ? elsa : fifs);
    const StreamId s = b.open();
    b.submit(s, 1);  // B: goes to the large partition
    b.now = 10 * kMs;
    b.submit(s, 2);  // A
    b.run_to(400 * kMs);
    EXPECT_EQ(b.sent[0].path[0], 1u);
    EXPECT_EQ(b.sent[1].path[0], smart ? 1u : 0u);
    EXPECT_EQ(b.answers[2].outcome, smart ? Outcome::completed : Outcome::late);
  }
}

TEST(Presets, EveryNameIsKnownAndNoOther) {
  Policy p;
  std::string_view names = preset_names();
  int n = 0;
  while (!names.empty()) {
    const std::size_t comma = names.find(", ");
    EXPECT_TRUE(preset(names.substr(0, comma), p)) << names;
    names = comma == std::string_view::npos ? "" : names.substr(comma + 2);
    ++n;
  }
  EXPECT_GE(n, 10);
  EXPECT_FALSE(preset("", p));
  EXPECT_FALSE(preset("leatt", p));
}

TEST(Presets, TakeSettings) {
  const auto list = read_policies(
      "leat, pard:order=lbf:window_ms=2.5 ,leat,clipper++:split_reading=elapsed_and_execution:form_ahead=false");
  ASSERT_TRUE(list.ok()) << list.error();
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ((*list)[1].name, "pard:order=lbf:window_ms=2.5");
  EXPECT_EQ((*list)[1].policy.order, Order::lbf);
  EXPECT_EQ((*list)[1].policy.window_ns, 2'500'000);
  for (const char* inert :
       {"naive:split_reading=elapsed", "leat:oc_alpha_permille=10", "fifs:place=tc", "ppipe:kappa_permille=5"}) {
    const auto refused = read_policy(inert);
    ASSERT_FALSE(refused.ok()) << inert;
    EXPECT_NE(refused.error().find("does not look at it; leave it out, the keys here are"), std::string::npos) << inert;
  }
  EXPECT_EQ((*list)[2].policy.split_reading, SplitReading::elapsed_and_execution);
  EXPECT_FALSE((*list)[2].policy.form_ahead);
  EXPECT_EQ(read_policies("all")->size(), static_cast<std::size_t>(std::ranges::count(preset_names(), ',')) + 1);
  for (const char* wrong : {"", "laet", "leat,", "leat:", "leat:order", "leat:order=", "leat:ordre=lbf",
                            "leat:kappa_permille=-1", "leat:kappa_permille=1e9", "leat:fit=1"}) {
    const auto refused = read_policies(wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.error().find('\n'), std::string::npos);
  }
  EXPECT_NE(read_policies("leat:ordre=lbf").error().find("did you mean 'order'?"), std::string::npos);
}

// One partition, a periodic protected stream (15 ms of work each 33 ms) and a background job of 40 ms that would make
// the next periodic request late. The job is kept back; when the request does not come, it is asked for a bounded
// number of times.
TEST(LookAhead, AnOverdueRequestIsAskedForNowAndThen) {
  Topology t;
  for (std::uint32_t a = 0; a < 2; ++a) {
    t.applications.push_back({.slo_ns = a == 0 ? 33 * kMs : 800 * kMs, .rate_rps = 0, .modules = {a}});
    t.modules.push_back({.application = a, .before = {}, .after = {}, .routes = {a}});
    t.routes.push_back({.module = a,
                        .batch = 1,
                        .rate_rps = 0,
                        .stages = {StageSpec{.pool = {0}, .latency = test::affine(0, (a == 0 ? 15 : 40) * kMs, 1)}}});
  }
  t.partitions.push_back({});
  Policy policy;
  ASSERT_TRUE(preset("leat", policy));
  Scheduler core(t, policy);
  core.partition_ready(0, 0);
  const StreamId camera =
      core.open_stream(0, {.application = 0, .period_ns = 33 * kMs, .priority = Priority::protected_});
  const StreamId report = core.open_stream(0, {.application = 1, .priority = Priority::background});
  std::vector<ModuleId> started;
  const auto drain = [&](TimeNs now) {
    for (Action a; core.next_action(a);) {
      if (a.kind != ActionKind::dispatch) continue;
      started.push_back(a.module);
      if (a.module == 0) (void)core.stage_finished(now + 15 * kMs, a.batch, 0, {});
    }
  };
  (void)core.submit(kMs, {.stream = camera, .token = 1, .capture_ns = kMs});
  drain(kMs);
  (void)core.submit(20 * kMs, {.stream = report, .token = 2, .capture_ns = 20 * kMs});
  drain(20 * kMs);
  ASSERT_EQ(started, std::vector<ModuleId>{0});  // kept back
  int turns = 0;
  for (TimeNs at = core.next_timer(); at < 200 * kMs && started.size() < 2 && turns < 10'000;
       at = core.next_timer(), ++turns) {
    core.advance(at);
    drain(at);
  }
  EXPECT_EQ(started, (std::vector<ModuleId>{0, 1}));  // the camera stays away: the job runs after all
  EXPECT_LE(turns, 64);
}

// A detector and what comes behind it on one partition, four cameras with a known period: sub-requests go in full
// batches, and all is done in time.
TEST(Batching, PeriodicStreamsOfAPipelineKeepItsBatches) {
  Topology t;
  t.applications.push_back({.slo_ns = 200 * kMs, .rate_rps = 0, .modules = {0, 1}});
  t.modules.push_back({.application = 0, .before = {}, .after = {1}, .routes = {0}});
  t.modules.push_back(
      {.application = 0, .before = {0}, .after = {}, .items_per_request = 9, .fan_out_cap = 16, .routes = {1}});
  t.routes.push_back({.module = 0,
                      .batch = 4,
                      .rate_rps = 0,
                      .stages = {StageSpec{.pool = {0}, .latency = test::affine(0, 2 * kMs, 4)}}});
  t.routes.push_back({.module = 1,
                      .batch = 16,
                      .rate_rps = 0,
                      .stages = {StageSpec{.pool = {0}, .latency = test::affine(kMs, kMs / 20, 16)}}});
  t.partitions.push_back({});
  Policy policy;
  ASSERT_TRUE(preset("leat", policy));
  test::Bench b(t, policy);
  b.fan_out = 9;
  std::vector<StreamId> cameras;
  for (int i = 0; i < 4; ++i) cameras.push_back(b.open({.application = 0, .period_ns = 33 * kMs}));
  std::uint64_t token = 0;
  for (TimeNs at = kMs; at < 1000 * kMs; at += 33 * kMs) {
    b.run_to(at);
    for (const StreamId s : cameras) b.submit(s, ++token, 1, at);
  }
  b.run_to(2000 * kMs);
  ASSERT_EQ(b.answers.size(), token);
  for (const auto& [which, answer] : b.answers) EXPECT_EQ(answer.outcome, Outcome::completed) << which;
  const ModuleCounters& classify = b.core.counters().modules[1];
  EXPECT_GE(classify.items, 8 * classify.batches);
}

}  // namespace
}  // namespace leat::core
