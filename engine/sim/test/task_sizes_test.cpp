// Tasks that take more or less of a batch than others (core::TaskSizes): batches are filled by what their tasks take,
// and take the time of that.
#include <gtest/gtest.h>

#include "engine/core/test/test_bench.h"
#include "engine/papers/presets.h"
#include "engine/sim/simulator.h"

namespace leat::sim {
namespace {

using core::TimeNs;

using core::test::kMs;

// Lines of text: a request makes four, of one unit or of eight. A batch holds 16 units, 1 ms each and 1 ms in all.
Scenario lines(double rate_per_s, std::size_t requests, std::uint32_t (*size)(std::size_t, std::uint32_t)) {
  Scenario s;
  EXPECT_TRUE(papers::preset("leat", s.policy));
  core::Topology& t = s.topology;
  t.applications.push_back({.slo_ns = 200 * kMs, .modules = {0, 1}});
  const auto table = [](std::uint32_t max, TimeNs each) {
    core::LatencyTable out;
    for (std::uint32_t b = 1; b <= max; ++b) out.p50_ns.push_back(kMs + b * each);
    out.p99_ns = out.p50_ns;
    return out;
  };
  t.modules.push_back({.application = 0, .before = {}, .after = {1}, .routes = {0}});
  t.modules.push_back({.application = 0,
                       .before = {0},
                       .after = {},
                       .items_per_request = 4,
                       .units_per_item = 4.5,
                       .fan_out_cap = 16,
                       .routes = {1}});
  t.routes.push_back({.module = 0, .batch = 4, .stages = {{.pool = {0}, .latency = table(4, kMs)}}});
  t.routes.push_back({.module = 1, .batch = 16, .stages = {{.pool = {1}, .latency = table(16, kMs)}}});
  t.partitions.resize(2);
  EXPECT_EQ(t.problem(), "");
  for (std::size_t i = 0; i < requests; ++i)
    s.arrivals.push_back({.at_ns = static_cast<TimeNs>(static_cast<double>(i) * 1e9 / rate_per_s)});
  s.size = [size](std::size_t arrival, core::ModuleId module, std::uint32_t item) {
    return module == 0 ? 1 : size(arrival, item);
  };
  s.check_every = 1;
  return s;
}

std::uint32_t narrow(std::size_t, std::uint32_t) { return 1; }
std::uint32_t wide(std::size_t, std::uint32_t) { return 8; }
std::uint32_t mixed(std::size_t arrival, std::uint32_t item) { return (arrival + item) % 2 == 0 ? 1 : 8; }

TEST(TaskSizes, BatchesAreFilledByWhatTasksTake) {
  for (const auto size : {narrow, wide, mixed}) {
    Scenario s = lines(20, 200, size);
    std::uint32_t max = 0;
    std::uint64_t units = 0;
    s.on_run = [&](const RunEvent& e) {
      if (e.route != 1) return;
      max = std::max(max, e.items), units += e.items;
      EXPECT_EQ(e.end_ns - e.start_ns, kMs + e.items * kMs) << "a batch takes the time of its units";
    };
    const Outcomes out = run(s);
    EXPECT_EQ(out.counters.total.of(Outcome::completed), 200U);
    EXPECT_LE(max, 16U);
    const std::uint64_t tasks = out.counters.modules[1].tasks_run;
    EXPECT_EQ(out.counters.modules[1].items, tasks) << "rows are counted, not units";
    const double each = size == narrow ? 1 : size == wide ? 8 : 4.5;
    EXPECT_NEAR(static_cast<double>(units), each * static_cast<double>(tasks), size == mixed ? 400 : 0);
  }
}

// What the wide ones cost decides what is served: 120 requests a second are 4 x 1 ms of narrow lines, or 4 x 8 of wide.
TEST(TaskSizes, OverloadIsSeenWhereTasksAreLarge) {
  const Outcomes few = run(lines(120, 600, narrow)), many = run(lines(120, 600, wide));
  EXPECT_GT(few.goodput(), 0.99);
  EXPECT_LT(many.goodput(), 0.6);
  EXPECT_GT(many.goodput(), 0.1);
  EXPECT_TRUE(few.drained && many.drained);
}

// Two partitions, of which one takes batches of a quarter: whatever the policy, what is large goes where it fits, and
// everything is answered.
TEST(TaskSizes, EveryPresetPutsLargeTasksWhereTheyFit) {
  const std::string all = papers::preset_names();
  std::string_view names = all;
  while (!names.empty()) {
    const std::string name(names.substr(0, names.find(", ")));
    names.remove_prefix(std::min(names.size(), name.size() + 2));
    for (const double rate : {20., 150.}) {
      Scenario s = lines(rate, 300, mixed);
      ASSERT_TRUE(papers::preset(name, s.policy));
      core::Topology& t = s.topology;
      t.partitions.resize(3);
      core::RouteSpec small = t.routes[1];
      small.batch = 4, small.stages[0].pool = {2};
      small.stages[0].latency.p50_ns.resize(4), small.stages[0].latency.p99_ns.resize(4);
      t.routes.push_back(small);
      t.modules[1].routes.push_back(2);
      ASSERT_EQ(t.problem(), "");
      std::uint32_t max = 0;
      s.on_run = [&](const RunEvent& e) { max = std::max(max, e.route == 2 ? e.items : 0); };
      const Outcomes out = run(s);
      EXPECT_TRUE(out.drained) << name;
      EXPECT_LE(max, 4U) << name;
    }
  }
}

}  // namespace
}  // namespace leat::sim
