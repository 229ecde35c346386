// leatd has no file descriptor left for another connection. Who connects is told so, who is connected is served on, the
// log says it a few times and not a hundred thousand times, leatd does not spin, and once there are descriptors again
// it takes connections again.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "shm/src/protocol/control_protocol.h"
#include "tests/attacks/arena/arena.h"

namespace leat::test {
namespace {

constexpr const char* kConfig = R"([[partition]]
name = "p"
kind = "emulated"
[[application]]
name = "echo"
slo_ms = 2000
  [[application.module]]
  name = "sum"
  latency_ms = [0.1]
)";

// Of all threads, from /proc/PID/stat.
double cpu_seconds(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  text.erase(0, text.rfind(')') + 2);
  std::istringstream fields(text);
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

rlim_t first_free(pid_t pid) {
  std::set<rlim_t> used;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd"))
    used.insert(std::stoul(entry.path().filename()));
  rlim_t n = 0;
  while (used.contains(n)) ++n;
  return n;
}

// Why the other side closed; empty: it has not.
std::string refusal(const shm::Fd& fd) {
  std::vector<std::byte> packet;
  std::string text;
  shm::Refused m;
  const bool got = shm::receive(fd.get(), false, &packet, nullptr, &text) == shm::Got::message;
  return got && shm::decode(packet, &m) == nullptr ? std::string(shm::text_of(m.text)) : std::string();
}

TEST(NoDescriptors, AreSaidOnceAndSpinNobody) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own checks need descriptors (it looks at memory through a pipe)";
  Leatd leatd(kConfig);
  auto client = Client::connect(leatd.socket(), "honest");
  ASSERT_TRUE(client.ok()) << client.error();
  StreamOptions o;
  o.application = "echo";
  o.format = LEAT_FORMAT_gray8;
  o.width = 64;
  o.height = 16;
  auto stream = client->open_stream(o);
  ASSERT_TRUE(stream.ok()) << stream.error();

  rlimit before{};
  ASSERT_EQ(prlimit(leatd.pid(), RLIMIT_NOFILE, nullptr, &before), 0);
  rlimit none = before;
  none.rlim_cur = first_free(leatd.pid());  // so that no further one can be had
  ASSERT_EQ(prlimit(leatd.pid(), RLIMIT_NOFILE, &none, nullptr), 0);

  constexpr std::int64_t kForNs = 1'000'000'000;
  const double cpu_before = cpu_seconds(leatd.pid());
  const std::int64_t from = leat_now_ns();
  std::vector<shm::Fd> knocking;
  std::uint64_t answered = 0;
  const auto told = [&] {
    return std::any_of(knocking.begin(), knocking.end(), [](const shm::Fd& fd) {
      return refusal(fd).find("no file descriptor left") != std::string::npos;
    });
  };
  // There are always some who wait.
  for (bool one_was_told = false; !one_was_told || leat_now_ns() < from + kForNs;
       one_was_told = one_was_told || told()) {
    ASSERT_LT(leat_now_ns(), from + 60 * kForNs) << "nobody was told why";
    leat_error error{};
    if (auto fd = shm::connect_to(leatd.socket(), &error, 5'000'000); fd.ok()) knocking.push_back(std::move(*fd));
    auto frame = stream->acquire();
    ASSERT_TRUE(frame.has_value());
    ASSERT_EQ(frame->submit({}), LEAT_ERROR_ok);
    ASSERT_TRUE(client->next_answer(kPatience).has_value()) << "who is connected is served no more\n" << leatd.log();
    ++answered;
  }
  const double cpu = cpu_seconds(leatd.pid()) - cpu_before;
  const double seconds = static_cast<double>(leat_now_ns() - from) / 1e9;
  const std::string log = leatd.log();
  const auto lines = std::count(log.begin(), log.end(), '\n');
  std::printf("%zu connections, %llu frames in %.1f s: %.2f s of leatd's CPU time, %td lines in its log\n",
              knocking.size(), static_cast<unsigned long long>(answered), seconds, cpu, lines);
  EXPECT_LT(lines, 20) << log;
  EXPECT_NE(log.find("no file descriptor left"), std::string::npos) << log;
  EXPECT_LT(cpu, seconds / 5) << "leatd spins";

  ASSERT_EQ(prlimit(leatd.pid(), RLIMIT_NOFILE, &before, nullptr), 0);
  knocking.clear();
  EXPECT_TRUE(eventually([&] { return !leatd.status_json().empty(); })) << "it takes no connections any more";
  const auto daemon = leatd.record(shm::RecordKind::daemon, 0);
  ASSERT_TRUE(daemon.has_value());
  EXPECT_GT(daemon->value(shm::DaemonCounter::accept_pauses).value_or(0), 0U);
  EXPECT_GT(daemon->value(shm::DaemonCounter::clients_refused).value_or(0), 0U);
  EXPECT_LE(daemon->value(shm::DaemonCounter::accept_pauses).value_or(0), static_cast<std::uint64_t>(seconds * 100) + 2)
      << "the pauses are too short";
}

// Descriptors in flight that somebody else of leatd's own user sent and nobody reads: the kernel lets leatd send none.
class InFlight {
 public:
  InFlight(std::uint32_t uid, int count) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      rlimit many{};
      int ends[2];
      bool good = getrlimit(RLIMIT_NOFILE, &many) == 0;
      many.rlim_cur = many.rlim_max;
      good = good && setrlimit(RLIMIT_NOFILE, &many) == 0 && setresuid(uid, uid, uid) == 0;
      for (int sent = 0; good && sent < count;) {  // each pair holds as many as its buffer takes
        good = socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0;
        const int fds[] = {ends[0], ends[0], ends[0], ends[0]};
        while (good && sent < count &&
               shm::send_packet(ends[0], shm::encode(shm::StatusRequest{}), fds) == shm::Sent::sent)
          sent += 4;
      }
      const char byte = good ? 'y' : 'n';
      (void)!write(ready[1], &byte, 1);
      pause();
      _exit(0);
    }
    close(ready[1]);
    char byte = 'n';
    there_ = read(ready[0], &byte, 1) == 1 && byte == 'y';
    close(ready[0]);
  }
  ~InFlight() { end(); }
  bool there() const { return there_; }
  void end() {
    if (pid_ <= 0) return;
    (void)::kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = -1;
  bool there_ = false;
};

TEST(NoDescriptors, ToSendAreNobodysFault) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string user = std::to_string(kOtherUser);
  Leatd leatd(std::string("[daemon]\nsocket_mode = \"0666\"\n") + kConfig, {},
              {"/usr/bin/setpriv", "--reuid", user, "--regid", user, "--clear-groups", "/usr/bin/prlimit",
               "--nofile=1024:1024"},
              kOtherUser);
  auto client = Client::connect(leatd.socket(), "honest");
  ASSERT_TRUE(client.ok()) << client.error();
  StreamOptions o;
  o.application = "echo";
  o.format = LEAT_FORMAT_gray8;
  o.width = 64;
  o.height = 16;
  auto stream = client->open_stream(o);
  ASSERT_TRUE(stream.ok()) << stream.error();
  const auto served = [&] {
    auto frame = stream->acquire();
    if (!frame || frame->submit({}) != LEAT_ERROR_ok) return false;
    return client->next_answer(kPatience).has_value();
  };

  const auto counters = leatd.counters();  // now: no observer gets them later
  ASSERT_TRUE(counters);
  const auto unsent = [&] {
    const auto daemon = counters->snapshot(shm::RecordKind::daemon, 0);
    return daemon ? daemon->value(shm::DaemonCounter::sends_exhausted).value_or(0) : 0;
  };

  InFlight foreign(kOtherUser, 3000);
  ASSERT_TRUE(foreign.there());
  auto another = Client::connect(leatd.socket(), "late");
  ASSERT_FALSE(another.ok()) << "this kernel does not count what is in flight";
  EXPECT_NE(another.error().find("in flight"), std::string::npos) << another.error();
  EXPECT_FALSE(client->open_stream(o).ok());
  EXPECT_TRUE(client->connected()) << "who asked for a stream was thrown out for it";
  EXPECT_TRUE(served());
  const auto worker = leatd.workers().at(0);
  ASSERT_EQ(::kill(worker, SIGKILL), 0);  // its successor cannot be told anything now
  const std::uint64_t unsent_before = unsent();
  const std::int64_t from = leat_now_ns();
  const auto successor = [&] {
    const pid_t now = leatd.workers().at(0);
    return now > 0 && now != worker;
  };
  // By attempts, not by CPU time, of which these questions alone cost it half under a sanitizer.
  EXPECT_TRUE(eventually([&] { return unsent() >= unsent_before + 5; })) << "it does not try again";
  EXPECT_FALSE(successor());
  const std::uint64_t attempts = unsent() - unsent_before;
  const double seconds = static_cast<double>(leat_now_ns() - from) / 1e9;
  std::printf("%llu attempts to tell the successor in %.1f s\n", static_cast<unsigned long long>(attempts), seconds);
  EXPECT_LE(attempts, static_cast<std::uint64_t>(seconds * 50) + 2) << "leatd spins";

  foreign.end();
  EXPECT_TRUE(eventually(successor)) << "the worker does not come back";
  EXPECT_TRUE(served());
  auto again = Client::connect(leatd.socket(), "late");
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_TRUE(again->open_stream(o).ok());
  const auto daemon = leatd.record(shm::RecordKind::daemon, 0);
  EXPECT_EQ(daemon->value(shm::DaemonCounter::clients_violated).value_or(0), 0U) << "somebody was blamed for it";
}

}  // namespace
}  // namespace leat::test
