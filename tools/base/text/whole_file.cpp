#include "tools/base/text/whole_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace leat::text {
namespace {

namespace fs = std::filesystem;

std::string fault(const std::string& path, int error, const char* cure) {
  return path + ": cannot be written: " + std::strerror(error) + "; " + cure;
}

constexpr const char* kLookAtFolder = "check the folder and its permissions";
constexpr const char* kLookAtDisk = "check the space left on the disk";

// Where a link points to, so that the link stays; the path itself where there is none.
std::string target_of(const std::string& path) {
  std::error_code bad;
  if (!fs::is_symlink(path, bad)) return path;
  const fs::path target = fs::weakly_canonical(path, bad);
  return bad ? path : target.string();
}

// A device, a pipe, a socket: something that must not be replaced by a file.
bool special(const std::string& path) {
  std::error_code bad;
  const fs::file_status status = fs::status(path, bad);
  return !bad && fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

// Closes the file. 0, or why not everything is in it.
int write_and_close(std::FILE* file, std::string_view text) {
  errno = 0;
  const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  const int error = whole ? 0 : errno;
  if (file == stdout) return whole ? 0 : std::max(error, 1);
  if (std::fclose(file) != 0) return errno;
  return whole ? 0 : std::max(error, 1);
}

}  // namespace

std::string write_whole_file(const std::string& path, std::string_view text) {
  if (path == "-") {
    const int error = write_and_close(stdout, text);
    return error == 0 ? std::string() : fault("standard output", error, "check who reads it");
  }
  const std::string target = target_of(path);
  const bool as_it_is = special(target);
  const std::string written = as_it_is ? target : target + "." + std::to_string(::getpid()) + ".tmp";
  std::FILE* file = std::fopen(written.c_str(), "wbe");
  if (file == nullptr) return fault(path, errno, kLookAtFolder);
  int error = write_and_close(file, text);
  if (as_it_is) return error == 0 ? std::string() : fault(path, error, kLookAtDisk);
  if (error == 0 && std::rename(written.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return {};
  std::remove(written.c_str());
  return fault(path, error, kLookAtDisk);
}

std::string unwritable(const std::string& path) {
  if (path == "-") return {};
  const std::string target = target_of(path);
  std::error_code bad;
  if (fs::is_directory(target, bad)) return path + ": is a directory; name a file";
  if (special(target)) return ::access(target.c_str(), W_OK) == 0 ? std::string() : fault(path, errno, kLookAtFolder);
  const fs::path folder = fs::path(target).parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) return fault(path, errno, kLookAtFolder);
  return {};
}

}  // namespace leat::text
