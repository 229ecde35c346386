// Arrivals in a user's words, fault files, and studies under them: the ledger is exact, everything drains, the same
// seed is the same trace.
#include "engine/sim/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/papers/presets.h"
#include "engine/sim/workload/random.h"
#include "tools/base/text/quantile.h"

namespace leat::sim {
namespace {

using testing::HasSubstr;
constexpr TimeNs kMs = 1'000'000, kSecond = 1'000'000'000;

// Two modules in a row on 2 + 3 partitions, d(b) = 4 ms + 2 ms b; 200 ms.
planner::PlanFile small_plan() {
  planner::PlanFile file;
  file.applications.push_back(
      {.name = "app",
       .slo_ns = 200 * kMs,
       .modules = {{.name = "first", .model = "m"}, {.name = "second", .model = "m", .after = {0}}}});
  for (int p = 0; p < 5; ++p)
    file.plan.partitions.push_back(
        {.name = "p" + std::to_string(p), .partition_class = "c", .device = static_cast<std::uint32_t>(p)});
  std::vector<planner::Latency> latency;
  for (int b = 1; b <= 4; ++b) latency.push_back({.p50_ns = (4 + 2 * b) * kMs, .p99_ns = (4 + 2 * b) * kMs});
  file.plan.routes.push_back({.application = 0,
                              .module = 0,
                              .batch = 4,
                              .rate_rps = 666,
                              .stages = {{.pool = {0, 1}, .latency_by_batch = latency}}});
  file.plan.routes.push_back({.application = 0,
                              .module = 1,
                              .batch = 4,
                              .rate_rps = 999,
                              .stages = {{.pool = {2, 3, 4}, .latency_by_batch = latency}}});
  return file;
}

Study small_study(const std::string& faults = {}) {
  Study s{.plan = small_plan()};
  EXPECT_EQ(planner::problem_of(s.plan), "");
  s.believed = core::Topology::from(s.plan.plan, s.plan.applications);
  auto file = parse_faults(faults, "faults.toml", s.plan);
  EXPECT_TRUE(file.ok()) << file.error();
  s.faults = *file;
  s.reality = *reality_of(s.plan, s.believed, {}, s.faults.profile_errors);
  s.processes.resize(1);
  s.full_rps = {planned_rate(s.plan, 0)};
  s.length_ns = 10 * kSecond;
  s.check_every = 7;
  return s;
}

core::Policy policy(const char* name) {
  core::Policy p;
  EXPECT_TRUE(papers::preset(name, p));
  return p;
}

constexpr const char* kFaults = R"(
[[lost]]
partition = "p0"
at_s = 2
back_s = 4
[[slow]]
partition = "p2"
from_s = 3
until_s = 6
factor = 2.5
[[clock_step]]
at_s = 5
by_ms = -80
[[clock_step]]
at_s = 7
by_ms = 300
[[burst]]
from_s = 8
until_s = 8.5
factor = 4
[[profile_error]]
module = "app/second"
percent = 20
)";

TEST(Study, PlannedRateIsOfTheNarrowestModule) { EXPECT_DOUBLE_EQ(planned_rate(small_plan(), 0), 666); }

TEST(Study, UnderAllFaultsTheLedgerIsExactAndEverythingDrains) {
  const Study study = small_study(kFaults);
  for (const char* name : {"leat", "pard", "nexus", "clipper++", "naive", "ppipe", "elsa", "harpagon"}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
      const Load load = make_load(study, 0.8, seed);
      const Measured m = measure(study, load, policy(name), false);
      EXPECT_TRUE(m.outcomes.drained);
      EXPECT_TRUE(m.outcomes.counters.total.balanced());
      EXPECT_EQ(m.outcomes.counters.total.submitted, load.arrivals.size());
      EXPECT_EQ(m.outcomes.counters.total.in_flight, 0u);
      EXPECT_LT(m.outcomes.last_ns,
                load.length_ns + 20 * kSecond);  // bounded: `naive` has the longest queue to work off
    }
  }
}

TEST(Study, SameSeedSameTraceWithOrWithoutHistory) {
  const Study study = small_study(kFaults);
  const Load load = make_load(study, 0.9, 5);
  const Measured plain = measure(study, load, policy("leat"), false),
                 told = measure(study, make_load(study, 0.9, 5), policy("leat"), true);
  EXPECT_EQ(plain.outcomes.trace_hash, told.outcomes.trace_hash);
  EXPECT_NE(plain.outcomes.trace_hash,
            measure(study, make_load(study, 0.9, 6), policy("leat"), false).outcomes.trace_hash);
  std::uint64_t arrived = 0, in_time = 0;
  for (const std::uint32_t n : told.history.arrived) arrived += n;
  for (const std::uint32_t n : told.history.in_time) in_time += n;
  EXPECT_EQ(arrived, load.arrivals.size());
  EXPECT_EQ(in_time, told.outcomes.counters.total.of(Outcome::completed));
  EXPECT_FALSE(told.history.runs.empty());
  EXPECT_GT(told.history.wait_ns[0][3], 0);  // some wait for the entry at .9 of its capacity
  EXPECT_TRUE(plain.history.runs.empty());
}

TEST(Study, EachFaultCostsWhatItTakesAway) {
  const auto in_time = [](const std::string& faults) {
    const Study study = small_study(faults);
    return measure(study, make_load(study, 0.8, 1), policy("leat"), false).outcomes.goodput();
  };
  const double all_well = in_time("");
  EXPECT_GT(all_well, 0.99);
  // One of two entry partitions for a fifth of the time: .3 of its requests then are too many, give or take a batch.
  const double lost = in_time("[[lost]]\npartition = 'p0'\nat_s = 2\nback_s = 4\n");
  EXPECT_LT(lost, all_well - 0.04);
  EXPECT_GT(lost, all_well - 0.12);
  EXPECT_LT(in_time("[[lost]]\npartition = '*'\nat_s = 5\n"), 0.52);  // never back: only the first half
  EXPECT_LT(in_time("[[profile_error]]\npercent = 100\n"), 0.75);     // half of the capacity
  EXPECT_LT(in_time("[[slow]]\npartition = '*'\nfrom_s = 0\nfactor = 2\n"), 0.75);
  EXPECT_LT(in_time("[[burst]]\nfrom_s = 2\nuntil_s = 4\nfactor = 5\n"), 0.8);
}

// Overload and modules slower than believed: the default preset learns their latency scale, and does nearly as well as
// if it had known.
TEST(Study, AWrongProfileIsLearned) {
  for (const int percent : {5, 10, 20}) {
    const Study wrong = small_study("[[profile_error]]\npercent = " + std::to_string(percent) + "\n");
    Study right = wrong;
    right.believed = right.reality;
    const Load load = make_load(wrong, 1.3, 1);
    const double learned = measure(wrong, load, policy("leat"), false).outcomes.goodput(),
                 known = measure(right, load, policy("leat"), false).outcomes.goodput();
    EXPECT_GT(learned, 0.9 * known) << percent;
  }
}

TEST(Study, NothingCompletesMoreThanTheBound) {
  for (const char* faults :
       {"", kFaults, "[[slow]]\npartition = '*'\nfrom_s = 0\nfactor = 0.5\n", "[[profile_error]]\npercent = -30\n"}) {
    const Study study = small_study(faults);
    for (const double factor : {0.7, 1.2, 2.0}) {
      const Measured m = measure(study, make_load(study, factor, 2), policy("leat"), false);
      EXPECT_LE(m.bound_share, 1) << faults << " at load " << factor;
      EXPECT_GT(m.bound_share, 0.4);
    }
  }
}

TEST(Study, ProfilesSayWhatStagesReallyTake) {
  Study study = small_study();
  planner::Profile profile{.model = "m"};
  for (std::uint32_t b = 1; b <= 4; ++b)
    profile.rows.push_back({.partition_class = "c",
                            .batch = b,
                            .blocks = {{.p50_ns = 3 * (4 + 2 * b) * kMs, .p99_ns = 3 * (4 + 2 * b) * kMs}}});
  study.reality = *reality_of(study.plan, study.believed, {&profile, 1}, {});
  EXPECT_EQ(study.reality.routes[1].stages[0].latency.p50_ns[3], 36 * kMs);
  EXPECT_EQ(study.believed.routes[1].stages[0].latency.p50_ns[3], 12 * kMs);
  EXPECT_LT(measure(study, make_load(study, 0.8, 1), policy("leat"), false).outcomes.goodput(), 0.6);
  profile.model = "other";
  EXPECT_THAT(reality_of(study.plan, study.believed, {&profile, 1}, {}).error(), HasSubstr("no profile of model 'm'"));
  profile.model = "m";
  profile.rows.pop_back();
  EXPECT_THAT(reality_of(study.plan, study.believed, {&profile, 1}, {}).error(), HasSubstr("batch 4"));
}

TEST(Workload, ProcessesKeepTheirMeanAndTheirShape) {
  for (const char* word : {"poisson", "gamma:1.4", "mmpp:1/0.5,4/0.2"}) {
    const auto process = read_process(word);
    ASSERT_TRUE(process.ok()) << process.error();
    const std::vector<TimeNs> t = times(*process, 500, 200 * kSecond, 0, 3);
    EXPECT_NEAR(static_cast<double>(t.size()) / 200, 500, 25) << word;
    double sum = 0, squares = 0;
    for (std::size_t i = 1; i < t.size(); ++i) {
      const double gap = static_cast<double>(t[i] - t[i - 1]) / 1e9;
      sum += gap, squares += gap * gap;
    }
    const double n = static_cast<double>(t.size() - 1), mean = sum / n,
                 cv = std::sqrt(squares / n - mean * mean) / mean;
    if (std::string(word) == "poisson") {
      EXPECT_NEAR(cv, 1, 0.03);
    } else {
      EXPECT_GT(cv, 1.15) << word;
    }
  }
}

TEST(Workload, ABurstAddsOrTakesAway) {
  const std::vector<TimeNs> steady = poisson(1000, 10 * kSecond, 1);
  const auto count = [](const std::vector<TimeNs>& t) {
    return std::count_if(t.begin(), t.end(), [](TimeNs x) { return x >= 4 * kSecond && x < 6 * kSecond; });
  };
  const Burst up{.from_ns = 4 * kSecond, .until_ns = 6 * kSecond, .factor = 3},
      down{.from_ns = 4 * kSecond, .until_ns = 6 * kSecond, .factor = 0.25};
  const std::vector<TimeNs> more = with_burst(steady, up, 1000, 2), less = with_burst(steady, down, 1000, 2);
  EXPECT_TRUE(std::is_sorted(more.begin(), more.end()));
  EXPECT_NEAR(static_cast<double>(count(more)), 6000, 400);
  EXPECT_NEAR(static_cast<double>(count(less)), 500, 100);
  EXPECT_EQ(steady.size() - static_cast<std::size_t>(count(steady)),
            more.size() - static_cast<std::size_t>(count(more)));
}

// Arrivals must not depend on the machine: fixed values, made once.
TEST(Workload, TheSameArrivalsEverywhere) {
  const auto hash = [](const std::vector<TimeNs>& t) {
    std::uint64_t h = 0xCBF29CE484222325u;
    for (const TimeNs x : t) h = (h ^ mix(static_cast<std::uint64_t>(x))) * 0x100000001B3u;
    return h;
  };
  EXPECT_EQ(hash(times(*read_process("poisson"), 500, 20 * kSecond, 0, 3)), 15574775269862579265u);
  EXPECT_EQ(hash(times(*read_process("gamma:1.4"), 500, 20 * kSecond, 0, 3)), 8392039085991727316u);
  EXPECT_EQ(hash(times(*read_process("mmpp:1/0.5,4/0.2"), 500, 20 * kSecond, 0, 3)), 8842635119080485094u);
  const ArrivalProcess series{.kind = ProcessKind::trace, .trace = {.values = {10, 40, 10, 0, 90}, .bin_ns = kSecond}};
  EXPECT_EQ(hash(times(series, 500, 5 * kSecond, 0, 3)), 10229563990052289782u);
  EXPECT_EQ(
      hash(with_burst(poisson(1000, kSecond, 1), {.from_ns = 0, .until_ns = kSecond / 2, .factor = 0.5}, 1000, 2)),
      4417993745080234345u);
}

TEST(Workload, BadWordsAreOneLine) {
  for (const char* word : {"gamma:", "gamma:x", "gamma:0", "mmpp:1/10", "mmpp:1/0,2/3", "mmpp:0/1,0/1", "mmpp:a/b,c/d",
                           "/no/such_arrivals_file", "poison", "gamma:nan"}) {
    const auto process = read_process(word);
    ASSERT_FALSE(process.ok()) << word;
    EXPECT_EQ(process.error().find('\n'), std::string::npos);
  }
}

TEST(Faults, BadFilesAreOneLineThatNamesTheKey) {
  const planner::PlanFile plan = small_plan();
  const auto error_of = [&](const char* text) {
    const auto file = parse_faults(text, "f.toml", plan);
    EXPECT_FALSE(file.ok()) << text;
    return file.ok() ? std::string() : file.error();
  };
  EXPECT_THAT(error_of("[[lost]]\npartition = 'gpu'\nat_s = 1\n"), HasSubstr("no partition 'gpu'"));
  EXPECT_THAT(error_of("[[lost]]\npartition = 'p0'\nat_s = 3\nback_s = 2\n"), HasSubstr("back_s"));
  EXPECT_THAT(error_of("[[lost]]\npartition = 'p0'\nat_s = -1\n"), HasSubstr("at_s"));
  EXPECT_THAT(error_of("[[slow]]\npartition = 'p0'\nfrom_s = 0\nfactor = 0\n"), HasSubstr("factor"));
  EXPECT_THAT(error_of("[[burst]]\napplication = 'x'\nfrom_s = 0\nuntil_s = 1\nfactor = 2\n"),
              HasSubstr("no application 'x'"));
  EXPECT_THAT(error_of("[[burst]]\nfrom_s = 2\nuntil_s = 1\nfactor = 2\n"), HasSubstr("until_s"));
  EXPECT_THAT(error_of("[[profile_error]]\nmodule = 'first'\npercent = 20\n"), HasSubstr("app/first"));
  EXPECT_THAT(error_of("[[clock_step]]\nat_s = 1\n"), HasSubstr("by_ms"));
  EXPECT_THAT(error_of("[[lots]]\n"), HasSubstr("lots"));
  EXPECT_THAT(error_of("lost = 3\n"), HasSubstr("lost"));
  EXPECT_FALSE(error_of("[[lost\n").empty());
  const auto several =
      parse_faults("[[lost]]\npartition = 'p*'\nat_s = 1\n[[lost]]\npartition = 'p4*'\nat_s = 2\n", "f.toml", plan);
  ASSERT_TRUE(several.ok()) << several.error();
  EXPECT_EQ(several->faults.size(), 6u);
  EXPECT_TRUE(parse_faults("{\"clock_step\": [{\"at_s\": 1, \"by_ms\": 5}]}", "f.json", plan).ok());
}

TEST(Study, QuantilesByNearestRank) {
  std::vector<double> v{4, 1, 3, 2};
  EXPECT_EQ(quantile(v, 0.5), 2);
  EXPECT_EQ(quantile(v, 0.99), 4);
  std::vector<double> none;
  EXPECT_TRUE(std::isnan(quantile(none, 0.5)));
}

}  // namespace
}  // namespace leat::sim
