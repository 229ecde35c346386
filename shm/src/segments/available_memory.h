// How much memory can be had now without the kernel killing somebody: what the host has (MemAvailable), and what each
// memory cgroup that this process is in has left (version 2 and 1), of which the tightest counts. What the kernel can
// take back from a cgroup's own page cache is counted as there. Some is always kept back: a sixteenth of the whole, 256
// MiB at most, for page tables, for the heap, and for what else lives there.
//
// Thread rule: none of its own; reads a handful of small files of the kernel's, some tens of microseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leat::shm {

struct MemoryRoom {
  std::uint64_t bytes = UINT64_MAX;  // to be had; UINT64_MAX: nobody knows of a limit
  std::string where;                 // who sets the limit: "this host", or the file of the cgroup that does
};

class AvailableMemory {
 public:
  // `root` stands before /proc and before the places where cgroups are mounted, for tests. Which cgroups are to be
  // asked is found out now.
  explicit AvailableMemory(const std::string& root = "");

  MemoryRoom room() const;           // of host and cgroups the least
  MemoryRoom room_in_group() const;  // of cgroups only; they are steadier than a host that is shared with others
  // The same as room().bytes >= bytes, in a single look where there is plenty. Not: *room says what there is.
  bool fits(std::uint64_t bytes, MemoryRoom* room) const;

 private:
  struct Level {
    std::string limit[2], usage, stat;  // files; a second limit, or empty
    const char* reclaimable[2];         // lines of `stat`
  };
  static MemoryRoom in(const Level& level, std::uint64_t enough);
  MemoryRoom least(std::uint64_t enough) const;

  std::string meminfo_;
  std::uint64_t kept_on_host_ = 0;
  std::vector<Level> levels_;
};

// Of this process, where it is when first asked.
const AvailableMemory& available_memory();

}  // namespace leat::shm
