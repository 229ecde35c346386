// A service manager holds leatd's socket: clients wait there while one leatd gives way to another.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "tests/serving/daemon_fixture.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

constexpr int kHeld = 8;  // where leatd's parent has the socket

// Serves one frame through the daemon behind `socket`, however long it takes to come.
bool serves(const std::string& socket) {
  return eventually(
      [&] {
        auto client = Client::connect(socket, "waiting");
        if (!client.ok()) return false;  // it is starting
        StreamOptions options;
        options.application = "echo";
        options.format = LEAT_FORMAT_gray8;
        options.width = options.height = 32;
        auto stream = client->open_stream(options);
        if (!stream.ok()) return false;
        auto frame = stream->acquire();
        const std::uint64_t expected = paint(frame->raw(), 1);
        if (frame->submit() != LEAT_ERROR_ok) return false;
        const auto answer = client->next_answer(30s);
        return answer && answer->outcome() == Outcome::completed && answer->result()->checksum == expected;
      },
      60s);
}

TEST(Activation, TheSocketOutlivesEachLeatd) {
  ASSERT_EQ(::fcntl(kHeld, F_GETFD), -1) << "in use";
  Leatd leatd(
      "[[partition]]\nname = \"p\"\nkind = \"emulated\"\n[[application]]\nname = \"echo\"\nslo_ms = 60000\n"
      "[[application.module]]\nname = \"sum\"\nexecutor = \"emulated\"\nlatency_ms = [0]\n",
      {},
      {"/bin/sh", "-c", "[ -e /proc/$$/fd/8 ] || exec \"$@\"; exec env LISTEN_PID=$$ LISTEN_FDS=1 \"$@\" 3<&8 8<&-",
       "sh"});
  const std::string path = leatd.socket();
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
  EXPECT_NE(::access(path.c_str(), F_OK), 0) << "its own it takes away";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(socket.get(), 16), 0);
  const Fd held(::dup2(socket.get(), kHeld));  // inherited
  for (int round = 0; round < 2; ++round) {
    leatd.start();
    EXPECT_TRUE(serves(path)) << leatd.log();
    EXPECT_NE(::access((path + ".lock").c_str(), F_OK), 0) << "nobody else decides who serves";
    EXPECT_EQ(leatd.stop(), 0) << leatd.log();
    EXPECT_EQ(::access(path.c_str(), F_OK), 0) << "it is the manager's";
  }
}

}  // namespace
}  // namespace leat::test
