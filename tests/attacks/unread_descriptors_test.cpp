// Connections that ask for descriptors and never read them. Each one not read is in flight, and the kernel counts those
// against leatd's user: who could make more and more of them would end everybody's connections and stop the workers.
// They are counted against the user they were sent to, also when their connection has ended, and he gets no more.
#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/moves.h"

namespace leat::test {
namespace {

LEAT_ATTACKS(UnreadDescriptors);

TEST_P(UnreadDescriptors, StopNobody) {
  std::uint64_t rounds = 0;
  Arena arena(
      GetParam(),
      [&](const std::string& socket, std::int64_t until) -> std::string {
        Moves moves(socket, ++rounds);
        do {
          moves.unread_counters();
          moves.unread_welcome();
          if (rounds % 2 == 0) moves.leave_unread();
        } while (leat_now_ns() < until);
        return "";
      },
      Arena::limits_of_assailant(GetParam(), "descriptors = 16\n"));
  arena.fight([](const Arena& a) {
    return a.refusals(shm::Refusal::descriptors) > 0 && a.refusals(shm::Refusal::repeated) > 0;
  });
  EXPECT_EQ(arena.counted(shm::DaemonCounter::sends_exhausted), 0U) << "leatd was out of descriptors to send";
}

}  // namespace
}  // namespace leat::test
