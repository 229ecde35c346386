// Incidents, recorded by a real leatd and replayed: each action of its scheduler is the same when the same core is fed
// the same, though the leatd was killed in the middle of it. More of them by hand: LEAT_REPLAY=1 has every test of this
// folder replay what its leatd recorded.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "engine/papers/presets.h"
#include "engine/record/history.h"
#include "engine/record/replay.h"
#include "leat/client.hpp"
#include "tests/serving/daemon_fixture.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

std::string two_partitions(const std::string& record) {
  return "[daemon]\nrecorder = \"" + record + R"("
[[partition]]
name = "p"
kind = "emulated"
count = 2
[[application]]
name = "boxes"
slo_ms = 60
  [[application.module]]
  name = "detect"
  executor = "emulated"
  batch = 4
  latency_ms = [4, 6, 8, 10]
  [[application.module]]
  name = "classify"
  after = ["detect"]
  executor = "emulated"
  batch = 4
  latency_ms = [2, 3, 4, 5]
)";
}

StreamOptions options(leat_overload overload) {
  StreamOptions o;
  o.application = "boxes";
  o.format = LEAT_FORMAT_gray8;
  o.width = o.height = 16;
  o.depth = 8;
  o.overload = overload;
  return o;
}

// What becomes of `count` frames that are submitted as fast as there are slots.
std::uint64_t hurry(Client& client, std::vector<Stream>& streams, std::uint64_t count) {
  std::uint64_t sent = 0, answered = 0;
  while (answered < count) {
    for (Stream& stream : streams) {
      if (sent == count) break;
      auto frame = stream.acquire();
      if (frame && frame->submit() == LEAT_ERROR_ok) ++sent;
    }
    while (client.next_answer(answered < sent ? 20ms : 0ms)) ++answered;
  }
  return answered;
}

record::Replayed replayed(const std::string& file) {
  auto record = record::Record::read_file(file);
  EXPECT_TRUE(record.ok()) << record.error();
  if (!record.ok()) return {};
  const auto again = record::replay(*record, papers::presets());
  EXPECT_TRUE(again.ok()) << again.error();
  return again.ok() ? *again : record::Replayed{};
}

// Overload, a worker killed, a client that goes in the middle, the plan measured anew, and leatd killed.
TEST(RecordServe, IncidentsAreReplayedToTheLastAction) {
  const ScratchFolder folder;
  const std::string file = folder.path() + "/leatd.record";
  std::uint64_t answers = 0;
  {
    Leatd leatd(two_partitions(file));
    auto client = Client::connect(leatd.socket(), "hurry");
    ASSERT_TRUE(client.ok()) << client.error();
    std::vector<Stream> streams;
    for (const leat_overload overload : {LEAT_OVERLOAD_fifo, LEAT_OVERLOAD_latest, LEAT_OVERLOAD_fifo}) {
      auto stream = client->open_stream(options(overload));
      ASSERT_TRUE(stream.ok()) << stream.error();
      streams.push_back(std::move(*stream));
    }
    answers += hurry(*client, streams, 400);
    const auto workers = leatd.workers();
    ASSERT_EQ(workers.size(), 2u);
    ASSERT_EQ(kill(workers[0], SIGKILL), 0);
    answers += hurry(*client, streams, 200);
    {
      auto gone = Client::connect(leatd.socket(), "gone");
      ASSERT_TRUE(gone.ok()) << gone.error();
      auto stream = gone->open_stream(options(LEAT_OVERLOAD_fifo));
      ASSERT_TRUE(stream.ok()) << stream.error();
      for (int i = 0; i < 4; ++i)
        if (auto frame = stream->acquire()) (void)frame->submit();
    }
    EXPECT_TRUE(eventually([&] { return leatd.workers()[0] > 0; }, 30000ms));
    answers += hurry(*client, streams, 200);
    // All of it is in the file a moment later.
    EXPECT_TRUE(eventually([&] {
      auto record = record::Record::read_file(file);
      if (!record.ok()) return false;
      const auto history = record::history(*record);
      return history.ok() && static_cast<std::uint64_t>(std::ranges::count_if(
                                 history->frames, [](const auto& f) { return f.answered_ns != 0; })) >= answers;
    }));
    leatd.kill();
  }
  const record::Replayed again = replayed(file);
  EXPECT_EQ(again.difference, "");
  EXPECT_EQ(again.cut, "");
  EXPECT_EQ(again.same, again.actions);
  EXPECT_GE(again.total.submitted, answers);
  EXPECT_GE(again.losses, 1u);
}

}  // namespace
}  // namespace leat::test
