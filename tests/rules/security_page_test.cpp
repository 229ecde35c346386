// SECURITY.md names the test that holds each promise: all of them exist, and no promise stands without one.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/rules/source_files.h"

namespace {

namespace fs = std::filesystem;
using leat::test::kRoot;

std::vector<std::string> files_in(const std::string& text) {
  static const std::regex kFile(R"(`([a-z_0-9]+(?:/[a-z_0-9-]+)*\.(?:cpp|h|md))`)");
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), kFile), end; at != end; ++at) found.push_back((*at)[1]);
  return found;
}

TEST(SecurityPage, NamesFilesThatExist) {
  std::ifstream page(kRoot / "SECURITY.md");
  std::size_t named = 0;
  for (std::string line; std::getline(page, line);)
    for (const std::string& file : files_in(line)) {
      ++named;
      EXPECT_TRUE(fs::exists(kRoot / file)) << "SECURITY.md names " << file << ", which is not there";
    }
  EXPECT_GT(named, 20U);
}

TEST(SecurityPage, HasATestBehindEachPromise) {
  std::ifstream page(kRoot / "SECURITY.md");
  bool promises = false;
  std::size_t rows = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.find("| held by |") != std::string::npos) {
      promises = true;
    } else if (!line.starts_with("|")) {
      promises = false;
    } else if (promises && !line.starts_with("|---")) {
      ++rows;
      EXPECT_FALSE(files_in(line.substr(line.rfind('|', line.size() - 2))).empty()) << "nothing holds: " << line;
    }
  }
  EXPECT_GT(rows, 10U);
}

}  // namespace
