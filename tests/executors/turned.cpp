// An executor that has turned against its daemon: it tries what the first byte of its frame says (turned.h). A call
// that is refused fails the batch with a line that says so; one that goes through leaves the frame completed.
#include "tests/executors/turned.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "leat/executor.h"

namespace {

using leat::test::Turn;

constexpr int kMaxDescriptors = 256;
constexpr int kStandardDescriptors = 3;
constexpr int kPollThreads = 8;
constexpr std::size_t kPollPlaces = 20'000;

int error_of(long result) { return result < 0 ? errno : 0; }

// 0: it went through on any of its descriptors.
template <class Call>
int on_any_descriptor(const Call& call) {
  int error = ENOENT;
  for (int fd = 0; fd < kMaxDescriptors; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) continue;
    const int here = error_of(call(fd));
    if (here == 0) return 0;
    error = here;
  }
  return error;
}

// Opened, and a byte of it read; the memory of a process is not mapped at 0, so that there no byte is needed.
int read_file(const std::string& path, bool byte = true) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char first = 0;
  const int error = byte ? error_of(read(fd, &first, 1)) : 0;
  close(fd);
  return error;
}

std::string of_leatd(const char* name) { return "/proc/" + std::to_string(getppid()) + "/" + name; }

int its_descriptors() {
  int error = ENOENT;
  for (int fd = 0; fd < kMaxDescriptors; ++fd) {
    const int its = open(of_leatd(("fd/" + std::to_string(fd)).c_str()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (its >= 0) {
      close(its);
      return 0;
    }
    if (errno != ENOENT && errno != ENXIO) error = errno;
  }
  return error;
}

// Workers are born near each other. Where their names can be seen, only they are looked at: other processes of one user
// are open to each other on an older kernel.
int memory_of_others() {
  int error = ENOENT;
  for (int pid = getpid() - 64; pid < getpid() + 64; ++pid) {
    if (pid <= 1 || pid == getpid() || pid == getppid()) continue;
    const std::string process = "/proc/" + std::to_string(pid);
    std::string name;
    if (std::ifstream(process + "/comm") >> name && name != "leat-worker") continue;
    const int here = read_file(process + "/mem", false);
    if (here == 0) return 0;
    if (here != ENOENT) error = here;
  }
  return error;
}

int pass_descriptor() {
  return on_any_descriptor([](int fd) -> long {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    char byte = 0;
    iovec piece{&byte, 1};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    int type = 0;  // junk on the control socket would end this worker
    socklen_t bytes = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) return -1;
    if (type != SOCK_STREAM) return errno = EPROTOTYPE, -1;
    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  });
}

// What needs memory that others could share with it.
int on_shared_memory(Turn turn) {
  const int fd = memfd_create("turned", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return EIO;
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  int error = 0;
  if (turn == Turn::seal) error = error_of(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
  if (turn == Turn::punch) error = error_of(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
  if (turn == Turn::remove_pages) error = error_of(madvise(memory, 4096, MADV_REMOVE));
  munmap(memory, 4096);
  close(fd);
  return error;
}

int on_file(const char* path, int command, long argument) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return EIO;
  const int error = error_of(fcntl(fd, command, argument));
  close(fd);
  return error;
}

// Everything that leatd could come to wait for, and everything it could drown in.
void storm() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const auto for_all = [until](auto call) {
    std::thread([until, call] {
      while (std::chrono::steady_clock::now() < until)
        for (int fd = 1; fd < kMaxDescriptors; ++fd)
          if (fcntl(fd, F_GETFD) >= 0) call(fd);
    }).detach();
  };
  for_all([](int fd) { (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); });
  for_all([](int fd) {
    int type = 0;
    socklen_t bytes = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) {
      const std::uint64_t full = UINT64_MAX - 1;  // of an eventfd
      pollfd room{fd, POLLOUT, 0};
      if (fd >= kStandardDescriptors && poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0)
        (void)!write(fd, &full, sizeof full);
    } else if (type == SOCK_STREAM) {
      char junk[512];
      std::memset(junk, 'j', sizeof junk);
      junk[sizeof junk - 1] = '\n';
      (void)send(fd, junk, sizeof junk, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
  });
  rlimit limit{};
  (void)getrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t places = std::min<std::size_t>(limit.rlim_cur, kPollPlaces);
  for (int thread = 0; thread < kPollThreads; ++thread)
    for_all([places](int fd) {  // a wake of whom so many places poll walks them all
      std::vector<pollfd> list(places, pollfd{fd, POLLPRI, 0});
      (void)poll(list.data(), list.size(), 20);
    });
}

// The scheduler's.
int demote(Turn turn) {
  const pid_t leatd = getppid();
  const sched_param none{};
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(0, &cores);
  switch (turn) {
    case Turn::scheduler:
      return error_of(sched_setscheduler(leatd, SCHED_IDLE, &none));
    case Turn::own_scheduler:
      return error_of(sched_setscheduler(0, SCHED_BATCH, &none));
    case Turn::scheduler_parameter:
      return error_of(sched_setparam(leatd, &none));
    case Turn::scheduler_attributes: {
      unsigned attributes[12] = {sizeof attributes, SCHED_IDLE};
      return error_of(syscall(SYS_sched_setattr, leatd, attributes, 0));
    }
    case Turn::affinity:
      return error_of(sched_setaffinity(leatd, sizeof cores, &cores));
    case Turn::own_affinity:
      return error_of(sched_setaffinity(0, sizeof cores, &cores));
    case Turn::priority:
      return error_of(setpriority(PRIO_PROCESS, static_cast<id_t>(leatd), 19));
    case Turn::io_priority:
      return error_of(syscall(SYS_ioprio_set, 1, leatd, 3 << 13));
    case Turn::move_its_pages:
      return error_of(syscall(SYS_move_pages, leatd, 0, nullptr, nullptr, nullptr, 0));
    case Turn::migrate_its_pages: {
      const unsigned long first = 1;
      return error_of(syscall(SYS_migrate_pages, leatd, 2, &first, &first));
    }
    case Turn::limits: {
      rlimit limit{};
      const int error = error_of(prlimit(leatd, RLIMIT_NOFILE, nullptr, &limit));
      return error != 0 ? error : error_of(prlimit(leatd, RLIMIT_NOFILE, &limit, nullptr));
    }
    default:
      return error_of(syscall(SYS_prctl, 62, 1, 0, 1, 0));  // PR_SCHED_CORE_CREATE, of its thread group
  }
}

int send_signal(Turn turn) {
  const pid_t leatd = getppid();
  switch (turn) {
    case Turn::set_owner:
      return on_any_descriptor([&](int fd) { return fcntl(fd, F_SETOWN, leatd); });
    case Turn::set_owner_ex: {
      struct f_owner_ex owner {};
      owner.type = F_OWNER_PID;
      owner.pid = leatd;
      return on_any_descriptor([&](int fd) { return fcntl(fd, F_SETOWN_EX, &owner); });
    }
    case Turn::set_signal:
      return on_any_descriptor([](int fd) { return fcntl(fd, F_SETSIG, SIGURG); });
    case Turn::set_async:
      return on_any_descriptor([](int fd) { return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC); });
    case Turn::file_owner:
      return on_any_descriptor([&](int fd) { return ioctl(fd, FIOSETOWN, &leatd); });
    case Turn::socket_group:
      return on_any_descriptor([&](int fd) { return ioctl(fd, SIOCSPGRP, &leatd); });
    case Turn::file_async: {
      const int on = 1;
      return on_any_descriptor([&](int fd) { return ioctl(fd, FIOASYNC, &on); });
    }
    case Turn::kill_leatd:
      return error_of(kill(leatd, 0));
    case Turn::kill_its_group:
      return error_of(kill(-getpgid(leatd), 0));
    case Turn::kill_its_thread:
      return error_of(syscall(SYS_tgkill, leatd, leatd, 0));
    case Turn::queue_signal: {
      siginfo_t info{};
      info.si_code = SI_QUEUE;
      return error_of(syscall(SYS_rt_sigqueueinfo, leatd, SIGURG, &info));
    }
    default: {
      const long fd = syscall(SYS_pidfd_open, leatd, 0);
      return fd < 0 ? errno : error_of(syscall(SYS_pidfd_send_signal, fd, 0, nullptr, 0));
    }
  }
}

int look_into(Turn turn) {
  const pid_t leatd = getppid();
  switch (turn) {
    case Turn::memory:
      return read_file(of_leatd("mem"), false);
    case Turn::maps:
      return read_file(of_leatd("maps"));
    case Turn::command_line:
      return read_file(of_leatd("cmdline"));
    case Turn::environment:
      return read_file(of_leatd("environ"), false);
    case Turn::descriptors:
      return its_descriptors();
    case Turn::read_process: {  // of whatever lies where this does: what is asked is whether one may
      char here = 0;
      iovec mine{&here, 1}, its{reinterpret_cast<void*>(0x1000), 1};
      const int error = error_of(process_vm_readv(leatd, &mine, 1, &its, 1, 0));
      return error == EFAULT ? 0 : error;
    }
    case Turn::take_descriptor: {
      const long fd = syscall(SYS_pidfd_open, leatd, 0);
      return fd < 0 ? errno : error_of(syscall(SYS_pidfd_getfd, fd, 0, 0));
    }
    case Turn::compare:
      return error_of(syscall(SYS_kcmp, getpid(), leatd, KCMP_VM, 0, 0));
    case Turn::trace:  // which ends with this process
      return error_of(ptrace(PTRACE_SEIZE, leatd, nullptr, nullptr));
    case Turn::out_of_memory: {
      const int fd = open(of_leatd("oom_score_adj").c_str(), O_WRONLY | O_CLOEXEC);
      const int error = error_of(fd);
      if (fd >= 0) close(fd);
      return error;
    }
    default:
      return memory_of_others();
  }
}

// 0: it went through; else the errno it was refused with.
int obey(Turn turn) {
  if (turn == Turn::nothing || static_cast<unsigned>(turn) > static_cast<unsigned>(Turn::fault_handler)) return 0;
  if (turn == Turn::storm) return storm(), 0;
  if (turn == Turn::out_of_memory) return look_into(turn);
  if (turn <= Turn::signal_by_pidfd) return send_signal(turn);
  if (turn <= Turn::core_scheduling) return demote(turn);
  if (turn <= Turn::memory_of_others) return look_into(turn);
  switch (turn) {
    case Turn::pass_descriptor:
      return pass_descriptor();
    case Turn::lease:
      return on_file("/proc/self/exe", F_SETLEASE, F_RDLCK);
    case Turn::notify:
      return on_file("/", F_NOTIFY, DN_MODIFY);
    case Turn::fault_handler: {
      const int fd = open("/dev/userfaultfd", O_RDONLY | O_CLOEXEC);
      return fd < 0 ? errno : error_of(ioctl(fd, 0xAA00, O_CLOEXEC));
    }
    default:
      return on_shared_memory(turn);
  }
}

int open_session(const leat_session_options*, leat_session** out, char*, size_t) {
  static char session;
  *out = reinterpret_cast<leat_session*>(&session);
  return 0;
}

void close_session(leat_session*) {}

int describe(leat_session*, std::uint32_t batch, leat_tensor* inputs, std::uint32_t* input_count, leat_tensor* outputs,
             std::uint32_t* output_count, char*, size_t) {
  inputs[0] = {};
  inputs[0].shape[0] = batch;
  inputs[0].rank = 2;
  inputs[0].dtype = LEAT_U8;
  outputs[0] = inputs[0];
  outputs[0].shape[1] = 8;
  outputs[0].bytes = batch * std::uint64_t{8};
  *input_count = *output_count = 1;
  return 0;
}

int run(leat_session*, std::uint32_t batch, const leat_tensor* inputs, std::uint32_t, leat_tensor* outputs,
        std::uint32_t, char* error, size_t error_bytes) {
  std::memset(outputs[0].data, 0, batch * std::size_t{8});
  for (std::uint32_t i = 0; i < batch; ++i) {
    const auto first = *static_cast<const unsigned char*>(inputs[i].data);
    const int refused = obey(static_cast<Turn>(first));
    if (refused == 0) continue;
    std::snprintf(error, error_bytes, "turned: %d was refused: %s", first, std::strerror(refused));
    return 1;
  }
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const leat_executor* leat_executor_entry(void) {
  static constexpr leat_executor kExecutor = {LEAT_EXECUTOR_ABI, "turned", open_session, close_session, describe, run};
  return &kExecutor;
}
