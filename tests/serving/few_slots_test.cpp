// Three slots, which are what a `latest` stream gets whose pictures run for less than half of their period, are enough:
// one is written while one waits and one runs, and nothing is lost.
#include <gtest/gtest.h>

#include <set>

#include "tests/serving/daemon_fixture.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using shm::StreamCounter;

constexpr std::uint64_t kPictures = 40;

TEST(FewSlots, OneIsWrittenWhileOneWaitsAndOneRuns) {
  Leatd leatd(R"(
[[partition]]
name = "p"
kind = "emulated"
[[application]]
name = "a"
slo_ms = 60000
  [[application.module]]
  name = "m"
  executor = "emulated"
  latency_ms = [20]
)");
  auto client = Client::connect(leatd.socket(), "camera");
  ASSERT_TRUE(client.ok()) << leatd.log();
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "a";
  o.format = LEAT_FORMAT_gray8;
  o.width = o.height = 64;
  o.period_ns = 1'000'000'000;
  auto stream = client->open_stream(o);
  ASSERT_TRUE(stream.ok()) << stream.error();
  EXPECT_EQ(leat_stream_slots(stream->raw()), 3U);
  std::set<std::uint64_t> out;
  std::uint64_t replaced = 0;
  const auto take = [&] {
    const auto answer = client->next_answer(10ms);  // nobody is woken for what was replaced
    if (!answer) return;
    EXPECT_EQ(out.erase(answer->raw().cookie), 1U) << "answered twice, or never submitted";
    replaced += answer->reason() == Reason::superseded ? 1 : 0;
    EXPECT_TRUE(answer->outcome() == Outcome::completed || answer->reason() == Reason::superseded);
  };
  for (std::uint64_t picture = 1; picture <= kPictures; ++picture) {
    while (out.size() == 3) take();
    auto frame = stream->acquire();
    ASSERT_TRUE(frame) << "no slot for picture " << picture;
    paint(frame->raw(), picture);
    out.insert(picture);
    ASSERT_EQ(frame->submit({.capture_ns = 0, .cookie = picture}), LEAT_ERROR_ok) << leat_last_error();
  }
  while (!out.empty() && leatd.alive()) take();
  EXPECT_GT(replaced, 0U);
  const auto total = leatd.total();
  ASSERT_TRUE(total.has_value());
  EXPECT_TRUE(balances(*total));
  EXPECT_EQ(value(*total, StreamCounter::submitted), kPictures);
  EXPECT_EQ(value(*total, StreamCounter::completed) + replaced, kPictures);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

}  // namespace
}  // namespace leat::test
