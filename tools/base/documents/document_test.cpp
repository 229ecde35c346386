#include "tools/base/documents/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kText = R"(top = 3
[[item]]
name = "a"
size = 70
  [item.deep]
  word = "x"
)";

// The error of one read.
template <class Read>
std::string error_of(JsonDocument& document, Read read) {
  read(document.root());
  return document.failed() ? document.error().text : "";
}

template <class Read>
std::string of_toml(Read read, const std::string& text = kText) {
  return error_of(*JsonDocument::from_toml("f.toml", text), read);
}

TEST(Documents, ErrorsNameFileLineAndKey) {
  EXPECT_EQ(of_toml([](const JsonCursor& c) { (void)c.at("item").items()[0].at("size").integer(1, 64); }),
            "f.toml:4: item.size: is 70; must be a whole number, 1 to 64");
  EXPECT_EQ(of_toml([](const JsonCursor& c) { (void)c.at("item").items()[0].find("deep").at("wrod"); }),
            "f.toml:5: item.deep.wrod: missing; add it");
  EXPECT_EQ(of_toml([](const JsonCursor& c) { (void)c.tables("top"); }),
            "f.toml:1: top: must be tables: write [[top]]");
  EXPECT_EQ(of_toml([](const JsonCursor& c) { (void)c.at("item").items()[0].at("name").number(0, kHuge); }),
            "f.toml:3: item.name: must be a number, 0 or more");
  EXPECT_THAT(of_toml([](const JsonCursor&) {}, "[a]\nb = \n"), HasSubstr("f.toml:2:"));
}

TEST(Documents, OfJsonTheKeyHasTheNumberOfItsEntry) {
  JsonDocument document("f.json", R"({"item": [{"size": 70}]})");
  EXPECT_EQ(error_of(document, [](const JsonCursor& c) { (void)c.at("item").items()[0].at("size").text(); }),
            "f.json: item[0].size: must be a text in quotes");
  JsonDocument broken("f.json", "{\n 3");
  EXPECT_THAT(broken.error().text, HasSubstr("f.json:2:"));
}

TEST(Documents, TheFirstErrorStays) {
  EXPECT_EQ(of_toml([](const JsonCursor& c) {
              c.find("top").fail("one");
              c.find("item").fail("two");
            }),
            "f.toml:1: top: one");
}

TEST(Documents, AnUnknownKeyIsTheFirstOfTheFileWithTheNearestKnown) {
  const std::string text = "zoom = 1\nalpah = 2\n";
  EXPECT_EQ(of_toml(
                [](const JsonCursor& c) {
                  c.only({"zoom", "alpha"});
                },
                text),
            "f.toml:2: alpah: unknown key; did you mean 'alpha'?");
  EXPECT_EQ(of_toml([](const JsonCursor& c) { c.only({"beta"}); }, text),
            "f.toml:1: zoom: unknown key; the keys here are beta");
}

TEST(Documents, ARenamedKeyIsReadByItsOldWordWithAWarning) {
  constexpr RenamedKey kRenamed[] = {{"most", "max"}};
  const auto document = JsonDocument::from_toml("f.toml", "a = 1\nmost = 7\n");
  document->accept(kRenamed);
  const JsonCursor root = document->root();
  root.only({"a", "max"});
  EXPECT_TRUE(root.has("max"));
  EXPECT_EQ(root.integer_or("max", 0, 0, 9), 7);
  EXPECT_FALSE(document->failed()) << document->error().text;
  EXPECT_THAT(document->warnings(),
              ElementsAre("f.toml:2: most: is called max now; write that, the old name goes with the next version"));
  EXPECT_EQ(root.integer_or("max", 0, 0, 5), 0);
  EXPECT_THAT(document->error().text, HasSubstr("f.toml:2: most: is 7"));
}

TEST(Documents, BothWordsOfARenamedKeyAreOneTooMany) {
  constexpr RenamedKey kRenamed[] = {{"most", "max"}};
  const auto document = JsonDocument::from_toml("f.toml", "max = 1\nmost = 7\n");
  document->accept(kRenamed);
  document->root().only({"max"});
  ASSERT_TRUE(document->failed());
  EXPECT_THAT(document->error().text, HasSubstr("f.toml:2: most: is called max now"));
}

TEST(Documents, KeysThatACommandLineMadeAreCalledAsItsOptions) {
  const auto document = JsonDocument::from_toml("f.toml", kText);
  document->call_keys("model.onnx", [](std::string_view key) { return "--" + std::string(key) + ": "; });
  document->root().at("item").items()[0].at("size").fail("is wrong");
  EXPECT_EQ(document->error().text, "model.onnx: --size: is wrong");
}

}  // namespace
}  // namespace leat
