// Not an attack: an honest client, by the library, with as many frames in flight as it may have closes one of its
// streams. It is served on, its other streams' frames are answered, and nobody calls it a violator.
#include "leat/client.hpp"
#include "tests/attacks/arena/arena.h"

namespace leat::test {
namespace {

LEAT_ATTACKS(CloseInFlight);

TEST_P(CloseInFlight, ExpelsNobody) {
  Arena arena(GetParam(), [&](const std::string& socket, std::int64_t until) -> std::string {
    do {
      auto client = Client::connect(socket, "hasty");
      if (!client.ok()) return client.error();
      std::vector<Stream> streams;
      StreamOptions o;
      o.application = "bulk";
      o.format = LEAT_FORMAT_gray8;
      o.width = 64;
      o.height = 16;
      o.depth = o.slots = 64;
      o.overload = LEAT_OVERLOAD_fifo;
      for (int i = 0; i < 8; ++i) {
        auto stream = client->open_stream(o);
        if (!stream.ok()) return stream.error();
        streams.push_back(std::move(*stream));
      }
      std::uint32_t kept = 0;
      for (std::uint32_t i = 0; i < 8; ++i) {
        while (auto frame = streams[i].acquire()) {
          leat_submit_options s{};
          s.cookie = i;
          s.flags = LEAT_SUBMIT_MORE;
          if (frame->submit(s) != LEAT_ERROR_ok) return leat_last_error();
          kept += i < 7;
        }
      }
      if (kept != 7 * 64) return "it could submit only " + std::to_string(kept) + " frames";
      streams.pop_back();  // closes it, and hands over what was not flushed
      std::uint32_t answers = 0;
      while (answers < kept) {
        const auto answer = client->next_answer(kPatience);
        if (!answer) return std::string(client->connected() ? "an answer is missing" : "it was expelled");
        if (answer->raw().cookie < 7) ++answers;
      }
    } while (leat_now_ns() < until);
    return "";
  });
  arena.fight();
  EXPECT_EQ(arena.counted(shm::DaemonCounter::clients_violated), 0U);
}

}  // namespace
}  // namespace leat::test
