// The control groups that this process is in, of one controller, versions 1 and 2. Control plane; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leat::shm {

struct ControlGroup {
  bool version_2 = false;
  std::string folder;  // of its files, without a slash at its end
};

// From the process's own group up to where each hierarchy is mounted. `root` stands before /proc and the mounts, for
// tests. A folder that is not there (of another namespace) has no files, and limits nothing.
[[nodiscard]] std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root = "");

// The tightest quota of CPU time that this process is under.
struct CpuQuota {
  double cores = 0;   // 0: there is none
  std::string where;  // the file that sets it
};
[[nodiscard]] CpuQuota cpu_quota(const std::string& root = "");
// "2 cores", "0.5 cores", "1 core".
[[nodiscard]] std::string quota_text(const CpuQuota& quota);

}  // namespace leat::shm
