// Every sub-command's table is sound, and every one can be asked for its help and its manual page.
#include "tools/leat/commands.h"

#include <gtest/gtest.h>

#include <set>

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

}  // namespace
}  // namespace leat::tools
