// A client punches holes into the memory it shares: whoever touches a page of the range waits until the hole is made,
// as long as the range is large. Before leatd has sealed it the client can, and then nobody looks at it yet; afterwards
// the kernel lets nobody do it, neither into its frames nor into the words and rings the scheduler thread reads.
#include <fcntl.h>
#include <sys/mman.h>

#include <thread>

#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/raw_client.h"

namespace leat::test {
namespace {

constexpr shm::PoolSpec kPunched{LEAT_FORMAT_gray8, 4096, 1024, {}, 16, LEAT_SLOT_HOST};  // 64 MiB

bool punch(int fd, std::uint64_t bytes) {
  return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0;
}

LEAT_ATTACKS(PunchedMemory);

TEST_P(PunchedMemory, MakesNobodyWait) {
  RawClient client;
  Arena arena(
      GetParam(),
      [&](const std::string& socket, std::int64_t until) -> std::string {
        const std::uint64_t bytes = shm::pool_layout(kPunched).frames_bytes;
        if (!client.bell && !(client.connect(socket) && client.hello())) return "it is not let in: " + client.refusal;
        if (!client.open_unmapped(kPunched, "bulk")) return "a large stream is refused: " + client.refusal;
        if (!punch(client.frames.get(), bytes)) return "nothing was punched before the memory was sealed";
        // Goes on punching while leatd seals it.
        std::atomic<bool> ending{false};
        std::thread puncher([&] {
          while (!ending && punch(client.frames.get(), bytes)) {
          }
        });
        const bool secured = client.mapped(client.stream);
        ending = true;
        puncher.join();
        if (!secured) return "its memory is not sealed, or it was expelled";
        do {
          for (const int fd : {client.frames.get(), client.links.get()})
            if (punch(fd, shm::kPage)) return "sealed memory can be punched";
          if (madvise(client.uplink.data(), shm::kPage, MADV_REMOVE) == 0 ||
              madvise(const_cast<std::uint8_t*>(client.view.plane(0, 0)), shm::kPage, MADV_REMOVE) == 0)
            return "sealed memory can be taken away";
          for (int i = 0; i < 4; ++i) (void)client.push(client.good());  // frames that were punched out before
          client.ring();
          std::uint32_t answers = 0;
          if (!eventually([&] { return (answers += client.take_answers()) == 4; }))
            return "its frames are not answered";
        } while (leat_now_ns() < until);
        shm::CloseStream close;
        close.stream = client.stream;
        return client.ask(close) ? "" : "the stream is not closed";
      },
      "client_memory_mib = 600\nmemory_mib = 2000");
  arena.fight();
  EXPECT_EQ(arena.counted(shm::DaemonCounter::clients_violated), 0U);
}

// Who seals its memory in another way first, so that leatd cannot, is not served.
TEST_P(PunchedMemory, ThatCannotBeSealedEndsTheConnection) {
  std::uint64_t rounds = 0, opened = 0;
  Arena arena(GetParam(), [&](const std::string& socket, std::int64_t until) -> std::string {
    do {
      RawClient client;
      if (!client.connect(socket)) continue;  // what it had before is being taken back
      const bool links = ++rounds % 2 == 0;
      client.seals_first = links;
      const bool in = client.hello();
      if (links && in) return "links that are not sealed are used";
      if (!in || !client.open_unmapped({LEAT_FORMAT_gray8, 64, 16, {}, 4, LEAT_SLOT_HOST})) continue;
      ++opened;
      if (fcntl(client.frames.get(), F_ADD_SEALS, F_SEAL_SEAL) != 0) return "it cannot seal what is its own";
      if (client.mapped(client.stream)) return "frames that are not sealed are used";
    } while (leat_now_ns() < until || opened == 0);
    return "";
  });
  arena.fight([](const Arena& a) { return a.violations(shm::Violation::unsealed) > 0; });
}

}  // namespace
}  // namespace leat::test
