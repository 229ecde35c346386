// A client opens the largest streams it may, again and again, and leaves in the midst of it. Bringing hundreds of
// mebibytes takes its time; others connect, open and are served meanwhile, also those of the same user.
#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/raw_client.h"

namespace leat::test {
namespace {

constexpr std::uint32_t kHeight = kSanitized ? 1024 : 4096;
constexpr shm::PoolSpec kLarge{LEAT_FORMAT_gray8, 4096, kHeight, {}, 16, LEAT_SLOT_HOST};  // 64 or 256 MiB

LEAT_ATTACKS(LargeStreams);

TEST_P(LargeStreams, HoldNobodyUp) {
  std::uint64_t overtaken = 0, rounds = 0;
  Arena arena(
      GetParam(),
      [&](const std::string& socket, std::int64_t until) -> std::string {
        // Where the machine holds up one of the two, the large one may be first; not again and again.
        const std::int64_t latest = until + 30'000'000'000;
        do {
          RawClient large, small;
          if (!large.connect(socket) || !large.hello()) return "it is not let in: " + large.refusal;
          shm::OpenStream m;
          shm::set_text(m.application, "bulk");
          m.pool = kLarge;
          m.settings.depth = 16;
          m.header.request = 77;
          if (!shm::send(large.socket.get(), m).ok()) return "it cannot ask";
          // Beside it somebody connects and opens a stream of ordinary size: before the large one is there.
          if (!small.connect(socket) || !small.hello() || !small.open()) return "a small stream is refused beside it";
          std::vector<std::byte> packet;
          std::string text;
          overtaken += shm::receive(large.socket.get(), false, &packet, nullptr, &text) == shm::Got::nothing;
          if (++rounds % 2 == 0) continue;  // gone before it has it
          leat_error error{};
          const auto reply = shm::await_reply(large.socket.get(), 77, kReplyNs, &error);
          shm::StreamOpened opened;
          if (error == LEAT_ERROR_no_room) continue;  // what it had before is not given back yet
          if (overtaken != 0 && (!reply.ok() || shm::decode(reply->packet, &opened) != nullptr))
            return "the large stream is refused: " + (reply.ok() ? std::string("nonsense") : reply.error());
        } while (leat_now_ns() < (overtaken != 0 ? until : latest));
        return overtaken != 0 ? "" : "a small stream waits for a large one";
      },
      "client_memory_mib = 600\nmemory_mib = 4000");
  arena.fight();
}

}  // namespace
}  // namespace leat::test
