#include "tools/base/subprocess/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "tools/base/subprocess/process.h"

namespace leat::subprocess {
namespace {

namespace fs = std::filesystem;

TEST(Program, IsTheNearestOrElseABareName) {
  const fs::path self = fs::read_symlink("/proc/self/exe");
  const std::string name = self.filename().string(), folder = self.parent_path().filename().string();
  EXPECT_EQ(near_this_program(name), self.string());
  EXPECT_EQ(near_this_program(name, {"no-such-folder", ("../" + folder).c_str()}), self.string());
  EXPECT_EQ(near_this_program("leat-no-such-program"), "leat-no-such-program");
  EXPECT_EQ(near_this_program("CMakeFiles"), "CMakeFiles") << "a folder is no program";
}

TEST(Program, TheEnvironmentsWordComesFirst) {
  ASSERT_EQ(::setenv("LEAT_PROGRAM_TEST", "/somewhere/else", 1), 0);
  EXPECT_EQ(named_or_near("LEAT_PROGRAM_TEST", "leat-no-such-program"), "/somewhere/else");
  ASSERT_EQ(::setenv("LEAT_PROGRAM_TEST", "", 1), 0);
  EXPECT_EQ(named_or_near("LEAT_PROGRAM_TEST", "leat-no-such-program"), "leat-no-such-program");
  ::unsetenv("LEAT_PROGRAM_TEST");
}

TEST(Program, TakesThisOnesPlaceOrSaysWhyNot) {
  auto process = Process::start([] {
    if (replace_this_program({"leat-no-such-program"}) == "No such file or directory")
      (void)replace_this_program({"sh", "-c", "exit 7"});
  });
  ASSERT_TRUE(process.ok()) << process.error();
  EXPECT_EQ(process->wait(after(std::chrono::seconds(20))).text(), "ended with status 7");
}

}  // namespace
}  // namespace leat::subprocess
