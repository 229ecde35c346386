#include "bench/alternatives/usage.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

namespace leat::bench::alternatives {

namespace {

namespace fs = std::filesystem;

// The number behind a line's first word; the first such line.
std::int64_t number_behind(const fs::path& file, const std::string& word) {
  std::ifstream in(file);
  for (std::string name; in >> name; in.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    std::int64_t number = 0;
    if (name == word) return in >> number ? number : 0;
  }
  return 0;
}

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

}  // namespace

std::int64_t host_busy_ns() {
  std::ifstream in("/proc/stat");
  std::string word;
  std::int64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0, hard = 0, soft = 0, stolen = 0;
  in >> word >> user >> nice >> system >> idle >> waiting >> hard >> soft >> stolen;
  return (user + nice + system + hard + soft + stolen) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK));
}

UsageByGroup usage_of(std::span<const Member> members) {
  UsageByGroup out;
  for (const Member& member : members) {
    std::error_code none;
    for (const auto& thread : fs::directory_iterator("/proc/" + std::to_string(member.pid) + "/task", none)) {
      Usage& usage = out[member.group.empty() ? first_line(thread.path() / "comm") : member.group];
      std::int64_t ran_ns = 0;
      std::ifstream(thread.path() / "schedstat") >> ran_ns;
      usage.cpu_ns += ran_ns;
      for (const char* kind : {"voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"})
        usage.switches += number_behind(thread.path() / "status", kind);
    }
  }
  return out;
}

std::optional<std::map<std::string, std::uint64_t>> memory_of(std::span<const Member> members) {
  std::map<std::string, std::uint64_t> out;
  for (const Member& member : members) {
    const std::int64_t kib = number_behind("/proc/" + std::to_string(member.pid) + "/smaps_rollup", "Pss:");
    if (kib == 0) return std::nullopt;
    out[member.group.empty() ? "server" : member.group] += static_cast<std::uint64_t>(kib) * 1024;
  }
  return out;
}

}  // namespace leat::bench::alternatives
