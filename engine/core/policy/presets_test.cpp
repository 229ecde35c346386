// Presets and their words; rules that one preset alone has.
#include <algorithm>

#include "engine/core/policy/registry.h"
#include "engine/core/policy_words.h"
#include "engine/core/test_bench.h"

namespace leat::core {
namespace {

using test::Bench;
using test::chain;
using test::kMs;

// What shares partitions is never a queue's: its caps and forecasts may count a module's partitions as its own.
TEST(Leat, QueuesServeModulesWithPartitionsOfTheirOwnOnly) {
  Policy leat;
  ASSERT_TRUE(preset("leat", leat));
  Component component;
  EXPECT_STREQ(scheduler_for(leat, component).name, "queues");
  component.shared = true;
  EXPECT_STREQ(scheduler_for(leat, component).name, "windows");
  component.pipelined = true;
  EXPECT_STREQ(scheduler_for(leat, component).name, "reservations");
  component.shared = false;
  EXPECT_STREQ(scheduler_for(leat, component).name, "reservations");
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
  const auto names = test::presets();
  EXPECT_GE(names.size(), 10U);
  for (const std::string& name : names) EXPECT_TRUE(preset(name, p)) << name;
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
