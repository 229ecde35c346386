// The interface of schedulers: one of one's own in a few lines, one that forgets, and components that know nothing of
// each other.
#include <gtest/gtest.h>

#include "engine/core/policy/path.h"
#include "engine/core/policy/registry.h"
#include "engine/core/test/test_bench.h"
#include "engine/papers/presets.h"
#include "engine/sim/simulator.h"
#include "engine/sim/workload/random.h"
#include "tools/base/text/sanitized.h"

namespace leat::sim {
namespace {

using core::test::affine;
using core::test::chain;
using core::test::kMs;

// ---- a whole scheduler: of the queues of a partition the one with the most items, as they came ----

class LongestQueue final : public core::ComponentScheduler {
 public:
  using ComponentScheduler::ComponentScheduler;
  bool next(core::PartitionId p) noexcept override {
    if (!view_.idle(p)) return false;
    core::ConsumerId best = core::kNone;
    for (core::ConsumerId s : view_.queues.of_partition(p)) {
      if (best == core::kNone || items(s) > items(best)) best = s;
    }
    if (items(best) == 0) return false;
    const core::QueueConsumer& s = view_.queues.consumer(best);
    const core::TaskQueue& queue = view_.queues[s.queue];
    while (queue.classes != 0 && queue.forming.items < view_.route(s.route).batch)
      core_.take(queue.arrivals[view_.top_class(queue)].front());
    (void)core_.start(s.queue, best, view_.now, choose_path(view_, s.route, p, queue.forming.items, view_.now));
    return true;
  }

 private:
  [[nodiscard]] std::uint32_t items(core::ConsumerId s) const {
    return view_.queues[view_.queues.consumer(s).queue].items;
  }
};

// Leaves everything where it is; or takes it and never sends it.
template <bool takes>
class Forgetful final : public core::ComponentScheduler {
 public:
  using ComponentScheduler::ComponentScheduler;
  bool next(core::PartitionId p) noexcept override {
    for (core::ConsumerId s : view_.queues.of_partition(p)) {
      const core::TaskQueue& queue = view_.queues[view_.queues.consumer(s).queue];
      if (takes && queue.classes != 0) core_.take(queue.arrivals[view_.top_class(queue)].front());
    }
    return false;
  }
};

template <class Made>
struct FactoryOf final : core::SchedulerFactory {
  [[nodiscard]] std::unique_ptr<core::ComponentScheduler> make(const core::Making& m) const override {
    add_plain_queues(m);
    return std::make_unique<Made>(m.view, m.core, m.component);
  }
};

template <class Made>
Scenario with() {
  Scenario s;
  s.topology = chain(3, 2, 8, 6 * kMs, 2 * kMs, 300 * kMs);
  s.policy.scheduler = std::make_shared<FactoryOf<Made>>();
  s.arrivals = to_stream(poisson(150, 4000 * kMs, 3));
  s.check_every = 1;
  return s;
}

TEST(Seam, ASchedulerIsAFewLines) {
  const Outcomes out = run(with<LongestQueue>());
  EXPECT_TRUE(out.drained);
  EXPECT_GT(out.goodput(), .99);
}

TEST(Seam, WhatASchedulerForgetsIsAnswered) {
  for (const bool takes : {false, true}) {
    const Outcomes out = run(takes ? with<Forgetful<true>>() : with<Forgetful<false>>());
    EXPECT_TRUE(out.drained) << takes;
    EXPECT_EQ(out.counters.total.of(Outcome::dropped), out.requests) << takes;
    EXPECT_EQ(out.counters.left_undecided > 0, takes);
  }
}

// ---- fair shares ----

// Five modules, all on all of eight partitions, or each on eight of its own.
core::Topology five(bool shared) {
  core::Topology t = chain(5, 8, 32, 8 * kMs, 3 * kMs, 500 * kMs);
  for (core::RouteSpec& r : t.routes) {
    for (core::PartitionId p = 0; shared && p < 8; ++p) r.stages[0].pool[p] = p;
  }
  if (shared) t.partitions.resize(8);
  return t;
}

TEST(Shares, OneUsersOverloadCostsAnotherNothingBeyondItsShare) {
  for (const char* layout : {"shared", "own", "cut"}) {
    SCOPED_TRACE(layout);
    const bool shared = layout == std::string("shared");
    // What batches of ten carry: 38 ms each.
    const double full = 8 / .038 * 10 / (shared ? 5 : 1);
    Scenario s;
    s.topology = five(shared);
    if (layout == std::string("cut")) {  // the last module over two sets of partitions
      s.topology.routes[4].stages.push_back(s.topology.routes[4].stages[0]);
      for (core::PartitionId& p : s.topology.routes[4].stages[1].pool) p += 8;
      s.topology.partitions.resize(48);
      for (core::RouteSpec& r : s.topology.routes) r.rate_rps = full;
    }
    ASSERT_TRUE(papers::preset("leat", s.policy));
    s.streams = {{.depth = 16384, .user = 1}, {.depth = 16384, .user = 2}};
    const std::vector<Arrival> lists[] = {to_stream(poisson(.15 * full, 20'000 * kMs, 1), 0),
                                          to_stream(poisson(2.5 * full, 20'000 * kMs, 2), 1)};
    s.arrivals = merged(lists);
    const Outcomes both = run(s);
    const core::RequestCounters &modest = both.counters.streams[0], &greedy = both.counters.streams[1];
    EXPECT_GE(static_cast<double>(modest.of(Outcome::completed)), .995 * static_cast<double>(modest.submitted));
    s.streams[1].user = 1;  // the same work, nobody's share
    const double all = static_cast<double>(run(s).counters.total.of(Outcome::completed));
    EXPECT_GE(static_cast<double>(greedy.of(Outcome::completed)),
              .95 * (all - static_cast<double>(modest.of(Outcome::completed))));
  }
}

// The same without users: a stream of a high class beside too much of a low one, where places are reserved on arrival.
TEST(Shares, ReservationsLetAHigherClassGoFirst) {
  Scenario s;
  s.topology = chain(1, 8, 32, 8 * kMs, 3 * kMs, 300 * kMs);
  s.topology.routes[0].stages.push_back(s.topology.routes[0].stages[0]);
  for (core::PartitionId& p : s.topology.routes[0].stages[1].pool) p += 8;
  s.topology.partitions.resize(16);
  s.topology.routes[0].rate_rps = 1000;
  ASSERT_TRUE(papers::preset("leat", s.policy));
  s.check_every = 16;
  s.streams = {{.depth = 16384, .priority = core::Priority::protected_},
               {.depth = 16384, .priority = core::Priority::background}};
  const std::vector<Arrival> lists[] = {to_stream(poisson(300, 10'000 * kMs, 1), 0),
                                        to_stream(poisson(3000, 10'000 * kMs, 2), 1)};
  s.arrivals = merged(lists);
  const Outcomes out = run(s);
  const core::RequestCounters& high = out.counters.streams[0];
  EXPECT_GE(static_cast<double>(high.of(Outcome::completed)), .999 * static_cast<double>(high.submitted));
  EXPECT_GE(out.counters.streams[1].of(Outcome::completed), 4000u);
}

// Twice what the partitions carry, of each of two users or of two applications of one: each gets its weight's part, and
// what one does not use the other has.
TEST(Shares, WeightsDivideTheTimeAmongUsersAndApplications) {
  const double full = 8 / .038 * 10 / 5;
  for (const bool applications : {false, true}) {
    SCOPED_TRACE(applications ? "applications" : "users");
    const auto goodput = [&](double first, std::uint32_t weight) {
      Scenario s;
      s.topology = five(true);
      if (applications) {
        core::Topology other = five(true);
        s.topology.applications[0].weight = weight;
        other.applications[0].weight = 1000;
        for (core::ModuleId& m : other.applications[0].modules) m += 5;
        for (core::ModuleSpec& m : other.modules) {
          m.application = 1;
          for (core::ModuleId& before : m.before) before += 5;
          for (core::ModuleId& after : m.after) after += 5;
          for (core::RouteId& route : m.routes) route += 5;
        }
        for (core::RouteSpec& r : other.routes) r.module += 5;
        s.topology.applications.push_back(other.applications[0]);
        s.topology.modules.insert(s.topology.modules.end(), other.modules.begin(), other.modules.end());
        s.topology.routes.insert(s.topology.routes.end(), other.routes.begin(), other.routes.end());
      }
      EXPECT_EQ(s.topology.problem(), "");
      EXPECT_TRUE(papers::preset("leat", s.policy));
      s.streams = {{.depth = 16384, .user = 1, .user_weight = applications ? 1000 : weight},
                   {.application = applications ? 1u : 0u, .depth = 16384, .user = applications ? 1u : 2u}};
      const std::vector<Arrival> lists[] = {to_stream(poisson(first * full, 20'000 * kMs, 1), 0),
                                            to_stream(poisson(2 * full, 20'000 * kMs, 2), 1)};
      s.arrivals = merged(lists);
      const Outcomes out = run(s);
      const auto part = [&](std::size_t i) {
        return static_cast<double>(out.counters.streams[i].of(Outcome::completed)) / (20 * full);
      };
      return std::pair(part(0), part(1));
    };
    const auto [threefold, one] = goodput(2, 3000);
    EXPECT_NEAR(threefold / one, 3, .45);
    EXPECT_GE(threefold + one, .9);
    const auto [idle, all] = goodput(.02, 3000);
    EXPECT_GE(idle, .0195);
    EXPECT_GE(all, .9);
  }
}

// ---- another plan, under load ----

// The same three modules on the same twelve partitions, in one of many ways.
core::Topology some_plan(Random& random) {
  core::Topology t = chain(3, 4, static_cast<std::uint32_t>(4 + random.below(8)), 3 * kMs, 2 * kMs, 300 * kMs);
  const auto kind = random.below(4);
  for (core::ModuleId m = 0; m < 3; ++m) {
    std::vector<core::PartitionId>& pool = t.routes[m].stages[0].pool;
    pool.clear();
    for (core::PartitionId p = 0; p < 12; ++p) {
      if (kind == 0 || (kind == 1 ? (p + 1) % 3 == m : kind == 2 ? p / 4 == m : p < 9 && p / 3 == m)) pool.push_back(p);
    }
  }
  if (kind == 3) t.routes[2].stages.push_back({.pool = {9, 10, 11}, .latency = affine(3 * kMs, kMs, 16)});
  return t;
}

TEST(Replacement, AThousandPlansUnderLoadLoseNothing) {
  for (const char* policy : {"leat", "pard"}) {
    SCOPED_TRACE(policy);
    Random random(7);
    Scenario s;
    s.topology = some_plan(random);
    ASSERT_TRUE(papers::preset(policy, s.policy));
    s.estimate_draws = 50;
    s.check_every = 16;
    s.arrivals = to_stream(poisson(350, (kSanitized ? 2'000 : 20'000) * kMs, 5));
    TimeNs at = 100 * kMs;
    for (int i = 0; i < (kSanitized ? 100 : 1000); ++i, at += static_cast<TimeNs>(5 + random.below(30)) * kMs)
      s.replacements.push_back({at, some_plan(random)});
    const Outcomes out = run(s);
    EXPECT_TRUE(out.drained);
    EXPECT_EQ(out.counters.total.in_flight, 0u);
    EXPECT_GT(out.goodput(), policy == std::string("leat") ? .995 : .9);
  }
}

// One plan for another at full load: who is late or lost came within one SLO of it.
TEST(Replacement, ADipIsNoLongerThanOneSlo) {
  Random random(3);
  Scenario s;
  s.topology = five(false);
  ASSERT_TRUE(papers::preset("leat", s.policy));
  s.arrivals = to_stream(poisson(1200, 8000 * kMs, 5));
  s.topology.partitions.resize(40);
  s.replacements = {{4000 * kMs, five(false)}};
  for (core::RouteSpec& r : s.replacements[0].topology.routes) {
    for (core::PartitionId& p : r.stages[0].pool) p = (p + 13) % 40;
  }
  TimeNs first = core::kNever, last = 0;
  s.on_answer = [&](const AnswerEvent& e) {
    if (e.outcome == Outcome::completed) return;
    first = std::min(first, s.arrivals[e.arrival].at_ns);
    last = std::max(last, s.arrivals[e.arrival].at_ns);
  };
  EXPECT_TRUE(run(s).drained);
  if (last > 0) {
    EXPECT_GE(first, 3500 * kMs);
    EXPECT_LE(last, 4500 * kMs);
  }
}

// ---- components ----

core::Topology random_application(Random& random) {
  const auto modules = static_cast<std::size_t>(1 + random.below(4)),
             workers = static_cast<std::size_t>(1 + random.below(3));
  const auto batch = static_cast<std::uint32_t>(1 + random.below(12));
  core::Topology t =
      chain(modules, workers, batch, static_cast<TimeNs>(2 + random.below(9)) * kMs,
            static_cast<TimeNs>(1 + random.below(4)) * kMs, static_cast<TimeNs>(80 + random.below(400)) * kMs);
  const std::uint64_t kind = random.below(3);
  if (kind == 0) {  // all modules on all partitions
    std::vector<core::PartitionId> all;
    for (core::PartitionId p = 0; p < t.partitions.size(); ++p) all.push_back(p);
    for (core::RouteSpec& r : t.routes) r.stages[0].pool = all;
  } else if (kind == 1) {  // the last module in two stages
    for (int i = 0; i < 2; ++i) t.partitions.push_back({});
    const auto first = static_cast<core::PartitionId>(t.partitions.size() - 2);
    t.routes.back().stages.push_back({.pool = {first, first + 1}, .latency = affine(4 * kMs, kMs, batch)});
  }
  return t;
}

core::Topology beside(core::Topology t, const core::Topology& other) {
  const auto modules = static_cast<core::ModuleId>(t.modules.size());
  const auto routes = static_cast<core::RouteId>(t.routes.size());
  const auto partitions = static_cast<core::PartitionId>(t.partitions.size());
  for (core::ModuleSpec m : other.modules) {
    m.application += 1;
    for (auto* list : {&m.before, &m.after}) {
      for (core::ModuleId& id : *list) id += modules;
    }
    for (core::RouteId& id : m.routes) id += routes;
    t.modules.push_back(m);
  }
  for (core::RouteSpec r : other.routes) {
    r.module += modules;
    for (core::StageSpec& s : r.stages) {
      for (core::PartitionId& p : s.pool) p += partitions;
    }
    t.routes.push_back(r);
  }
  for (core::ApplicationSpec a : other.applications) {
    for (core::ModuleId& id : a.modules) id += modules;
    t.applications.push_back(a);
  }
  t.partitions.insert(t.partitions.end(), other.partitions.begin(), other.partitions.end());
  return t;
}

// Everything that is done for the first application: its batches and its answers, with their times.
std::uint64_t hash_of_first(Scenario s, core::PartitionId partitions) {
  std::uint64_t hash = 1;
  const auto note = [&](std::uint64_t a, std::uint64_t b) { hash = mix(hash ^ mix(a * 1'000'003 + b)); };
  std::vector<std::size_t> own(s.arrivals.size());  // of the first application's arrivals: which one it is
  for (std::size_t i = 0, n = 0; i < own.size(); ++i) own[i] = s.arrivals[i].stream == 0 ? n++ : 0;
  s.on_run = [&](const RunEvent& e) {
    if (e.partition < partitions) note(static_cast<std::uint64_t>(e.start_ns), e.partition * 1000u + e.items);
  };
  s.on_answer = [&](const AnswerEvent& e) {
    if (s.arrivals[e.arrival].stream == 0)
      note(static_cast<std::uint64_t>(e.at_ns), own[e.arrival] * 10 + static_cast<std::uint64_t>(e.outcome));
  };
  EXPECT_TRUE(run(s).drained);
  return hash;
}

TEST(Seam, AnApplicationIsDecidedTheSameWhateverRunsElsewhere) {
  const char* kPolicies[] = {"leat", "leat", "pard", "nexus", "ppipe", "elsa"};
  for (std::uint64_t seed = 1; seed <= (kSanitized ? 20 : 200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const core::Topology first = random_application(random), other = random_application(random);
    Scenario alone;
    alone.topology = first;
    ASSERT_TRUE(papers::preset(kPolicies[random.below(std::size(kPolicies))], alone.policy));
    alone.estimate_draws = 50;
    const bool camera = random.below(3) == 0;
    alone.streams = {{.max_age_ns = camera ? 200 * kMs : 0,
                      .period_ns = camera ? 10 * kMs : 0,
                      .depth = 2000,
                      .priority = camera ? core::Priority::high : core::Priority::normal}};
    const auto arrivals = to_stream(poisson(static_cast<double>(50 + random.below(400)), 800 * kMs, seed), 0);
    alone.arrivals = arrivals;
    Scenario both = alone;
    both.topology = beside(first, other);
    ASSERT_EQ(both.topology.problem(), "");
    both.streams.push_back({.application = 1,
                            .period_ns = random.below(2) == 0 ? 8 * kMs : 0,
                            .depth = 2000,
                            .priority = core::Priority::background});
    const std::vector<Arrival> lists[] = {
        arrivals, to_stream(poisson(static_cast<double>(50 + random.below(800)), 800 * kMs, seed + 1000), 1)};
    both.arrivals = merged(lists);
    const auto partitions = static_cast<core::PartitionId>(first.partitions.size());
    EXPECT_EQ(hash_of_first(alone, partitions), hash_of_first(both, partitions));
  }
}

}  // namespace
}  // namespace leat::sim
