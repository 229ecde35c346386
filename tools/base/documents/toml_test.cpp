#include "tools/base/documents/toml.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace leat {
namespace {

// Of every stretch that the library's table divides the letters into, the first and the last, and one amid them.
std::vector<std::string> letters() {
  std::vector<std::string> out;
  const auto add = [&](char32_t c) {
    if (c < 0xA0 || c > 0xFEFF || (c >= 0xD800 && c <= 0xDFFF)) return;
    out.push_back({static_cast<char>(0xE0 | (c >> 12)), static_cast<char>(0x80 | ((c >> 6) & 0x3F)),
                   static_cast<char>(0x80 | (c & 0x3F))});
    if (c < 0x800) out.back() = {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))};
  };
  for (char32_t c = 0xA0; c <= 0xFEFF; c += 0x3FA / 2) {
    add(c - 1);
    add(c);
    add(c + 1);
  }
  return out;
}

std::string text_of(const toml::table& table, const char* key) { return table[key].value_or(std::string("(none)")); }

TEST(Toml, LettersOfEveryStretchStandInStringsKeysAndComments) {
  for (const std::string& l : letters()) {
    const ParsedToml parsed =
        parse_toml("# " + l + "\na = \"" + l + "x\"\nb = '" + l + "'\nc = \"\"\"" + l + "\\\n  " + l + "\"\"\"\n\"" +
                   l + "k\" = [ '" + l + "', { '" + l + "' = 4 } ]\n[t.'" + l + "']\nd = 1\n");
    ASSERT_EQ(parsed.error, "") << l;
    EXPECT_EQ(text_of(parsed.root, "a"), l + "x");
    EXPECT_EQ(text_of(parsed.root, "b"), l);
    EXPECT_EQ(text_of(parsed.root, "c"), l + l);
    const auto list = parsed.root[l + "k"];
    EXPECT_EQ(list[0].value_or(std::string()), l);
    EXPECT_EQ(list[1][l].value_or(0), 4);
    EXPECT_EQ(list.node()->source().begin.line, 6U);
    EXPECT_EQ(parsed.root["t"][l]["d"].value_or(0), 1);
    EXPECT_EQ(parsed.root["t"][l].node()->source().begin.line, 7U);
  }
}

TEST(Toml, LettersOfEveryStretchAreRefusedElsewhere) {
  for (const std::string& l : letters())
    for (const std::string& text :
         {l, l + " = 1", "x" + l + " = 1", "x = 1" + l, "x = " + l, "x = 45_.\"" + l, "x = 4'''" + l, "x = ['''0p" + l,
          "[" + l + "]", "x =" + l + "1", "x = 'a'" + l, "x = 1979-05-27" + l, "x = true" + l, "x = nan" + l}) {
      const ParsedToml parsed = parse_toml("\n" + text);
      EXPECT_NE(parsed.error, "") << text;
      EXPECT_EQ(parsed.line, 2U) << text;
      EXPECT_EQ(parsed.error.find("\xF3\xB0"), std::string::npos)
          << "shows a letter that nobody wrote: " << parsed.error;
    }
}

TEST(Toml, WhatIsNotUtf8OrHasNoMeaningIsRefusedWhereItStands) {
  for (const char* const bad : {"\xC3", "\xFF", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82"}) {
    const ParsedToml parsed = parse_toml("x = 1\n\xC3\xA9 \"" + std::string(bad) + "\"");
    EXPECT_NE(parsed.error.find("UTF-8"), std::string::npos);
    EXPECT_EQ(parsed.line, 2U);
    EXPECT_EQ(parsed.column, 4U);
  }
  EXPECT_NE(parse_toml("x = '\xF3\xB0\x82\xA0'").error.find("private use"), std::string::npos);
}

TEST(Toml, AMarkOfUtf8AtTheBeginAndLettersBeyondAreReadAsTheyAre) {
  const ParsedToml parsed = parse_toml("\xEF\xBB\xBFx = '\xF0\x9F\x93\xB7'\ny = \"\\u00e9\"");
  ASSERT_EQ(parsed.error, "");
  EXPECT_EQ(text_of(parsed.root, "x"), "\xF0\x9F\x93\xB7");
  EXPECT_EQ(text_of(parsed.root, "y"), "\xC3\xA9");
}

}  // namespace
}  // namespace leat
