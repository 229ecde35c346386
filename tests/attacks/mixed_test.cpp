// All attacks at random, for as long as wanted: `LEAT_ATTACK_SECONDS=30 attacks_test --gtest_filter=*Mixed*`. LEAT_SEED
// repeats one.
#include <cstdio>
#include <cstdlib>

#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/moves.h"

namespace leat::test {
namespace {

LEAT_ATTACKS(Mixed);

TEST_P(Mixed, HarmNobody) {
  const char* given = std::getenv("LEAT_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("seed %llu (LEAT_SEED repeats it)\n", static_cast<unsigned long long>(seed));
  std::uint64_t rounds = 0;
  Arena arena(
      GetParam(),
      [&](const std::string& socket, std::int64_t until) -> std::string {
        Moves moves(socket, seed + ++rounds);
        while (leat_now_ns() < until) moves.any();
        return "";
      },
      "handshake_timeout_ms = 100\n" +
          Arena::limits_of_assailant(GetParam(),
                                     "sessions = 24\nstreams = 16\nrequests = 200\nmemory_mib = 64\ndescriptors = 32\n"
                                     "priority = \"normal\"\nmin_slo_ms = 50\noverload = [\"latest\", \"fifo\"]\n"));
  arena.fight([](const Arena& a) { return a.violations_of_user() > 0; });
}

}  // namespace
}  // namespace leat::test
