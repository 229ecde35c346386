// A transfer under the links of servers and under those of PPipe's authors' simulator, worked by hand.
#include "engine/sim/pool_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/core/test/test_bench.h"
#include "engine/papers/presets.h"
#include "engine/sim/simulator.h"

namespace leat::sim {
namespace {

using core::test::kMs;

constexpr core::LinkSpec kLink{.up_bytes_per_ns = 1, .down_bytes_per_ns = 1};
constexpr TimeNs kMove = 20 * kMs;  // of one task's features

// Two stages of 10 ms and of 5 ms, tasks alone; partitions first those of the first stage.
Scenario two_stages(const char* preset, const std::vector<std::uint32_t>& servers, std::uint32_t senders) {
  Scenario s;
  core::Topology& t = s.topology;
  t.applications = {{.slo_ns = 1000 * kMs, .rate_rps = 10, .modules = {0}}};
  t.modules = {{.application = 0, .before = {}, .after = {}, .routes = {0}}};
  core::RouteSpec route{.module = 0, .batch = 1, .rate_rps = 10, .stages = {}};
  route.stages.push_back({.pool = {}, .latency = core::test::affine(10 * kMs, 0, 1), .transfer_bytes = 20'000'000});
  route.stages.push_back({.pool = {}, .latency = core::test::affine(5 * kMs, 0, 1), .transfer_bytes = 0});
  for (std::uint32_t p = 0; p < servers.size(); ++p) {
    t.partitions.push_back({.size = 1, .price = 1, .device = p, .host = servers[p]});
    route.stages[p < senders ? 0 : 1].pool.push_back(p);
  }
  t.hosts.assign(1 + *std::max_element(servers.begin(), servers.end()), kLink);
  t.routes = {route};
  EXPECT_TRUE(papers::preset(preset, s.policy));
  s.limits = {.streams = 4, .requests = 1024, .tasks = 4096, .batches = 512, .actions = 4096};  // many are made
  return s;
}

void use_pool_links(Scenario& s, std::uint32_t sender_gpus, std::uint32_t receiver_gpus, std::uint32_t shares = 1) {
  const auto& stages = s.topology.routes[0].stages;
  const PoolStage pools[] = {{stages[0].pool, sender_gpus, shares}, {stages[1].pool, receiver_gpus, 1}};
  s.topology.hosts.clear();
  add_pool_links(s.topology, pools, kLink);
  ASSERT_EQ(s.topology.problem(), "");
}

// When two requests that come together are answered.
std::vector<TimeNs> two_answers(Scenario s) {
  std::vector<TimeNs> at;
  s.arrivals = {{.at_ns = kMs}, {.at_ns = kMs}};
  s.on_answer = [&](const AnswerEvent& e) { at.push_back((e.at_ns - kMs) / kMs); };
  (void)run(s);
  return at;
}

TEST(PoolLinks, TwoTransfersByHand) {
  using Ms = std::vector<TimeNs>;
  const Ms apart{35, 35}, behind{35, 55};  // 10 + 20 + 5 ms; the second waits for the first's 20 ms
  for (const char* preset : {"leat", "ppipe", "ppipe-append", "ppipe-simulator"}) {
    SCOPED_TRACE(preset);
    // Both receivers on one server: its downlink takes one after the other. The authors' is private.
    Scenario receivers = two_stages(preset, {0, 1, 2, 2}, 2);
    EXPECT_EQ(two_answers(receivers), behind);
    use_pool_links(receivers, 1, 1);
    EXPECT_EQ(two_answers(receivers), apart);
    // Every GPU in a server of its own: nothing is shared. In the authors' the senders share as the next type does.
    Scenario senders = two_stages(preset, {0, 1, 2, 3}, 2);
    EXPECT_EQ(two_answers(senders), apart);
    use_pool_links(senders, 1, 2);
    EXPECT_EQ(two_answers(senders), behind);
    // Shares of one GPU are behind one link in both.
    Scenario shares = two_stages(preset, {0, 0, 1, 2}, 2);
    EXPECT_EQ(two_answers(shares), behind);
    use_pool_links(shares, 1, 1, 2);
    EXPECT_EQ(two_answers(shares), behind);
    // All in one server: features stay where they are. In the authors' they travel.
    Scenario near = two_stages(preset, {0, 0, 0, 0}, 2);
    EXPECT_EQ(two_answers(near), (Ms{15, 15}));
    use_pool_links(near, 1, 1);
    EXPECT_EQ(two_answers(near), apart);
  }
}

TEST(PoolLinks, EveryPartitionHasOneAndNoneIsSharedTooWidely) {
  core::Topology t;
  t.partitions.resize(40);
  std::vector<core::PartitionId> all(40);
  for (core::PartitionId p = 0; p < 40; ++p) all[p] = p;
  const std::span<const core::PartitionId> ids = all;
  // 14 thirds of GPUs of 2 a server before a type of 4, so 12 together; 9 halves of that before GPUs of 1: 8; then 7.
  const PoolStage first[] = {{ids.subspan(0, 14), 2, 3}, {ids.subspan(14, 9), 4, 2}, {ids.subspan(23, 7), 1, 1}};
  const PoolStage second[] = {{ids.subspan(30, 4), 2, 1}, {ids.subspan(34, 6), 2, 1}};
  add_pool_links(t, first, kLink);
  ASSERT_EQ(t.hosts.size(), 2u + 2 + 7);
  add_pool_links(t, second, kLink);
  ASSERT_EQ(t.hosts.size(), 11u + 2 + 6);
  std::vector<std::uint32_t> on(t.hosts.size(), 0);
  for (const core::PartitionSpec& p : t.partitions) ++on[p.host];
  EXPECT_EQ(on, (std::vector<std::uint32_t>{12, 2, 8, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1, 1}));
}

// One uplink carries one task's features at a time, whoever books it, and all that is answered has passed it; the more
// uplinks, the more is in time.
TEST(PoolLinks, AnUplinkCarriesNoMoreThanItsSpeed) {
  for (const char* preset : {"leat", "ppipe", "ppipe-append", "ppipe-simulator"}) {
    SCOPED_TRACE(preset);
    std::uint64_t before = 0;
    for (const std::uint32_t together : {8u, 4u, 2u, 1u}) {
      SCOPED_TRACE(std::to_string(together) + " senders an uplink");
      Scenario s = two_stages(preset, {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}, 8);
      use_pool_links(s, together, 1);
      const std::uint64_t uplinks = 8 / together;
      s.topology.applications[0].slo_ns = 120 * kMs;
      const TimeNs length = 4000 * kMs;
      s.arrivals = to_stream(poisson(300, length, 3));
      s.check_every = 16;
      TimeNs first = core::kNever, last = 0;
      std::uint64_t moved = 0;
      s.on_run = [&](const RunEvent& e) {
        if (e.stage == 0) return;
        ++moved;
        first = std::min(first, e.start_ns);
        last = std::max(last, e.start_ns);
      };
      const Outcomes out = run(s);
      EXPECT_TRUE(out.drained);
      EXPECT_EQ(out.counters.total.of(Outcome::late), 0u);
      // What started after the first did has been moved between, but for one on each uplink.
      EXPECT_LE(moved, uplinks * (1 + static_cast<std::uint64_t>((last - first) / kMove) + 1));
      const std::uint64_t in_time = out.counters.total.of(Outcome::completed);
      EXPECT_EQ(in_time, moved);
      const std::uint64_t max =
          std::min<std::uint64_t>(s.arrivals.size(), uplinks * static_cast<std::uint64_t>(length / kMove));
      EXPECT_GT(in_time, max * 8 / 10);
      EXPECT_GE(in_time, before);
      before = in_time;
    }
  }
}

}  // namespace
}  // namespace leat::sim
