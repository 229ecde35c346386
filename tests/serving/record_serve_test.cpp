// Incidents, recorded by a real leatd and replayed: each action of its scheduler is the same when the same core is fed
// the same, though the leatd was killed in the middle of it. More of them by hand: LEAT_REPLAY=1 has every test of this
// folder replay what its leatd recorded.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/papers/presets.h"
#include "engine/record/history.h"
#include "engine/record/replay.h"
#include "leat/client.hpp"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

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
    EXPECT_TRUE(eventually([&] { return leatd.workers()[0] > 0; }));
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

// Recording begins and ends while leatd serves, by its configuration; nothing else changes.
TEST(RecordServe, RecordingBeginsAndEndsWithTheConfigurationThatIsReadAgain) {
  const ScratchFolder folder;
  const std::string first = folder.path() + "/first.record", second = folder.path() + "/second.record";
  const std::string recording = two_partitions(first), key = "recorder = \"" + first + "\"\n";
  std::string silent = recording;
  silent.replace(silent.find(key), key.size(), "");
  Leatd leatd(silent);
  auto client = Client::connect(leatd.socket(), "hurry");
  ASSERT_TRUE(client.ok()) << client.error();
  std::vector<Stream> streams;
  auto stream = client->open_stream(options(LEAT_OVERLOAD_never_drop));
  ASSERT_TRUE(stream.ok()) << stream.error();
  streams.push_back(std::move(*stream));
  const auto reload = [&](const std::string& config) {
    leatd.rewrite(config);
    const Exit done = run_to_end({LEAT_BINARY, "reload", "--socket", leatd.socket()}, 120s);
    EXPECT_EQ(done.status, 0) << done.err << leatd.log();
  };
  const auto answered = [](const std::string& file) {
    auto record = record::Record::read_file(file);
    if (!record.ok()) return std::ptrdiff_t{-1};
    const auto history = record::history(*record);
    if (!history.ok()) return std::ptrdiff_t{-1};
    EXPECT_FALSE(history->whole);
    return std::ranges::count_if(history->frames, [](const auto& f) { return f.answered_ns != 0; });
  };
  EXPECT_EQ(hurry(*client, streams, 40), 40u);
  EXPECT_FALSE(std::filesystem::exists(first));
  reload(recording);
  EXPECT_EQ(hurry(*client, streams, 50), 50u);
  reload(two_partitions(second));
  EXPECT_EQ(hurry(*client, streams, 60), 60u);
  reload(silent);
  EXPECT_EQ(hurry(*client, streams, 70), 70u);
  EXPECT_TRUE(eventually([&] { return answered(first) == 50; })) << answered(first);
  EXPECT_TRUE(eventually([&] { return answered(second) == 60; })) << answered(second);
  for (const std::string& file : {first, second}) {  // each begins with the core's state
    auto record = record::Record::read_file(file);
    ASSERT_TRUE(record.ok()) << record.error();
    const auto again = record::replay(*record, papers::presets());
    ASSERT_TRUE(again.ok()) << again.error();
    EXPECT_EQ(again->difference, "");
    EXPECT_EQ(again->same, again->actions);
    EXPECT_GE(again->total.submitted - again->before.submitted, 50u);
  }
  const auto total = leatd.total();
  ASSERT_TRUE(total);
  EXPECT_TRUE(balances(*total));
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// What people type: a copy of a record that is being written, shown, replayed, and one that was damaged.
TEST(RecordServe, TheRecordOfALeatdThatRunsIsCopiedShownAndReplayed) {
  const ScratchFolder folder;
  const std::string file = folder.path() + "/leatd.record", copy = folder.path() + "/copy.record",
                    json = folder.path() + "/out.json";
  Leatd leatd(two_partitions(file));
  auto client = Client::connect(leatd.socket(), "hurry");
  ASSERT_TRUE(client.ok()) << client.error();
  std::vector<Stream> streams;
  auto stream = client->open_stream(options(LEAT_OVERLOAD_latest));
  ASSERT_TRUE(stream.ok()) << stream.error();
  streams.push_back(std::move(*stream));
  const std::uint64_t answers = hurry(*client, streams, 300);
  const auto leat = [](std::vector<std::string> words) {
    words.insert(words.begin(), LEAT_BINARY);
    return run_to_end(words, 120s);
  };
  const auto read = [&] {
    std::ifstream in(json);
    return Json::parse(std::string(std::istreambuf_iterator<char>(in), {}));
  };

  Exit done;
  EXPECT_TRUE(eventually([&] {  // it is in the file a moment later
    done = leat({"record", "--socket", leatd.socket(), "-o", copy, "--json=" + json});
    return done.status == 0 && read()["frames"]["submitted"].get<std::uint64_t>() >= answers;
  })) << done.err;
  const Json shown = read();
  EXPECT_TRUE(shown["whole"].get<bool>());
  EXPECT_EQ(shown["lost"]["unread_bytes"].get<int>(), 0);
  EXPECT_EQ(shown["applications"][0]["name"].get<std::string>(), "boxes");
  EXPECT_EQ(shown["partitions"].size(), 2u);

  done = leat({"sim", "--replay", copy, "--json=" + json});
  EXPECT_EQ(done.status, 0) << done.err;
  const Json again = read();
  EXPECT_GE(again["actions"].get<std::uint64_t>(), answers);
  EXPECT_EQ(again["same"], again["actions"]);
  EXPECT_TRUE(again["difference"].is_null());

  // The trace, as another program reads it.
  const std::string trace = folder.path() + "/trace.json";
  done = leat({"trace", copy, "-o", trace});
  EXPECT_EQ(done.status, 0) << done.err;
  done = run_to_end({"/usr/bin/env", "python3", "-c", R"(
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
batches = [e for e in events if e["ph"] == "X"]
print(len(batches), sum(e["args"]["tasks"] for e in batches), sum(e["ph"] == "s" for e in events),
      sum(e["ph"] == "i" and e["pid"] == 2 for e in events), sum(e["name"] == "ready" for e in events))
)",
                     trace},
                    60s);
  EXPECT_EQ(done.status, 0) << done.err;
  auto record = record::Record::read_file(copy);
  ASSERT_TRUE(record.ok()) << record.error();
  const auto history = record::history(*record);
  ASSERT_TRUE(history.ok()) << history.error();
  std::size_t batches = 0, tasks = 0, arrows = 0, unserved = 0, ready = 0;
  std::istringstream(done.err) >> batches >> tasks >> arrows >> unserved >> ready;
  EXPECT_EQ(batches, history->runs.size());
  std::size_t ran = 0;
  for (const record::History::Run& r : history->runs) ran += r.count;
  EXPECT_EQ(tasks, ran);
  EXPECT_GT(arrows, 0u);
  EXPECT_EQ(unserved, static_cast<std::size_t>(std::ranges::count_if(history->frames, [](const auto& f) {
              return f.answered_ns != 0 && f.outcome != Outcome::completed;
            })));
  EXPECT_EQ(ready, static_cast<std::size_t>(std::ranges::count(history->changes, true, &record::History::Change::up)));

  std::fstream bytes(copy, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(128 + 3 * static_cast<std::streamoff>(shown["bytes"].get<std::uint64_t>()) / 4);
  bytes << std::string(64, '\xff');
  bytes.close();
  done = leat({"sim", "--replay", copy});
  EXPECT_NE(done.status, 0);
  EXPECT_LE(done.status, 2) << done.err;
  done = leat({"sim", "--replay", folder.write("text", std::string(200, 'x'))});
  EXPECT_EQ(done.status, 2);
  EXPECT_NE(done.err.find("no record"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace leat::test
