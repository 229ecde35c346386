// Connections that say nothing, observers that stay, connections as fast as they can be made: whatever one user does to
// the table of connections, others find room in it, and root always gets an answer. Who may not use leatd is told so at
// the door and takes no place at all.
#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/moves.h"

namespace leat::test {
namespace {

LEAT_ATTACKS(FullTable);

TEST_P(FullTable, LocksNobodyOut) {
  std::uint64_t rounds = 0;
  Arena arena(
      GetParam(),
      [&](const std::string& socket, std::int64_t until) -> std::string {
        Moves moves(socket, ++rounds);
        do {
          moves.silent();
          moves.observers();
          moves.half_a_hello();
          moves.knock();
        } while (leat_now_ns() < until);
        return "";
      },
      "handshake_timeout_ms = 100\n");
  arena.fight([](const Arena& a) {
    return a.refusals(shm::Refusal::sessions) + a.refusals(shm::Refusal::displaced) + a.refusals(shm::Refusal::silent) >
           0;
  });
}

TEST(FullTable, OfWhoMayNotUseItTakesNoPlace) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
  std::uint64_t tries = 0;
  Arena arena(
      Setting::other_user,
      [&](const std::string& socket, std::int64_t until) -> std::string {
        while (leat_now_ns() < until) {
          leat_client* client = nullptr;
          leat_connect_options options{};
          options.socket = socket.c_str();
          ++tries;
          if (const leat_error e = leat_connect(&options, &client); e != LEAT_ERROR_not_permitted)
            return std::string("it was told ") + leat_error_name(e) + ": " + leat_last_error();
        }
        return "";
      },
      "", "", "allow_uids = [" + std::to_string(getuid()) + "]\n");
  arena.fight([](const Arena& a) { return a.refusals(shm::Refusal::not_allowed) > 0; });
  EXPECT_EQ(arena.counted(shm::DaemonCounter::clients_refused), arena.refusals(shm::Refusal::not_allowed));
  EXPECT_LT(std::count(arena.last_log().begin(), arena.last_log().end(), '\n'), 100) << "the log was flooded";
}

}  // namespace
}  // namespace leat::test
