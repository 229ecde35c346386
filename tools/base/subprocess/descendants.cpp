#include "tools/base/subprocess/descendants.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

namespace leat::subprocess {
namespace {

// Parent of a process from /proc/PID/stat, whose second field is a name in parentheses that may hold anything.
pid_t parent_of(const std::string& directory) {
  std::ifstream stat(directory + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return -1;
  const std::size_t name_end = line.rfind(')');
  int parent = -1;
  char state = 0;
  if (name_end == std::string::npos || std::sscanf(line.c_str() + name_end + 1, " %c %d", &state, &parent) != 2)
    return -1;
  return parent;
}

}  // namespace

Status adopt_orphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return Error{std::string("prctl: ") + std::strerror(errno)};
  return Done{};
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> result;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (problem != std::errc{} || end != name.data() + name.size()) continue;
    if (parent_of(entry.path().string()) == parent) result.push_back(pid);
  }
  return result;
}

Result<int> kill_descendants(Deadline deadline) {
  int killed = 0;
  for (;;) {
    const std::vector<pid_t> found = children_of(::getpid());
    if (found.empty()) return killed;
    for (pid_t pid : found) {
      if (::waitpid(pid, nullptr, WNOHANG) == pid) continue;  // ended by itself
      if (::kill(pid, SIGKILL) == 0) ++killed;
      while (::waitpid(pid, nullptr, WNOHANG) == 0 && Clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    // The children of those that went are ours now (adopt_orphans): look again.
    if (Clock::now() >= deadline) return Error{"process " + std::to_string(found.front()) + " does not end"};
  }
}

}  // namespace leat::subprocess
