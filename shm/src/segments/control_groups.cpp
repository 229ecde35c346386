#include "shm/src/segments/control_groups.h"

#include <cstdio>
#include <fstream>
#include <sstream>

namespace leat::shm {
namespace {

bool is_in(const std::string& list, std::string_view word) {
  return ("," + list + ",").find("," + std::string(word) + ",") != std::string::npos;
}

// This process's group: in the hierarchy that has no number (version 2), or that of the controller (1).
std::string group_in(const std::string& file, std::string_view controller, bool version_2) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {  // "4:memory:/a/b", "0::/a/b"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (version_2 ? controllers.empty() : is_in(controllers, controller)) return line.substr(second + 1);
  }
  return {};
}

// 0: no quota, or no such file.
double quota_in(const ControlGroup& group, std::string* file) {
  double used = 0, period = 0;
  if (group.version_2) {
    *file = group.folder + "/cpu.max";  // "max 100000", "50000 100000"
    std::ifstream in(*file);
    if (!(in >> used >> period)) return 0;
  } else {
    *file = group.folder + "/cpu.cfs_quota_us";  // -1: none
    std::ifstream quota(*file), length(group.folder + "/cpu.cfs_period_us");
    if (!(quota >> used) || !(length >> period)) return 0;
  }
  return used > 0 && period > 0 ? used / period : 0;
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root) {
  std::vector<ControlGroup> out;
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);  // ID PARENT DEVICE ROOT POINT OPTIONS ... - TYPE SOURCE SUPER-OPTIONS
    std::string word, top, point, type, source, options;
    words >> word >> word >> word >> top >> point;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> options;
    const bool version_2 = type == "cgroup2";
    if (!version_2 && (type != "cgroup" || !is_in(options, controller))) continue;
    std::string group = group_in(root + "/proc/self/cgroup", controller, version_2);
    if (top != "/") group = group.starts_with(top) ? group.substr(top.size()) : "";  // a container sees its own part
    for (std::string path = group;; path.resize(path.find_last_of('/'))) {
      while (path.ends_with('/')) path.pop_back();
      out.push_back({version_2, root + point + path});
      if (path.find('/') == std::string::npos) break;
    }
  }
  return out;
}

CpuQuota cpu_quota(const std::string& root) {
  CpuQuota out;
  for (const ControlGroup& group : control_groups("cpu", root)) {
    std::string file;
    const double cores = quota_in(group, &file);
    if (cores > 0 && (out.cores == 0 || cores < out.cores)) out = {cores, file};
  }
  return out;
}

std::string quota_text(const CpuQuota& quota) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", quota.cores);
  return std::string(text) + (quota.cores == 1 ? " core" : " cores");
}

}  // namespace leat::shm
