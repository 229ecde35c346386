// Streams that wait for grants, through a whole leatd with an emulated partition: in overload clients make what is
// wanted and little else, everybody has his turn, and a client that promises and does not deliver holds nobody up.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

using shm::StreamCounter;

constexpr std::int64_t kMs = 1'000'000, kPeriod = 20 * kMs, kLength = 1'500 * kMs;
constexpr std::uint32_t kCameras = 6;

// A partition that does 100 frames a second.
const char* const kConfig = R"([[partition]]
name = "p"
kind = "emulated"
count = 1
[[application]]
name = "sum"
slo_ms = 60000
  [[application.module]]
  name = "sum"
  executor = "emulated"
  batch = 1
  latency_ms = [10]
)";

StreamOptions options(bool grants = true) {
  StreamOptions o;
  o.application = "sum";
  o.format = LEAT_FORMAT_gray8;
  o.width = 64;
  o.height = 16;
  o.waits_for_grants = grants ? 1 : 0;
  return o;
}

// A camera whose pictures can wait, one thread.
struct Camera {
  explicit Camera(const Leatd& leatd) {
    auto connected = Client::connect(leatd.socket(), "camera");
    EXPECT_TRUE(connected.ok()) << connected.error();
    client.emplace(std::move(*connected));
    auto opened = client->open_stream(options());
    EXPECT_TRUE(opened.ok()) << opened.error();
    stream.emplace(std::move(*opened));
  }
  void film(std::int64_t from, std::int64_t until) {
    for (std::int64_t due = from; due < until; due += kPeriod) {
      take_answers(due - leat_now_ns());
      ++taken;
      bool wanted = stream->wanted(due);
      while (!wanted && leat_now_ns() < due + kPeriod) {
        (void)client->wait_any(std::chrono::nanoseconds(due + kPeriod - leat_now_ns()));
        take_answers(0);
        wanted = stream->wanted(due);
      }
      if (!wanted) continue;
      auto frame = stream->acquire();
      if (frame && frame->submit({.capture_ns = due}) == LEAT_ERROR_ok) ++submitted;
    }
    const std::int64_t limit = leat_now_ns() + 60'000 * kMs;
    while (answered < submitted && leat_now_ns() < limit) take_answers(20 * kMs);
  }
  void take_answers(std::int64_t wait_ns) {
    const std::int64_t until = leat_now_ns() + wait_ns;
    do {
      auto answer = client->next_answer(std::chrono::nanoseconds(std::max<std::int64_t>(0, until - leat_now_ns())));
      if (!answer) continue;
      ++answered;
      superseded += answer->raw().reason == LEAT_REASON_superseded ? 1 : 0;
      completed += answer->outcome() == Outcome::completed ? 1 : 0;
    } while (leat_now_ns() < until);
  }
  std::optional<Client> client;
  std::optional<Stream> stream;
  std::uint32_t taken = 0, submitted = 0, answered = 0, completed = 0, superseded = 0;
};

// What became of the cameras' pictures.
struct Filmed {
  std::uint32_t taken = 0, submitted = 0, superseded = 0, without_a_turn = 0;
  // Three times as many as can be served; few were made that were not.
  [[nodiscard]] bool good() const {
    return submitted < taken * 3 / 4 && superseded * 10 <= submitted && without_a_turn == 0;
  }
};

Filmed film_beside_a_liar() {
  Leatd leatd(kConfig);
  std::vector<std::unique_ptr<Camera>> cameras;
  for (std::uint32_t c = 0; c < kCameras; ++c) cameras.push_back(std::make_unique<Camera>(leatd));
  // One that says that it has pictures, more than anybody could, and makes none.
  Camera liar(leatd);
  const std::int64_t start = leat_now_ns() + 20 * kMs;
  std::vector<std::thread> threads;
  for (std::uint32_t c = 0; c < kCameras; ++c)
    threads.emplace_back([&, c] {
      const std::int64_t phase = start + c * kPeriod / kCameras;
      cameras[c]->film(phase, phase + kLength);
    });
  for (std::int64_t until = start + kLength, capture = start; leat_now_ns() < until;) {
    capture = std::max(capture, leat_now_ns());  // or its picture would be the oldest, and everybody else's goes first
    for (int i = 0; i < 1000; ++i) (void)liar.stream->wanted(++capture);
  }
  for (std::thread& t : threads) t.join();

  Filmed out;
  for (const auto& c : cameras) {
    EXPECT_EQ(c->answered, c->submitted);
    out.without_a_turn += c->completed == 0 ? 1 : 0;
    out.taken += c->taken, out.submitted += c->submitted, out.superseded += c->superseded;
  }
  ScratchFolder folder;
  const std::string file = folder.path() + "/status.json";
  EXPECT_EQ(run_to_end({LEAT_BINARY, "status", "--socket", leatd.socket(), "--json", file}).status, 0);
  std::ifstream in(file);
  const Json told = Json::parse(std::string(std::istreambuf_iterator<char>(in), {}))["grants"];
  EXPECT_EQ(told.size(), kCameras + 1);
  const double seconds = static_cast<double>(leat_now_ns() - start) / 1e9;
  for (const Json& each : told) {
    const auto offered = each["offered"].get<std::uint64_t>(), sent = each["submitted"].get<std::uint64_t>();
    EXPECT_GE(offered, sent);
    EXPECT_LE(static_cast<double>(offered), 10'000 * (seconds + 1)) << "more a second are not believed";
    out.without_a_turn += each["granted"].get<std::uint64_t>() == 0 ? 1 : 0;
  }
  return out;
}

TEST(GrantsServe, WhatIsMadeIsUsedAndEverybodyHasHisTurn) {
  Filmed filmed = film_beside_a_liar();
  for (int more = 0; more < 4 && !filmed.good(); ++more)
    filmed = film_beside_a_liar();  // where the host was not itself for a while
  EXPECT_TRUE(filmed.good()) << filmed.taken << " taken, " << filmed.submitted << " submitted, " << filmed.superseded
                             << " superseded, " << filmed.without_a_turn << " had no turn";
}

// One thread waits for its turn while another waits for answers: neither keeps the other's wakes.
TEST(GrantsServe, TwoThreadsOfAClientWaitAtOnce) {
  Leatd leatd(kConfig);
  Camera camera(leatd), other(leatd);
  constexpr std::uint32_t kFrames = 40;
  std::thread busy([&] {  // so that there are turns
    const std::int64_t now = leat_now_ns();
    other.film(now, now + kLength / 2);
  });
  std::atomic<std::uint32_t> answered = 0;
  std::thread answers([&] {
    while (answered < kFrames) {
      if (!camera.client->next_answer(kPatience)) break;
      ++answered;
    }
  });
  std::uint32_t submitted = 0;
  for (std::int64_t capture = leat_now_ns(); submitted < kFrames; ++capture) {
    ASSERT_TRUE(camera.stream->wait_wanted(kPatience, capture)) << leat_last_error();
    ASSERT_TRUE(eventually([&] { return submitted - answered < 3; }));
    auto frame = camera.stream->acquire();
    if (!frame) continue;  // its answer is being released
    ASSERT_EQ(frame->submit(), LEAT_ERROR_ok);
    ++submitted;
  }
  answers.join();
  busy.join();
  EXPECT_EQ(answered, kFrames);
}

TEST(GrantsServe, WhatCannotBeIsRefused) {
  Leatd leatd(kConfig);
  auto client = Client::connect(leatd.socket(), "odd");
  ASSERT_TRUE(client.ok());
  StreamOptions both = options();
  both.sla_drop_ppm = 60'000;
  both.period_ns = kPeriod;
  EXPECT_FALSE(client->open_stream(both).ok());
  StreamOptions word = options();
  word.waits_for_grants = 2;
  EXPECT_FALSE(client->open_stream(word).ok());
  // A stream that does not wait is always wanted, and one that does as long as there is room.
  auto plain = client->open_stream(options(false));
  auto waits = client->open_stream(options());
  ASSERT_TRUE(plain.ok() && waits.ok());
  EXPECT_TRUE(plain->wanted());
  EXPECT_TRUE(waits->wait_wanted(std::chrono::nanoseconds(0)));
  (void)client->answer_fd();
  EXPECT_EQ(leat_wait_any(client->raw(), 1), LEAT_ERROR_invalid_argument);
}

}  // namespace
}  // namespace leat::test
