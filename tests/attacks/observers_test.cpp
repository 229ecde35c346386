// What an ordinary user sees when he looks: totals, what is served, and his own, never who else is there. And whatever
// he does with the segment he is given (mappings by the thousand, kept for good) leatd gets its memory back and nobody
// waits for it.
#include <fcntl.h>
#include <sys/mman.h>

#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/crowd.h"
#include "tests/attacks/arena/raw_client.h"

namespace leat::test {
namespace {

using shm::RecordKind;

// What is wrong with what he sees; his own client is 'attacker'.
std::string seen_wrongly(const shm::CountersReader& counters, bool all, bool client) {
  const auto others = [&](RecordKind kind) {
    const auto live = counters.live(kind);
    return std::count_if(live.begin(), live.end(),
                         [](const auto& r) { return r.label.find("honest") != std::string::npos; });
  };
  if ((others(RecordKind::client) == 1) != all) return all ? "no honest client" : "another's client";
  if ((others(RecordKind::stream) == 1) != all) return all ? "no honest stream" : "another's stream";
  const auto users = counters.live(RecordKind::user);
  const auto his = std::count_if(users.begin(), users.end(), [](const auto& u) {
    return u.value(shm::UserCounter::uid) == std::uint64_t{kOtherUser};
  });
  if (his != 1 || (users.size() > 1) != all)
    return std::to_string(users.size()) + " users, " + std::to_string(his) + " of them he";
  if (counters.live(RecordKind::module).size() != 2 || counters.live(RecordKind::partition).size() != 2)
    return "not what is served";
  const auto total = counters.snapshot(RecordKind::total, 0);
  if (!total || !total->live || value(*total, shm::StreamCounter::submitted) == 0) return "no totals";
  if (!balances(*total)) return "totals that do not balance";
  const auto clients = counters.live(RecordKind::client);
  if (client && std::none_of(clients.begin(), clients.end(), [](const auto& c) { return c.label == "attacker"; }))
    return "not his own client";
  std::array<shm::Event, 8> events;
  std::uint64_t next = 0;
  if ((counters.events(0, events, &next) != 0) != all) return "the flight recorder";
  return "";
}

std::string look(const std::string& socket, bool all, bool client) {
  leat_error error{};
  auto observer = shm::Observer::connect(socket, &error);
  if (!observer.ok()) return observer.error();
  auto given = observer->counters(&error);
  if (!given.ok()) return given.error();
  auto counters = shm::CountersReader::map(std::move(given->fd), given->bytes);
  return counters.ok() ? seen_wrongly(*counters, all, client) : counters.error();
}

void fight_as_observer(bool all, const std::string& daemon) {
  if (settings().size() == 1) GTEST_SKIP() << "only root can become another user, and not under a sanitizer";
  Arena arena(
      Setting::other_user,
      [&](const std::string& socket, std::int64_t until) -> std::string {
        RawClient mine;
        if (!mine.connect(socket) || !mine.hello() || !mine.open()) return "no client: " + mine.refusal;
        do {
          if (const std::string wrong = look(socket, all, true); !wrong.empty()) return "he saw " + wrong;
        } while (leat_now_ns() < until);
        return "";
      },
      "", "", daemon);
  arena.fight();
}

TEST(Observers, SeeTotalsAndTheirOwn) { fight_as_observer(false, ""); }
TEST(Observers, SeeAllWhereTheKeySaysSo) { fight_as_observer(true, "observers = \"all\"\n"); }
TEST(Observers, SeeAllWhereTheyAreNamed) {
  fight_as_observer(true, "observer_uids = [" + std::to_string(kOtherUser) + "]\n");
}

TEST(Observers, WhoNeverLetGoOfWhatTheyMappedHoldNothing) {
  if (settings().size() == 1) GTEST_SKIP() << "only root can become another user, and not under a sanitizer";
  std::vector<shm::Fd> kept;  // all he was ever given
  std::size_t mappings = 0;
  Arena arena(Setting::other_user, [&](const std::string& socket, std::int64_t until) -> std::string {
    leat_error error{};
    do {
      auto observer = shm::Observer::connect(socket, &error);
      if (!observer.ok()) return observer.error();
      auto given = observer->counters(&error);
      if (!given.ok()) continue;  // the last one is being emptied
      for (int i = 0; i < 1000 && mappings < 50'000; ++i, ++mappings)
        if (mmap(nullptr, given->bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, given->fd.get(), 0) == MAP_FAILED)
          return "he cannot map it";
      if (mmap(nullptr, given->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, given->fd.get(), 0) != MAP_FAILED ||
          open(("/proc/self/fd/" + std::to_string(given->fd.get())).c_str(), O_RDWR) >= 0)
        return "he may write to it";
      if (kept.size() < 100) kept.push_back(std::move(given->fd));
    } while (leat_now_ns() < until);
    return "";
  });
  arena.fight();
}

}  // namespace
}  // namespace leat::test
