#include "tools/base/subprocess/program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace leat::subprocess {

std::string near_this_program(const std::string& name, std::initializer_list<const char*> folders) {
  std::error_code unknown, none;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (unknown) return name;
  for (const char* folder : folders) {
    const auto path = (self.parent_path() / folder / name).lexically_normal();
    if (std::filesystem::is_regular_file(path, none) && ::access(path.c_str(), X_OK) == 0) return path.string();
  }
  return name;
}

std::string named_or_near(const char* variable, const std::string& name, std::initializer_list<const char*> folders) {
  if (const char* const named = std::getenv(variable); named != nullptr && *named != '\0') return named;
  return near_this_program(name, folders);
}

std::string replace_this_program(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  return std::strerror(errno);
}

}  // namespace leat::subprocess
