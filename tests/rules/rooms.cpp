#include "tests/rules/rooms.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/rules/source_files.h"

namespace leat::test {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

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

const Room* room_of(const std::vector<Room>& table, const std::string& path) {
  const Room* best = nullptr;
  for (const Room& room : table) {
    if (path.starts_with(room.folder) && (best == nullptr || room.folder.size() > best->folder.size())) best = &room;
  }
  return best;
}

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

std::string target_of(const std::string& file, const Include& include) {
  if (include.name.starts_with("leat/")) return "shm/include/" + include.name;
  if (fs::exists(kRoot / include.name)) return include.name;
  if (!include.quoted) return "";
  const fs::path beside = fs::path(file).parent_path() / include.name;
  return fs::exists(kRoot / beside) ? beside.lexically_normal().generic_string() : "";
}

bool is_test(const std::string& file) {
  return file.find("_test.") != std::string::npos || file.find("/test/") != std::string::npos;
}

Arrows arrows(const std::vector<Room>& table) {
  Arrows found;
  for (const std::string& file : sources()) {
    const Room* from = room_of(table, file);
    if (from == nullptr || is_test(file)) continue;
    for (const Include& include : includes(file)) {
      const std::string target = target_of(file, include);
      const Room* to = target.empty() ? nullptr : room_of(table, target);
      if (to != nullptr && to != from && to->rank > 0) found.emplace(from->folder, to->folder);
    }
  }
  return found;
}

}  // namespace leat::test
