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
    for (const auto limit = std::chrono::steady_clock::now() + 10s;
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
  for (const auto end = std::chrono::steady_clock::now() + 10s;
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

TEST(Shares, OneUsersOverloadCostsAnotherNothingBeyondItsShare) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become other users";
  Leatd fair(config("")), nobodys(config(""));
  open_to_all(fair);
  open_to_all(nobodys);
  const Sender modest(kModest, fair.socket(), .15 * kFull), greedy(kGreedy, fair.socket(), 2.5 * kFull),
      one(kGreedy, nobodys.socket(), .15 * kFull), more(kGreedy, nobodys.socket(), 2.5 * kFull);
  const Counted small = modest.counted(), large = greedy.counted(), first = one.counted(), second = more.counted();
  ASSERT_GT(small.submitted, 150u);
  ASSERT_GT(large.submitted, 2500u);
  const auto in_time = static_cast<double>(small.completed), rest = static_cast<double>(large.completed),
             all = static_cast<double>(first.completed + second.completed);
  EXPECT_GE(in_time, .995 * static_cast<double>(small.submitted));
  EXPECT_GE(rest, .95 * (all - in_time));
  const auto total = fair.total();
  ASSERT_TRUE(total);
  const std::uint64_t within = value(*total, shm::StreamCounter::within_share);
  std::printf("modest: %.0f of %llu in time; greedy: %.0f of the %.0f that were left; %llu within their shares\n",
              in_time, static_cast<unsigned long long>(small.submitted), rest, all - in_time,
              static_cast<unsigned long long>(within));
  EXPECT_GE(within, small.completed);
}

// Both ask for twice what there is; the weights say who gets how much.
TEST(Shares, AUsersWeightIsTheConfigurations) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become other users";
  Leatd leatd(config("[limits.users." + std::to_string(kModest) + "]\nshare = 3\n"));
  open_to_all(leatd);
  const Sender heavy(kModest, leatd.socket(), 2 * kFull), light(kGreedy, leatd.socket(), 2 * kFull);
  const Counted three = heavy.counted(), one = light.counted();
  std::printf("share 3: %llu in time, share 1: %llu\n", static_cast<unsigned long long>(three.completed),
              static_cast<unsigned long long>(one.completed));
  ASSERT_GT(one.completed, 0u);
  EXPECT_NEAR(static_cast<double>(three.completed) / static_cast<double>(one.completed), 3, .6);
}

}  // namespace
}  // namespace leat::test
