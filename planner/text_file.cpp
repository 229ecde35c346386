#include "planner/text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>

namespace leat::planner {
namespace {

constexpr std::size_t kLargestFile = 256u << 20;

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return Error{path + ": is a directory; name a file"};
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr)
    return Error{path + ": cannot be read: " + std::strerror(errno) + "; check the name and its permissions"};
  std::string text;
  char buffer[65536];
  std::size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, file)) > 0 && text.size() <= kLargestFile)
    text.append(buffer, got);
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return Error{path + ": cannot be read to its end; check the disk"};
  if (text.size() > kLargestFile) return Error{path + ": larger than 256 MiB; this cannot be the right file"};
  return text;
}

Status write_text_file(const std::string& path, std::string_view text) {
  if (path == "-") {
    std::cout << text << std::flush;
    return std::cout ? Status(Done{}) : Status(Error{"standard output: cannot be written"});
  }
  const std::string temporary = path + ".tmp";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr)
    return Error{path + ": cannot be written: " + std::strerror(errno) + "; check the folder and its permissions"};
  const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !whole || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    std::remove(temporary.c_str());
    return Error{path + ": cannot be written: " + why + "; check the space left on the disk"};
  }
  return Done{};
}

}  // namespace leat::planner
