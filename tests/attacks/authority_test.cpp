// A user asks for more than he may: the highest priority, an SLO of a microsecond, frames that are never dropped, and
// more streams, requests and memory than are his. He is refused each with its reason, and what he may have does not
// harm the others.
#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/moves.h"

namespace leat::test {
namespace {

LEAT_ATTACKS(Authority);

TEST_P(Authority, IsTheUsersAndNotTheConnections) {
  std::uint64_t rounds = 0;
  Arena arena(
      GetParam(),
      [&](const std::string& socket, std::int64_t until) -> std::string {
        Moves moves(socket, ++rounds);
        do {
          if (!moves.too_urgent(LEAT_PRIORITY_PROTECTED) || !moves.too_urgent(LEAT_PRIORITY_HIGH))
            return "a priority above his own";
          if (!moves.too_short(1'000) || !moves.too_short(49'000'000)) return "an SLO below his own";
          if (!moves.never_dropped()) return "never_drop";
          moves.too_many();
          moves.let_go();
        } while (leat_now_ns() < until);
        return "";
      },
      // The honest client may be the same user: 32 requests are his.
      Arena::limits_of_assailant(GetParam(),
                                 "streams = 12\nrequests = 170\nmemory_mib = 64\npriority = \"normal\"\n"
                                 "min_slo_ms = 50\noverload = [\"latest\", \"fifo\"]\n"));
  arena.fight([](const Arena& a) {
    using shm::Refusal;
    const auto refusals = {Refusal::priority, Refusal::slo, Refusal::overload, Refusal::requests, Refusal::memory};
    return std::all_of(refusals.begin(), refusals.end(), [&](Refusal r) { return a.refusals(r) > 0; });
  });
}

}  // namespace
}  // namespace leat::test
