#include <gtest/gtest.h>

#include "planner/constraints.h"

namespace leat::planner {
namespace {

TEST(Constraints, AreReadFromToml) {
  const auto read = parse_constraints(R"([[memory]]
class = "gpu"
at_most_bytes = 1000000
[[apart]]
models = ["detector", "ocr"]
[[partitions]]
application = "street"
at_least = 2
at_most = 5
[[row]]
at_most = 7
terms = [{variable = "devices", module = "detect", times = 2}, {variable = "used", model = "ocr", class = "gpu"}]
)",
                                      "c.toml");
  ASSERT_TRUE(read.ok()) << read.error();
  ASSERT_EQ(read->memory.size(), 1U);
  EXPECT_EQ(read->memory[0].at_most_bytes, 1'000'000);
  ASSERT_EQ(read->apart.size(), 1U);
  EXPECT_EQ(read->apart[0].models.size(), 2U);
  ASSERT_EQ(read->rows.size(), 2U);
  EXPECT_EQ(read->rows[0].min, 2);
  EXPECT_EQ(read->rows[0].max, 5);
  EXPECT_EQ(read->rows[1].terms[0].times, 2);
  EXPECT_EQ(read->rows[1].terms[1].of, PlanConstraints::Term::Of::used);
  EXPECT_EQ(read->rows[1].place, "c.toml:10: row: ");
}

TEST(Constraints, ABadFileIsOneLineWithFileLineKeyAndCure) {
  const auto error = [](const std::string& text, const std::string& name = "c.toml") {
    const auto read = parse_constraints(text, name);
    EXPECT_FALSE(read.ok()) << text;
    return read.ok() ? "" : read.error();
  };
  EXPECT_EQ(error("[[apart]]\nmodels = [\"a\"]"),
            "c.toml:2: apart.models: keeps nothing apart; name two models or more");
  EXPECT_EQ(error("\n[[partitions]]\nmodel = \"a\""),
            "c.toml:2: partitions: bounds nothing; add at_least, at_most or both");
  EXPECT_EQ(error("[[partitions]]\nat_most = \"two\""), "c.toml:2: partitions.at_most: must be a number");
  EXPECT_EQ(error("[[partitions]]\nat_most = 1\nat_least = 2"),
            "c.toml:3: partitions.at_least: is above at_most; lower it");
  EXPECT_EQ(error("[[memory]]\nat_most_bytes = 5"),
            "c.toml:1: memory: is of one partition or of a class; give one of the two keys");
  EXPECT_EQ(error("[[row]]\nat_most = 1\nterms = []"),
            "c.toml:3: row.terms: is empty; add {variable = \"partitions\", module = ...}");
  EXPECT_EQ(error("[[row]]\nat_most = 1\nterms = [{variable = \"rate\"}]"),
            "c.toml:3: row.terms: a rate is what partitions carry and can only be held from below; bound "
            "the partitions instead");
  EXPECT_EQ(error("[[row]]\nat_most = 1\nterms = [{variable = \"cores\"}]"),
            "c.toml:3: row.terms.variable: 'cores' is no variable; use partitions, devices, used or rate");
  EXPECT_EQ(error("[[rows]]"), "c.toml:1: rows: unknown key; did you mean 'row'?");
  EXPECT_EQ(error("{\"apart\": [{}]}", "c.json"), "c.json: apart[0].models: missing; add it");
}

}  // namespace
}  // namespace leat::planner
