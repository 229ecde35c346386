// All attacks at random, for as long as wanted: `mixed_test --seconds 30`, or LEAT_ATTACK_SECONDS. LEAT_SEED repeats
// one.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/attacks/arena.h"
#include "tests/attacks/moves.h"

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
      "hello_ms = 100\n" +
          Arena::limits_of_assailant(GetParam(),
                                     "sessions = 24\nstreams = 16\nrequests = 200\nmemory_mib = 64\ndescriptors = 32\n"
                                     "priority = \"normal\"\nleast_slo_ms = 50\noverload = [\"latest\", \"fifo\"]\n"));
  arena.fight();
  EXPECT_GT(arena.violations_of_user(), 0U);
}

}  // namespace
}  // namespace leat::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::strcmp(argv[1], "--seconds") == 0) {
    setenv("LEAT_ATTACK_SECONDS", argv[2], 1);
  } else if (argc != 1) {
    std::fprintf(stderr, "mixed_test: %s: unknown; use --seconds S, or GoogleTest's options\n", argv[1]);
    return 2;
  }
  return RUN_ALL_TESTS();
}
