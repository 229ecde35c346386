// One person with many uids: as many observers as leatd has accounts, hundreds of users who come, are refused and go,
// and a range of subordinate uids. Root is answered, the log stays small, and a range has what one user has.
#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/crowd.h"
#include "tests/attacks/arena/raw_client.h"

namespace leat::test {
namespace {

constexpr uid_t kFirst = 3'000'000'000, kLogin = 2'999'999'999;

#define ONLY_ROOT() \
  if (settings().size() == 1) GTEST_SKIP() << "only root can become many users, and not under a sanitizer"

bool observes(const std::string& socket, std::optional<shm::Observer>* kept) {
  leat_error error{};
  auto observer = shm::Observer::connect(socket, &error);
  if (observer.ok()) *kept = std::move(*observer);
  return observer.ok();
}

TEST(ManyUsers, WithAnObserverEachKeepRootFromNothing) {
  ONLY_ROOT();
  Arena arena(Setting::same_user, {}, "clients = 64\n");
  std::optional<shm::Observer> kept;
  const Crowd crowd(kFirst, 64, [&] { return observes(arena.leatd().socket(), &kept); });
  EXPECT_EQ(crowd.did(), 64U);  // before root has ever come
  EXPECT_NE(arena.leatd().status_json(), "");
}

TEST(ManyUsers, WithAnObserverEachDisturbNobody) {
  ONLY_ROOT();
  std::unique_ptr<Crowd> crowd;
  Arena arena(
      Setting::same_user,
      [&](const std::string& socket, std::int64_t until) -> std::string {
        std::optional<shm::Observer> kept;
        leat_error error{};
        if (!crowd)
          crowd = std::make_unique<Crowd>(kFirst, 64, [&] {
            if (!observes(socket, &kept) || !kept->counters(&error).ok()) return false;
            return true;
          });
        while (leat_now_ns() < until)
          if (const AsUser user(kFirst + 100); !user || !observes(socket, &kept)) return "another had no room";
        return crowd->did() == 64 ? "" : "of 64 users only " + std::to_string(crowd->did()) + " could look";
      },
      "clients = 64\n");
  arena.fight();
}

TEST(ManyUsers, WhoAreRefusedAndGoHaveOneLogTogether) {
  ONLY_ROOT();
  std::uint32_t next = 0;
  Arena arena(
      Setting::same_user,
      [&](const std::string& socket, std::int64_t until) -> std::string {
        while (leat_now_ns() < until || next < 400) {
          const AsUser user(kFirst + next++ % 400);
          leat_client* client = nullptr;
          leat_connect_options options{};
          options.socket = socket.c_str();
          if (const leat_error e = leat_connect(&options, &client); e != LEAT_ERROR_not_permitted)
            return std::string("it was told ") + leat_error_name(e) + ": " + leat_last_error();
        }
        return "";
      },
      "", "", "allow_uids = [" + std::to_string(kLogin) + "]\n");
  const std::int64_t from = leat_now_ns();
  arena.fight();
  const std::string& log = arena.last_log();
  const auto lines = std::count(log.begin(), log.end(), '\n');
  const double seconds = static_cast<double>(leat_now_ns() - from) / 1e9;
  std::printf("%llu refused in %.1f s, %ld lines in the log\n",
              static_cast<unsigned long long>(arena.counted(shm::DaemonCounter::clients_refused)), seconds, lines);
  EXPECT_LE(static_cast<double>(lines), 10 * seconds + 10) << log;  // ten of its own, at start and end
  EXPECT_NE(log.find("lines that clients caused were left out"), std::string::npos) << log;
}

TEST(ManyUsers, OfOneRangeHaveTheLimitsOfItsOwner) {
  ONLY_ROOT();
  const ScratchFolder folder;
  const std::string ranges = folder.write(
      "subuid", "nobody-knows-him:1:1\n" + std::to_string(kLogin) + ":" + std::to_string(kFirst) + ":1000\n");
  std::uint64_t rounds = 0;
  Arena arena(
      Setting::same_user,
      [&](const std::string& socket, std::int64_t until) -> std::string {
        do {
          std::vector<RawClient> clients(40);
          std::uint32_t in = 0, streams = 0;
          for (std::uint32_t i = 0; i < clients.size(); ++i) {
            const AsUser user(kFirst + i);
            const bool came = clients[i].connect(socket) && clients[i].hello();
            in += came;
            streams += came && clients[i].open();
          }
          const bool first = rounds++ == 0;  // later some of the last round are still going
          if (in > 6 || (first && in != 6)) return std::to_string(in) + " of one range's users are connected";
          if (streams > 3 || (first && streams != 3)) return std::to_string(streams) + " streams of one range's users";
          if (in < 6) continue;  // whoever of the last round goes now makes room for one more
          const AsUser user(kFirst + 39);
          leat_client* client = nullptr;
          leat_connect_options options{};
          options.socket = socket.c_str();
          if (leat_connect(&options, &client) == LEAT_ERROR_ok) return "one more is connected";
          if (std::string(leat_last_error()).find("(subordinate uid " + std::to_string(kFirst + 39)) ==
              std::string::npos)
            return std::string("told: ") + leat_last_error();
        } while (leat_now_ns() < until);
        return "";
      },
      "[limits.users." + std::to_string(kLogin) + "]\nsessions = 6\nstreams = 3\n", "",
      "subuid_file = \"" + ranges + "\"\n");
  arena.fight();
  EXPECT_NE(arena.last_log().find("user " + std::to_string(kLogin) + ": refused: user " + std::to_string(kLogin) +
                                  " (subordinate uid "),
            std::string::npos)
      << arena.last_log();
}

}  // namespace
}  // namespace leat::test
