// Fair shares through a whole leatd with emulated partitions: of two users who share all partitions one asks for three
// tenths of his half and the other for five times his. The first keeps what he asks for, the second has what is left.
// Beside it, at the same time on the same machine, another leatd serves the same frames of one user: what there is to
// have. Needs root, to be other users.
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "tests/serving/daemon_fixture.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kModest = 4'000'000'001, kGreedy = 4'000'000'002, kGroup = 4'000'000'011;
constexpr double kSeconds = 5;
// Two modules of 10 ms and 6 ms an item on four partitions: batches of ten carry 4 / (2 x 70 ms) x 10 a second.
constexpr double kFull = 4 / (2 * .070) * 10;

std::string config(const std::string& limits) {
  std::string latency;
  for (int b = 1; b <= 16; ++b) latency += (b > 1 ? ", " : "") + std::to_string(10 + 6 * b);
  return R"([daemon]
socket_mode = "0666"
[limits]
requests = 4096
[limits.user]
requests = 2048
)" + limits +
         R"([[partition]]
name = "p"
kind = "emulated"
count = 4
[[application]]
name = "two"
slo_ms = 500
  [[application.module]]
  name = "first"
  executor = "emulated"
  batch = 16
  latency_ms = [)" +
         latency + R"(]
  [[application.module]]
  name = "second"
  after = ["first"]
  executor = "emulated"
  batch = 16
  latency_ms = [)" +
         latency + "]\n";
}

struct Counted {
  std::uint64_t submitted = 0, completed = 0;
};

// Sends frames at random times for kSeconds, `rate` a second, over some streams, because a stream's slots are few.
Counted send(const std::string& socket, double rate) {
  auto client = Client::connect(socket, "user");
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", client.error().c_str());
    return {};
  }
  StreamOptions options;
  options.application = "two";
  options.format = LEAT_FORMAT_gray8;
  options.width = 64;
  options.height = 16;
  options.depth = options.slots = 64;
  options.overload = LEAT_OVERLOAD_fifo;
  std::vector<Stream> streams;
  for (int i = 0; i < 8; ++i) {
    auto stream = client->open_stream(options);
    if (!stream.ok()) {
      std::fprintf(stderr, "%s\n", stream.error().c_str());
      return {};
    }
    streams.push_back(std::move(*stream));
  }
  std::mt19937_64 random(static_cast<std::uint64_t>(rate));
  std::exponential_distribution<double> gap(rate);
  Counted out;
  std::uint64_t answered = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto wait = [&](std::chrono::nanoseconds max) {
    if (const auto answer = client->next_answer(max)) {
      ++answered;
      out.completed += answer->outcome() == Outcome::completed ? 1 : 0;
    }
  };
  for (double at = gap(random); at < kSeconds; at += gap(random)) {
    const auto due = begin + std::chrono::nanoseconds(static_cast<std::int64_t>(at * 1e9));
    for (auto now = std::chrono::steady_clock::now(); now < due; now = std::chrono::steady_clock::now())
      wait(due - now);
    // Whoever is behind takes answers too: their slots are needed.
    auto frame = streams[out.submitted % streams.size()].acquire();
    for (const auto limit = std::chrono::steady_clock::now() + kPatience;
         !frame && std::chrono::steady_clock::now() < limit;) {
      wait(10ms);
      frame = streams[out.submitted % streams.size()].acquire();
    }
    if (!frame || frame->submit() != LEAT_ERROR_ok) {
      std::fprintf(stderr, "a frame is not taken\n");
      return {};
    }
    ++out.submitted;
  }
  for (const auto end = std::chrono::steady_clock::now() + kPatience;
       answered < out.submitted && std::chrono::steady_clock::now() < end;)
    wait(100ms);
  return out;
}

// A process of another user that sends.
class Sender {
 public:
  Sender(std::uint32_t uid, const std::string& socket, double rate) {
    int words[2];
    if (pipe(words) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      Counted counted;
      if (setgroups(0, nullptr) == 0 && setresgid(kGroup, kGroup, kGroup) == 0 && setresuid(uid, uid, uid) == 0)
        counted = send(socket, rate);
      (void)!write(words[1], &counted, sizeof counted);
      _exit(0);
    }
    close(words[1]);
    from_ = words[0];
  }
  ~Sender() {
    if (pid_ > 0) (void)waitpid(pid_, nullptr, 0);
    close(from_);
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  Counted counted() const {
    Counted out;
    EXPECT_EQ(read(from_, &out, sizeof out), static_cast<ssize_t>(sizeof out));
    return out;
  }

 private:
  pid_t pid_ = -1;
  int from_ = -1;
};

void open_to_all(const Leatd& leatd) {
  const std::string& socket = leatd.socket();
  ASSERT_EQ(chmod(socket.substr(0, socket.rfind('/')).c_str(), 0755), 0);
}

// A modest and a greedy user beside each other; and what one user has who asks for as much as both.
struct Overload {
  Counted modest, greedy;
  double all = 0;
  std::uint64_t within_share = 0;

  double rest() const { return all - static_cast<double>(modest.completed); }
  bool modest_is_served() const {
    return static_cast<double>(modest.completed) >= .995 * static_cast<double>(modest.submitted);
  }
  bool rest_is_used() const { return static_cast<double>(greedy.completed) >= .95 * rest(); }
};

Overload overload() {
  Leatd fair(config("")), nobodys(config(""));
  open_to_all(fair);
  open_to_all(nobodys);
  const Sender modest(kModest, fair.socket(), .15 * kFull), greedy(kGreedy, fair.socket(), 2.5 * kFull),
      one(kGreedy, nobodys.socket(), .15 * kFull), more(kGreedy, nobodys.socket(), 2.5 * kFull);
  Overload out{modest.counted(), greedy.counted()};
  const std::uint64_t first = one.counted().completed, second = more.counted().completed;
  out.all = static_cast<double>(first + second);
  const auto total = fair.total();
  EXPECT_TRUE(total);
  if (total) out.within_share = value(*total, shm::StreamCounter::within_share);
  std::printf("modest: %llu of %llu in time; greedy: %llu of the %.0f that were left; %llu within their shares\n",
              static_cast<unsigned long long>(out.modest.completed),
              static_cast<unsigned long long>(out.modest.submitted),
              static_cast<unsigned long long>(out.greedy.completed), out.rest(),
              static_cast<unsigned long long>(out.within_share));
  return out;
}

TEST(Shares, OneUsersOverloadCostsAnotherNothingBeyondItsShare) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become other users";
  Overload judged = overload();
  for (int more = 1; more <= 2 && !(judged.modest_is_served() && judged.rest_is_used()); ++more)
    judged = overload();  // where the host was not itself for a while
  EXPECT_GT(judged.modest.submitted, 150u);
  EXPECT_GT(judged.greedy.submitted, 2500u);
  EXPECT_TRUE(judged.modest_is_served()) << judged.modest.completed << " of " << judged.modest.submitted;
  EXPECT_TRUE(judged.rest_is_used()) << judged.greedy.completed << " of " << judged.rest();
  EXPECT_GE(judged.within_share, judged.modest.completed);
}

// Both ask for twice what there is; the weights say who gets how much.
TEST(Shares, AUsersWeightIsTheConfigurations) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become other users";
  double ratio = 0;
  for (int attempt = 0; attempt < 3 && std::abs(ratio - 3) > .6; ++attempt) {  // the host may not be itself for a while
    Leatd leatd(config("[limits.users." + std::to_string(kModest) + "]\nshare = 3\n"));
    open_to_all(leatd);
    const Sender heavy(kModest, leatd.socket(), 2 * kFull), light(kGreedy, leatd.socket(), 2 * kFull);
    const Counted three = heavy.counted(), one = light.counted();
    std::printf("share 3: %llu in time, share 1: %llu\n", static_cast<unsigned long long>(three.completed),
                static_cast<unsigned long long>(one.completed));
    ratio = static_cast<double>(three.completed) / static_cast<double>(std::max<std::uint64_t>(one.completed, 1));
  }
  EXPECT_NEAR(ratio, 3, .6);
}

}  // namespace
}  // namespace leat::test
