#include "engine/daemon/event_loop/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <vector>

#include "shm/src/segments/segment.h"

namespace leat::daemon {
namespace {

class EventLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = EventLoop::create();
    ASSERT_TRUE(made.ok()) << made.error();
    loop_.emplace(std::move(*made));
  }
  std::size_t wait(std::int64_t timeout_ns) { return loop_->wait(timeout_ns, out_); }
  static shm::Fd event() { return shm::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }
  static void raise(const shm::Fd& fd) { ASSERT_EQ(eventfd_write(fd.get(), 1), 0); }

  std::optional<EventLoop> loop_;
  std::array<Readiness, 8> out_;
};

TEST_F(EventLoopTest, ReportsUntilItIsRead) {
  const shm::Fd fd = event();
  ASSERT_TRUE(loop_->watch(fd.get(), 7).ok());
  EXPECT_EQ(wait(0), 0U);
  raise(fd);
  for (int i = 0; i < 3; ++i) {  // level-triggered
    ASSERT_EQ(wait(1'000'000'000), 1U);
    EXPECT_EQ(out_[0].token, 7U);
    EXPECT_TRUE(out_[0].readable);
    EXPECT_FALSE(out_[0].hung_up);
  }
  eventfd_t value;
  ASSERT_EQ(eventfd_read(fd.get(), &value), 0);
  EXPECT_EQ(wait(0), 0U);
}

TEST_F(EventLoopTest, TimesOut) {
  const shm::Fd fd = event();
  ASSERT_TRUE(loop_->watch(fd.get(), 1).ok());
  EXPECT_EQ(wait(2'000'000), 0U);
}

TEST_F(EventLoopTest, WritableOnlyWhenAsked) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
  const shm::Fd a(pair[0]), b(pair[1]);
  ASSERT_TRUE(loop_->watch(a.get(), 3).ok());
  EXPECT_EQ(wait(0), 0U);
  ASSERT_TRUE(loop_->watch(a.get(), 4, true).ok());
  ASSERT_EQ(wait(1'000'000'000), 1U);
  EXPECT_EQ(out_[0].token, 4U);
  EXPECT_TRUE(out_[0].writable);
  ASSERT_TRUE(loop_->watch(a.get(), 3).ok());
  EXPECT_EQ(wait(0), 0U);
}

TEST_F(EventLoopTest, HangUpIsTold) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
  const shm::Fd a(pair[0]);
  ASSERT_TRUE(loop_->watch(a.get(), 5).ok());
  close(pair[1]);
  ASSERT_EQ(wait(1'000'000'000), 1U);
  EXPECT_TRUE(out_[0].hung_up);
}

TEST_F(EventLoopTest, AnUnwatchedNumberUsedAgainIsNotMistaken) {
  for (int i = 0; i < 20; ++i) {
    const shm::Fd fd = event();  // mostly the same number each time
    ASSERT_TRUE(loop_->watch(fd.get(), static_cast<std::uint64_t>(100 + i)).ok());
    if (i % 2 == 0) raise(fd);
    const std::size_t count = wait(0);
    for (std::size_t e = 0; e < count; ++e) EXPECT_EQ(out_[e].token, static_cast<std::uint64_t>(100 + i));
    loop_->unwatch(fd.get());
  }
  EXPECT_EQ(wait(0), 0U);
}

TEST_F(EventLoopTest, ManyAtOnceAreAllReported) {
  std::vector<shm::Fd> fds;
  for (std::uint64_t i = 0; i < 40; ++i) {
    fds.push_back(event());
    ASSERT_TRUE(loop_->watch(fds.back().get(), i).ok());
    raise(fds.back());
  }
  std::array<bool, 40> seen{};
  for (int turn = 0; turn < 100; ++turn) {
    const std::size_t count = wait(0);
    for (std::size_t e = 0; e < count; ++e) {
      seen[out_[e].token] = true;
      eventfd_t value;
      (void)eventfd_read(fds[out_[e].token].get(), &value);
    }
  }
  for (const bool s : seen) EXPECT_TRUE(s);
}

}  // namespace
}  // namespace leat::daemon
