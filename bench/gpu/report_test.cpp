#include "bench/gpu/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leat::probe {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Answer number_answer() {
  return {.group = "handover",
          .id = "handover.latency",
          .question = "How long?",
          .how = "device timer",
          .conditions = {{"mps", "on"}, {"size_bytes", "65536"}},
          .verdict = Verdict::number,
          .number = summarise({10, 12, 11, 30}),
          .unit = "us",
          .note = "",
          .device = "GPU-1"};
}

Report report_of(std::vector<Answer> answers) {
  return {.started_utc = "2026-01-02T03:04:05Z",
          .duration_s = 1.5,
          .quick = true,
          .host = "Linux, 2 CPUs",
          .driver = "580.1",
          .cuda_driver = "13.0",
          .cuda_build = "13.0",
          .devices = {{"GPU-1", "Some GPU"}},
          .answers = std::move(answers),
          .problem = ""};
}

Answer plain(Verdict verdict) {
  Answer answer = number_answer();
  answer.id = "handover." + std::string(name_of(verdict));
  answer.verdict = verdict;
  answer.number.reset();
  answer.unit.clear();
  answer.note = "because";
  return answer;
}

TEST(Report, EveryVerdictHasANameThatIsFoundAgain) {
#define X(name, text) EXPECT_EQ(verdict_named(name_of(Verdict::name)), Verdict::name);
  LEAT_PROBE_VERDICTS(X)
#undef X
  EXPECT_FALSE(verdict_named("maybe").has_value());
}

TEST(Report, NumberIsNeverQuotedWithoutItsSpread) {
  EXPECT_EQ(text_of(number_answer()), "11.5 us (p99 30, spread 50 %, n 4)");
  EXPECT_EQ(text_of(plain(Verdict::not_applicable)), "not applicable: because");
}

TEST(Report, AnswerSurvivesTheWayThroughJson) {
  for (const Answer& sent : {number_answer(), plain(Verdict::no), plain(Verdict::failed)}) {
    auto got = answer_from_json(to_json(sent));
    ASSERT_TRUE(got.ok()) << got.error();
    EXPECT_EQ(to_json(*got), to_json(sent));
  }
}

TEST(Report, BytesThatAreNoTextDoNotCostTheReport) {
  Answer answer = plain(Verdict::no);
  answer.note = "before\xff\xfe after";
  EXPECT_THAT(schema_problems(to_json(report_of({answer}))), IsEmpty());
}

TEST(Report, BadAnswersAreRefusedWithALine) {
  EXPECT_THAT(answer_from_json("{").error(), HasSubstr("parse error"));
  EXPECT_THAT(answer_from_json("[]").error(), HasSubstr("not an object"));
  EXPECT_THAT(answer_from_json("{}").error(), HasSubstr("is missing"));
}

TEST(Report, WrittenReportsKeepTheSchema) {
  EXPECT_THAT(schema_problems(to_json(report_of({number_answer(), plain(Verdict::yes)}))), IsEmpty());
  Report nothing = report_of({});
  nothing.driver.clear();
  nothing.devices.clear();
  nothing.problem = "no driver";
  EXPECT_THAT(schema_problems(to_json(nothing)), IsEmpty());
}

TEST(Report, SchemaFindsWhatIsWrong) {
  EXPECT_THAT(schema_problems("no"), Contains("not JSON"));
  EXPECT_THAT(schema_problems("{}"), Contains("report: 'answers' is missing"));

  std::string text = to_json(report_of({number_answer()}));
  const std::string unit = "\"unit\": \"us\"";
  ASSERT_NE(text.find(unit), std::string::npos);
  std::string without = text;
  without.replace(without.find(unit), unit.size(), "\"unti\": \"us\"");
  EXPECT_THAT(schema_problems(without), Contains("answers[0]: 'unit' is missing"));
  EXPECT_THAT(schema_problems(without), Contains("answers[0]: 'unti' is unknown"));

  const std::string median = "\"median\": 11.5";
  ASSERT_NE(text.find(median), std::string::npos);
  std::string unordered = text;
  unordered.replace(unordered.find(median), median.size(), "\"median\": 99.0");
  EXPECT_THAT(schema_problems(unordered), Contains("answers[0].spread: 'p75' is out of order"));

  EXPECT_THAT(schema_problems(to_json(report_of({number_answer(), number_answer()}))),
              Contains(HasSubstr("answered twice")));
}

TEST(Report, TextHasASectionPerGroupAndTheCounts) {
  const std::string text = to_text(report_of({number_answer(), plain(Verdict::failed)}));
  EXPECT_THAT(text, HasSubstr("\nhandover\n"));
  EXPECT_THAT(text, HasSubstr("[mps=on size_bytes=65536]"));
  EXPECT_THAT(text, HasSubstr("yes 0, no 0, number 1, not applicable 0, failed 1\n"));
}

}  // namespace
}  // namespace leat::probe
