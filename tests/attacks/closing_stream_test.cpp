// A client goes on submitting to a stream that it has asked to close. Whatever comes before the stream is gone is
// answered, and what comes after costs the connection; nothing of it stays: neither slots, streams, memory nor the
// session, however often it is done.
#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/raw_client.h"

namespace leat::test {
namespace {

LEAT_ATTACKS(ClosingStream);

TEST_P(ClosingStream, IsAnsweredAndLeavesNothing) {
  std::uint64_t rounds = 0;
  Arena arena(GetParam(), [&](const std::string& socket, std::int64_t until) -> std::string {
    // Four times as many as there may be clients: whoever left anything would soon be refused.
    while (leat_now_ns() < until || rounds < 64) {
      RawClient client;
      if (!client.connect(socket) || !client.hello() ||
          !client.open({LEAT_FORMAT_gray8, 64, 16, {}, 96, LEAT_SLOT_HOST}, "bulk"))
        return "it is refused in round " + std::to_string(rounds);
      const auto submit = [&](std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) (void)client.push(client.good());
        client.ring();
      };
      submit(20);
      shm::CloseStream close;
      close.stream = client.stream;
      close.header.request = 99;
      if (!shm::send(client.socket.get(), close).ok()) return "it cannot ask for the end";
      if (rounds % 4 == 0) {  // gone at once, with everything in flight
        submit(20);
        ++rounds;
        continue;
      }
      // Until leatd has said that the stream is closed, or ended the connection.
      for (int i = 0; i < 75 && !client.hung_up(); ++i) submit(1);
      if (!eventually([&] {
            std::vector<std::byte> packet;
            std::string text;
            const auto got = shm::receive(client.socket.get(), false, &packet, nullptr, &text);
            return got == shm::Got::closed || got == shm::Got::message;
          }))
        return "a closing stream is never closed";
      ++rounds;
    }
    return "";
  });
  arena.fight();
}

// The answers themselves: one for each submission, refused where it came too late for its stream.
TEST_P(ClosingStream, AnswersEverySubmission) {
  RawClient client;
  Arena arena(GetParam(), [&](const std::string& socket, std::int64_t until) -> std::string {
    if (!client.bell && !(client.connect(socket) && client.hello())) return "it is not let in: " + client.refusal;
    while (leat_now_ns() < until) {
      if (!client.open({LEAT_FORMAT_gray8, 64, 16, {}, 96, LEAT_SLOT_HOST}, "bulk")) return "a stream is refused";
      for (int i = 0; i < 90; ++i) (void)client.push(client.good());  // more than one turn looks at
      shm::CloseStream close;
      close.stream = client.stream;
      const auto reply = client.ask(close);
      if (!reply) return "the stream is not closed, or its client was expelled";
      if (const auto got = client.take_answers(); got != 90) return std::to_string(got) + " of 90 submissions answered";
    }
    return "";
  });
  arena.fight();
  EXPECT_EQ(arena.counted(shm::DaemonCounter::clients_violated), 0U);
}

}  // namespace
}  // namespace leat::test
