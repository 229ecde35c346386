#include "tools/leat/feed/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tools/base/json/json.h"

namespace leat::tools {
namespace {

TEST(Ledger, SumsExactlyWhateverTheOrder) {
  constexpr std::uint64_t kSeed = 42;
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::mt19937_64 random(kSeed);
  Ledger ledger, half;
  for (int i = 0; i < 20000; ++i) {
    Ledger& one = random() % 2 == 0 ? ledger : half;
    one.submitted();
    if (random() % 10 == 0) continue;
    one.answered(static_cast<Outcome>(1 + random() % 5), static_cast<Reason>(random() % kReasonCount),
                 static_cast<std::int64_t>(random() % 300'000'000));
  }
  ledger.add(half);
  std::uint64_t sum = ledger.in_flight();
  for (int o = 1; o <= 5; ++o) sum += ledger.count(static_cast<Outcome>(o));
  EXPECT_EQ(sum, ledger.submitted_count());
  EXPECT_EQ(ledger.submitted_count(), 20000U);
  EXPECT_GT(ledger.in_flight(), 1500U);
  const auto json =
      Json::parse(report_json({.streams = {{.name = "a", .ledger = ledger, .seconds = 10}}, .seconds = 10}));
  const auto& total = json["total"];
  EXPECT_EQ(total["submitted"].get<std::uint64_t>(),
            total["completed"].get<std::uint64_t>() + total["late"].get<std::uint64_t>() +
                total["dropped"].get<std::uint64_t>() + total["failed"].get<std::uint64_t>() +
                total["rejected"].get<std::uint64_t>() + total["in_flight"].get<std::uint64_t>());
  std::uint64_t by_reason = 0;
  for (const auto& [name, n] : total["dropped_by_reason"].items()) by_reason += n.get<std::uint64_t>();
  EXPECT_EQ(by_reason, total["dropped"].get<std::uint64_t>());
}

TEST(Ledger, QuantilesAreWithinHalfAPerCent) {
  Ledger ledger;
  std::vector<double> all;
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> ms(3, 1);
  for (int i = 0; i < 5001; ++i) {
    all.push_back(ms(random));
    ledger.submitted();
    ledger.answered(i % 3 == 0 ? Outcome::late : Outcome::completed, Reason::none,
                    static_cast<std::int64_t>(all.back() * 1e6));
  }
  std::sort(all.begin(), all.end());
  for (const double q : {0.0, 0.01, 0.5, 0.95, 0.99, 1.0}) {
    const double exact = all[static_cast<std::size_t>(std::clamp(std::ceil(q * 5001), 1.0, 5001.0)) - 1];
    EXPECT_NEAR(ledger.latency_ms(q), exact, exact * 0.005) << q;
  }
  EXPECT_LT(Ledger().latency_ms(0.5), 0);
}

TEST(Report, SaysNullWhereNothingIsKnown) {
  const auto json = Json::parse(report_json({.streams = {{.name = "a", .ledger = {}}}}));
  EXPECT_TRUE(json["total"]["latency_ms_p50"].is_null());
  EXPECT_TRUE(json["total"]["goodput_fps"].is_null());
  EXPECT_TRUE(json["bytes_copied_per_frame"].is_null());
  EXPECT_TRUE(json["accuracy"]["map50"].is_null());
  EXPECT_EQ(json["streams"].size(), 1U);
  EXPECT_EQ(json["streams"][0]["name"], "a");
}

TEST(Report, TableNamesEveryReasonThatOccurred) {
  Ledger ledger;
  ledger.submitted();
  ledger.answered(Outcome::dropped, Reason::superseded, 0);
  ledger.skipped(Skip::hopeless);
  ledger.skipped(Skip::passed_over, 7);
  const std::string table = report_table({.streams = {{.name = "camera", .ledger = ledger}}});
  EXPECT_THAT(table, ::testing::HasSubstr("dropped (superseded): 1"));
  EXPECT_THAT(table, ::testing::HasSubstr("camera"));
  EXPECT_THAT(table, ::testing::HasSubstr("skipped (passed_over): 7"));
  const auto json = Json::parse(report_json({.streams = {{.name = "camera", .ledger = ledger}}}));
  EXPECT_EQ(json["streams"][0]["skipped"], 8);
  EXPECT_EQ(json["total"]["skipped_by_reason"], (Json{{"hopeless", 1}, {"passed_over", 7}}));
  EXPECT_EQ(json["total"]["submitted_past_deadline"], 0);
}

TEST(Report, SaysOfEachStreamWhatWasSkippedAndWhy) {
  Ledger first, second;
  first.skipped(Skip::hopeless);
  first.skipped(Skip::passed_over, 7);
  second.skipped(Skip::no_slot, 2);
  const FeedReport report = {
      .streams = {{.name = "a", .ledger = first}, {.name = "b", .ledger = second}, {.name = "c", .ledger = {}}}};
  const std::string table = report_table(report);
  EXPECT_THAT(table, ::testing::HasSubstr("skipped of a: hopeless 1, passed_over 7\n"));
  EXPECT_THAT(table, ::testing::HasSubstr("skipped of b: no_slot 2\n"));
  EXPECT_THAT(table, ::testing::Not(::testing::HasSubstr("skipped of c")));
  const auto json = Json::parse(report_json(report));
  EXPECT_EQ(json["streams"][0]["skipped_by_reason"], (Json{{"hopeless", 1}, {"passed_over", 7}}));
  EXPECT_EQ(json["streams"][1]["skipped_by_reason"], (Json{{"no_slot", 2}}));
}

}  // namespace
}  // namespace leat::tools
