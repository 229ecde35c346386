// The house's source files, for tests that read them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace leat::test {

inline const std::filesystem::path kRoot = LEAT_SOURCE_DIR;

inline bool is_source(const std::filesystem::path& path) {
  static const std::set<std::string> kEndings{".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cuh"};
  return kEndings.contains(path.extension().string());
}

// Every source file below the top-level folders, as a path from the root.
inline std::vector<std::string> sources() {
  std::vector<std::string> files;
  for (const char* top : {"engine", "shm", "cuda", "planner", "tools", "tests", "bench"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / top)) {
      if (entry.is_regular_file() && is_source(entry.path()))
        files.push_back(std::filesystem::relative(entry.path(), kRoot).generic_string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace leat::test
