#include "shm/src/segments/available_memory.h"

#include <algorithm>
#include <fstream>
#include <string_view>

#include "shm/src/segments/control_groups.h"

namespace leat::shm {
namespace {

constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;  // version 1 writes a number near 2^63, version 2 "max"
constexpr std::uint64_t kMostKept = std::uint64_t{256} << 20;

std::uint64_t kept_of(std::uint64_t whole) { return std::min(whole / 16, kMostKept); }

std::uint64_t number_in(const std::string& file, std::uint64_t otherwise) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? value : otherwise;
}

// The number behind a word: "MemAvailable: 4 kB", "inactive_file 4096".
std::uint64_t number_behind(const std::string& file, std::string_view word) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(word) && line.size() > word.size() && (line[word.size()] == ' ' || line[word.size()] == '\t'))
      return std::strtoull(line.c_str() + word.size(), nullptr, 10);
  return 0;
}

}  // namespace

AvailableMemory::AvailableMemory(const std::string& root)
    : meminfo_(root + "/proc/meminfo"), kept_on_host_(kept_of(number_behind(meminfo_, "MemTotal:") << 10)) {
  for (const ControlGroup& group : control_groups("memory", root)) {
    const std::string at = group.folder + "/memory.";
    if (group.version_2)
      levels_.push_back({{at + "max", at + "high"}, at + "current", at + "stat", {"inactive_file", "active_file"}});
    else
      levels_.push_back({{at + "limit_in_bytes", ""},
                         at + "usage_in_bytes",
                         at + "stat",
                         {"total_inactive_file", "total_active_file"}});
  }
}

MemoryRoom AvailableMemory::in(const Level& level, std::uint64_t enough) {
  MemoryRoom room;
  std::uint64_t limit = kNoLimit;
  for (const std::string& file : level.limit)
    if (const std::uint64_t n = file.empty() ? kNoLimit : number_in(file, kNoLimit); n < limit)
      limit = n, room.where = file;
  if (limit >= kNoLimit) return {};
  const std::uint64_t used = number_in(level.usage, 0) + kept_of(limit);
  room.bytes = limit - std::min(limit, used);
  if (room.bytes >= enough) return room;  // what could be taken back need not be known
  // Of what is in use half, as the kernel's own MemAvailable has it.
  const std::uint64_t cache =
      number_behind(level.stat, level.reclaimable[0]) + number_behind(level.stat, level.reclaimable[1]) / 2;
  room.bytes = limit - std::min(limit, used - std::min(used, cache));
  return room;
}

MemoryRoom AvailableMemory::least(std::uint64_t enough) const {
  MemoryRoom least;
  for (const Level& level : levels_)
    if (MemoryRoom room = in(level, enough); room.bytes < least.bytes) least = std::move(room);
  return least;
}

MemoryRoom AvailableMemory::room_in_group() const { return least(UINT64_MAX); }

MemoryRoom AvailableMemory::room() const {
  MemoryRoom room;
  (void)fits(UINT64_MAX, &room);
  return room;
}

bool AvailableMemory::fits(std::uint64_t bytes, MemoryRoom* room) const {
  *room = least(bytes);
  if (kept_on_host_ == 0) return room->bytes >= bytes;
  const std::uint64_t here = number_behind(meminfo_, "MemAvailable:") << 10;
  if (const std::uint64_t rest = here - std::min(here, kept_on_host_); rest < room->bytes) *room = {rest, "this host"};
  return room->bytes >= bytes;
}

const AvailableMemory& available_memory() {
  static const AvailableMemory memory;
  return memory;
}

}  // namespace leat::shm
