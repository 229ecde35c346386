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
  EXPECT_EQ(read->rows[0].least, 2);
  EXPECT_EQ(read->rows[0].most, 5);
  EXPECT_EQ(read->rows[1].terms[0].times, 2);
  EXPECT_EQ(read->rows[1].terms[1].of, PlanConstraints::Term::Of::used);
  EXPECT_EQ(read->rows[1].place, "c.toml: line 10: row[0]");
}

TEST(Constraints, ABadFileIsOneLineWithFileLineKeyAndCure) {
  const auto error = [](const std::string& text, const std::string& name = "c.toml") {
    const auto read = parse_constraints(text, name);
    EXPECT_FALSE(read.ok()) << text;
    return read.ok() ? "" : read.error();
  };
  EXPECT_EQ(error("[[apart]]\nmodels = [\"a\"]"),
            "c.toml: line 2: apart[0].models: keeps nothing apart; name two models or more");
  EXPECT_EQ(error("\n[[partitions]]\nmodel = \"a\""),
            "c.toml: line 2: partitions[0]: bounds nothing; add at_least, at_most or both");
  EXPECT_EQ(error("[[partitions]]\nat_most = \"two\""), "c.toml: line 2: partitions[0].at_most: must be a number");
  EXPECT_EQ(error("[[partitions]]\nat_most = 1\nat_least = 2"),
            "c.toml: line 3: partitions[0].at_least: is above at_most; lower it");
  EXPECT_EQ(error("[[memory]]\nat_most_bytes = 5"),
            "c.toml: line 1: memory[0]: is of one partition or of a class; give one of the two keys");
  EXPECT_EQ(error("[[row]]\nat_most = 1\nterms = []"),
            "c.toml: line 3: row[0].terms: is empty; add {variable = \"partitions\", module = ...}");
  EXPECT_EQ(error("[[row]]\nat_most = 1\nterms = [{variable = \"rate\"}]"),
            "c.toml: line 3: row[0].terms[0]: a rate is what partitions carry and can only be held from below; bound "
            "the partitions instead");
  EXPECT_EQ(error("[[row]]\nat_most = 1\nterms = [{variable = \"cores\"}]"),
            "c.toml: line 3: row[0].terms[0].variable: 'cores' is no variable; use partitions, devices, used or rate");
  EXPECT_EQ(error("[[rows]]"), "c.toml: unknown key 'rows'; known here: memory, apart, partitions, row");
  EXPECT_EQ(error("{\"apart\": [{}]}", "c.json"), "c.json: apart[0].models: missing; add it");
}

}  // namespace
}  // namespace leat::planner
