#include "tools/base/json/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace leat {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text) {
  JsonError why("");
  return Json::try_parse(text, &why) ? "" : why.what();
}
template <class Read>
std::string thrown(const Read& read) {
  try {
    read();
  } catch (const JsonError& e) {
    return e.what();
  }
  return "";
}

enum class Colour : std::uint8_t { red, green };

TEST(Json, ListsOfPairsAreObjectsOthersArrays) {
  const Json j = {
      {"a", 1}, {"b", {{"c", "x"}, {"d", {1, 2}}}}, {"e", {"x", "y"}}, {"f", Json::array()}, {"g", {{"h", 2}}}};
  EXPECT_EQ(j.dump(), R"({"a":1,"b":{"c":"x","d":[1,2]},"e":["x","y"],"f":[],"g":{"h":2}})");
  EXPECT_EQ((Json{"a", "b", "c"}).dump(), R"(["a","b","c"])");
  EXPECT_EQ(Json::object().dump(), "{}");
}

TEST(Json, TakesWhatProgramsHave) {
  const std::uint8_t small = 7;
  const int numbers[] = {1, 2};
  EXPECT_EQ(Json(small).dump(), "7");
  EXPECT_EQ(Json(Colour::green).dump(), "1");
  EXPECT_EQ(Json(-3L).dump(), "-3");
  EXPECT_EQ(Json(std::numeric_limits<std::uint64_t>::max()).dump(), "18446744073709551615");
  EXPECT_EQ(Json(2.0).dump(), "2.0");
  EXPECT_EQ(Json(0.1F > 0).dump(), "true");
  EXPECT_EQ(Json(0.1).dump(), "0.1");
  EXPECT_EQ(Json(1e300).dump(), "1e+300");
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  EXPECT_EQ(Json(std::vector<std::string>{"a"}).dump(), "[\"a\"]");
  EXPECT_EQ(Json(std::vector<bool>{true, false}).dump(), "[true,false]");
  EXPECT_EQ(Json(std::array{1.5, 2.5}).dump(), "[1.5,2.5]");
  EXPECT_EQ(Json(std::map<std::string, int>{{"k", 1}}).dump(), "{\"k\":1}");
  EXPECT_EQ(Json(numbers).dump(), "[1,2]");
}

TEST(Json, WritesInLines) {
  const Json j = {{"a", {1, 2}}, {"b", Json::array()}, {"c", Json::object()}};
  EXPECT_EQ(j.dump(1), "{\n \"a\": [\n  1,\n  2\n ],\n \"b\": [],\n \"c\": {}\n}");
}

TEST(Json, EveryTextComesBack) {
  for (const char* const text :
       {"null", "true", "-0.5", "18446744073709551615", "-9223372036854775808", "1e-07", R"("")",
        R"("\"\\\b\f\n\r\t\u0001\u001f/é€😀")", R"([[],{},[{"a":[1]}]])", R"({"":0,"b":null})"})
    EXPECT_EQ(Json::parse(text).dump(), text);
  EXPECT_EQ(Json::parse(R"("\u00e9\u20ac\ud83d\ude00\/")").get<std::string>(), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/");
  EXPECT_EQ(Json::parse(" \n[ 1 ,\t2 ]\r\n").dump(), "[1,2]");
  EXPECT_EQ(Json::parse("\xef\xbb\xbf{}").dump(), "{}");
  EXPECT_EQ(Json("a\xffz\xc3").dump(), "\"a\xef\xbf\xbdz\xef\xbf\xbd\"") << "bytes that are not UTF-8 cost no report";
}

TEST(Json, RefusesWhatIsNoJsonAndSaysWhere) {
  const std::pair<const char*, std::size_t> kWrong[] = {{"", 0},
                                                        {"[1,]", 3},
                                                        {"[1 2]", 3},
                                                        {"{\"a\" 1}", 5},
                                                        {"{a:1}", 1},
                                                        {"01", 1},
                                                        {"-", 1},
                                                        {"1.", 2},
                                                        {"1e", 2},
                                                        {".5", 0},
                                                        {"+1", 0},
                                                        {"nul", 3},
                                                        {"\"a", 2},
                                                        {"\"\\x\"", 2},
                                                        {"\"\\u12g4\"", 5},
                                                        {"\"\n\"", 1},
                                                        {"\"\xff\"", 1},
                                                        {"\"\xc0\x80\"", 1},
                                                        {"\"\xed\xa0\x80\"", 2},
                                                        {"1 2", 2},
                                                        {"[1}", 2},
                                                        {"{\"a\":1,}", 7},
                                                        {"1e999", 4},
                                                        {"\"\\ud800\"", 7},
                                                        {"\"\\ude00\"", 6},
                                                        {"\"\\ud83d\\u0041\"", 12}};
  for (const auto& [text, byte] : kWrong) {
    JsonError why("");
    EXPECT_FALSE(Json::try_parse(text, &why)) << text;
    EXPECT_EQ(why.byte, byte) << text << ": " << why.what();
    EXPECT_THAT(why.what(), HasSubstr("parse error at byte " + std::to_string(byte))) << text;
    EXPECT_THROW((void)Json::parse(text), JsonError);
  }
  EXPECT_THAT(error_of(R"({"a":1,"b":2,"a":3})"), HasSubstr("twice"));
  EXPECT_EQ(error_of(std::string(100, '[') + std::string(100, ']')), "");
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("too deep"));
}

TEST(Json, ReadsWithErrorsThatSayWhatIsWrong) {
  const Json j = {{"n", 300}, {"r", 2.0}, {"h", 2.5}, {"t", "x"}, {"l", {1, 2}}, {"m", {{"k", "v"}}}, {"e", -1}};
  EXPECT_EQ(j["n"].get<std::uint16_t>(), 300);
  EXPECT_EQ(j["r"].get<int>(), 2);
  EXPECT_EQ(j["n"].get<double>(), 300.0);
  EXPECT_EQ(j["l"].get<std::vector<int>>(), (std::vector{1, 2}));
  EXPECT_EQ((j["l"].get<std::array<int, 2>>()), (std::array{1, 2}));
  EXPECT_EQ((j["m"].get<std::map<std::string, std::string>>()), (std::map<std::string, std::string>{{"k", "v"}}));
  EXPECT_EQ(j.value("t", "y"), "x");
  EXPECT_EQ(j.value("none", 5), 5);
  EXPECT_THAT(thrown([&] { (void)j["n"].get<std::uint8_t>(); }), HasSubstr("300 does not fit"));
  EXPECT_THAT(thrown([&] { (void)j["e"].get<unsigned>(); }), HasSubstr("-1 does not fit"));
  EXPECT_THAT(thrown([&] { (void)j["h"].get<int>(); }), HasSubstr("2.5 is not a whole number"));
  EXPECT_THAT(thrown([&] { (void)j["t"].get<int>(); }), HasSubstr("a number is expected, not: string"));
  EXPECT_THAT(thrown([&] { (void)j["none"]; }), HasSubstr("'none' is missing"));
  EXPECT_THAT(thrown([&] { (void)j["l"][2]; }), HasSubstr("no element 2"));
  EXPECT_THAT(thrown([&] { (void)(j["l"].get<std::array<int, 3>>()); }), HasSubstr("a list of 2, not 3"));
  EXPECT_THAT(thrown([&] { (void)j["t"]["x"]; }), HasSubstr("an object is expected, not: string"));
}

TEST(Json, NullBecomesWhatIsWrittenTo) {
  Json j;
  j["a"]["b"] = 1;
  j["c"].push_back(2);
  j["a"]["b"] = 3;
  j.update({{"d", nullptr}, {"c", 4}});
  EXPECT_EQ(j.dump(), R"({"a":{"b":3},"c":4,"d":null})");
  for (const Json& each : Json()) ADD_FAILURE() << each;
}

TEST(Json, EqualByValueWhateverTheOrder) {
  EXPECT_EQ(Json::parse(R"({"a":1,"b":[2.0]})"), Json::parse(R"({"b":[2],"a":1.0})"));
  EXPECT_EQ(Json(3U), Json(3.0));
  EXPECT_EQ(Json("x"), "x");
  EXPECT_NE(Json{1}, Json(1));
  EXPECT_NE(Json::parse(R"({"a":1})"), Json::parse(R"({"a":1,"b":2})"));
}

}  // namespace
}  // namespace leat
