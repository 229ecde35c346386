// A client writes cancels of requests that were answered long ago, as fast as its ring takes them: well-formed, allowed
// and useless. Each costs the scheduler thread a look; a turn looks at so many and no more.
#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/raw_client.h"

namespace leat::test {
namespace {

LEAT_ATTACKS(LateCancels);

TEST_P(LateCancels, DoNotHoldTheSchedulerThread) {
  RawClient client;
  Arena arena(GetParam(), [&](const std::string& socket, std::int64_t until) -> std::string {
    if (!client.bell && !(client.connect(socket) && client.hello() && client.open()))
      return "it is not let in: " + client.refusal;
    shm::SubmissionDescriptor d;
    d.kind = shm::SubmissionKind::cancel;
    d.stream = static_cast<std::uint16_t>(client.stream);
    std::uint64_t pushed = 0;
    // On a machine with other work leatd is waited for: it has to take more than fits into the ring.
    const std::int64_t latest = until + 30'000'000'000;
    while (leat_now_ns() < (pushed > shm::kSubmissionRing ? until : latest)) {
      d.generation = static_cast<std::uint32_t>(pushed);
      if (client.push(d))
        ++pushed;
      else
        client.ring();
    }
    if (client.hung_up()) return "a late cancel cost the connection";
    return pushed > shm::kSubmissionRing ? "" : "leatd took next to nothing";
  });
  // Of the client, whose record names its user.
  arena.fight([](const Arena& a) { return a.late_cancels() > shm::kSubmissionRing; });
  EXPECT_EQ(arena.counted(shm::DaemonCounter::clients_violated), 0U);
}

}  // namespace
}  // namespace leat::test
