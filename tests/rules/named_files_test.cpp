// Files that comments and documents name are there: a name that moved leads nobody anywhere.
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/rules/source_files.h"

namespace {

namespace fs = std::filesystem;
using leat::test::kRoot;

class Tree {
 public:
  Tree() {
    for (const char* top : {"engine", "shm", "cuda", "planner", "tools", "tests", "bench", "docs"})
      for (const auto& entry : fs::recursive_directory_iterator(kRoot / top))
        if (entry.is_regular_file()) add(fs::relative(entry.path(), kRoot).generic_string());
    for (const auto& entry : fs::directory_iterator(kRoot))
      if (entry.is_regular_file()) add(entry.path().filename().string());
  }

  // As a path from the root, from the file that names it, or as the end of one file's path at least.
  [[nodiscard]] bool has(const std::string& name, const std::string& from) const {
    if (fs::exists(kRoot / name) || fs::exists(kRoot / fs::path(from).parent_path() / name)) return true;
    const auto [first, last] = by_name_.equal_range(fs::path(name).filename().string());
    return std::any_of(first, last, [&](const auto& file) { return ("/" + file.second).ends_with("/" + name); });
  }
  [[nodiscard]] const std::multimap<std::string, std::string>& files() const { return by_name_; }

 private:
  void add(const std::string& file) { by_name_.emplace(fs::path(file).filename().string(), file); }
  std::multimap<std::string, std::string> by_name_;
};

// What of a line is text for people: all of a document, the comment of a line of code.
std::string said(const std::string& file, const std::string& line) {
  if (file.ends_with(".md")) return line;
  const bool hash = file.ends_with("CMakeLists.txt") || file.ends_with(".cmake") || file.ends_with(".py");
  const std::size_t at = hash ? line.find('#') : line.find("//");
  return at == std::string::npos ? "" : line.substr(at);
}

TEST(NamedFiles, AreThere) {
  const Tree tree;
  // A source or a document, with folders or without; not what stands in <> and comes from elsewhere.
  static const std::regex kName(R"(([A-Za-z0-9_./<-]*[A-Za-z0-9_-]\.(?:hpp|h|cpp|cu|md))(?![A-Za-z0-9_/]))");
  static const std::regex kElsewhere(R"(^<.*|^(sys|linux|cuda)/.*|^cuda\.h|^_.*)");  // systems' headers; ends of names
  std::size_t named = 0;
  for (const auto& [base, file] : tree.files()) {
    if (!leat::test::is_source(file) && !file.ends_with(".md") && base != "CMakeLists.txt" && !file.ends_with(".py"))
      continue;
    std::ifstream in(kRoot / file);
    std::size_t number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      const std::string text = said(file, line);
      for (std::sregex_iterator at(text.begin(), text.end(), kName), end; at != end; ++at) {
        std::string name = (*at)[1];
        if (name.starts_with("leat/")) name = "shm/include/" + name;
        const std::string stem = fs::path(name).stem().string();
        const bool pattern = stem.ends_with("NAME") || stem.ends_with("WORD");
        if (pattern || name.starts_with("/") || std::regex_match(name, kElsewhere)) continue;
        ++named;
        EXPECT_TRUE(tree.has(name, file)) << file << ":" << number << " names " << name << ", which is not there";
      }
    }
  }
  EXPECT_GT(named, 500U);
}

}  // namespace
