#include "tests/fuzz/stepped/passed.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tests/fuzz/harness.h"

namespace leat::fuzz {
namespace {

constexpr std::size_t kMaxTracers = 48, kMaxKinds = 8;
constexpr long kInterruptNs = 20'000'000;

// Those that are the same for every input are made once.
int kept(Kind kind) {
  static std::array<int, static_cast<std::size_t>(Kind::count_)> made{};
  int& fd = made[static_cast<std::size_t>(kind)];
  if (fd != 0) return fd;
  switch (kind) {
    case Kind::zero:
      return fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
    case Kind::null:
      return fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    case Kind::folder:
      return fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    case Kind::event:
      return fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    case Kind::small_memory:
      fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
      (void)!ftruncate(fd, 4096);
      return fd;
    case Kind::huge_memory:
      fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
      (void)!ftruncate(fd, 1LL << 40);
      return fd;
    case Kind::deleted:
      fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
      return fd >= 0 ? fd : fd = memfd_create("fuzz", MFD_CLOEXEC);
    default:
      return -1;
  }
}

// One that listens and never accepts, with room for a few bytes only.
struct Deaf {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  Deaf() {
    const int small = 1;
    (void)setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* at = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener, at, size) != 0 || listen(listener, 16) != 0 || getsockname(listener, at, &size) != 0)
      address.sin_port = 0;
  }
};
const Deaf& deaf() {
  static const Deaf kDeaf;
  return kDeaf;
}

void on_interrupt(int) {}

timer_t interrupter() {
  static const timer_t kTimer = [] {
    struct sigaction action {};
    action.sa_handler = on_interrupt;  // without SA_RESTART
    (void)sigaction(SIGRTMIN, &action, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;  // this one alone: a harness's engine may have others
    event._sigev_un._tid = gettid();
    event.sigev_signo = SIGRTMIN;
    timer_t made{};
    insist(timer_create(CLOCK_MONOTONIC, &event, &made) == 0, "no timer");
    return made;
  }();
  return kTimer;
}
void interrupt_every(long ns) {
  const itimerspec every{.it_interval = {0, ns}, .it_value = {0, ns}};
  (void)timer_settime(interrupter(), 0, &every, nullptr);
}

}  // namespace

void Passed::prepare() {
  for (std::size_t k = 0; k < static_cast<std::size_t>(Kind::count_); ++k) (void)kept(static_cast<Kind>(k));
  insist(deaf().listener >= 0, "no TCP");
}

Passed::Passed() { tracers_.reserve(kMaxTracers); }
Passed::~Passed() {
  for (const pollfd& p : tracers_) (void)close(p.fd);
  while (lingers_) {  // resets what the kernel still wants to send
    const int fd = accept4(deaf().listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    (void)close(fd);
  }
}

shm::Fd Passed::tracer() {
  int ends[2];
  if (tracers_.size() >= kMaxTracers || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return {};
  tracers_.push_back({.fd = ends[0], .events = 0, .revents = 0});
  return shm::Fd(ends[1]);
}

// A connection with more on its way than fits, which its last holder waits for when he closes it.
int Passed::lingering() {
  if (lingers_ || deaf().address.sin_port == 0) return -1;
  lingers_ = true;
  shm::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int small = 1;
  const linger wait{.l_onoff = 1, .l_linger = 1};
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait);
  (void)connect(fd.get(), reinterpret_cast<const sockaddr*>(&deaf().address), sizeof(sockaddr_in));
  const std::array<char, 4096> bytes{};
  while (::send(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  made_.push_back(std::move(fd));
  return made_.back().get();
}

int Passed::make(Kind kind, const Own& own) {
  int ends[2] = {-1, -1};
  const auto mine = [&](int fd) {
    made_.emplace_back(fd);
    return fd;
  };
  switch (kind) {
    case Kind::pipe:
      if (pipe2(ends, O_CLOEXEC) == 0) (void)close(ends[0]);
      return mine(ends[1]);
    case Kind::socket:
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
      (void)::send(ends[1], "unread", 6, MSG_DONTWAIT | MSG_NOSIGNAL);
      (void)close(ends[1]);
      return mine(ends[0]);
    case Kind::lingering:
      return lingering();
    case Kind::epoll: {
      const int fd = mine(epoll_create1(EPOLL_CLOEXEC));
      epoll_event event{.events = EPOLLIN, .data = {}};
      if (own.connection >= 0) (void)epoll_ctl(fd, EPOLL_CTL_ADD, own.connection, &event);
      return fd;
    }
    case Kind::own_connection:
      return own.connection;
    case Kind::uplink:
      return own.uplink;
    case Kind::bell:
      return own.bell;
    case Kind::nested: {
      if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return -1;
      const Kind null[] = {Kind::null};
      const std::byte one{1};
      std::vector<shm::Fd> outer = std::exchange(made_, {});  // what is being made for the message outside
      (void)send(ends[1], std::span(&one, 1), null, {});
      made_ = std::move(outer);
      (void)close(ends[1]);
      return mine(ends[0]);
    }
    default:
      return kept(kind);
  }
}

bool Passed::send(int socket, std::span<const std::byte> bytes, std::span<const Kind> kinds, const Own& own) {
  std::array<int, kMaxKinds + 1> fds{};
  std::size_t count = 0;
  shm::Fd traced = kinds.empty() ? shm::Fd() : tracer();
  if (traced) fds[count++] = traced.get();
  for (const Kind kind : kinds.first(std::min(kinds.size(), kMaxKinds)))
    if (const int fd = make(kind, own); fd >= 0) fds[count++] = fd;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (count != 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds.data(), count * sizeof(int));
  }
  ssize_t n;
  do n = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (count != 0) {
    if (n >= 0) ++sent;
    if (n < 0 && errno == EPERM) ++refused;
  }
  const Interrupted interrupted(lingers_);  // what did not go is closed here
  traced = {};
  made_.clear();
  if (n < 0) (void)let_go();  // its tracer was: by us
  return n >= 0;
}

std::uint32_t Passed::let_go() {
  if (tracers_.empty() || poll(tracers_.data(), tracers_.size(), 0) <= 0) return 0;
  const auto gone = [](const pollfd& p) {
    if ((p.revents & POLLHUP) == 0) return false;
    (void)close(p.fd);
    return true;
  };
  return static_cast<std::uint32_t>(std::erase_if(tracers_, gone));
}

Interrupted::Interrupted(bool wanted) : wanted_(wanted) {
  if (wanted_) interrupt_every(kInterruptNs);
}
Interrupted::~Interrupted() {
  if (wanted_) interrupt_every(0);
}

}  // namespace leat::fuzz
