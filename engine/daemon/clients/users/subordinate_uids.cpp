#include "engine/daemon/clients/users/subordinate_uids.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "tools/base/text/fd.h"

namespace leat::daemon {
namespace {

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::size_t kMaxRanges = 8192, kMaxLookUps = 256;  // at start
constexpr std::int64_t kSecondNs = 1'000'000'000;

// What a regular file begins with; nothing else is waited for or read.
std::string beginning_of(const std::string& file, struct stat* info) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd || ::fstat(fd.get(), info) != 0 || !S_ISREG(info->st_mode)) return {};
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(info->st_size), kMaxBytes), '\0');
  const ssize_t got = ::pread(fd.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (text.size() == kMaxBytes) text.resize(text.find_last_of('\n') + 1);  // no half a line
  return text;
}

template <class T>
bool number(std::string_view text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream words(line);
  for (std::string word; std::getline(words, word, ':');) out.push_back(word);
  return out;
}

}  // namespace

SubordinateUids::SubordinateUids(std::string file, uid_t trusted, std::string passwd)
    : file_(std::move(file)), passwd_(std::move(passwd)), trusted_(trusted) {
  if (!file_.empty()) read(true);
}

void SubordinateUids::look(std::int64_t now_ns) {
  if (file_.empty() || now_ns < look_ns_) return;
  look_ns_ = now_ns + kSecondNs;
  struct stat info {};
  if (::stat(file_.c_str(), &info) != 0) info = {};
  if (!(Seen{info.st_mtim, info.st_ino, static_cast<std::uint64_t>(info.st_size)} == seen_)) read(false);
}

void SubordinateUids::read(bool at_start) {
  struct stat info {};
  std::istringstream lines(beginning_of(file_, &info));
  seen_ = {info.st_mtim, info.st_ino, static_cast<std::uint64_t>(info.st_size)};
  ranges_.clear();
  read_names();
  for (std::string line; ranges_.size() < kMaxRanges && std::getline(lines, line);) add(line, at_start);
}

void SubordinateUids::read_names() {
  struct stat info {};
  std::istringstream lines(beginning_of(passwd_, &info));
  for (std::string line; std::getline(lines, line);) {
    const auto fields = fields_of(line);  // NAME:PASSWORD:UID:...
    if (uid_t uid = 0; fields.size() > 3 && number(fields[2], &uid)) names_[fields[0]] = uid;
  }
}

void SubordinateUids::add(const std::string& line, bool at_start) {
  const auto fields = fields_of(line);  // NAME-OR-UID:FIRST:COUNT
  std::uint32_t first = 0, count = 0;
  if (fields.size() != 3 || fields[0].empty() || !number(fields[1], &first) || !number(fields[2], &count)) return;
  if (first == 0) return;  // root is nobody's subordinate
  Range range{first, std::uint64_t{first} + count, first, fields[0]};
  uid_t owner = 0;
  if (!number(fields[0], &owner)) {
    auto known = names_.find(fields[0]);
    if (known == names_.end() && at_start && ranges_.size() < kMaxLookUps)
      if (const passwd* entry = getpwnam(fields[0].c_str()); entry != nullptr)
        known = names_.emplace(fields[0], entry->pw_uid).first;
    owner = known == names_.end() ? 0 : known->second;
  }
  if (owner != 0 && owner != trusted_) range.owner = owner;
  ranges_.push_back(std::move(range));
}

Login SubordinateUids::login_of(uid_t uid) const {
  const auto in = std::find_if(ranges_.begin(), ranges_.end(),
                               [&](const Range& r) { return uid >= r.first && uid < r.end && uid != r.owner; });
  if (uid == 0 || uid == trusted_ || in == ranges_.end()) return {uid, std::to_string(uid)};
  return {in->owner, in->name + " (subordinate uid " + std::to_string(uid) + ")"};
}

}  // namespace leat::daemon
