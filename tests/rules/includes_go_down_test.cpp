// Includes go down only. The rooms, their ranks and what each may include are read from the table in
// docs/architecture.md, so that page and code cannot drift apart. Beside it: what may appear in one place only (CUDA,
// ncurses, GLPK), and that engine/core stays free of clocks, threads, files and devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/rules/source_files.h"

namespace {

namespace fs = std::filesystem;
using leat::test::kRoot;
using leat::test::sources;

struct Room {
  int rank = 0;
  std::string folder;           // "engine/core/"
  std::set<std::string> below;  // rooms it may include, besides rank 0 and itself
  bool all = false;             // every room of a lower rank
};

std::vector<std::string> code_spans(const std::string& cell) {
  std::vector<std::string> spans;
  for (std::size_t at = 0; (at = cell.find('`', at)) != std::string::npos;) {
    const std::size_t end = cell.find('`', at + 1);
    if (end == std::string::npos) break;
    spans.push_back(cell.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return spans;
}

// Rows look like: | 2 | `engine/core/` | the scheduler | `planner/` |
std::vector<Room> rooms() {
  std::ifstream page(kRoot / "docs/architecture.md");
  std::vector<Room> found;
  for (std::string line; std::getline(page, line);) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, '|');) cells.push_back(cell);
    if (cells.size() < 5 || cells[1].find_first_of("0123456789") == std::string::npos) continue;
    for (const std::string& folder : code_spans(cells[2])) {
      Room room{.rank = std::stoi(cells[1]), .folder = folder, .below = {}};
      for (const std::string& below : code_spans(cells[4])) room.below.insert(below);
      room.all = cells[4].find("all below") != std::string::npos;
      found.push_back(room);
    }
  }
  return found;
}

// The room with the longest folder name that begins the path; nullptr when none does.
const Room* room_of(const std::vector<Room>& table, const std::string& path) {
  const Room* best = nullptr;
  for (const Room& room : table) {
    if (path.starts_with(room.folder) && (best == nullptr || room.folder.size() > best->folder.size())) best = &room;
  }
  return best;
}

struct Include {
  std::string name;
  bool quoted = false;
};
std::vector<Include> includes(const std::string& file) {
  std::ifstream in(kRoot / file);
  std::vector<Include> found;
  for (std::string line; std::getline(in, line);) {
    const std::size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line.compare(hash, 1, "#") != 0 || line.find("include") == std::string::npos)
      continue;
    const std::size_t open = line.find_first_of("\"<");
    if (open == std::string::npos) continue;
    const std::size_t close = line.find_first_of("\">", open + 1);
    if (close != std::string::npos) found.push_back({line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return found;
}

// Where an include leads, as a path from the root; empty: not a file of ours.
std::string target_of(const std::string& file, const Include& include) {
  if (include.name.starts_with("leat/")) return "shm/include/" + include.name;
  if (fs::exists(kRoot / include.name)) return include.name;
  if (!include.quoted) return "";
  const fs::path beside = fs::path(file).parent_path() / include.name;
  return fs::exists(kRoot / beside) ? beside.lexically_normal().generic_string() : "";
}

TEST(Includes, TheTableNamesEveryFolder) {
  const auto table = rooms();
  ASSERT_GE(table.size(), 12U);
  for (const Room& room : table)
    EXPECT_TRUE(fs::is_directory(kRoot / room.folder)) << room.folder << " is in docs/architecture.md, but not there";
  for (const std::string& file : sources())
    EXPECT_NE(room_of(table, file), nullptr) << file << " stands in no room of docs/architecture.md";
}

TEST(Includes, GoDownOnly) {
  const auto table = rooms();
  std::size_t checked = 0;
  for (const std::string& file : sources()) {
    const Room* from = room_of(table, file);
    if (from == nullptr) continue;
    for (const Include& include : includes(file)) {
      const std::string target = target_of(file, include);
      const Room* to = target.empty() ? nullptr : room_of(table, target);
      if (to == nullptr || to == from) continue;
      ++checked;
      // A test may look at everything below its room's rank; shipped code only at what the table grants.
      const bool test = file.find("_test.") != std::string::npos;
      const bool lower = to->rank < from->rank;
      const bool granted = to->rank == 0 || from->all || test || from->below.contains(to->folder);
      EXPECT_TRUE(lower && granted) << file << " includes " << target << ": " << from->folder << " (rank " << from->rank
                                    << ") may not include " << to->folder << " (rank " << to->rank
                                    << "), see docs/architecture.md";
    }
  }
  EXPECT_GT(checked, 20U);
}

TEST(Includes, SomeLibrariesHaveOnePlace) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> kPlaces = {
      {"cuda", {"cuda/", "bench/gpu/"}}, {"cudnn", {"bench/gpu/"}},        {"ncurses.h", {"tools/leat/top/"}},
      {"curses.h", {"tools/leat/top/"}}, {"glpk.h", {"planner/"}},         {"onnxruntime", {"engine/exec/"}},
      {"cairo", {"tools/leat/draw/"}},   {"pango/", {"tools/leat/draw/"}}, {"libavformat/", {"tools/"}},
      {"libavcodec/", {"tools/"}}};
  for (const std::string& file : sources()) {
    for (const Include& include : includes(file)) {
      if (include.quoted) continue;
      for (const auto& [prefix, places] : kPlaces) {
        if (!include.name.starts_with(prefix)) continue;
        const bool allowed = std::any_of(places.begin(), places.end(),
                                         [&](const std::string& place) { return file.starts_with(place); });
        EXPECT_TRUE(allowed) << file << " includes <" << include.name << ">, which belongs into " << places.front();
      }
    }
  }
}

// What a library keeps for itself another release of it may not have.
TEST(Includes, AreOfDoorsOfLibraries) {
  for (const std::string& file : sources())
    for (const Include& include : includes(file)) {
      if (include.quoted || file.starts_with("shm/include/leat/")) continue;
      for (const std::string inside : {"/impl/", "/detail/", "/details/", "/internal/", "/bits/", "autogenerated"})
        EXPECT_EQ(("/" + include.name).find(inside), std::string::npos) << file << " includes <" << include.name << ">";
    }
}

TEST(Includes, TheCoreHasNoClockThreadFileOrDevice) {
  const std::set<std::string> kForbidden{"chrono",    "thread",    "mutex",   "shared_mutex", "condition_variable",
                                         "future",    "semaphore", "fstream", "iostream",     "filesystem",
                                         "random",    "ctime",     "time.h",  "unistd.h",     "fcntl.h",
                                         "pthread.h", "dlfcn.h",   "atomic"};
  const std::vector<std::string> kWords{"steady_clock", "system_clock", "clock_gettime", "random_device",
                                        "std::thread",  "getenv(",      "fopen("};
  for (const std::string& file : sources()) {
    if (!file.starts_with("engine/core/") || file.find("_test.") != std::string::npos) continue;
    for (const Include& include : includes(file)) {
      EXPECT_FALSE(kForbidden.contains(include.name) || include.name.starts_with("sys/") ||
                   include.name.starts_with("boost/asio"))
          << file << " includes <" << include.name << ">: the core gets time and events as arguments";
    }
    std::ifstream in(kRoot / file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (const std::string& word : kWords) EXPECT_EQ(text.find(word), std::string::npos) << file << " uses " << word;
  }
}

TEST(Rooms, HoldAtMostSixHundredLinesAFile) {
  for (const std::string& file : sources()) {
    std::ifstream in(kRoot / file);
    const auto lines = std::count(std::istreambuf_iterator<char>(in), {}, '\n');
    EXPECT_LE(lines, 600) << file << " is more than one concept: split it";
  }
}

TEST(Rooms, TopLevelFoldersAreTheOnesOfTheHouse) {
  const std::set<std::string> kTop{"engine", "shm", "cuda", "planner", "tools", "tests", "bench", "docs"};
  for (const auto& entry : fs::directory_iterator(kRoot)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || name.starts_with(".") || name.starts_with("build") || name == "__pycache__") continue;
    EXPECT_TRUE(kTop.contains(name)) << name << "/ is not one of the house's top-level folders";
  }
}

}  // namespace
