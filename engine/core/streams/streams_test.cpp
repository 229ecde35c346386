#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/core/streams/coordinator/coordinator.h"
#include "engine/core/streams/group.h"
#include "engine/core/streams/test_world.h"

namespace leat::core::streams {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

constexpr TimeNs kFrame = 1'000'000;  // the figures count in frames: one is a millisecond here

// ---- estimator ----

TEST(Estimator, TellsTheDetectorsFlickerFromTheTrackersLossAndTheThesissDoesNot) {
  const StrideCurve straight;
  DropEstimator line, ratio({.kind = Estimation::ratio});
  TimeNs now = 0;
  for (int i = 0; i < 40; ++i) {
    now += 130'000'000;
    const std::uint32_t stride = i % 10 == 0 ? 1 : 8;
    for (DropEstimator* each : {&line, &ratio}) each->observe(now, stride, seen(0.006 * stride), straight);
  }
  EXPECT_THAT(line.slope(), DoubleNear(0.006, 0.0003));
  EXPECT_THAT(line.jitter(), DoubleNear(0.05, 0.003));
  EXPECT_THAT(ratio.slope(), DoubleNear(seen(0.048) / 8, 1e-9));
}

TEST(Estimator, FollowsContentThatChangesWithinASecondAndBeginsWithItsPrior) {
  const StrideCurve curve(0.012);
  DropEstimator e({.prior_slope = 0.004});
  EXPECT_EQ(e.slope(), 0.004);
  e.observe(0, 0, 0.5, curve);  // says nothing
  EXPECT_EQ(e.observations(), 0u);
  TimeNs now = 0;
  const auto run = [&](double slope, int answers) {
    for (int i = 0; i < answers; ++i) {
      now += 133'000'000;
      const std::uint32_t stride = i % 10 == 0 ? 1 : 8;
      e.observe(now, stride, seen(slope * curve.at(stride)), curve);
    }
  };
  run(0.003, 40);
  EXPECT_THAT(e.slope(), DoubleNear(0.003, 0.0003));
  const double before = e.slope();
  run(0.012, 16);  // two seconds, the half-life
  EXPECT_GT(e.slope(), (before + 0.012) / 2);
}

// Flicker that lasts for some frames: from short strides alone drift looks over eight times as steep as it is, with a
// look over 18 frames now and then a third of that.
TEST(Estimator, LongStridesTellFlickerThatLastsFromDrift) {
  const StrideCurve curve(0.006, 3);
  constexpr double kLost = 0.003;
  const auto client_sees = [&](std::uint32_t stride) {
    const double f = 0.05 + 0.1 * (1 - std::exp(-0.6 * stride));
    return std::hypot(kLost * curve.at(stride) + f, f);
  };
  DropEstimator near, far;
  TimeNs now = 0;
  for (int i = 0; i < 300; ++i) {
    now += 67'000'000;
    const std::uint32_t stride = i % 22 == 0 ? 1 : 3 + i % 3;
    for (DropEstimator* each : {&near, &far}) each->observe(now, stride, client_sees(stride), curve);
    if (i % 24 == 0) far.observe(now, 18, client_sees(18), curve);
  }
  EXPECT_GT(near.slope(), 8 * kLost);
  EXPECT_LT(far.slope(), 2.5 * kLost);
  EXPECT_GT(far.slope(), 0.8 * kLost);
}

// ---- settings ----

TEST(Settings, TheClosedFormIsTheSearchOfTheEquation) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const StrideCurve curve(i % 2 == 0 ? 0 : 0.02 * static_cast<double>(random() % 100) / 100, i % 4 == 3 ? 4 : 0);
    const auto k = static_cast<std::uint32_t>(1 + random() % 20);
    const double max = static_cast<double>(random() % 4000) / 100;
    std::uint32_t longest = 0;
    for (std::uint32_t oi = 1; oi <= kLongestInterval; ++oi)
      if (curve.mean(k, oi) <= max + 1e-9) longest = oi;
    EXPECT_EQ(longest_interval(k, max, curve), longest) << k << " " << max << " " << i;
  }
}

TEST(Settings, WeighTheBatchAgainstTheInterval) {
  // 6 + 1.5 b ms, 60 frames a second, drop .005 a frame, SLA .06: reference strides 1..1, budget 12 frames.
  std::vector<TimeNs> batch_ns;
  for (int b = 1; b <= 16; ++b) batch_ns.push_back(6'000'000 + b * 1'500'000);
  const StrideCurve straight;
  const Setting s = best_setting(batch_ns, {}, 0, 12, straight);
  double max = 0;
  for (std::uint32_t b = 1; b <= 16; ++b) {
    const std::uint32_t k = frames_until_answer(batch_ns[b - 1], {}, 0);
    const double oi = std::min<double>(kLongestInterval, std::floor(2 * (13 - static_cast<double>(k)) + 1));
    max = std::max(max, oi * 16'666'667.0 * b / static_cast<double>(batch_ns[b - 1]));
  }
  EXPECT_THAT(1 / s.load, DoubleNear(max, 1e-6));
  // Nothing is left for it: as often as it can, alone.
  EXPECT_EQ(best_setting(batch_ns, {}, 0, -3, straight).batch, 1u);
  EXPECT_EQ(best_setting(batch_ns, {}, 0, -3, straight).interval, 1u);
}

// ---- the thesis's figures ----

struct Packed {
  std::vector<double> starts;                      // frames
  std::vector<std::vector<std::uint32_t>> riders;  // of each batch
};
Packed packed(const std::vector<Candidate>& c, const std::vector<TimeNs>& batch_ns, double from, double until,
              double reach, bool even = false) {
  Packing packing(8);
  std::vector<PlannedBatch> batches;
  std::vector<std::uint32_t> members;
  batches.reserve(64);
  members.reserve(64);
  const auto at = [](double frames) { return static_cast<TimeNs>(frames * kFrame); };
  const PackingRules rules{.from_ns = at(from), .until_ns = at(until), .reach = reach, .even = even};
  packing.pack(c, std::vector<BatchTimes>{BatchTimes{batch_ns}}, rules, batches, members);
  Packed out;
  for (const PlannedBatch& b : batches) {
    out.starts.push_back(static_cast<double>(b.start_ns) / kFrame);
    out.riders.emplace_back(members.begin() + b.first, members.begin() + b.first + b.count);
  }
  return out;
}

// Figure 3.4. Batches of 1, 2, 3 take 1.5, 2, 2.5 frames. Clients 1-3 may send every 8th frame and ride in pairs or
// every 4th and ride in threes; client 4 every 4th, client 5 every 8th or 4th, both alone. (The figure's table is lost
// for the last two; with these the text's counts come out, and the last plan fills its 8 frames exactly.)
constexpr double kThird = 1.5 * kFrame;
const std::vector<TimeNs> kFigure34 = {static_cast<TimeNs>(kThird), 2 * kFrame, 5 * kFrame / 2};

// Whether all of the first n clients, with these settings, are served once in every interval of theirs.
bool holds(std::uint32_t n, std::uint32_t every, std::uint32_t batch, std::uint32_t fourth, std::uint32_t fifth) {
  std::vector<Candidate> c;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t interval = i < 3 ? every : i == 3 ? fourth : fifth;
    c.push_back({.stream = i, .next_ns = 0, .interval_ns = interval * kFrame, .batch = i < 3 ? batch : 1});
  }
  const Packed p = packed(c, kFigure34, 0, 64, 0);
  std::vector<std::vector<double>> starts(n);
  for (std::size_t b = 0; b < p.starts.size(); ++b)
    for (const std::uint32_t i : p.riders[b]) starts[i].push_back(p.starts[b]);
  for (std::uint32_t i = 0; i < n; ++i) {
    const double interval = static_cast<double>(c[i].interval_ns) / kFrame;
    if (static_cast<double>(starts[i].size()) < 64 / interval) return false;
    if (starts[i].back() - starts[i].front() > interval * static_cast<double>(starts[i].size() - 1) + 8) return false;
  }
  return true;
}

TEST(Figure3_4, TimingHoldsFourClientsAndFrequencyTheFifth) {
  // Generic serving: all five come at once every 4th frame; a batch of three ends at 2.5, and the others, which must be
  // answered 1.5 frames after they were sent, are too late: three are held.
  EXPECT_GT(2.5 + 1.5, 1.5);
  EXPECT_TRUE(holds(3, 4, 3, 4, 4));
  // Timing: client 4 is asked for a frame at 2.5 instead.
  const Packed four = packed(
      {{0, 0, 4 * kFrame, 3}, {1, 0, 4 * kFrame, 3}, {2, 0, 4 * kFrame, 3}, {3, 0, 4 * kFrame, 1}}, kFigure34, 0, 8, 0);
  EXPECT_THAT(four.starts, ElementsAre(0, 2.5, 4, 6.5));
  EXPECT_THAT(four.riders[1], ElementsAre(3));
  EXPECT_TRUE(holds(4, 4, 3, 4, 4));
  EXPECT_FALSE(holds(5, 4, 3, 4, 4));
  // Frequency too: clients 1-3 every 8th frame, in pairs.
  EXPECT_TRUE(holds(5, 8, 2, 4, 8));
}

// Figure 3.10: client 1 sends every third frame and rides in pairs, its frame 6 came at 8; pairs take four frames. By
// themselves the next would come at 11, 14, 17 and 17; packed they start at 11 and 15. The figure's table is lost: what
// clients 2 and 3 send, and that client 1 comes again after 6 frames, is chosen here so that those four moments result.
TEST(Figure3_10, PackedBatchesStartAt11And15) {
  const std::vector<TimeNs> batch_ns = {3 * kFrame, 4 * kFrame};
  const Packed p =
      packed({{1, (8 + 3) * kFrame, 6 * kFrame, 2}, {2, 17 * kFrame, 6 * kFrame, 2}, {3, 14 * kFrame, 9 * kFrame, 2}},
             batch_ns, 11, 19, 1e9);
  EXPECT_THAT(p.starts, ElementsAre(11, 15));
  EXPECT_THAT(p.riders[0], ElementsAre(1, 3));
  EXPECT_THAT(p.riders[1], ElementsAre(1, 2));  // both were due at 17
}

TEST(Packing, SlotsAreAnIntervalApartAndNeverTwoInAFrame) {
  // A partition that is quick, and nothing to wait for: the thesis has all slots at once.
  const std::vector<TimeNs> batch_ns = {kFrame / 8};
  const std::vector<Candidate> one = {{.stream = 0, .interval_ns = 5 * kFrame, .apart_ns = kFrame}};
  EXPECT_THAT(packed(one, batch_ns, 0, 20, 1e9).starts.back(), testing::Lt(1));
  const Packed often = packed(one, batch_ns, 0, 20, 1e9, true);
  ASSERT_EQ(often.starts.size(), 20u);
  for (std::size_t i = 0; i < often.starts.size(); ++i) EXPECT_NEAR(often.starts[i], static_cast<double>(i), 1e-6);
  // One that comes early to fill a batch comes again an interval later.
  const std::vector<TimeNs> pairs = {kFrame, kFrame};
  const std::vector<Candidate> two = {{0, 4 * kFrame, 8 * kFrame, 2}, {1, 7 * kFrame, 8 * kFrame, 2}};
  EXPECT_THAT(packed(two, pairs, 4, 30, 0.5, true).starts, ElementsAre(4, 8, 12, 16, 20, 24, 28));
}

// Figure 2.5: horizon 4, both latencies 2, frame k-4 offloaded for task 1 and k-2 for task 2.
TEST(Figure2_5, ThePlansAreThoseFourAndCostWhatTheFigureSays) {
  const double r1 = 0.01, r2 = 0.02, d1 = 0.055, d2 = 0.05;
  const GroupTask tasks[] = {{.slope = r1, .local = d1, .latency = 2, .age = 4},
                             {.slope = r2, .local = d2, .latency = 2, .age = 2}};
  const auto m = [](double a, double b) { return std::min(a, b); };
  // Plan 2010: at k+2 the answer of frame k serves task 2.
  const double plan_2010 = m(4 * r1, d1) + m(5 * r1, d1) + m(6 * r1, d1) + m(7 * r1, d1) +  //
                           m(2 * r2, d2) + m(3 * r2, d2) + m(2 * r2, d2) + m(3 * r2, d2);
  const double plan_1010 = m(4 * r1, d1) + m(5 * r1, d1) + m(2 * r1, d1) + m(3 * r1, d1) +  //
                           m(2 * r2, d2) + m(3 * r2, d2) + m(4 * r2, d2) + m(5 * r2, d2);
  GroupPlanner planner;
  const std::uint32_t first = planner.next(tasks, 4);
  EXPECT_THAT(planner.cost(), DoubleNear(std::min(plan_2010, plan_1010), 1e-12));
  EXPECT_EQ(first, plan_2010 < plan_1010 ? 1u : 0u);
  // 1010, 1020, 2010 and 2020: two first moves, and two behind each.
  EXPECT_EQ(planner.transitions(), 6u);
}

// ---- the program against enumeration ----

struct Case {
  std::vector<GroupTask> tasks;
  std::uint32_t horizon;
};
double enumerate(const Case& c, std::uint32_t at, std::vector<std::int64_t> last, std::uint32_t* best = nullptr) {
  if (at >= c.horizon) return 0;
  double min = std::numeric_limits<double>::infinity();
  for (std::uint32_t task = 0; task < c.tasks.size(); ++task) {
    const std::uint32_t back = std::min(at + c.tasks[task].latency, c.horizon);
    double cost = 0;
    for (std::size_t i = 0; i < c.tasks.size(); ++i)
      for (std::uint32_t t = at; t < back; ++t)
        cost += c.tasks[i].weight * std::min(c.tasks[i].slope * static_cast<double>(t - last[i]), c.tasks[i].local);
    std::vector<std::int64_t> next = last;
    next[task] = at;
    cost += enumerate(c, back, next);
    if (cost < min - 1e-12) {
      min = cost;
      if (best != nullptr) *best = task;
    }
  }
  return min;
}

TEST(GroupPlanner, IsEnumerationInAThousandCases) {
  std::mt19937_64 random(3);
  const auto draw = [&](double max) { return max * static_cast<double>(random() % 10000) / 10000; };
  GroupPlanner planner;
  for (int i = 0; i < 1000; ++i) {
    Case c;
    c.horizon = static_cast<std::uint32_t>(4 + random() % 11);
    const std::size_t tasks = 2 + random() % 2;
    std::vector<std::int64_t> last;
    for (std::size_t n = 0; n < tasks; ++n) {
      GroupTask t{.slope = draw(0.05),
                  .weight = 0.5 + draw(2),
                  .latency = static_cast<std::uint32_t>(1 + random() % 4),
                  .age = static_cast<std::uint32_t>(1 + random() % 12)};
      if (random() % 2 == 0) t.local = draw(0.2);
      if (tasks == 3) t.latency = std::max(2u, t.latency);
      last.push_back(-static_cast<std::int64_t>(t.age));
      c.tasks.push_back(t);
    }
    std::uint32_t task = 0;
    const double cost = enumerate(c, 0, last, &task);
    const std::uint32_t found = planner.next(c.tasks, c.horizon);
    ASSERT_THAT(planner.cost(), DoubleNear(cost, 1e-9)) << "case " << i;
    ASSERT_EQ(found, task) << "case " << i;
  }
}

TEST(GroupPlanner, TakesAsManyTransitionsAsTheStudyCountsAndGivesUpCheaply) {
  GroupPlanner planner;
  const auto group = [](std::vector<std::uint32_t> latencies) {
    std::vector<GroupTask> tasks;
    for (const std::uint32_t l : latencies)
      tasks.push_back({.slope = 0.01 / l, .latency = l, .age = l + static_cast<std::uint32_t>(tasks.size())});
    return tasks;
  };
  const auto transitions = [&](const std::vector<std::uint32_t>& latencies) {
    static_cast<void>(planner.next(group(latencies), 30));
    return planner.transitions();
  };
  EXPECT_EQ(transitions({4, 4}), 114u);
  EXPECT_EQ(transitions({2, 2}), 422u);
  EXPECT_EQ(transitions({3, 3, 3}), 2244u);
  EXPECT_EQ(transitions({2, 2, 2}), 8319u);
  GroupPlanner small(StrideCurve(), 16);
  std::vector<GroupTask> tasks = group({2, 2, 2});
  tasks[1].slope = 1;  // it loses most
  EXPECT_EQ(small.next(tasks, 30), 1u);
}

}  // namespace
}  // namespace leat::core::streams
