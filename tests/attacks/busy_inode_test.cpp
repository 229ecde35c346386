// A stream's memory is mapped by its client tens of thousands of times and then punched: whoever seals it waits for the
// lock of its inode as long as the kernel goes through all of those mappings. That is a job of its user's; who connects
// and opens a stream meanwhile waits no longer than he would alone.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>

#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/raw_client.h"

namespace leat::test {
namespace {

constexpr int kMappings = 55'000, kProcesses = 8;  // about as many as a process may have, in each
constexpr int kNewcomers = 20;
constexpr std::uint64_t kBytes = 64 << 10;

constexpr const char* kOneModule = R"([daemon]
socket_mode = "0666"
[[partition]]
name = "p"
kind = "emulated"
[[application]]
name = "echo"
slo_ms = 2000
  [[application.module]]
  name = "sum"
  latency_ms = [0.1]
)";

// Punches until it is killed, and has its memory sealed meanwhile. Says when it begins, and how long the first hole
// took: less than nothing if its memory was sealed first, which forbids holes.
[[noreturn]] void punch_for_ever(const std::string& socket, int says) {
  RawClient client;
  if (setresuid(kOtherUser, kOtherUser, kOtherUser) != 0 || !client.connect(socket) || !client.hello()) _exit(1);
  if (!client.open_unmapped({LEAT_FORMAT_gray8, 256, 256, {}, 1, LEAT_SLOT_HOST})) _exit(2);
  for (int i = 0; i < kMappings; ++i)
    if (mmap(nullptr, shm::kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, client.frames.get(),
             (i & 1) * shm::kPage) == MAP_FAILED)
      break;
  const pid_t parent = getpid();
  for (int i = 1; i < kProcesses; ++i)
    if (fork() == 0) {  // its mappings are copies
      while (getppid() == parent) usleep(1000);
      _exit(0);
    }
  const auto punch = [&] {
    return fallocate(client.frames.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kBytes) == 0;
  };
  const auto say = [&](std::int64_t ns) { (void)!write(says, &ns, sizeof ns); };
  if (fork() == 0) {
    say(0);
    const std::int64_t from = leat_now_ns();
    const bool punched = punch();
    say(punched ? leat_now_ns() - from : -1);
    while (getppid() == parent) (void)punch();
    _exit(0);
  }
  usleep(3000);
  shm::Mapped m;
  m.stream = client.stream;
  m.header.request = 99;
  (void)shm::send(client.socket.get(), m);
  for (;;) pause();
}

// Milliseconds, the most of some.
double to_connect_and_open(const std::string& socket) {
  double longest = 0;
  for (int i = 0; i < kNewcomers; ++i) {
    const std::int64_t from = leat_now_ns();
    auto client = Client::connect(socket, "newcomer");
    StreamOptions o;
    o.application = "echo";
    o.format = LEAT_FORMAT_gray8;
    o.width = 64;
    o.height = 16;
    EXPECT_TRUE(client.ok() && client->open_stream(o).ok());
    longest = std::max(longest, static_cast<double>(leat_now_ns() - from) / 1e6);
  }
  return longest;
}

struct Beside {
  double connect_ms = 0;
  double punch_ms = 0;  // less than nothing: there was no hole to wait for
};

// What newcomers wait while somebody punches.
Beside beside_a_punch(const std::string& socket) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const shm::Fd reader(pipe_ends[0]);
  const pid_t assailant = fork();
  if (assailant == 0) punch_for_ever(socket, pipe_ends[1]);
  close(pipe_ends[1]);
  const auto word = [&] {
    std::int64_t ns = -1;
    EXPECT_EQ(read(reader.get(), &ns, sizeof ns), static_cast<ssize_t>(sizeof ns));
    return ns;
  };
  EXPECT_EQ(word(), 0);
  Beside beside;
  beside.connect_ms = to_connect_and_open(socket);
  beside.punch_ms = static_cast<double>(word()) / 1e6;
  (void)kill(assailant, SIGKILL);
  (void)waitpid(assailant, nullptr, 0);
  return beside;
}

TEST(BusyInode, HoldsUpNobody) {
  if (settings().size() == 1) GTEST_SKIP() << "only root can become another user";
  Leatd leatd(kOneModule);
  const double alone = to_connect_and_open(leatd.socket());
  Beside beside = beside_a_punch(leatd.socket());
  const auto held_up_nobody = [&] { return beside.connect_ms < beside.punch_ms * 2 / 3; };
  // On a busy host the puncher may lose its core just before its first hole, or a newcomer his.
  for (int more = 0; !held_up_nobody() && more < (beside.punch_ms < 0 ? 50 : 10); ++more)
    beside = beside_a_punch(leatd.socket());
  std::printf("connect and open: %.2f ms alone, %.2f ms beside one whose hole takes %.1f ms\n", alone,
              beside.connect_ms, beside.punch_ms);
  EXPECT_TRUE(held_up_nobody()) << "who was sealed first held up the others";
  EXPECT_FALSE(leatd.status_json().empty());
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

}  // namespace
}  // namespace leat::test
