// The preset and its words; what only all its parts together show.
#include <algorithm>

#include "engine/core/policy/policy_settings.h"
#include "engine/core/policy/registry.h"
#include "engine/core/test/test_bench.h"

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
  EXPECT_EQ(own_scheduler(leat.variant, component), Own::queues);
  component.shared = true;
  EXPECT_EQ(own_scheduler(leat.variant, component), Own::windows);
  component.pipelined = true;
  EXPECT_EQ(own_scheduler(leat.variant, component), Own::reservations);
  component.shared = false;
  EXPECT_EQ(own_scheduler(leat.variant, component), Own::reservations);
}

TEST(Presets, LeatAndNoOther) {
  Policy p;
  EXPECT_EQ(preset_names(), "leat");
  EXPECT_TRUE(preset("leat", p));
  EXPECT_FALSE(preset("", p));
  EXPECT_FALSE(preset("pard", p));
}

TEST(Presets, TakeSettings) {
  const auto got = read_policy("leat:risk_permille=2000:queue_ahead=1:background_budget_ms=2.5:canaries=false");
  ASSERT_TRUE(got.ok()) << got.error();
  EXPECT_EQ(got->policy.risk_permille, 2000u);
  EXPECT_EQ(got->policy.queue_ahead, 1u);
  EXPECT_EQ(got->policy.background_budget_ns, 2'500'000);
  EXPECT_FALSE(got->policy.canaries);
  EXPECT_LE(presets().front()->keys().size(), 8u) << "what nobody needs to set is a constant";
  for (const char* wrong : {"", "laet", "leat,", "leat:", "leat:risk_permille", "leat:risk_permille=", "leat:ricks=1",
                            "leat:risk_permille=-1", "leat:risk_permille=1e9", "leat:canaries=1", "leat:order=lbf",
                            "leat:look_ahead=false:background_budget_ms=1"}) {
    const auto refused = read_policies(wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.error().find('\n'), std::string::npos);
  }
  EXPECT_NE(read_policies("leat:risk_permile=1").error().find("did you mean 'risk_permille'?"), std::string::npos);
}

// The settings of schedulers that this plan has none of are refused, with those that would look at them.
TEST(Presets, ASettingThatNothingHereLooksAtIsSaid) {
  const Topology own = chain(2, 2, 4, kMs, kMs, 100 * kMs);
  Topology shared = own, cut = own;
  shared.routes[1].stages[0].pool = shared.routes[0].stages[0].pool;
  shared.partitions.resize(2);
  cut.partitions.push_back({});
  cut.routes[1].stages.push_back({.pool = {4}, .latency = test::affine(kMs, kMs, 4)});
  const auto said = [](const std::string& words, const Topology& t) {
    const auto policy = read_policy("leat:" + words);
    return policy.ok() ? idle_setting(policy->policy, t) : policy.error();
  };
  EXPECT_EQ(said("risk_permille=2000", shared), "");
  EXPECT_EQ(said("batch_latency_share_permille=700", own), "");
  EXPECT_EQ(said("canaries=false:queue_ahead=1", cut), "");
  EXPECT_EQ(
      said("risk_permille=2000", own),
      "risk_permille: nothing here looks at it: this plan is served by queues (every module has partitions of its "
      "own); windows (modules that share partitions) would. Leave it out");
  EXPECT_NE(said("batch_latency_share_permille=700", shared).find("queues (every"), std::string::npos);
  EXPECT_NE(said("look_ahead=false", cut).find("look_ahead: nothing here looks at it"), std::string::npos);
}

TEST(Presets, AnOldNameIsTakenOnceMoreWithANote) {
  const auto policy = read_policy("leat:kappa_permille=700");
  ASSERT_TRUE(policy.ok()) << policy.error();
  EXPECT_EQ(policy->policy.batch_latency_share_permille, 700u);
  ASSERT_EQ(policy->policy.notes.size(), 1u);
  EXPECT_NE(policy->policy.notes[0].find("is called batch_latency_share_permille now"), std::string::npos);
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
