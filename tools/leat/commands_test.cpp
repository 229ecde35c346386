// Every sub-command's table is sound, and every one can be asked for its help and its manual page.
#include "tools/leat/commands.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/daemon/configuration/config.h"
#include "planner/io/application_io.h"

namespace leat::tools {
namespace {

TEST(Commands, TablesAreSoundAndNamesDiffer) {
  std::set<std::string_view> words;
  for (const cli::Subcommand* sub : commands()) {
    EXPECT_EQ(cli::table_problem(*sub->command), "");
    EXPECT_TRUE(sub->command->name.starts_with("leat ")) << sub->command->name;
    EXPECT_TRUE(words.insert(cli::word_of(*sub->command)).second) << sub->command->name;
    const std::vector<std::string> help{"--help"}, man{"--man"}, wrong{"--no-such-option-anywhere"};
    EXPECT_EQ(cli::parse(*sub->command, help).exit_status, 0);
    EXPECT_TRUE(cli::parse(*sub->command, man).out.starts_with(".TH LEAT"));
    EXPECT_EQ(cli::parse(*sub->command, wrong).exit_status, cli::kBadInput);
  }
  EXPECT_FALSE(words.empty());
}

// `leat` reads TOML in two rooms; what one is linked with must not break the other.
TEST(Commands, BothReadersOfTomlWorkInOneProgram) {
  for (int round = 0; round < 2; ++round) {
    const auto applications = planner::parse_applications(
        "[[application]]\nname = 'a'\nslo_ms = 5\n[[application.module]]\nname = 'm'\n", "a.toml");
    ASSERT_TRUE(applications.ok()) << applications.error();
    EXPECT_EQ(applications->front().slo_ns, 5'000'000);
    EXPECT_EQ(planner::parse_applications("[[application]\n", "a.toml").error().substr(0, 12), "a.toml: line");
    const auto config = daemon::parse_config("[[application]\n", "leat.toml");
    EXPECT_EQ(config.error().substr(0, 11), "leat.toml:1");
  }
}

}  // namespace
}  // namespace leat::tools
