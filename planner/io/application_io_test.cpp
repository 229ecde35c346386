#include "planner/io/application_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leat::planner {
namespace {

using testing::HasSubstr;

constexpr const char* kToml = R"(
[[application]]
name = "traffic"
slo_ms = 200
rate_rps = 30
[[application.module]]
name = "merge"
model = "merge"
after = ["plate", "person"]
[[application.module]]
name = "plate"
model = "ocr"
after = ["detect"]
items_per_request = 2.5
[[application.module]]
name = "person"
after = ["detect"]
[[application.module]]
name = "detect"
model = "detector"
)";

TEST(ApplicationIo, ModulesComeInTopologicalOrder) {
  const auto a = parse_applications(kToml, "a.toml");
  ASSERT_TRUE(a.ok()) << a.error();
  ASSERT_EQ(a->size(), 1u);
  const auto& m = (*a)[0].modules;
  EXPECT_EQ((*a)[0].slo_ns, 200'000'000);
  EXPECT_EQ(m[0].name, "detect");
  EXPECT_EQ(m[1].name, "plate");
  EXPECT_EQ(m[1].fan_out_cap, 3u);
  EXPECT_EQ(m[2].name, "person");
  EXPECT_EQ(m[2].model, "person");
  EXPECT_EQ(m[3].name, "merge");
  EXPECT_EQ(m[3].after, (std::vector<std::uint32_t>{1, 2}));
}

// What toml++ 3.3 alone does not survive (tools/base/documents/toml.h).
TEST(ApplicationIo, LettersBeyondAsciiStandInTextAndNowhereElse) {
  const std::string rest = "\nslo_ms = 10\n[[application.module]]\nname = 'a'\n";
  const auto a = parse_applications("[[application]]\nname = \"\"\"a\\\n  \u03fe\"\"\"" + rest, "a.toml");
  ASSERT_TRUE(a.ok()) << a.error();
  EXPECT_EQ((*a)[0].name, "a\u03fe");
  for (const std::string stray :
       {"\u03fe = 1", "x = 45_.\"\ufe90", "x = 4'''\u3046", "x = ['''0p\u0157*pp'", "\u00e9"}) {
    const auto bad = parse_applications("\n" + stray + "\n", "a.toml");
    ASSERT_FALSE(bad.ok()) << stray;
    EXPECT_THAT(bad.error(), HasSubstr("a.toml:2:")) << stray;
  }
}

// What leatd serves is what is planned for: the examples' configurations as they stand.
TEST(ApplicationIo, ConfigurationsOfLeatdAreApplications) {
  const auto shapes = read_applications(LEAT_SOURCE_DIR "/tools/models/shapes/shapes.toml");
  ASSERT_TRUE(shapes.ok()) << shapes.error();
  ASSERT_EQ(shapes->front().modules.size(), 2U);
  EXPECT_EQ(shapes->front().modules[0].model, "detect") << "the profile of detect.onnx";
  EXPECT_EQ(shapes->front().modules[1].fan_out_cap, 16U);
  const auto ocr = read_applications(LEAT_SOURCE_DIR "/docs/examples/ocr.toml");
  ASSERT_TRUE(ocr.ok()) << ocr.error();
  EXPECT_EQ(ocr->front().modules.size(), 3U);
  const auto left = parse_applications(
      "[[application]]\nname='x'\nslo_ms='auto'\n[[application.module]]\nname='a'\nmodel='a/b.onnx'\n", "a.toml");
  ASSERT_FALSE(left.ok());
  EXPECT_THAT(left.error(), HasSubstr(":3: application.slo_ms: leatd chooses \"auto\" when it starts"));
}

std::string error_of(const std::string& text) {
  const auto a = parse_applications(text, "a.toml");
  EXPECT_FALSE(a.ok()) << text;
  return a.ok() ? "" : a.error();
}

TEST(ApplicationIo, ErrorsNameTheKeyAndTheCure) {
  const std::string head = "[[application]]\nname='x'\nslo_ms=10\n";
  EXPECT_THAT(
      error_of(head + "[[application.module]]\nname='a'\nafter=['b']\n[[application.module]]\nname='b'\nafter=['a']\n"),
      HasSubstr("cycle: a, b"));
  EXPECT_THAT(error_of(head + "[[application.module]]\nname='a'\nafter=['c']\n"),
              HasSubstr("'c', which does not exist"));
  EXPECT_THAT(error_of(head + "[[application.module]]\nname='a'\n[[application.module]]\nname='a'\n"),
              HasSubstr("two modules"));
  EXPECT_THAT(error_of(head + "rate_rps=0\n[[application.module]]\nname='a'\n"), HasSubstr("application.rate_rps"));
  EXPECT_THAT(error_of(head + "rate_rps=-4\n[[application.module]]\nname='a'\n"), HasSubstr("application.rate_rps"));
  EXPECT_THAT(error_of(head + "rate_rsp=4\n[[application.module]]\nname='a'\n"),
              HasSubstr("application.rate_rsp: unknown key; did you mean 'rate_rps'?"));
  EXPECT_THAT(error_of(head + "[[application.module]]\nname='a'\npreproces='x'\n"),
              HasSubstr("application.module.preproces: unknown key"));
  EXPECT_THAT(error_of(head), HasSubstr("application.module"));
  EXPECT_THAT(error_of("[[application]]\nname='x'\nslo_ms=0\n"), HasSubstr("slo_ms"));
  EXPECT_THAT(error_of("[[application]\nname='x'"), HasSubstr("a.toml:1:"));
  EXPECT_THAT(error_of("title = 'nothing'\n"), HasSubstr("application: missing"));
}

}  // namespace
}  // namespace leat::planner
