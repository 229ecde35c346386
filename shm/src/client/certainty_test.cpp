// Rules of trackers from files, which may hold anything; and what is shown by what a tracker expects.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "leat/block_tracker.hpp"
#include "leat/certainty_file.hpp"
#include "leat/local_choice.hpp"

namespace leat::shm::test {
namespace {

struct CertaintyFile : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/leat-rule-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string file(const std::string& text) const {
    std::ofstream(folder + "/rule", std::ios::binary) << text;
    return folder + "/rule";
  }
  static std::string rule(const std::string& asks = "yes") {
    std::string out = "leat-certainty 1\n# of two videos\ntracker blocks\nasks " + asks + "\n";
    for (std::size_t i = 0; i < kCertaintyTerms; ++i)
      out += std::string(kCertaintyTermNames[i]) + " " + std::to_string(0.01 * static_cast<double>(i)) + "\n";
    return out;
  }
  std::string folder;
};

TEST_F(CertaintyFile, InPlaceOfTheTrackersOwn) {
  const auto read = read_certainty(file(rule()), "blocks");
  ASSERT_TRUE(read.ok()) << read.error();
  CertaintyTerms terms{};
  terms[kTermSpread] = 1, terms[kTermAge] = 2;
  EXPECT_NEAR(read->expected(terms), 0.02 + 2 * 0.12, 1e-6);
  BlockTracker tracker(*read);
  EXPECT_EQ(tracker.expected(), 0);
  EXPECT_NE(read_certainty(file(rule()), "lk").error().find("a rule of the tracker 'blocks', not of 'lk'"),
            std::string::npos);
}

TEST_F(CertaintyFile, ThatToldNothingExpectsNothing) {
  const auto read = read_certainty(file(rule("no")), "blocks");
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_EQ(BlockTracker(*read).expected(), -1);
  leat_certainty c;
  ASSERT_EQ(leat_read_certainty(file(rule("no")).c_str(), &c), LEAT_ERROR_ok);
  const CertaintyTerms terms{};
  EXPECT_EQ(leat_certainty_expected(&c, terms.data()), -1);
  EXPECT_EQ(leat_certainty_expected(nullptr, terms.data()), -1);
  c.asks = 1;
  EXPECT_EQ(leat_certainty_expected(&c, terms.data()), 0);
}

TEST_F(CertaintyFile, AnythingElseIsRefusedInOneLine) {
  const auto problem = [&](const std::string& text) {
    leat_certainty c;
    EXPECT_EQ(leat_read_certainty(file(text).c_str(), &c), LEAT_ERROR_invalid_argument) << text;
    const std::string said = leat_last_error();
    EXPECT_EQ(said.find('\n'), std::string::npos);
    EXPECT_NE(said.find("leat certainty --out"), std::string::npos) << said;
    return said;
  };
  EXPECT_NE(problem("").find("no line 'tracker'"), std::string::npos);
  EXPECT_NE(problem("{\"v\": 1}\n").find("first line"), std::string::npos);
  EXPECT_NE(problem(rule() + "age 0.1\n").find("line 19"), std::string::npos);     // twice
  EXPECT_NE(problem(rule() + "colour 0.1\n").find("line 19"), std::string::npos);  // unknown
  EXPECT_NE(problem(rule("perhaps")).find("line 4"), std::string::npos);
  const std::string last = "age_small 0.130000\n", all = rule(), most = all.substr(0, all.size() - last.size());
  EXPECT_NE(problem(most).find("no line 'age_small'"), std::string::npos);
  for (const char* value : {"nan", "inf", "1e9", "", "0.1x", " 0.1"})
    EXPECT_NE(problem(most + "age_small " + value + "\n").find("line 18"), std::string::npos) << value;
  EXPECT_NE(problem("leat-certainty 1\ntracker " + std::string(16, 'x') + "\n").find("line 2"), std::string::npos);
  EXPECT_NE(problem("leat-certainty 1\n" + std::string(70'000, '#')).find("too large"), std::string::npos);
  EXPECT_NE(problem(std::string("leat-certainty 1\n\0\n", 19)).find("line 2"), std::string::npos);
  leat_certainty c;
  EXPECT_EQ(leat_read_certainty((folder + "/none").c_str(), &c), LEAT_ERROR_invalid_argument);
  EXPECT_EQ(leat_read_certainty(folder.c_str(), &c), LEAT_ERROR_invalid_argument);  // no file
  EXPECT_EQ(leat_read_certainty(nullptr, &c), LEAT_ERROR_invalid_argument);
}

TEST(LocalChoice, IsTheTrackersUntilItExpectsToHaveLostMore) {
  LocalChoice choice;
  EXPECT_FALSE(choice.local(0.09, 0.1));
  EXPECT_TRUE(choice.local(0.11, 0.1));
  EXPECT_TRUE(choice.local(0.09, 0.1));  // not back and forth
  EXPECT_FALSE(choice.local(0.07, 0.1));
  EXPECT_FALSE(choice.local(0.09, 0.1));
}

TEST(LocalChoice, WithoutExpectationsThatAreWorthSomethingIsTheTrackers) {
  LocalChoice choice;
  EXPECT_FALSE(choice.local(-1, 0.1));
  EXPECT_FALSE(choice.local(0.9, 0));
  EXPECT_TRUE(choice.local(0.9, 0.1));
  EXPECT_FALSE(choice.local(0.9, 0));  // it has lost its worth
  EXPECT_FALSE(choice.local(0.09, 0.1));
}

}  // namespace
}  // namespace leat::shm::test
