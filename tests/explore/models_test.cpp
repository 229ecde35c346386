// What lies in shm/src, through every execution of the models; then with each of its orderings weakened in turn, which
// some model must notice. docs/internals/memory-orderings.md has the table, and is held to what is found here.
//
// LEAT_EXPLORE=large: larger models, for a minute, without the weakened ones. LEAT_EXPLORE=table: prints the table.
#include "tests/explore/models/models.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/rules/source_files.h"

namespace leat::explore {
namespace {

std::string wish() {
  const char* said = std::getenv("LEAT_EXPLORE");
  return said != nullptr ? said : "";
}

std::string text_of(const Outcome& outcome) {
  std::ostringstream text;
  text << outcome.failure << " after " << outcome.executions << " executions\n";
  for (const std::string& line : outcome.trace) text << "  " << line << "\n";
  return text.str();
}

struct Explored {
  std::vector<Model> models;
  std::map<std::string, std::vector<Site>> sites;  // by model: what it comes by
};

// The models as they are, once for all tests.
const Explored& explored() {
  static const Explored all = [] {
    Explored e;
    const bool large = wish() == "large";
    e.models = models(large ? Size::large : Size::small);
    for (const Model& model : e.models) {
      sites().forget();
      const Outcome seen = explore(model, {.executions = large ? 200'000'000u : 2'000'000u});
      std::printf("%-34s %9llu executions, %9llu states\n", model.name.c_str(),
                  static_cast<unsigned long long>(seen.executions), static_cast<unsigned long long>(seen.states));
      EXPECT_EQ(seen.failure, "") << model.name << ": " << text_of(seen);
      EXPECT_TRUE(seen.complete || !seen.failure.empty()) << model.name << " is too large";
      e.sites[model.name] = sites().reached();
    }
    return e;
  }();
  return all;
}

// What is said of the sites: "`ring.h` RingProducer::write | release store", and for the second such in a function "
// 2".
std::map<std::string, Site> named_sites() {
  std::map<std::pair<std::string, std::uint32_t>, Site> by_line;
  std::map<std::string, Site> named;
  std::vector<Site> all;
  for (const auto& [model, reached] : explored().sites)
    for (const Site& site : reached)
      if (std::find(all.begin(), all.end(), site) == all.end()) all.push_back(site);
  std::sort(all.begin(), all.end(), [](const Site& a, const Site& b) { return a.line < b.line; });
  for (const Site& site : all) {
    if (!site.file.starts_with("shm/src/")) continue;
    const std::string name =
        "`" + site.file.substr(8) + "` | `" + site.function + "` | " + name_of(site.order) + " " + name_of(site.kind);
    std::string numbered = name;
    for (int i = 2; named.contains(numbered); ++i) numbered = name + " (" + std::to_string(i) + ")";
    named[numbered] = site;
  }
  return named;
}

// The rows of the table, but for their last column.
std::set<std::string> table() {
  std::set<std::string> rows;
  for (const auto& [name, site] : named_sites())
    for (const std::memory_order instead : weaker(site)) {
      std::string caught = "nothing";
      sites().weaken(site, instead);
      for (const Model& model : explored().models) {
        const auto& reached = explored().sites.at(model.name);
        if (std::find(reached.begin(), reached.end(), site) == reached.end()) continue;
        if (const Outcome seen = explore(model); !seen.failure.empty()) {
          caught = model.name + ": " + seen.failure;
          break;
        }
      }
      sites().restore();
      rows.insert("| " + name + " | " + name_of(instead) + " | " + caught + " |");
    }
  return rows;
}

TEST(Models, HoldInEveryExecution) { (void)explored(); }

TEST(Models, NoticeEachOrderingThatIsWeakened) {
  if (wish() == "large") GTEST_SKIP() << "the larger models are explored as they are";
  std::set<std::string> found = table(), written;
  if (wish() == "table")
    for (const std::string& row : found) std::printf("%s\n", row.c_str());
  for (const std::string& row : found) EXPECT_EQ(row.find("| nothing |\n"), row.npos);
  std::ifstream page(test::kRoot / "docs/internals/memory-orderings.md");
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    const auto why = line.rfind("| ", line.size() - 2);
    EXPECT_GT(line.size(), why + 10) << "no reason is given: " << line;
    written.insert(line.substr(0, why + 1));
  }
  for (const std::string& row : found) {
    EXPECT_FALSE(row.ends_with("| nothing |")) << "no model notices: " << row;
    EXPECT_TRUE(written.contains(row)) << "docs/internals/memory-orderings.md lacks the row\n" << row << " REASON |";
  }
  for (const std::string& row : written)
    EXPECT_TRUE(found.contains(row)) << "docs/internals/memory-orderings.md has a row that is not so\n" << row;
}

// Every ordering that the room asks for is one that a model comes by; nothing there goes round the explorer.
TEST(Models, ComeByEveryOrdering) {
  std::set<std::pair<std::string, std::uint32_t>> known;
  for (const auto& [name, site] : named_sites()) known.insert({site.file, site.line});
  const std::regex ordered("memory_order_(acquire|release|acq_rel|seq_cst)|(full|acquire|release)_fence\\(\\);");
  const std::regex around("std::atomic_ref\\(|atomic_thread_fence|__atomic_");
  std::size_t found = 0;
  for (const std::string& file : test::sources()) {
    if (!file.starts_with("shm/src/") || file == "shm/src/rings/fences.h" || file.find("_test.") != file.npos) continue;
    std::ifstream in(test::kRoot / file);
    std::uint32_t number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      line = line.substr(0, line.find("//"));
      EXPECT_FALSE(std::regex_search(line, around)) << file << ":" << number << " goes round shm/src/rings/fences.h";
      if (!std::regex_search(line, ordered)) continue;
      ++found;
      bool is_known = false;  // a call may begin on the line before
      for (const std::uint32_t near : {number - 1, number, number + 1})
        is_known = is_known || known.contains({file, near});
      EXPECT_TRUE(is_known) << file << ":" << number << " is not come by in any model";
    }
  }
  EXPECT_GT(found, 15U);
}

}  // namespace
}  // namespace leat::explore
