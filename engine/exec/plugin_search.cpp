#include "engine/exec/plugin_search.h"

#include <cstdlib>

namespace leat::exec {

namespace fs = std::filesystem;

std::vector<fs::path> folders_above_program(int max) {
  std::vector<fs::path> out;
  std::error_code failed;
  auto folder = fs::read_symlink("/proc/self/exe", failed).parent_path();
  if (failed) return out;
  for (int i = 0; i < max && folder.has_relative_path(); ++i, folder = folder.parent_path()) out.push_back(folder);
  return out;
}

fs::path installed_libraries() {
  const auto folders = folders_above_program(1);
  return folders.empty() ? fs::path() : folders.front().parent_path() / LEAT_PRIVATE_LIBDIR;
}

std::vector<std::string> plugin_candidates(std::string_view kind, const std::string& name) {
  if (name.find('/') != std::string::npos) return {name};
  const std::string file = "libleat_" + std::string(kind) + "_" + name + ".so";
  std::vector<std::string> out;
  if (const char* folder = std::getenv("LEAT_PLUGINS"); folder != nullptr && *folder != '\0')
    out.push_back(std::string(folder) + "/" + file);
  const auto folders = folders_above_program();
  if (!folders.empty()) {
    out.push_back((folders.front() / file).string());
    out.push_back((installed_libraries() / file).string());
  }
  std::error_code failed;
  for (const auto& folder : folders)
    if (const auto path = folder / name / kind / file; fs::exists(path, failed)) out.push_back(path.string());
  out.push_back(file);
  return out;
}

}  // namespace leat::exec
