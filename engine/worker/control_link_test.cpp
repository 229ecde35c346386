// What must not be lost waits until leatd has read what came before.
#include "engine/worker/control_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

namespace leat::worker {
namespace {

TEST(ControlLink, KnowsWhetherThereIsRoom) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  const Fd daemon(ends[0]);
  const ControlLink link{Fd(ends[1])};
  const std::array<std::byte, 1000> packet{};
  int sent = 0;
  while (sent < 100'000 && link.told(packet)) ++sent;
  ASSERT_GT(sent, 0);
  ASSERT_LT(sent, 100'000);
  EXPECT_FALSE(link.told(packet));
  std::array<std::byte, 2000> got;
  while (::recv(daemon.get(), got.data(), got.size(), 0) > 0) --sent;
  EXPECT_EQ(sent, 0) << "what was told has come, and nothing else";
  EXPECT_TRUE(link.told(packet));
}

}  // namespace
}  // namespace leat::worker
