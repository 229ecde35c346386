// A client overwrites its slot words while a worker reads the frame: leatd finds it when it answers. The connection
// ends at once and the cause is counted; a connection left open, counted nowhere and mute for ever, would be a way to
// hold whatever it has.
#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/raw_client.h"

namespace leat::test {
namespace {

LEAT_ATTACKS(TornWords);

TEST_P(TornWords, EndTheConnection) {
  std::uint64_t rounds = 0;
  Arena arena(GetParam(), [&](const std::string& socket, std::int64_t until) -> std::string {
    do {
      RawClient client;
      if (!client.connect(socket) || !client.hello() || !client.open())
        return "it is refused in round " + std::to_string(rounds);
      const auto d = client.good();
      (void)client.push(d);
      client.ring();
      // Taken and not answered yet: the next move of this word is leatd's.
      if (!eventually([&] { return client.view.slots().load(d.slot).state != shm::SlotState::submitted; }))
        return "its frame is not taken";
      client.tear_words(0x0bad'0bad'0bad'0badull);
      std::uint32_t answered = 0;  // it may have been the faster
      if (!eventually([&] { return (answered += client.take_answers()) != 0 || client.hung_up(); }))
        return "a torn slot word does not end the connection";
      ++rounds;
    } while (leat_now_ns() < until);
    return "";
  });
  arena.fight([](const Arena& a) { return a.violations(shm::Violation::slot_state) > 0; });
}

}  // namespace
}  // namespace leat::test
