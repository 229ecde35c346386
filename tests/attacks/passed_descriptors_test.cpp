// Descriptors sent where none is expected. Whoever takes or drops one closes it, and that takes as long as its maker
// likes: a socket that lingers waits for its data to be read, a large memory is freed page by page. Over the bell, over
// the control socket before its hello and after, by who goes at once and by who may not use leatd at all: leatd's own
// threads never close one. A kernel that can keeps them out; on others the connection is ended, and what is in it is
// closed where nobody waits.
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstring>
#include <vector>

#include "shm/src/protocol/kernel_features.h"
#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/raw_client.h"

namespace leat::test {
namespace {

constexpr std::size_t kMaxKept = 64;
constexpr std::uint64_t kLargeBytes = std::uint64_t{512} << 20;

// TCP sockets with data that nobody reads, which linger for hours when their last descriptor is closed. That may be the
// assailant's: a timer ends its wait.
class Lingering {
 public:
  Lingering() {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};
    (void)sigaction(SIGALRM, &nothing, nullptr);
    constexpr itimerval kTick{{0, 5'000}, {0, 5'000}};
    (void)setitimer(ITIMER_REAL, &kTick, nullptr);
    listener_ = shm::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    (void)::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
    (void)::listen(listener_.get(), 16);
    (void)::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address_), &size);
  }
  ~Lingering() {
    constexpr itimerval kNever{};
    peers_.clear();
    (void)setitimer(ITIMER_REAL, &kNever, nullptr);
  }
  shm::Fd make() {
    shm::Fd out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    constexpr int kSmall = 4096;
    constexpr linger kHours{1, 30'000};
    (void)::setsockopt(out.get(), SOL_SOCKET, SO_SNDBUF, &kSmall, sizeof kSmall);
    (void)::setsockopt(listener_.get(), SOL_SOCKET, SO_RCVBUF, &kSmall, sizeof kSmall);
    (void)::setsockopt(out.get(), SOL_SOCKET, SO_LINGER, &kHours, sizeof kHours);
    if (::connect(out.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_) != 0) return {};
    if (peers_.size() == kMaxKept) peers_.clear();
    peers_.emplace_back(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::vector<char> unread(64 << 10);
    while (::send(out.get(), unread.data(), unread.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    return out;
  }

 private:
  shm::Fd listener_;
  sockaddr_in address_{};
  std::vector<shm::Fd> peers_;
};

shm::Fd large_memory() {
  shm::Fd out(memfd_create("large", MFD_CLOEXEC));
  (void)posix_fallocate(out.get(), 0, kLargeBytes);
  return out;
}

// A good message and a descriptor, which is closed here. What sendmsg says.
ssize_t send_with(int socket, const shm::Fd& fd) {
  auto packet = shm::encode(shm::StatusRequest{});
  iovec piece{packet.data(), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = fd.get();
  std::memcpy(CMSG_DATA(c), &number, sizeof number);
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

using Make = std::function<shm::Fd()>;

// Sends one over every door there is, each by a connection of its own. How many went out.
class Doors {
 public:
  explicit Doors(std::string socket) : socket_(std::move(socket)) {}
  std::uint32_t sent() const noexcept { return sent_; }

  void before_hello(const Make& make) {
    RawClient c;
    if (c.connect(socket_)) send(c.socket, make());
    keep(std::move(c));
  }
  void after_hello(const Make& make) {
    RawClient c;
    if (c.connect(socket_) && c.hello()) send(c.socket, make());
    keep(std::move(c));
  }
  void and_gone(const Make& make) {
    RawClient c;
    if (!c.connect(socket_) || !c.hello()) return;
    send(c.socket, make());
    send(c.bell, make());
  }
  void over_the_bell(const Make& make) {
    RawClient c;
    if (!c.connect(socket_) || !c.hello() || !c.open()) return;
    send(c.bell, make());
    keep(std::move(c));
  }

 private:
  void send(const shm::Fd& over, const shm::Fd& fd) {
    if (send_with(over.get(), fd) > 0) ++sent_;
  }
  void keep(RawClient c) {
    kept_.push_back(std::move(c));
    if (kept_.size() > 4) kept_.erase(kept_.begin());
  }
  std::string socket_;
  std::vector<RawClient> kept_;
  std::uint32_t sent_ = 0;
};

LEAT_ATTACKS_ON_BOTH_KERNELS(PassedDescriptors);

// What a round found, compared with what the kernel is to do.
std::string verdict(Kernel kernel, std::uint32_t sent) {
  const bool kept_out = kernel == Kernel::running && shm::can_refuse_descriptors();
  if (kept_out) return sent == 0 ? "" : "a descriptor went in";
  return sent != 0 ? "" : "no descriptor went in";
}

TEST_P(PassedDescriptors, ThatLingerHoldUpNobody) {
  const auto [setting, kernel] = GetParam();
  Arena arena(
      setting,
      [kernel = kernel](const std::string& socket, std::int64_t until) -> std::string {
        Lingering lingering;
        const Make make = [&] { return lingering.make(); };
        Doors doors(socket);
        do {
          doors.over_the_bell(make);
          doors.before_hello(make);
          doors.after_hello(make);
          doors.and_gone(make);
        } while (leat_now_ns() < until);
        return verdict(kernel, doors.sent());
      },
      "", "", "", kernel);
  arena.fight();
  const bool kept_out = kernel == Kernel::running && shm::can_refuse_descriptors();
  EXPECT_EQ(arena.violations(shm::Violation::descriptors) == 0, kept_out);
}

TEST_P(PassedDescriptors, ThatAreLargeHoldUpNobody) {
  const auto [setting, kernel] = GetParam();
  Arena arena(
      setting,
      [kernel = kernel](const std::string& socket, std::int64_t) -> std::string {
        Doors doors(socket);
        doors.over_the_bell(large_memory);
        doors.before_hello(large_memory);
        return verdict(kernel, doors.sent());
      },
      "", "", "", kernel);
  arena.fight();
}

class PassedDescriptorsOfAStranger : public ::testing::TestWithParam<Kernel> {};
INSTANTIATE_TEST_SUITE_P(On, PassedDescriptorsOfAStranger, ::testing::Values(Kernel::running, Kernel::older),
                         [](const auto& way) {
                           return way.param == Kernel::older ? "AnOlderKernel" : "TheRunningKernel";
                         });

// Who may not use leatd can connect all the same, and sends before he is told so.
TEST_P(PassedDescriptorsOfAStranger, HoldUpNobody) {
  if (settings().size() == 1) GTEST_SKIP() << "only root can become another user";
  Arena arena(
      Setting::other_user,
      [](const std::string& socket, std::int64_t until) -> std::string {
        Lingering lingering;
        Doors doors(socket);
        do doors.before_hello([&] { return lingering.make(); });
        while (leat_now_ns() < until);
        return verdict(GetParam(), doors.sent());
      },
      "", "", "allow_uids = [" + std::to_string(getuid()) + "]\n", GetParam());
  arena.fight([](const Arena& a) { return a.refusals(shm::Refusal::not_allowed) > 0; });
}

}  // namespace
}  // namespace leat::test
