#include "engine/worker/sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

namespace leat::worker {
namespace {

enum class Ban : std::uint8_t {
  always,   // EPERM
  no_call,  // ENOSYS: the C library then uses the older call, whose arguments can be seen
  files,    // EPERM, but not where devices are opened later (Sandbox::devices)
  drivers   // the same, of what a device's driver may do behind our back
};

struct Call {
  const char* name;  // one that this libseccomp or this architecture does not know is passed over
  Ban ban = Ban::always;
};

// Refused whatever its arguments are.
constexpr Call kCalls[] = {
    // reaching somebody; what the worker has from leatd stays
    {"socket"},
    {"socketpair"},
    {"connect"},
    {"bind"},
    {"listen"},
    {"accept"},
    {"accept4"},
    {"sendmsg", Ban::drivers},  // what it has to say needs no descriptors beside it: leatd would have to close them
    {"sendmmsg", Ban::drivers},
    // other programs and processes; threads go on (clone below)
    {"execve"},
    {"execveat"},
    {"fork"},
    {"vfork"},
    {"clone3", Ban::no_call},
    {"unshare"},
    {"setns"},
    {"ptrace"},
    {"process_vm_readv"},
    {"process_vm_writev"},
    {"process_madvise"},
    {"process_mrelease"},
    {"kcmp"},
    {"pidfd_open"},
    {"pidfd_getfd"},
    {"pidfd_send_signal"},
    {"tkill"},
    // the scheduler's favour; where its threads run was settled before, and sched_setaffinity is below
    {"sched_setscheduler"},
    {"sched_setparam"},
    {"sched_setattr"},
    {"setpriority"},
    {"ioprio_set"},
    // files: whatever writes, makes, renames or removes one by its name; openat and open below
    {"openat2", Ban::no_call},
    {"creat", Ban::files},
    {"truncate"},
    {"fallocate"},  // also on memory: a hole punched there makes its other users wait
    {"unlink"},
    {"unlinkat"},
    {"rename"},
    {"renameat"},
    {"renameat2"},
    {"mkdir"},
    {"mkdirat"},
    {"rmdir"},
    {"link"},
    {"linkat"},
    {"symlink"},
    {"symlinkat"},
    {"mknod"},
    {"mknodat"},
    {"chmod"},
    {"fchmod"},
    {"fchmodat"},
    {"chown"},
    {"fchown"},
    {"lchown"},
    {"fchownat"},
    {"utime"},
    {"utimes"},
    {"utimensat"},
    {"futimesat"},
    {"setxattr"},
    {"lsetxattr"},
    {"fsetxattr"},
    {"removexattr"},
    {"lremovexattr"},
    {"fremovexattr"},
    {"open_by_handle_at"},
    // names that stay behind
    {"shmget"},
    {"semget"},
    {"msgget"},
    {"mq_open"},
    {"mq_unlink"},
    // another user
    {"setuid"},
    {"setgid"},
    {"setreuid"},
    {"setregid"},
    {"setresuid"},
    {"setresgid"},
    {"setfsuid"},
    {"setfsgid"},
    {"setgroups"},
    {"capset"},
    // ways around this filter, and parts of the kernel no model needs
    {"io_uring_setup"},
    {"io_uring_enter"},
    {"io_uring_register"},
    {"bpf"},
    {"perf_event_open"},
    {"userfaultfd"},
    {"fanotify_init"},
    {"add_key"},
    {"request_key"},
    {"keyctl"},
    {"syslog"},
    {"modify_ldt"},
    // the machine
    {"mount"},
    {"umount2"},
    {"pivot_root"},
    {"chroot"},
    {"move_mount"},
    {"open_tree"},
    {"fsopen"},
    {"fsconfig"},
    {"fsmount"},
    {"fspick"},
    {"mount_setattr"},
    {"quotactl"},
    {"quotactl_fd"},
    {"swapon"},
    {"swapoff"},
    {"acct"},
    {"init_module"},
    {"finit_module"},
    {"delete_module"},
    {"kexec_load"},
    {"kexec_file_load"},
    {"reboot"},
    {"iopl"},
    {"ioperm"},
    {"settimeofday"},
    {"clock_settime"},
    {"clock_adjtime"},
    {"adjtimex"},
    {"sethostname"},
    {"setdomainname"},
    {"vhangup"},
};

// Calls younger than the libseccomp of Debian 12; from 424 on all architectures share the numbers.
constexpr int kYoungCalls[] = {452,   // fchmodat2
                               463,   // setxattrat
                               466,   // removexattrat
                               467,   // open_tree_attr
                               469};  // file_setattr

// Younger than some headers this is built with.
constexpr std::uint64_t kPrSchedCore = 62;         // linux/prctl.h
constexpr std::uint64_t kNewUserfaultfd = 0xAA00;  // linux/userfaultfd.h: USERFAULTFD_IOC_NEW

struct Condition {
  const char* name;
  unsigned argument;
  scmp_compare comparison;
  std::uint64_t mask, value;  // SCMP_CMP_MASKED_EQ: argument & mask == value; else argument OP mask
  Ban ban = Ban::always;
  std::uint64_t next_has = 0;  // and the argument behind it has these bits
};

struct FilterDeleter {
  void operator()(void* filter) const noexcept { seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, FilterDeleter>;

bool wanted(Ban ban, Sandbox sandbox) noexcept {
  return sandbox != Sandbox::devices || (ban != Ban::files && ban != Ban::drivers);
}
std::uint32_t action(Ban ban) noexcept { return SCMP_ACT_ERRNO(ban == Ban::no_call ? ENOSYS : EPERM); }

// 0, or the negative error of libseccomp. A rule that this architecture has no call for is none.
int add_rules(scmp_filter_ctx filter, Sandbox sandbox) {
  const auto self = static_cast<std::uint64_t>(getpid());
  // Refused with these arguments.
  const Condition conditions[] = {
      {"clone", 0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0},  // a process, not a thread
      {"openat", 2, SCMP_CMP_MASKED_EQ, O_ACCMODE, O_WRONLY, Ban::files},
      {"openat", 2, SCMP_CMP_MASKED_EQ, O_ACCMODE, O_RDWR, Ban::files},
      {"openat", 2, SCMP_CMP_MASKED_EQ, O_ACCMODE, O_ACCMODE, Ban::files},
      {"openat", 2, SCMP_CMP_MASKED_EQ, O_CREAT, O_CREAT, Ban::files},
      {"openat", 2, SCMP_CMP_MASKED_EQ, O_TRUNC, O_TRUNC, Ban::files},
      {"open", 1, SCMP_CMP_MASKED_EQ, O_ACCMODE, O_WRONLY, Ban::files},
      {"open", 1, SCMP_CMP_MASKED_EQ, O_ACCMODE, O_RDWR, Ban::files},
      {"open", 1, SCMP_CMP_MASKED_EQ, O_ACCMODE, O_ACCMODE, Ban::files},
      {"open", 1, SCMP_CMP_MASKED_EQ, O_CREAT, O_CREAT, Ban::files},
      {"open", 1, SCMP_CMP_MASKED_EQ, O_TRUNC, O_TRUNC, Ban::files},
      {"kill", 0, SCMP_CMP_NE, self, 0},  // abort() and profilers signal themselves
      {"tgkill", 0, SCMP_CMP_NE, self, 0},
      {"rt_sigqueueinfo", 0, SCMP_CMP_NE, self, 0},
      {"rt_tgsigqueueinfo", 0, SCMP_CMP_NE, self, 0},
      {"sched_setaffinity", 0, SCMP_CMP_NE, 0, 0},
      {"sched_setaffinity", 0, SCMP_CMP_EQ, 0, 0, Ban::drivers},
      {"move_pages", 0, SCMP_CMP_NE, 0, 0},  // 0: its own
      {"migrate_pages", 0, SCMP_CMP_NE, 0, 0},
      {"fcntl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, F_SETOWN},  // whom a shared socket signals, and with what
      {"fcntl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, F_SETOWN_EX},
      {"fcntl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, F_SETSIG},
      {"fcntl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, F_SETFL, Ban::always, O_ASYNC},
      {"fcntl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, F_NOTIFY},
      {"fcntl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, F_SETLEASE},        // whoever opens the file waits
      {"fcntl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, F_ADD_SEALS},       // of memory that leatd seals
      {"prlimit64", 2, SCMP_CMP_NE, 0, 0},                             // limits, of others too; reading them is free
      {"madvise", 2, SCMP_CMP_MASKED_EQ, UINT32_MAX, MADV_REMOVE},     // fallocate by another name
      {"prctl", 0, SCMP_CMP_MASKED_EQ, UINT32_MAX, PR_SET_PDEATHSIG},  // it dies with leatd
      {"prctl", 0, SCMP_CMP_MASKED_EQ, UINT32_MAX, kPrSchedCore},      // keeps others from its core's siblings
      {"ioctl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, TIOCSTI},           // typing into leatd's terminal
      {"ioctl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, TIOCLINUX},
      {"ioctl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, FIOASYNC},  // as F_SETOWN
      {"ioctl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, FIOSETOWN},
      {"ioctl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, SIOCSPGRP},
      {"ioctl", 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, kNewUserfaultfd},  // by way of /dev/userfaultfd
  };
  const auto add = [&](int call, Ban ban, unsigned count, const scmp_arg_cmp* argument) {
    if (call == __NR_SCMP_ERROR || !wanted(ban, sandbox)) return 0;
    const int error = seccomp_rule_add_array(filter, action(ban), call, count, argument);
    return error == -EDOM ? 0 : error;
  };
  for (const Call& c : kCalls)
    if (const int error = add(seccomp_syscall_resolve_name(c.name), c.ban, 0, nullptr); error != 0) return error;
  for (const int call : kYoungCalls)
    if (const int error = add(call, Ban::always, 0, nullptr); error != 0) return error;
  for (const Condition& c : conditions) {
    const scmp_arg_cmp arguments[] = {{c.argument, c.comparison, c.mask, c.value},
                                      {c.argument + 1, SCMP_CMP_MASKED_EQ, c.next_has, c.next_has}};
    if (const int error = add(seccomp_syscall_resolve_name(c.name), c.ban, c.next_has == 0 ? 1 : 2, arguments);
        error != 0)
      return error;
  }
  return 0;
}

}  // namespace

Status enclose(Sandbox sandbox) {
  if (sandbox == Sandbox::off) return Done{};
  const auto refused = [](int error) {
    return Error{std::string("the kernel refuses seccomp filters (") + std::strerror(-error) + ")"};
  };
  const Filter filter(seccomp_init(SCMP_ACT_ALLOW));
  if (filter == nullptr) return refused(-ENOMEM);
  // Runtimes have made their threads before: the filter is for all of them. Other tables of system calls (32 bit) are
  // of no use to a worker and would be a way around.
  int error = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1);
  if (error == 0) error = seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
  if (error == 0) error = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary tree
  if (error == 0) error = add_rules(filter.get(), sandbox);
  if (error == 0) error = seccomp_load(filter.get());
  return error == 0 ? Status(Done{}) : Status(refused(error));
}

}  // namespace leat::worker
