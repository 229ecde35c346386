#include "tests/fuzz/stepped/seams.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "tests/fuzz/harness.h"

namespace leat::fuzz {
namespace {

std::atomic<std::int64_t> g_now_ns = 0;               // relaxed: one thread sets it and looks
constexpr char kAddress[] = "leat-fuzz %d %u %u %d";  // this process, a number, the user, his process

sockaddr_un address(const char* text, std::size_t bytes, socklen_t* size) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  std::memcpy(out.sun_path + 1, text, bytes);  // abstract: no file
  *size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return out;
}

}  // namespace

void set_time(std::int64_t now_ns) { g_now_ns.store(now_ns, std::memory_order_relaxed); }
std::int64_t real_time_ns() {
  timespec t{};
  (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

shm::Fd connection_of(const std::string& path, uid_t user, pid_t process) {
  static std::uint32_t number = 0;
  shm::Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  char text[64];
  const int bytes = std::snprintf(text, sizeof text, kAddress, getpid(), ++number, user, process);
  socklen_t size = 0;
  const sockaddr_un own = address(text, static_cast<std::size_t>(bytes), &size);
  insist(bind(fd.get(), reinterpret_cast<const sockaddr*>(&own), size) == 0, "an address that is taken");
  sockaddr_un leatd{};
  leatd.sun_family = AF_UNIX;
  std::memcpy(leatd.sun_path, path.data(), path.size());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&leatd), sizeof leatd) != 0) return {};  // the door is full
  return fd;
}

}  // namespace leat::fuzz

// ---- in the C library's place for the whole program ----

extern "C" int clock_gettime(clockid_t clock, timespec* t) noexcept {
  const std::int64_t now = leat::fuzz::g_now_ns.load(std::memory_order_relaxed);
  if (now == 0 || (clock != CLOCK_MONOTONIC && clock != CLOCK_THREAD_CPUTIME_ID))
    return static_cast<int>(syscall(SYS_clock_gettime, clock, t));
  t->tv_sec = now / 1'000'000'000;
  t->tv_nsec = now % 1'000'000'000;
  return 0;
}

extern "C" int getsockopt(int fd, int level, int option, void* value, socklen_t* size) noexcept {
  const auto result = static_cast<int>(syscall(SYS_getsockopt, fd, level, option, value, size));
  if (result != 0 || level != SOL_SOCKET || option != SO_PEERCRED) return result;
  sockaddr_un peer{};
  socklen_t bytes = sizeof(peer) - 1;  // what is read as text ends
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) return result;
  ucred said{};
  std::memcpy(&said, value, sizeof said);
  int here = 0, process = 0;
  unsigned number = 0, user = 0;
  // NOLINTNEXTLINE(cert-err34-c)
  if (std::sscanf(peer.sun_path + 1, leat::fuzz::kAddress, &here, &number, &user, &process) != 4) return result;
  said = {process, user, user};
  std::memcpy(value, &said, sizeof said);
  return result;
}
