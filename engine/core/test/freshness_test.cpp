// Look-ahead, budgets, weakly hard windows, margins that learn, and credit that only a proven end gives back.
#include <array>

#include "engine/core/core.h"
#include "engine/core/policy/look_ahead/look_ahead.h"
#include "engine/core/policy/look_ahead/periodic.h"
#include "engine/core/test/test_bench.h"
#include "engine/core/test/test_scheduler.h"

namespace leat::core {
namespace {

using test::Bench;
using test::kMs;

// Run times of a batch of n, n = 0..4, exact: no deviation.
struct Times {
  std::array<TimeNs, 5> run{};
  explicit Times(TimeNs one, TimeNs more = 0) {
    for (TimeNs n = 1; n <= 4; ++n) run[static_cast<std::size_t>(n)] = one + (n - 1) * more;
  }
};

// Nothing waits: its next frame is captured at `next`; what came before is covered.
LookAheadSource camera(const Times& t, TimeNs period, TimeNs next) {
  return {.period_ns = period,
          .need_ns = next,
          .next_ns = next,
          .max_age_ns = 2 * period,
          .slo_ns = 2 * period,
          .run_ns = t.run.data(),
          .safe_ns = t.run.data()};
}
LookAheadSource job(const Times& t, TimeNs deadline) {
  return {.deadline_ns = deadline, .waiting_ns = 0, .run_ns = t.run.data(), .safe_ns = t.run.data(), .group = 1};
}

TEST(LookAhead, IdlesForAPeriodicStreamThatALongJobWouldShutOut) {
  const Times detector(15 * kMs), report(60 * kMs), brief(9 * kMs);
  std::array sources = {camera(detector, 33 * kMs, 10 * kMs), job(report, 800 * kMs)};
  sources[0].weight = 1000;
  const LookAheadMove idle = LookAhead{.sources = sources}.decide(0);
  EXPECT_EQ(idle.source, kNone);
  EXPECT_EQ(idle.until_ns, 10 * kMs);
  sources[1] = job(brief, 800 * kMs);
  EXPECT_EQ(LookAhead{.sources = sources}.decide(0).source, 1U) << "it ends before the frame comes";
  sources[1] = job(report, 800 * kMs);
  sources[0].next_ns = sources[0].need_ns = 500 * kMs;
  EXPECT_EQ(LookAhead{.sources = sources}.decide(0).source, 1U) << "nothing comes for a while";
}

TEST(LookAhead, AnotherPartitionCanTakeTheStream) {
  const Times detector(15 * kMs), report(60 * kMs);
  std::array sources = {camera(detector, 33 * kMs, 10 * kMs), job(report, 800 * kMs)};
  sources[0].weight = 1000;
  sources[0].machines = 3;
  EXPECT_EQ((LookAhead{.sources = sources, .free_ns = {0, 12 * kMs}, .machines = 2}.decide(0).source), 1U);
  EXPECT_EQ((LookAhead{.sources = sources, .free_ns = {0, 90 * kMs}, .machines = 2}.decide(0).source), kNone)
      << "it is free too late";
}

TEST(LookAhead, AHeavierRequestWaitsForALighterOneThatIsInAHurry) {
  const Times t(10 * kMs);
  std::array sources = {camera(t, 100 * kMs, 100 * kMs), camera(t, 100 * kMs, 100 * kMs)};
  for (LookAheadSource& s : sources) s.waiting_ns = 0;
  sources[0].need_ns = 0;  // until 100 ms
  sources[0].weight = 1000;
  sources[1].need_ns = -85 * kMs;  // until 15 ms
  EXPECT_EQ(LookAhead{.sources = sources}.decide(0).source, 1U);
  sources[0].need_ns = -85 * kMs;  // both: one of them is lost
  EXPECT_EQ(LookAhead{.sources = sources}.decide(0).source, 0U);
}

TEST(LookAhead, AResultIsNotMadeForAWindowThatIsCovered) {
  // 14.9 of every 15 ms: started at once the result would come 0.4 ms after the edge, give or take 0.6; it is put off.
  const Times t(14'900'000), safe(16'350'000);
  std::array sources = {camera(t, 15 * kMs, 15 * kMs)};
  sources[0].safe_ns = safe.run.data();
  sources[0].waiting_ns = 0;
  const LookAheadMove move = LookAhead{.sources = sources}.decide(500'000);
  EXPECT_EQ(move.source, kNone);
  EXPECT_NEAR(static_cast<double>(move.until_ns), 1.345e6, 2e4);  // two deviations past the edge
  EXPECT_EQ(LookAhead{.sources = sources}.decide(move.until_ns).source, 0U);
}

TEST(LookAhead, ABatchIsAsLargeAsItsFirstEdgeAllows) {
  const Times t(10 * kMs, 4 * kMs);
  std::array sources = {camera(t, 30 * kMs, 30 * kMs), camera(t, 30 * kMs, 30 * kMs), camera(t, 30 * kMs, 30 * kMs)};
  for (LookAheadSource& s : sources) {
    s.waiting_ns = 0;
    s.need_ns = 0;
    s.cap = 4;
  }
  EXPECT_EQ(LookAhead{.sources = sources}.decide(0).requests, 3U);         // 18 of 30 ms
  EXPECT_EQ(LookAhead{.sources = sources}.decide(15 * kMs).requests, 2U);  // 14 of 15 ms
}

TEST(LookAhead, ARiskyRequestWaitsWhileOneThatFitsGoes) {
  // The detector's frame comes after 4 ms and needs 15 of its 30. A report of 12 ms, at times 17, would put that at
  // risk.
  const Times detector(15 * kMs), report(12 * kMs), longest(17 * kMs), brief(2 * kMs);
  std::array sources = {camera(detector, 30 * kMs, 4 * kMs), job(report, 800 * kMs), job(brief, 800 * kMs)};
  sources[0].weight = 1000;
  sources[1].safe_ns = longest.run.data();
  sources[2].group = 2;
  EXPECT_EQ(LookAhead{.sources = sources}.decide(0).source, 2U);
  sources[2].waiting_ns = kNever;
  EXPECT_EQ(LookAhead{.sources = sources}.decide(0).source, kNone);
  sources[1].safe_ns = report.run.data();
  EXPECT_EQ(LookAhead{.sources = sources}.decide(0).source, 1U) << "it never takes longer";
}

TEST(LookAhead, OwedWorkGoesBeforeLighterStreamsAndNotBeforeHeavierOnes) {
  const Times detector(15 * kMs), report(40 * kMs), light(25 * kMs);
  std::array sources = {camera(detector, 33 * kMs, 300 * kMs), camera(light, 50 * kMs, 50 * kMs),
                        job(report, 800 * kMs)};
  sources[0].weight = 1000;
  sources[1].waiting_ns = 0;
  sources[1].need_ns = 0;
  sources[2].weight = 10;
  EXPECT_EQ(LookAhead{.sources = sources}.decide(0).source, 1U)
      << "the stream would lose its window, the report nothing";
  sources[2].owed = true;
  EXPECT_EQ(LookAhead{.sources = sources}.decide(0).source, 2U);
  sources[0].next_ns = sources[0].need_ns = 10 * kMs;
  EXPECT_NE(LookAhead{.sources = sources}.decide(0).source, 2U);
}

TEST(LookAhead, RequestsThatAreNotPeriodicShareABatchAsLargeAsFits) {
  const Times detector(15 * kMs), report(4 * kMs, 2 * kMs);
  std::array sources = {camera(detector, 33 * kMs, 10 * kMs), job(report, 800 * kMs)};
  sources[0].weight = 1000;
  sources[1].waiting = 9;
  sources[1].cap = 4;
  EXPECT_EQ(LookAhead{.sources = sources}.decide(0).requests, 4U) << "10 ms: it ends as the frame comes";
  sources[1].waiting = 2;
  EXPECT_EQ(LookAhead{.sources = sources}.decide(0).requests, 2U);
}

TEST(LookAhead, DecidesAmongAsManySourcesAsItWeighs) {
  const Times detector(10 * kMs), cameras(4 * kMs, kMs);
  std::array<LookAheadSource, kLookAheadSources> sources;
  sources.fill(camera(cameras, 100 * kMs, 90 * kMs));
  for (LookAheadSource& s : sources) {
    s.waiting_ns = 0;
    s.need_ns = 0;
    s.cap = 4;
  }
  sources[7] = camera(detector, 100 * kMs, 2 * kMs);
  sources[7].weight = 1000;
  sources[7].group = 1;
  const LookAheadMove move = LookAhead{.sources = sources}.decide(0);
  EXPECT_NE(move.source, kNone);
  EXPECT_NE(move.source, 7U);
  EXPECT_EQ(move.requests, 4U);
}

// Two applications of one module each, on one partition.
Topology two_on_one(TimeNs first, TimeNs second, TimeNs slo) {
  Topology t;
  for (std::uint32_t a = 0; a < 2; ++a) {
    t.applications.push_back({.slo_ns = slo, .rate_rps = 0, .modules = {a}});
    t.modules.push_back({.application = a, .before = {}, .after = {}, .routes = {a}});
    t.routes.push_back({.module = a,
                        .batch = 1,
                        .rate_rps = 0,
                        .stages = {StageSpec{.pool = {0}, .latency = test::affine(0, a == 0 ? first : second, 1)}}});
  }
  t.partitions.push_back({});
  return t;
}

// A camera that takes the whole partition, and background work: completed background jobs in 3 s.
int background_jobs(TimeNs budget_ns, Priority camera_priority) {
  Policy policy;
  EXPECT_TRUE(preset("leat", policy));
  policy.background_budget_ns = budget_ns;
  Bench b(two_on_one(10 * kMs, 20 * kMs, 2000 * kMs), policy);
  const StreamId cam = b.open({.application = 0,
                               .slo_ns = 20 * kMs,
                               .max_age_ns = 20 * kMs,
                               .period_ns = 10 * kMs,
                               .supersede = Supersede::latest,
                               .priority = camera_priority});
  const StreamId report = b.open({.application = 1, .depth = 2, .priority = Priority::background});
  std::uint64_t token = 1;
  for (TimeNs at = kMs; at < 3000 * kMs; at += 10 * kMs) {
    b.run_to(at);
    b.submit(cam, token++);
    b.submit(report, 1'000'000 + token);
  }
  b.run_to(6000 * kMs);
  b.core.audit();
  int done = 0;
  for (const auto& [t, answer] : b.answers)
    done += t > 1'000'000 && answer.at < 3000 * kMs &&
                    (answer.outcome == Outcome::completed || answer.outcome == Outcome::late)
                ? 1
                : 0;
  return done;
}

TEST(Budget, BackgroundWorkHasItsShareBeforeNormalWorkAndNotBeforeMore) {
  EXPECT_LE(background_jobs(0, Priority::normal), 1);
  const int jobs =
      background_jobs(100 * kMs, Priority::normal);  // five of 20 ms in each second, and five saved from before
  EXPECT_GE(jobs, 18);
  EXPECT_LE(jobs, 20);
  EXPECT_LE(background_jobs(100 * kMs, Priority::high), 1);
}

TEST(LookAhead, OtherModulesOnThePartitionBatchAsWithoutIt) {
  Topology t = two_on_one(10 * kMs, 5 * kMs, 2000 * kMs);
  t.routes[1].batch = 4;
  t.routes[1].stages[0].latency = test::affine(4 * kMs, kMs, 4);
  for (const bool look_ahead : {false, true}) {
    Policy policy;
    ASSERT_TRUE(preset("leat", policy));
    policy.look_ahead = look_ahead;
    Bench b(t, policy);
    const StreamId cam = b.open({.application = 0,
                                 .slo_ns = 50 * kMs,
                                 .max_age_ns = 50 * kMs,
                                 .period_ns = 50 * kMs,
                                 .priority = Priority::high});
    const StreamId others = b.open({.application = 1, .depth = 64});
    std::uint64_t token = 0;
    for (TimeNs at = kMs; at < 1000 * kMs; at += 50 * kMs) {
      b.run_to(at);
      b.submit(cam, token++);
      for (int i = 0; i < 8; ++i) b.submit(others, token++);
    }
    b.run_to(3000 * kMs);
    for (std::uint64_t k = 0; k < token; ++k) EXPECT_EQ(b.answers[k].outcome, Outcome::completed) << k;
    const ModuleCounters& m = b.core.counters().modules[1];
    EXPECT_EQ(m.items, 160U);
    EXPECT_EQ(m.batches, 40U) << "look-ahead " << look_ahead;
  }
}

TEST(LookAhead, IsNotAskedAmongEqualsNorForMoreStreamsThanItWeighs) {
  for (const std::uint32_t count : {4u, 40u}) {
    Policy policy;
    ASSERT_TRUE(preset("leat", policy));
    Bench b(two_on_one(2 * kMs, 1 * kMs, 200 * kMs), policy);
    std::vector<StreamId> streams;
    for (std::uint32_t i = 0; i < count; ++i) {
      streams.push_back(b.open({.application = i % 2,
                                .period_ns = 100 * kMs,
                                .priority = count > 4 && i == 0 ? Priority::protected_ : Priority::normal}));
    }
    std::uint64_t token = 0;
    for (TimeNs at = kMs; at < 1000 * kMs; at += 100 * kMs) {
      b.run_to(at);
      for (const StreamId s : streams) b.submit(s, token++);
    }
    b.run_to(2000 * kMs);
    for (std::uint64_t t = 0; t < token; ++t)
      EXPECT_EQ(b.answers[t].outcome, Outcome::completed) << t << " of " << count;
    EXPECT_EQ(b.core.counters().idled_on_purpose, 0U);
  }
}

TEST(WeaklyHard, AStreamThatMayMissNoMoreGoesFirst) {
  // Room for one request every 10 ms, two come. The other stream's deadlines are always the earlier ones.
  for (const std::uint32_t window : {0u, 4u}) {
    Bench b(test::chain(1, 1, 1, 10 * kMs, 0, 100 * kMs), test::plain({.foresees = true}));
    const StreamId hard = b.open({.slo_ns = 15'200'000, .miss_window = window, .miss_allowed = 1}),
                   other = b.open({.slo_ns = 15'100'000});
    b.now = 5 * kMs;
    b.submit(other, 5000);  // what comes meets a partition that is free 5 ms later
    std::vector<bool> missed;
    for (std::uint64_t i = 0; i < 100; ++i) {
      b.run_to(static_cast<TimeNs>(1 + i) * 10 * kMs);
      b.submit(other, 1000 + i);
      b.submit(hard, i);
    }
    b.run_to(5000 * kMs);
    std::uint32_t worst = 0, all = 0;
    for (std::uint64_t i = 0; i < 100; ++i) {
      missed.push_back(b.answers[i].outcome != Outcome::completed);
      all += missed.back() ? 1 : 0;
      std::uint32_t of_four = 0;
      for (std::size_t k = 0; k < 4 && k <= i; ++k) of_four += missed[i - k] ? 1 : 0;
      worst = std::max(worst, of_four);
    }
    if (window == 0) {
      EXPECT_GT(all, 90U);
    } else {
      EXPECT_LE(worst, 2U) << "a miss is known only at its end, when the next request waits already";
      EXPECT_LE(all, 52U);
    }
  }
}

TEST(Credit, OnlyAProvenEndFreesThePartition) {
  Bench b(test::chain(1, 1, 1, 10 * kMs, 0, 20 * kMs), test::plain());
  const StreamId s = b.open();
  const RequestHandle runs = b.submit(s, 1);
  b.core.cancel(b.now, runs);
  b.core.close_stream(b.now, s, Reason::client_gone);
  b.drain();
  const StreamId next = b.open();
  b.submit(next, 2);
  EXPECT_EQ(b.sent.size(), 1U) << "cancelled, its client gone, and still running";
  b.running.front().end = 500 * kMs;  // it hangs far past its deadline
  b.run_to(400 * kMs);
  EXPECT_EQ(b.sent.size(), 1U);
  EXPECT_EQ(b.answers[2].reason, Reason::expired);
  b.run_to(500 * kMs);
  b.submit(next, 3);
  ASSERT_EQ(b.sent.size(), 2U);
  EXPECT_EQ(b.sent[1].tokens, std::vector<std::uint64_t>{3});
}

TEST(Margin, GrowsWhenAPromiseIsBrokenAndComesDownSlowly) {
  Scheduler::State core(test::chain(1, 1, 1, 10 * kMs, 0, 100 * kMs), Policy{}, Limits{});
  const ActivePlan& plan = *core.plan;
  const StateView view{plan.model, plan.queues, plan.load, plan.paying, core.ledger, core.machine,
                       core.tasks, core.now,    0};
  Periodic periodic(view, core, plan.model.components().front(), Policy{});
  Batch b;
  b.list.items = 1;
  EXPECT_EQ(periodic.margin_permille(), 1100U);
  periodic.learn(b, 11 * kMs, true);  // within p99 x 1.1
  EXPECT_EQ(periodic.margin_permille(), 1100U);
  periodic.learn(b, 11 * kMs + 1, true);
  EXPECT_EQ(periodic.margin_permille(), 1200U);
  for (int i = 0; i < 60; ++i) periodic.learn(b, 10 * kMs, true);
  EXPECT_EQ(periodic.margin_permille(), 1140U);
  for (int i = 0; i < 100; ++i) periodic.learn(b, 1000 * kMs, true);
  EXPECT_EQ(periodic.margin_permille(), 3000U);
}

TEST(Coverage, AFreshResultCoversTheWindowInWhichItIsDelivered) {
  const Topology t = test::chain(1, 1, 1, 10 * kMs, 0, 100 * kMs);
  Actions actions(64);
  Ledger ledger(Limits{}, t, actions);
  const StreamId id = ledger.open_stream({.max_age_ns = 20 * kMs, .period_ns = 10 * kMs}, t.applications.front());
  const auto deliver = [&](TimeNs capture, TimeNs now) {
    ledger.submitted(id);
    const std::uint32_t request = ledger.accept({.stream = id}, capture, false);
    ledger.answer(request, Outcome::completed, Reason::none, kNone, now);
    return ledger.stream(id).covered_ns;
  };
  ledger.expect_next(id, 100 * kMs, 102 * kMs, true);
  EXPECT_EQ(ledger.stream(id).next_expected_ns, 112 * kMs);  // with the transit seen
  EXPECT_EQ(ledger.stream(id).covered_ns, 100 * kMs);
  EXPECT_EQ(deliver(100 * kMs, 115 * kMs), 120 * kMs);
  EXPECT_EQ(deliver(100 * kMs, 121 * kMs), 120 * kMs) << "21 ms old";
}

}  // namespace
}  // namespace leat::core
