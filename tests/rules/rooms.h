// The rooms of docs/architecture.md and who includes whom, for tests that hold the code against the page and for the
// picture of them.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leat::test {

struct Room {
  int rank = 0;
  std::string folder;           // "engine/core/"
  std::set<std::string> below;  // rooms it may include, besides rank 0 and itself
  bool all = false;             // every room of a lower rank
};
// As the page's table says.
std::vector<Room> rooms();
// The room with the longest folder name that begins the path; nullptr when none does.
const Room* room_of(const std::vector<Room>& table, const std::string& path);

struct Include {
  std::string name;
  bool quoted = false;
};
std::vector<Include> includes(const std::string& file);
// Where an include leads, as a path from the root; empty: not a file of ours.
std::string target_of(const std::string& file, const Include& include);

// Tests and what only they use.
[[nodiscard]] bool is_test(const std::string& file);

// Folder of the room that includes, folder of the room that is included: what the code does, tests left out.
using Arrows = std::set<std::pair<std::string, std::string>>;
Arrows arrows(const std::vector<Room>& table);

}  // namespace leat::test
