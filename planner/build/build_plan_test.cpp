#include "planner/build/build_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/build/host_types.h"
#include "planner/build/plan_checker.h"
#include "planner/pooled/checker.h"
#include "planner/pooled/packing.h"

namespace leat::planner {
namespace {

using testing::HasSubstr;

// `blocks` blocks of `ms` each on class "gpu", twice that on "cpu:1"; batches 1, 2, 4; shares 1 and 2 of "gpu".
Profile profile(const std::string& model, std::uint32_t blocks, double ms) {
  Profile p;
  p.model = model;
  p.blocks = blocks;
  p.boundary_bytes.assign(blocks - 1, 100'000);
  p.block_memory_bytes.assign(blocks, 10 << 20);
  const auto add = [&](const char* name, std::uint32_t share, std::uint32_t batch, double factor) {
    const auto ns = static_cast<std::int64_t>(ms * 1e6 * factor);
    p.rows.push_back({name, share, batch, std::vector<Latency>(blocks, {ns, ns * 11 / 10, 100})});
  };
  for (const std::uint32_t b : {1u, 2u, 4u}) {
    add("gpu", 1, b, 0.6 + 0.4 * b);
    add("gpu", 2, b, 1.5 * (0.6 + 0.4 * b));
    add("cpu:1", 1, b, 2.0 * b);
  }
  return p;
}

PlanRequest request() {
  PlanRequest r;
  r.profiles = {profile("detector", 4, 2), profile("ocr", 3, 1)};
  r.applications = {{"traffic", 100'000'000, 0, 1, {{"detect", "detector", {}, 1, 1}, {"plate", "ocr", {0}, 2, 4}}}};
  auto host = parse_host(R"({"schema": "leat-host/1", "handover_gbps": 20, "partitions": [
    {"kind": "gpu", "class": "gpu", "name": "gpu", "count": 3, "max_share": 2, "price": 5, "watts": 200},
    {"kind": "cpu", "class": "cpu:1", "count": 4, "price": 1, "watts": 10}]})",
                         "host.json");
  EXPECT_TRUE(host.ok()) << host.error();
  r.host = std::move(*host);
  return r;
}

TEST(Packing, FillsDevicesWheneverTheSumFits) {
  // Every multiset of up to 9 shares of 1/1..1/4: never more devices than the sum rounded up.
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 6; ++b)
      for (int c = 0; c < 6; ++c)
        for (int d = 0; d < 7; ++d) {
          std::vector<std::uint32_t> shares;
          shares.insert(shares.end(), a, 1), shares.insert(shares.end(), b, 2), shares.insert(shares.end(), c, 3),
              shares.insert(shares.end(), d, 4);
          if (shares.empty()) continue;
          const auto devices = static_cast<std::uint32_t>((12 * a + 6 * b + 4 * c + 3 * d + 11) / 12);
          const auto at = pack_shares(shares, devices);
          ASSERT_EQ(at.size(), shares.size()) << a << b << c << d;
          std::vector<int> full(devices, 0);
          for (std::size_t k = 0; k < at.size(); ++k) full[at[k]] += 12 / static_cast<int>(shares[k]);
          for (const int f : full) ASSERT_LE(f, 12);
        }
  EXPECT_TRUE(pack_shares({2, 2, 3}, 1).empty());
}

// Four GPUs of one class, of which the first two and the last two hand over to each other 100 times as fast as across:
// a model that is too large for one of them is cut, and its two stages lie side by side.
TEST(BuildPlan, TheOrderedPairsOfAHostDecideWhereStagesLie) {
  PlanRequest r = request();
  r.profiles = {profile("detector", 4, 2)};
  r.profiles[0].boundary_bytes.assign(3, 4'000'000);
  r.applications = {{"traffic", 40'000'000, 0, 1, {{"detect", "detector", {}, 1, 1}}}};
  const auto host_of = [](const std::string& pairs) {
    auto host = parse_host(R"({"schema": "leat-host/1", "handover_gbps": 2, "handover": [)" + pairs +
                               R"(], "partitions": [
      {"kind": "gpu", "class": "gpu", "name": "a", "count": 4, "memory_bytes": 25000000}]})",
                           "host.json");
    EXPECT_TRUE(host.ok()) << host.error();
    return *host;
  };
  r.host = host_of("");
  const auto slow = build_plan(r);
  ASSERT_TRUE(slow.ok()) << slow.error();
  EXPECT_EQ(types_of(r.host).types.size(), 1u);
  EXPECT_TRUE(types_of(r.host).pair_gbps.empty());
  const auto pair = [](int from, int to) {
    return R"({"from": "a/)" + std::to_string(from) + R"(", "to": "a/)" + std::to_string(to) + R"(", "gbps": )" +
           std::to_string(190 + 10 * from) + "}";
  };
  r.host = host_of(pair(0, 1) + "," + pair(1, 0) + "," + pair(2, 3) + "," + pair(3, 2));
  const HostTypes types = types_of(r.host);
  EXPECT_EQ(types.members, (std::vector<std::vector<std::uint32_t>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(types.pair_gbps, (std::vector<double>{190, 2, 2, 210}));
  const auto fast = build_plan(r);
  ASSERT_TRUE(fast.ok()) << fast.error();
  ASSERT_TRUE(fast->feasible);
  EXPECT_EQ(problem_of(fast->problem, fast->solution.dnns, {}), "");
  EXPECT_GT(fast->strict_objective, 1.5 * slow->strict_objective);
  int cut = 0;
  for (const Route& route : fast->file.plan.routes) {
    if (route.stages.size() != 2) continue;
    ++cut;
    const auto half = [&](const Stage& s) { return fast->file.plan.partitions[s.pool[0]].device / 2; };
    EXPECT_EQ(half(route.stages[0]), half(route.stages[1]));
  }
  EXPECT_GT(cut, 0);
  EXPECT_GE(fast->file.plan.hosts.at(0).up_gbps, 190);
}

TEST(BuildPlan, APairOfAHostThatNamesNobodyIsRefused) {
  const auto host = parse_host(R"({"schema": "leat-host/1", "handover": [{"from": "a", "to": "b", "gbps": 3}],
    "partitions": [{"kind": "gpu", "class": "gpu", "name": "a"}]})",
                               "host.json");
  ASSERT_FALSE(host.ok());
  EXPECT_THAT(host.error(), HasSubstr("no partition 'b'"));
}

// What leatd would do without a plan is one of the plans that are tried: its rates are ones that fit.
TEST(BuildPlan, EveryOtherWayKeepsItsPromiseToo) {
  PlanRequest r = request();
  r.profiles.push_back(profile("small", 1, .3));
  r.applications = {{"street",
                     120'000'000,
                     0,
                     1,
                     {{"a", "small", {}, 1, 1},
                      {"b", "ocr", {0}, 2, 8},
                      {"c", "detector", {0}, 1, 1},
                      {"d", "small", {1, 2}, 1, 1}}}};
  const auto o = build_plan(r);
  ASSERT_TRUE(o.ok()) << o.error();
  ASSERT_FALSE(o->others.empty());
  for (const OtherPlan& other : o->others) {
    EXPECT_GT(other.z, 0);
    EXPECT_EQ(broken_promise(other.file, r.profiles), "");
  }
}

TEST(BuildPlan, APlanKeepsItsPromiseAndLeatIsNeverBelowPpipe) {
  for (const Rules rules : {Rules::leat, Rules::ppipe}) {
    PlanRequest r = request();
    r.rules = rules;
    const auto o = build_plan(r);
    ASSERT_TRUE(o.ok()) << o.error();
    ASSERT_TRUE(o->feasible);
    EXPECT_EQ(problem_of(o->file), "");
    EXPECT_EQ(broken_promise(o->file, r.profiles), "");
    EXPECT_GT(o->strict_objective, 0);
    EXPECT_GE(o->dedicated_objective, o->strict_objective * (1 - 1e-9));
    EXPECT_GE(o->solution.certificate.upper_bound, o->solution.certificate.objective);
    if (!o->shared) {
      EXPECT_EQ(o->file.plan.budget_ns[0].size(), 2u);
    }
    const auto again = parse_plan(plan_to_json(o->file), "p");
    ASSERT_TRUE(again.ok()) << again.error();
    const auto twice = build_plan(r);
    EXPECT_EQ(plan_to_json(twice->file).substr(0, 2000),
              plan_to_json(o->file).substr(0, 2000));  // deterministic up to its seconds
  }
}

// What shares partitions may run larger batches than the planned one, also where the profile shows these as dearer: no
// promise is broken by a batch that nobody has to run.
TEST(BuildPlan, ABatchThatIsAllowedAndDearBreaksNoPromise) {
  PlanRequest r = request();
  for (Profile& p : r.profiles) {
    p.rows.clear();
    const std::int64_t unit_ns = p.model == "ocr" ? 500'000 : 1'000'000;  // unequal, so that sharing carries more
    const std::int64_t units[] = {10, 14, 27, 48};
    for (std::uint32_t b = 1; b <= 4; ++b) {
      const std::int64_t ns = units[b - 1] * unit_ns / p.blocks;
      p.rows.push_back({"cpu:1", 1, b, std::vector<Latency>(p.blocks, {ns, ns * 11 / 10, 100})});
    }
  }
  r.applications[0].modules[1].items_per_request = 1;
  auto host = parse_host(R"({"schema": "leat-host/1", "handover_gbps": 20, "partitions": [
    {"kind": "cpu", "class": "cpu:1", "count": 2, "price": 1, "watts": 10}]})",
                         "host.json");
  ASSERT_TRUE(host.ok()) << host.error();
  r.host = std::move(*host);
  r.rules = Rules::leat;
  const auto o = build_plan(r);
  ASSERT_TRUE(o.ok()) << o.error();
  ASSERT_TRUE(o->shared);
  for (const Route& route : o->file.plan.routes) EXPECT_GT(route.batch, 2u);
  EXPECT_EQ(broken_promise(o->file, r.profiles), "");
}

TEST(BuildPlan, AnImpossibleSloNamesTheNearestFeasibleOneAndThatOneIsFeasible) {
  PlanRequest r = request();
  r.applications[0].slo_ns = 5'000'000;
  auto o = build_plan(r);
  ASSERT_TRUE(o.ok());
  ASSERT_FALSE(o->feasible);
  ASSERT_EQ(o->slos.size(), 1u);
  EXPECT_GT(o->slos[0].needed_ms, 5);
  r.applications[0].slo_ns = static_cast<std::int64_t>(o->slos[0].needed_ms * 1e6) + 1000;
  o = build_plan(r);
  ASSERT_TRUE(o.ok());
  EXPECT_TRUE(o->feasible);
  r.applications[0].slo_ns = r.applications[0].slo_ns * 99 / 100;
  o = build_plan(r);
  EXPECT_FALSE(o->feasible);
}

TEST(BuildPlan, RatesTooHighSayHowMuchIsCarried) {
  PlanRequest r = request();
  r.applications[0].rate_rps = 1e5;
  auto o = build_plan(r);
  ASSERT_TRUE(o.ok());
  EXPECT_FALSE(o->feasible);
  ASSERT_GT(o->carried, 0);
  ASSERT_LT(o->carried, 1);
}

TEST(BuildPlan, TheLeastPlanCarriesTheRatesAndLessDoesNot) {
  PlanRequest r = request();
  r.applications[0].rate_rps = 60;
  for (const Goal goal : {Goal::partitions, Goal::cost, Goal::power}) {
    r.goal = goal;
    const auto o = build_plan(r);
    ASSERT_TRUE(o.ok()) << o.error();
    ASSERT_TRUE(o->feasible);
    EXPECT_EQ(broken_promise(o->file, r.profiles), "");
    EXPECT_EQ(o->solution.certificate.gap, 0);
    double rate = 0;
    for (const Route& route : o->file.plan.routes) rate += route.module == 0 ? route.rate_rps : 0;
    EXPECT_GE(rate, 60 * (1 - 1e-9));
    if (goal != Goal::cost) continue;
    const double price = o->solution.certificate.objective;
    // On a host one price unit poorer in every way, the rates are too high.
    PlanRequest poorer = r;
    poorer.goal = Goal::throughput;
    for (std::uint32_t gpus = 0; gpus <= 3; ++gpus) {
      const double cpus = price - 1 - 5 * gpus;
      if (cpus < 0 || (gpus == 0 && cpus < 1)) continue;
      poorer.host.partitions.clear();
      for (std::uint32_t k = 0; k < gpus; ++k) poorer.host.partitions.push_back(r.host.partitions[k]);
      for (std::uint32_t k = 0; k < std::min(4.0, cpus); ++k)
        poorer.host.partitions.push_back(r.host.partitions[3 + k]);
      const auto less = build_plan(poorer);
      ASSERT_TRUE(less.ok());
      EXPECT_FALSE(less->feasible) << gpus << " GPUs";
    }
  }
}

TEST(BuildPlan, MemoryLimitsAStage) {
  PlanRequest r = request();
  for (HostPartition& h : r.host.partitions)
    h.partition.memory_bytes = 30 << 20;  // three of the detector's four blocks
  r.host.partitions.resize(3);
  for (HostPartition& h : r.host.partitions) h.max_share = 1;
  const auto o = build_plan(r);
  ASSERT_TRUE(o.ok());
  ASSERT_TRUE(o->feasible);
  EXPECT_EQ(broken_promise(o->file, r.profiles), "");
  for (const Route& route : o->file.plan.routes) {
    if (route.module == 0) {
      EXPECT_GE(route.stages.size(), 2u);
    }
  }
}

TEST(BuildPlan, BadRequestsAreOneLine) {
  PlanRequest r = request();
  r.applications[0].modules[1].model = "nobody";
  EXPECT_THAT(build_plan(r).error(), HasSubstr("no profile of model 'nobody'"));
  r = request();
  auto here = this_host(1, r.applications, r.profiles);
  ASSERT_TRUE(here.ok()) << here.error();
  r.host = *here;
  for (HostPartition& h : r.host.partitions) h.partition.partition_class = "npu";
  EXPECT_THAT(build_plan(r).error(), HasSubstr("profiled on no class of this host (npu)"));
  r = request();
  r.goal = Goal::cost;
  EXPECT_THAT(build_plan(r).error(), HasSubstr("rate_rps"));
  r.applications.push_back(r.applications[0]);
  r.applications[1].name = "other";
  r.applications[1].rate_rps = 5;
  EXPECT_THAT(build_plan(r).error(), HasSubstr("some applications state rate_rps"));
  EXPECT_THAT(parse_host("{\"schema\": \"leat-host/1\", \"partitions\": []}", "h").error(),
              HasSubstr("at least one partition"));
  EXPECT_THAT(parse_host(R"({"schema": "leat-host/1", "partitions": [{"kind": "tpu", "class": "x"}]})", "h").error(),
              HasSubstr("'tpu' is no kind"));
}

TEST(BuildPlan, TheCheckerFindsBrokenPromises) {
  const PlanRequest r = request();
  const auto o = build_plan(r);
  ASSERT_TRUE(o.ok());
  const auto broken = [&](auto&& change) {
    PlanFile f = o->file;
    change(f);
    return broken_promise(f, r.profiles);
  };
  EXPECT_THAT(broken([](PlanFile& f) { f.plan.routes[0].rate_rps *= 3; }), HasSubstr("carries"));
  EXPECT_THAT(broken([](PlanFile& f) { f.plan.routes[0].stages[0].latency_by_batch[0].p50_ns /= 2; }),
              HasSubstr("the profile says"));
  EXPECT_THAT(broken([](PlanFile& f) { f.applications[0].slo_ns = 1'000'000; }), HasSubstr("longest path"));
  EXPECT_THAT(broken([](PlanFile& f) {
                f.plan.partitions[1].device = f.plan.partitions[0].device;
                f.plan.partitions[0].share = f.plan.partitions[1].share = 1;
              }),
              testing::Not(""));
  EXPECT_THAT(broken([](PlanFile& f) { f.plan.routes.erase(f.plan.routes.begin(), f.plan.routes.end()); }),
              HasSubstr("has no route"));
}

}  // namespace
}  // namespace leat::planner
