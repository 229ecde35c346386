#include "tools/base/cli/json_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace leat::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Option kJsonOptions[] = {json_option(), {.name = "all", .letter = 'a', .help = "everything"}};
constexpr Positional kJsonPositionals[] = {{.name = "SOURCE", .help = "an input", .min = 0, .max = 3}};
constexpr Command kStudy = {.name = "study", .summary = "measures", .options = kJsonOptions};
constexpr Command kJsonFeed = {
    .name = "feed", .summary = "feeds", .options = kJsonOptions, .positionals = kJsonPositionals};

class Json : public ::testing::Test {
 protected:
  Json() {
    std::string name = fs::temp_directory_path() / "leat-json.XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~Json() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / name; }
  static std::string read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  // What `words` name as the JSON's file: "" none, "-" standard output, "!" bad input.
  static std::string file_of(const Command& command, std::vector<std::string> words) {
    const Parse parsed = parse(command, words);
    if (parsed.exit_status >= 0) return "!";
    const JsonOutput json(parsed.arguments);
    EXPECT_EQ(json.alone(), json.wanted() && parsed.arguments.text("json") == "-");
    return json.wanted() ? parsed.arguments.text("json") : "";
  }
  fs::path folder_;
};

TEST_F(Json, FileMayBeLeftOut) {
  const std::string x = path("x"), x_json = path("x.json");
  EXPECT_EQ(file_of(kStudy, {}), "");
  EXPECT_EQ(file_of(kStudy, {"--json"}), "-");
  EXPECT_EQ(file_of(kStudy, {"--json", "-"}), "-");
  EXPECT_EQ(file_of(kStudy, {"--json", "-a"}), "-");
  EXPECT_EQ(file_of(kStudy, {"--json", "--all"}), "-");
  EXPECT_EQ(file_of(kStudy, {"--json", x}), x);
  EXPECT_EQ(file_of(kStudy, {"--json=" + x}), x);
  EXPECT_EQ(file_of(kStudy, {"--json="}), "!");
  EXPECT_EQ(file_of(kStudy, {"--json", "--json"}), "!");
  EXPECT_EQ(file_of(kJsonFeed, {"--json", x_json, "a.mp4"}), x_json);
}

TEST_F(Json, AnInputIsNeverTakenForTheFile) {
  const Parse parsed = parse(kJsonFeed, std::vector<std::string>{"--json", "a.mp4", "-"});
  ASSERT_EQ(parsed.exit_status, -1) << parsed.err;
  EXPECT_EQ(parsed.arguments.text("json"), "-");
  EXPECT_EQ(parsed.arguments.positionals(), (std::vector<std::string>{"a.mp4", "-"}));
  EXPECT_EQ(file_of(kJsonFeed, {"--json=" + path("a.txt"), "a.mp4"}), path("a.txt"));
}

TEST_F(Json, WhatCannotBeWrittenIsSaidBeforeTheWork) {
  const Parse parsed = parse(kStudy, std::vector<std::string>{"--json", path("none/x.json")});
  EXPECT_EQ(parsed.exit_status, kBadInput);
  EXPECT_THAT(parsed.err, HasSubstr("cannot be written"));
  EXPECT_EQ(file_of(kStudy, {"--json", folder_}), "!");
}

TEST_F(Json, IsWrittenWholeOrNotAtAll) {
  const std::string file = path("x.json");
  std::ofstream(file) << "what was there before, and longer than what comes";
  const auto write = [&](const std::string& where, const std::string& text) {
    const Parse parsed = parse(kStudy, std::vector<std::string>{"--json", where});
    return JsonOutput(parsed.arguments).write(text);
  };
  ASSERT_EQ(write(file, "{}"), 0);
  EXPECT_EQ(read(file), "{}\n");
  // A link stays a link, a device a device.
  fs::create_symlink(file, path("link.json"));
  ASSERT_EQ(write(path("link.json"), "{\"a\":1}\n"), 0);
  EXPECT_EQ(read(file), "{\"a\":1}\n");
  EXPECT_TRUE(fs::is_symlink(path("link.json")));
  EXPECT_EQ(files(), 2U);
  EXPECT_EQ(write("/dev/full", "{}"), kBadInput);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  // The folder goes while the work is under way.
  const Parse parsed = parse(kStudy, std::vector<std::string>{"--json", file});
  fs::remove_all(folder_);
  EXPECT_EQ(JsonOutput(parsed.arguments).write("{}"), kBadInput);
}

TEST_F(Json, HelpAndManualShowTheOptionalFile) {
  EXPECT_THAT(help_text(kStudy), HasSubstr("--json [FILE]"));
  EXPECT_THAT(help_text(kStudy), Not(HasSubstr("--json=FILE")));
  EXPECT_THAT(help_text(kJsonFeed), HasSubstr("--json=FILE"));
  EXPECT_THAT(man_page(kJsonFeed), HasSubstr("\\fI[FILE]\\fR"));
  EXPECT_EQ(table_problem(kJsonFeed), "");
}

}  // namespace
}  // namespace leat::cli
