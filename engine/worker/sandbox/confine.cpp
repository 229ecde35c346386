#include "engine/worker/sandbox/confine.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/worker/sandbox/kernel_features.h"
#include "tools/base/text/fd.h"

namespace leat::worker {
namespace {

// linux/landlock.h of Linux 6.12, whatever headers this is built with; an older kernel is given the part it knows.
struct Ruleset {
  std::uint64_t files = 0, network = 0, scoped = 0;
};
constexpr std::uint64_t kScopeSignals = 1U << 1;
constexpr int kAbiOfMoves = 2, kAbiOfScopes = 6;  // without the first no file moves from one folder to another
constexpr std::size_t kBytesBeforeScopes = 8;

// Of a worker without a device, which leatd may have raised far beyond what it needs: who polls a descriptor makes its
// peer's wakes the dearer the more of them it may list.
constexpr rlim_t kMaxDescriptors = 1024;

constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kWrite = LANDLOCK_ACCESS_FS_WRITE_FILE;
constexpr std::uint64_t kOfFiles = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;

void permit(int ruleset, const Fd& path, std::uint64_t access) {
  struct stat info {};
  if (!path || fstat(path.get(), &info) != 0) return;
  if (!S_ISDIR(info.st_mode)) access &= kOfFiles;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = access;
  rule.parent_fd = path.get();
  (void)::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

// Every entry of the folder that `access` gives something.
template <class Access>
void permit_entries(int ruleset, const char* folder, const Access& access) {
  const std::unique_ptr<DIR, int (*)(DIR*)> list(opendir(folder), closedir);
  if (list == nullptr) return;
  while (const dirent* entry = readdir(list.get())) {
    const std::string_view name(entry->d_name);
    if (name == "." || name == "..") continue;
    if (const std::uint64_t permitted = access(name); permitted != 0)
      permit(ruleset, Fd(openat(dirfd(list.get()), entry->d_name, O_PATH | O_CLOEXEC)), permitted);
  }
}

bool is_process(std::string_view name) {
  return name.find_first_not_of("0123456789") == std::string_view::npos || name == "self" || name == "thread-self";
}

void forbid_other_processes() {
  const int abi = landlock_abi();
  if (abi == 0) return;
  const std::uint64_t all = kRead | kWrite | (abi >= kAbiOfMoves ? LANDLOCK_ACCESS_FS_REFER : 0);
  const Ruleset rules{.files = all, .scoped = abi >= kAbiOfScopes ? kScopeSignals : 0};
  const Fd ruleset(static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &rules, abi >= kAbiOfScopes ? sizeof rules : kBytesBeforeScopes, 0)));
  if (!ruleset) return;
  permit_entries(ruleset.get(), "/", [all](std::string_view name) {
    return name == "proc" ? 0 : name == "sys" ? kRead : all;
  });
  permit_entries(ruleset.get(), "/proc", [](std::string_view name) {
    return is_process(name) ? 0 : name == "driver" ? kRead | kWrite : kRead;
  });
  // Kept open as long as the process lives: the rule is the inode's, and an entry of /proc that nobody holds may come
  // back as another.
  static Fd self(open("/proc/self", O_PATH | O_CLOEXEC));
  permit(ruleset.get(), self, kRead | kWrite);
  const auto restrict_self = [&] { return ::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0; };
  // Root needs no promise that nothing it starts gains rights; a driver's helper may.
  if (restrict_self() || errno != EPERM || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  (void)restrict_self();
}

}  // namespace

Confinement::Confinement(Sandbox sandbox, bool device) noexcept
    : any_(sandbox != Sandbox::off), device_(device), late_(device && geteuid() != 0) {}

void Confinement::begin() const {
  if (any_ && !late_) forbid_other_processes();
}

void Confinement::device_opened() const {
  if (any_ && late_) forbid_other_processes();
}

void Confinement::settle() const {
  if (!any_) return;
  rlimit files{};
  if (!device_ && getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = std::min(files.rlim_cur, kMaxDescriptors);
    files.rlim_max = std::min(files.rlim_max, kMaxDescriptors);
    (void)setrlimit(RLIMIT_NOFILE, &files);
  }
  give_up_power();
  become_opaque(Sandbox::on);
}

void Confinement::give_up_power() const {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return;
  std::uint32_t kept = 1U << CAP_DAC_READ_SEARCH;
  if (device_) kept |= 1U << CAP_IPC_LOCK;
  for (auto& set : sets) {
    set.permitted &= kept;
    set.effective &= kept;
    set.inheritable = 0;
    kept = 0;  // what is numbered from 32 on
  }
  (void)::syscall(SYS_capset, &header, sets);
}

void become_opaque(Sandbox sandbox) {
  if (sandbox != Sandbox::off) (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

}  // namespace leat::worker
