#include "tools/base/documents/text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "tools/base/text/whole_file.h"

namespace leat {
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

std::string no_file_at(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? path + " is a directory, not a file"
                                                      : "there is no file " + path;
}

Status write_text_file(const std::string& path, std::string_view text) {
  const std::string wrong = text::write_whole_file(path, text);
  return wrong.empty() ? Status(Done{}) : Status(Error{wrong});
}

}  // namespace leat
