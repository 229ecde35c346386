// No two types of the house have one name. The linker takes either of two for both (the one-definition rule) and says
// nothing; what a file keeps to itself stands in a namespace without a name. This reads the text, so it costs a moment,
// where a build of everything with -flto -Wodr costs minutes; what templates and macros make it does not see.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/rules/source_files.h"

namespace leat::test {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The code alone: without remarks, preprocessor lines, and what stands in quotes.
std::string code_of(std::string_view text) {
  std::string out;
  const auto skip_to = [&](std::size_t& at, std::string_view end) {
    const auto found = text.find(end, at);
    at = found == std::string_view::npos ? text.size() : found + end.size();
  };
  bool line_begins = true;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      skip_to(at, "*/");
    } else if (c == '#' && line_begins) {
      while (at < text.size() && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
    } else if (text.substr(at, 2) == "R\"" && (at == 0 || !is_word(text[at - 1]))) {
      const std::size_t open = std::min(text.find('(', at), text.size());
      const std::string end = ")" + std::string(text.substr(at + 2, open - at - 2)) + "\"";
      skip_to(at, end);
    } else if (c == '"' || (c == '\'' && (at == 0 || !is_word(text[at - 1])))) {
      for (++at; at < text.size() && text[at] != c; ++at) at += text[at] == '\\' ? 1 : 0;
      ++at;
    } else {
      out += c;
      line_begins = c == '\n' || (line_begins && (c == ' ' || c == '\t'));
      ++at;
    }
  }
  return out;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  bool more = false;
  for (const char c : text) {
    const bool part = is_word(c) || c == ':';
    if (part && more) out.back() += c;
    if (part && !more) out.emplace_back(1, c);
    if (!part && c != ' ' && c != '\n') out.emplace_back(1, c);
    more = part;
  }
  return out;
}

// What stands before a '{': the name of the namespace or the type that it opens.
struct Opened {
  bool is_namespace = false;
  std::string type;  // empty: none, or a specialisation of one
  std::string name;
};
Opened opened_by(std::string_view head) {
  const auto words = words_of(head);
  if (words.size() >= 2 && words[words.size() - 2] == "namespace") return {true, "", words.back()};
  if (!words.empty() && words.back() == "namespace") return {true, "", ""};
  if (!words.empty() && words.back() == "extern") return {true, "", ":"};  // extern "C": the names are those outside
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "(" || words[i] == "=") return {};
    if (words[i] != "struct" && words[i] != "class" && words[i] != "union" && words[i] != "enum") continue;
    if (i > 0 && (words[i - 1] == "<" || words[i - 1] == ",")) continue;  // template <class T>
    std::size_t at = i + 1;
    if (words[at] == "class" || words[at] == "struct") ++at;
    while (at < words.size() && (words[at] == "alignas" || words[at] == "[")) {
      const char* const end = words[at] == "[" ? "]" : ")";
      while (at < words.size() && words[at] != end) ++at;
      while (at < words.size() && words[at] == end) ++at;
    }
    if (at >= words.size() || !is_word(words[at][0])) return {};
    const std::string behind = at + 1 < words.size() ? words[at + 1] : "";
    if (behind == "<") return {};
    return {false, words[at], ""};
  }
  return {};
}

// The full names of the types that a file defines where others can see them.
std::set<std::string> types_of(const std::string& code) {
  std::set<std::string> found;
  struct Level {
    bool is_namespace;
    std::string name;
  };
  std::vector<Level> inside;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (code[at] != '{' && code[at] != '}' && code[at] != ';') continue;
    if (code[at] == '{') {
      const Opened opened = opened_by(std::string_view(code).substr(begin, at - begin));
      bool seen = !opened.type.empty();
      std::string name;
      for (const Level& level : inside) {
        seen = seen && level.is_namespace && !level.name.empty();
        if (level.name != ":") name += level.name + "::";
      }
      if (seen) found.insert(name + opened.type);
      inside.push_back({opened.is_namespace, opened.name});
    } else if (code[at] == '}' && !inside.empty()) {
      inside.pop_back();
    }
    begin = at + 1;
  }
  return found;
}

TEST(TypeNames, AreRead) {
  const std::string code = code_of(R"x(
#define X struct Made { \
  }
namespace a::b { /* struct Remark {}; */ class C final : public D { struct Inner {}; };
struct alignas(sizeof(int)) [[nodiscard]] J {};
template <class T> struct E {}; template <> struct E<int> {}; enum class F : int { x };
namespace { struct Own {}; } const char* text = "struct Quoted {"; char c = '{';
int f(struct G* g) { struct Local {}; return 1'000; } } extern "C" { struct H { int x; }; } struct I;
)x");
  EXPECT_EQ(types_of(code), (std::set<std::string>{"a::b::C", "a::b::E", "a::b::F", "a::b::J", "H"}));
}

// A stand-in, which says so, has the types of what it is linked in the place of.
TEST(TypeNames, EachIsDefinedInOneFile) {
  std::map<std::string, std::string> file_of;
  for (const std::string& file : sources()) {
    std::ifstream in(kRoot / file);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    for (const std::string& type : types_of(code_of(text))) {
      const auto [first, fresh] = file_of.emplace(type, file);
      EXPECT_TRUE(fresh || text.find("in the place of " + first->second) != std::string::npos)
          << type << " is defined in " << first->second << " and in " << file
          << ": rename one, or put what only one file uses into a namespace without a name";
    }
  }
  EXPECT_GT(file_of.size(), 500U);
}

}  // namespace
}  // namespace leat::test
