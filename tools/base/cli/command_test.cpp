#include "tools/base/cli/command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Option kOptions[] = {
    {.name = "streams",
     .letter = 'n',
     .type = Type::integer,
     .value = "N",
     .fallback = "1",
     .min = 1,
     .max = 256,
     .help = "streams to open"},
    {.name = "rate", .type = Type::real, .value = "HZ", .min = 0, .help = "frames per second"},
    {.name = "loop", .letter = 'l', .help = "start again at the end"},
    {.name = "format", .type = Type::choice, .choices = "nv12|i420|rgb24", .fallback = "nv12", .help = "pixel format"},
    {.name = "set", .type = Type::text, .value = "KEY=VALUE", .repeat = true, .help = "one setting"},
};
constexpr Positional kPositionals[] = {{.name = "SOURCE", .help = "a file, device or URL", .min = 1, .max = 3}};
constexpr Example kExamples[] = {{.line = "leat feed a.mp4", .text = "feeds a file"}};
constexpr Command kFeed = {.name = "leat feed",
                           .summary = "feeds frames",
                           .description = "First paragraph.\n\nSecond.",
                           .options = kOptions,
                           .positionals = kPositionals,
                           .examples = kExamples,
                           .see_also = "leatd(8)",
                           .exit_status = ""};

Parse run(std::vector<std::string> words, const Command& command = kFeed) { return parse(command, words); }

TEST(Command, TakesValuesInEveryShape) {
  const Parse parsed =
      run({"--streams=4", "-l", "--rate", "29.97", "a.mp4", "--set", "a=1", "--set", "b=2", "--", "--odd name"});
  ASSERT_EQ(parsed.exit_status, -1) << parsed.err;
  const Arguments& args = parsed.arguments;
  EXPECT_EQ(args.integer("streams"), 4);
  EXPECT_DOUBLE_EQ(args.real("rate"), 29.97);
  EXPECT_DOUBLE_EQ(args.real("streams"), 4.0);
  EXPECT_TRUE(args.flag("loop"));
  EXPECT_EQ(args.text("format"), "nv12");
  EXPECT_FALSE(args.given("format"));
  EXPECT_EQ(args.texts("set"), (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_EQ(args.positionals(), (std::vector<std::string>{"a.mp4", "--odd name"}));
  EXPECT_EQ(run({"-n7", "x"}).arguments.integer("streams"), 7);
  EXPECT_EQ(run({"-ln", "9", "x"}).arguments.integer("streams"), 9);
  EXPECT_EQ(run({"-"}).arguments.positionals(), (std::vector<std::string>{"-"}));
}

struct Bad {
  std::vector<std::string> words;
  std::string says;
};
class BadInput : public ::testing::TestWithParam<Bad> {};

TEST_P(BadInput, IsOneLineAndStatusTwo) {
  const Parse parsed = run(GetParam().words);
  EXPECT_EQ(parsed.exit_status, kBadInput);
  EXPECT_THAT(parsed.err, HasSubstr(GetParam().says));
  EXPECT_EQ(std::count(parsed.err.begin(), parsed.err.end(), '\n'), 1);
  EXPECT_TRUE(parsed.err.starts_with("leat feed: "));
  EXPECT_TRUE(parsed.out.empty());
}
INSTANTIATE_TEST_SUITE_P(
    All, BadInput,
    ::testing::Values(
        Bad{{"--sreams", "4", "x"}, "did you mean '--streams'?"}, Bad{{"--lopo", "x"}, "did you mean '--loop'?"},
        Bad{{"--form", "x"}, "did you mean '--format'?"}, Bad{{"--qqqqqqqq", "x"}, "--help' lists them"},
        Bad{{"-q", "x"}, "unknown option '-q'"}, Bad{{"--streams", "0", "x"}, "an integer from 1 to 256"},
        Bad{{"--streams", "4x", "x"}, "an integer from 1 to 256"},
        Bad{{"--streams", "99999999999999999999", "x"}, "an integer from 1 to 256"},
        Bad{{"--rate", "nan", "x"}, "a number of at least 0"}, Bad{{"--rate", "-1", "x"}, "a number of at least 0"},
        Bad{{"--streams"}, "needs a value: --streams N"}, Bad{{"--streams", "--loop", "x"}, "needs a value"},
        Bad{{"--loop=yes", "x"}, "takes no value"}, Bad{{"--format", "jpeg", "x"}, "one of nv12|i420|rgb24"},
        Bad{{"--set=", "x"}, "not empty"}, Bad{{"--streams", "1", "--streams", "2", "x"}, "given twice"},
        Bad{{}, "SOURCE is missing"}, Bad{{"a", "b", "c", "d"}, "'d' is one argument too many"}));

TEST(Command, HelpNamesEverythingInTheTable) {
  const Parse parsed = run({"--help"});  // no SOURCE: a question needs none
  EXPECT_EQ(parsed.exit_status, 0);
  for (const Option& option : kOptions) {
    EXPECT_THAT(parsed.out, HasSubstr("--" + std::string(option.name)));
    EXPECT_THAT(parsed.out, HasSubstr(std::string(option.help)));
  }
  EXPECT_THAT(parsed.out, HasSubstr("Usage: leat feed [OPTION ...] SOURCE ..."));
  EXPECT_THAT(parsed.out, HasSubstr("(default: 1)"));
  EXPECT_THAT(run({"--version"}).out, HasSubstr("leat feed (Leat) "));
}

TEST(Command, ManPageEscapesAndNamesEverything) {
  const std::string page = run({"--man"}).out;
  EXPECT_TRUE(page.starts_with(".TH LEAT\\-FEED 1"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-streams\\fR \\fIN\\fR"));
  EXPECT_THAT(page, HasSubstr(".SH EXAMPLES"));
  EXPECT_THAT(page, HasSubstr(".PP\nSecond."));
  EXPECT_THAT(page, Not(HasSubstr("--streams")));  // a bare hyphen would print as a dash
}

TEST(Command, AFaultyTableIsNamed) {
  EXPECT_EQ(table_problem(kFeed), "");
  constexpr Option twice[] = {{.name = "a", .help = "x"}, {.name = "a", .help = "x"}};
  constexpr Option refused[] = {
      {.name = "a", .type = Type::integer, .value = "N", .fallback = "9", .max = 3, .help = "x"}};
  constexpr Option hiding[] = {{.name = "x", .letter = 'h', .help = "x"}};
  constexpr Option unset[] = {{.name = "a", .type = Type::integer, .value = "N", .min = 1, .help = "x"}};
  const auto problem = [](std::span<const Option> options) {
    return table_problem(
        {.name = "p", .summary = "s", .description = {}, .options = options, .see_also = {}, .exit_status = {}});
  };
  EXPECT_THAT(problem(twice), HasSubstr("twice"));
  EXPECT_THAT(problem(refused), HasSubstr("default"));
  EXPECT_THAT(problem(hiding), HasSubstr("standard"));
  EXPECT_THAT(problem(unset), HasSubstr("bounds"));
}

int ran = 0;
constexpr Subcommand kFeedSub = {.command = &kFeed, .run = [](const Arguments& args) {
                                   ran = static_cast<int>(args.integer("streams"));
                                   return 0;
                                 }};
constexpr const Subcommand* kSubs[] = {&kFeedSub};
constexpr Program kLeat = {.name = "leat", .summary = "the tool", .description = "Text.", .subcommands = kSubs};

int call(std::vector<const char*> words, std::string& out, std::string& err) {
  words.insert(words.begin(), "leat");
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int status = run_program(kLeat, static_cast<int>(words.size()), words.data());
  out = ::testing::internal::GetCapturedStdout();
  err = ::testing::internal::GetCapturedStderr();
  return status;
}

TEST(Program, FindsTheSubcommand) {
  std::string out, err;
  EXPECT_EQ(call({"feed", "--streams", "5", "x"}, out, err), 0);
  EXPECT_EQ(ran, 5);
  EXPECT_EQ(call({"fed"}, out, err), kBadInput);
  EXPECT_EQ(err, "leat: no command 'fed'; did you mean 'feed'?\n");
  EXPECT_EQ(call({}, out, err), kBadInput);
  EXPECT_EQ(call({"help", "feed"}, out, err), 0);
  EXPECT_EQ(out, help_text(kFeed));
  EXPECT_EQ(call({"--help"}, out, err), 0);
  EXPECT_THAT(out, HasSubstr("feeds frames"));
  EXPECT_EQ(call({"completion"}, out, err), 0);
  EXPECT_THAT(out, HasSubstr("feed) options=\"--streams --rate"));
  EXPECT_EQ(call({"--man"}, out, err), 0);
  EXPECT_THAT(out, HasSubstr("leat\\-feed(1)"));
}

// Runs `leat --help` with its output in `descriptor`, which is closed; closed already where it is -1.
int help_into(int descriptor, std::string& err) {
  std::fflush(stdout);
  const int kept = ::dup(STDOUT_FILENO);
  ::close(STDOUT_FILENO);
  if (descriptor >= 0) {
    EXPECT_EQ(::dup2(descriptor, STDOUT_FILENO), STDOUT_FILENO);
    ::close(descriptor);
  }
  constexpr const char* kWords[] = {"leat", "--help"};
  ::testing::internal::CaptureStderr();
  const int status = run_program(kLeat, 2, kWords);
  err = ::testing::internal::GetCapturedStderr();
  std::clearerr(stdout);
  EXPECT_EQ(::dup2(kept, STDOUT_FILENO), STDOUT_FILENO);
  ::close(kept);
  return status;
}

TEST(Program, SaysWhereItsOutputIsNotWritten) {
  std::string err;
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  EXPECT_EQ(help_into(full, err), kBadInput);
  EXPECT_THAT(err, HasSubstr("leat: standard output: cannot be written: No space left on device"));
  EXPECT_EQ(help_into(-1, err), 0);
  EXPECT_EQ(err, "");
}

}  // namespace
}  // namespace leat::cli
