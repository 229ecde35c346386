// Frames through a whole leatd with emulated partitions: right bytes, one answer each, an exact ledger.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "engine/record/history.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/text/fd.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using shm::RecordKind;
using shm::StreamCounter;

// Two equal partitions, one module (an SLO that a busy machine keeps; tests that want haste ask for it), `latency` for
// a batch of 1, 2, 4.
std::string one_module(const std::string& latency, const std::string& more = "") {
  return more + R"(
[[partition]]
name = "p"
kind = "emulated"
count = 2
[[application]]
name = "echo"
slo_ms = 60000
  [[application.module]]
  name = "sum"
  executor = "emulated"
  latency_ms = )" +
         latency + "\n";
}

leat_stream_options small(const char* application, std::uint32_t depth = 8) {
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = application;
  o.format = LEAT_FORMAT_gray8;
  o.width = 64;
  o.height = 16;
  o.depth = o.slots = depth;  // never more in flight than the stream may have
  o.overload = LEAT_OVERLOAD_fifo;
  return o;
}

struct Connected {
  Result<Client> client;
  Result<Stream> stream;
};
Connected connect(const Leatd& leatd, const char* name, const leat_stream_options& options) {
  auto client = Client::connect(leatd.socket(), name);
  auto stream = client.ok() ? client->open_stream(options) : Result<Stream>(Error{client.error()});
  return {.client = std::move(client), .stream = std::move(stream)};
}

struct Tally {
  std::map<Outcome, std::uint64_t> outcomes;
  std::uint64_t wrong = 0;  // answers with a checksum that is not the frame's
};

// Submits `count` frames, up to the stream's slots at a time, and takes every answer.
Tally pump(Client& client, Stream& stream, std::uint64_t count, std::uint64_t seed) {
  Tally tally;
  std::map<std::uint64_t, std::uint64_t> expected;  // cookie -> checksum
  std::uint64_t sent = 0, answered = 0;
  while (answered < count) {
    while (sent < count) {
      auto frame = stream.acquire();
      if (!frame) break;
      leat_submit_options options{};
      options.cookie = ++sent;
      expected[sent] = paint(frame->raw(), seed + sent);
      EXPECT_EQ(frame->submit(options), LEAT_ERROR_ok) << leat_last_error();
    }
    auto answer = client.next_answer(30s);
    if (!answer) {
      ADD_FAILURE() << "no answer: " << leat_last_error();
      return tally;
    }
    ++answered;
    ++tally.outcomes[answer->outcome()];
    if (answer->result() != nullptr && answer->result()->checksum != expected[answer->raw().cookie]) ++tally.wrong;
  }
  return tally;
}

// A thread's slice in nanoseconds, by sched_getattr(); 0: this kernel (before Linux 6.12) does not say.
std::uint64_t slice_ns(pid_t thread) {
  std::array<unsigned char, 48> attributes{};
  std::uint64_t slice = 0;
  if (syscall(SYS_sched_getattr, thread, attributes.data(), attributes.size(), 0) == 0)
    std::memcpy(&slice, attributes.data() + 24, sizeof slice);
  return slice;
}

TEST(Serve, TheSchedulerThreadAsksForTheShortestSlice) {
  if (slice_ns(0) == 0) GTEST_SKIP() << "this kernel gives no slices of one's own";
  const Leatd leatd(one_module("[0.1]"));  // no partition has the scheduler thread's core
  ASSERT_TRUE(leatd.alive());
  const auto shortest = [&] {
    int threads = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(leatd.pid()) + "/task"))
      threads += slice_ns(std::stoi(task.path().filename())) == 100'000;
    return threads;
  };
  EXPECT_TRUE(eventually([&] { return shortest() == 1; })) << shortest() << " threads";
}

TEST(Serve, EveryFrameIsAnsweredOnceWithItsOwnBytes) {
  Leatd leatd(one_module("[0]"));
  auto [client, stream] = connect(leatd, "serve", small("echo"));
  ASSERT_TRUE(stream.ok()) << stream.error();
  const Tally tally = pump(*client, *stream, 2000, 1);
  EXPECT_EQ(tally.outcomes.at(Outcome::completed), 2000U);
  EXPECT_EQ(tally.wrong, 0U);
  const auto total = leatd.total();
  ASSERT_TRUE(total.has_value());
  EXPECT_TRUE(balances(*total));
  EXPECT_EQ(value(*total, StreamCounter::submitted), 2000U);
  EXPECT_EQ(value(*total, StreamCounter::bytes_copied), 0U);
  // All histograms have readers in top: none may stay empty.
  for (const auto kind :
       {RecordKind::total, RecordKind::stream, RecordKind::module, RecordKind::partition, RecordKind::daemon})
    for (const auto which : {shm::Which::first, shm::Which::second})
      EXPECT_GT(leatd.record(kind, 0)->observations(which), 0U)
          << shm::name_of(kind) << ", " << static_cast<int>(which);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// Workers begin a second batch beside the first.
TEST(Serve, BatchesThatOverlapAreAnsweredOnceWithTheirOwnBytes) {
  Leatd leatd(one_module("[0.5, 0.6, 0.7]", "[workers]\noverlap = \"on\"\nmax_backoff_ms = 10\n"));
  for (const pid_t worker : leatd.workers()) {
    const std::filesystem::directory_iterator threads("/proc/" + std::to_string(worker) + "/task"), end;
    EXPECT_EQ(std::distance(threads, end), 2) << "models run on a thread of their own";
  }
  auto [client, stream] = connect(leatd, "overlap", small("echo"));
  ASSERT_TRUE(stream.ok()) << stream.error();
  Tally tally = pump(*client, *stream, 1000, 1);
  EXPECT_EQ(tally.outcomes[Outcome::completed] + tally.outcomes[Outcome::late], 1000U);
  EXPECT_EQ(tally.wrong, 0U);
  int killed = 0;
  for (int i = 0; i < 5; ++i) {
    int submitted = 0;
    for (auto frame = stream->acquire(); frame; frame = stream->acquire(), ++submitted)
      ASSERT_EQ(frame->submit(), LEAT_ERROR_ok);
    for (const pid_t worker : leatd.workers()) {
      if (worker == 0) continue;
      const bool there = kill(worker, SIGKILL) == 0;
      killed += there;
      EXPECT_TRUE(there || errno == ESRCH);  // the one killed last may not be replaced yet
    }
    for (; submitted > 0; --submitted) ASSERT_TRUE(client->next_answer(30s).has_value());
  }
  EXPECT_GE(killed, 2);
  EXPECT_TRUE(eventually([&] { return value(*leatd.total(), StreamCounter::in_flight) == 0; }, 60s));
  EXPECT_TRUE(balances(*leatd.total()));
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

TEST(Serve, AChainOfModulesAnswersOnce) {
  Leatd leatd(R"(
[[partition]]
name = "p"
kind = "emulated"
count = 3
[[application]]
name = "chain"
slo_ms = 60000
  [[application.module]]
  name = "a"
  latency_ms = [0.2, 0.3, 0.4]
  [[application.module]]
  name = "b"
  after = ["a"]
  latency_ms = [0.1, 0.2]
  [[application.module]]
  name = "c"
  after = ["a"]
  latency_ms = [0.1, 0.2]
  [[application.module]]
  name = "d"
  after = ["b", "c"]
  latency_ms = [0.1]
)");
  auto [client, stream] = connect(leatd, "chain", small("chain"));
  ASSERT_TRUE(stream.ok()) << stream.error();
  const Tally tally = pump(*client, *stream, 300, 7);
  EXPECT_EQ(tally.outcomes.at(Outcome::completed), 300U);
  EXPECT_EQ(tally.wrong, 0U);
  for (std::uint32_t m = 0; m < 4; ++m)
    EXPECT_EQ(leatd.record(RecordKind::module, m)->value(shm::ModuleCounter::tasks), 300U) << "module " << m;
  EXPECT_EQ(leatd.stop(), 0);
}

TEST(Serve, OverloadIsAnsweredAndCounted) {
  Leatd leatd(one_module("[20]"));
  auto client = Client::connect(leatd.socket(), "flood");
  ASSERT_TRUE(client.ok()) << client.error();
  auto options = small("echo", 16);
  options.slo_ns = 60'000'000;  // two partitions of 50 a second: most of a burst cannot make it
  auto stream = client->open_stream(options);
  ASSERT_TRUE(stream.ok()) << stream.error();
  Tally tally = pump(*client, *stream, 200, 3);
  std::uint64_t sum = 0;
  for (const auto& [outcome, count] : tally.outcomes) sum += count;
  EXPECT_EQ(sum, 200U);
  EXPECT_LT(tally.outcomes[Outcome::completed], 200U);
  EXPECT_EQ(tally.wrong, 0U);
  const auto total = leatd.total();
  EXPECT_TRUE(balances(*total));
  EXPECT_EQ(value(*total, StreamCounter::in_flight), 0U);
  EXPECT_EQ(value(*total, StreamCounter::completed), tally.outcomes[Outcome::completed]);
}

TEST(Serve, ClosingAStreamAnswersWhatWaits) {
  Leatd leatd(one_module("[30]"));
  auto client = Client::connect(leatd.socket(), "close");
  ASSERT_TRUE(client.ok());
  {
    auto stream = client->open_stream(small("echo", 6));
    ASSERT_TRUE(stream.ok());
    for (int i = 0; i < 6; ++i) ASSERT_EQ(stream->acquire()->submit(), LEAT_ERROR_ok);
  }
  const auto total = leatd.total();
  EXPECT_TRUE(balances(*total));
  EXPECT_EQ(value(*total, StreamCounter::submitted), 6U);
  EXPECT_EQ(value(*total, StreamCounter::in_flight), 0U) << "close answers everything first";
  auto again = client->open_stream(small("echo", 6));  // the index and its memory are free again
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_EQ(pump(*client, *again, 4, 9).outcomes.at(Outcome::completed), 4U);
}

// The workers stand still meanwhile, so that the last frame waits for certain.
TEST(Serve, CancelEndsWhatWaits) {
  Leatd leatd(one_module("[1]"));
  auto [client, stream] = connect(leatd, "cancel", small("echo", 8));
  ASSERT_TRUE(stream.ok()) << stream.error();
  const auto workers = leatd.workers();
  for (const pid_t pid : workers) ASSERT_EQ(kill(pid, SIGSTOP), 0);
  std::uint64_t last = 0;
  for (int i = 0; i < 6; ++i) ASSERT_EQ(stream->acquire()->submit({}, &last), LEAT_ERROR_ok);
  ASSERT_EQ(stream->cancel(last), LEAT_ERROR_ok);
  EXPECT_TRUE(eventually([&] { return value(*leatd.total(), StreamCounter::dropped) == 1; }));
  for (const pid_t pid : workers) ASSERT_EQ(kill(pid, SIGCONT), 0);
  std::uint64_t cancelled = 0;
  for (int i = 0; i < 6; ++i) {
    auto answer = client->next_answer(30s);
    ASSERT_TRUE(answer.has_value());
    cancelled += answer->outcome() == Outcome::dropped && answer->reason() == Reason::cancelled;
  }
  EXPECT_EQ(cancelled, 1U);
  EXPECT_TRUE(balances(*leatd.total()));
}

TEST(Serve, AClientThatLeavesGivesEverythingBack) {
  Leatd leatd(one_module("[5]"));
  const Footprint before = footprint(leatd.pid());
  for (int round = 0; round < 5; ++round) {
    auto client = Client::connect(leatd.socket(), "leaver");
    ASSERT_TRUE(client.ok()) << client.error();
    auto stream = client->open_stream(small("echo", 8));
    ASSERT_TRUE(stream.ok());
    for (int i = 0; i < 8; ++i) ASSERT_EQ(stream->acquire()->submit(), LEAT_ERROR_ok);
  }
  EXPECT_TRUE(eventually([&] {
    const auto total = leatd.total();
    const auto daemon = leatd.record(RecordKind::daemon, 0);
    return total && value(*total, StreamCounter::in_flight) == 0 && daemon->value(shm::DaemonCounter::clients) == 0U;
  }));
  EXPECT_TRUE(balances(*leatd.total()));
  // At most, not equal: a connection of the start-up may still have been closing when `before` was counted. A leak
  // cannot hide behind it: it would come once per round.
  EXPECT_TRUE(eventually([&] {
    const Footprint now = footprint(leatd.pid());
    return now.descriptors <= before.descriptors && now.mappings <= before.mappings;
  })) << before.descriptors
      << " descriptors before, " << footprint(leatd.pid()).descriptors << " after";
}

TEST(Serve, SigtermFinishesWhatIsInFlight) {
  Leatd leatd(one_module("[50]"));
  auto [client, stream] = connect(leatd, "drain", small("echo", 4));
  ASSERT_TRUE(stream.ok()) << stream.error();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(stream->acquire()->submit(), LEAT_ERROR_ok);
  EXPECT_EQ(leatd.stop(), 0);
  std::uint64_t completed = 0;
  while (auto answer = client->next_answer(0s))
    completed += answer->outcome() == Outcome::completed || answer->outcome() == Outcome::rejected;
  EXPECT_EQ(completed, 4U);
}

// A leatd that is told to end with much of what was submitted unread in its client's ring: what was submitted before is
// served; what comes later says why not. How much came later: where the client is held up, leatd has ended before.
std::uint64_t submitted_after_sigterm() {
  Leatd leatd(one_module("[0]"));
  auto client = Client::connect(leatd.socket(), "load");
  EXPECT_TRUE(client.ok()) << client.error();
  std::vector<Stream> streams;
  for (int i = 0; client.ok() && i < 7; ++i) {
    auto options = small("echo", 64);
    options.slo_ns = 60'000'000'000;
    auto stream = client->open_stream(options);
    EXPECT_TRUE(stream.ok()) << stream.error();
    if (stream.ok()) streams.push_back(std::move(*stream));
  }
  if (streams.size() < 7) return 0;
  std::uint64_t before = 0, after = 0, served = 0, answered = 0;
  for (Stream& stream : streams)
    for (int i = 0; i < 63; ++i, ++before)
      EXPECT_EQ(stream.acquire()->submit({.cookie = 1, .flags = LEAT_SUBMIT_MORE}), LEAT_ERROR_ok);
  client->flush();
  EXPECT_EQ(::kill(leatd.pid(), SIGTERM), 0);
  for (;;) {
    const bool connected = client->connected();  // asked first: what it left behind is taken too
    const auto answer = client->next_answer(connected ? 100ms : 0ms);
    if (!answer && !connected) break;
    if (!answer) continue;
    ++answered;
    if (answer->raw().cookie == 1) {
      served += answer->outcome() == Outcome::completed || answer->outcome() == Outcome::late;
    } else {
      EXPECT_TRUE(answer->outcome() != Outcome::rejected || answer->reason() == Reason::not_ready);
    }
    if (auto frame = streams[answered % streams.size()].acquire(); frame && frame->submit() == LEAT_ERROR_ok) ++after;
  }
  EXPECT_EQ(served, before);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
  return after;
}

TEST(Serve, SigtermUnderLoadAnswersEveryFrameBeforeIt) {
  EXPECT_TRUE(eventually([] { return HasFailure() || submitted_after_sigterm() > 0; }));
}

// A closed terminal and a habitual reload send it, the first to workers too.
TEST(Serve, SighupLosesNoFrame) {
  Leatd leatd(one_module("[0]"));
  auto [client, stream] = connect(leatd, "serve", small("echo"));
  ASSERT_TRUE(stream.ok()) << stream.error();
  std::atomic<bool> done = false;
  std::vector<pid_t> all = leatd.workers();
  all.push_back(leatd.pid());
  std::thread hangs_up([&] {
    for (int i = 0; i < 1000 || !done; ++i)
      for (const pid_t pid : all) kill(pid, SIGHUP);
  });
  const Tally tally = pump(*client, *stream, 2000, 7);
  done = true;
  hangs_up.join();
  EXPECT_EQ(tally.outcomes.at(Outcome::completed), 2000U);
  EXPECT_EQ(leatd.log().find("was killed"), std::string::npos) << leatd.log();
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
  EXPECT_NE(leatd.log().find("reload"), std::string::npos);
}

TEST(Serve, AServiceManagerIsToldOfItsLifeAndWorkersSpeakForNobody) {
  const std::string name = "leat-serve-" + std::to_string(getpid());
  const Fd manager(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path + 1, name.data(), name.size());  // an abstract name: nothing is left behind
  ASSERT_EQ(bind(manager.get(), reinterpret_cast<sockaddr*>(&at),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())),
            0);
  Leatd leatd(one_module("[0]"), {}, {"/usr/bin/env", "NOTIFY_SOCKET=@" + name});
  for (const pid_t worker : leatd.workers()) {
    std::ifstream environment("/proc/" + std::to_string(worker) + "/environ");
    const std::string all(std::istreambuf_iterator<char>(environment), {});
    EXPECT_EQ(all.find("NOTIFY_SOCKET"), std::string::npos);
  }
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
  std::vector<std::string> told;
  char text[512];
  for (ssize_t n; (n = recv(manager.get(), text, sizeof text, MSG_DONTWAIT)) >= 0;)
    told.emplace_back(text, static_cast<std::size_t>(n));
  const auto first = [&](const std::string& state) {
    return std::find_if(told.begin(), told.end(), [&](const std::string& t) { return t.starts_with(state); });
  };
  ASSERT_NE(first("READY=1\n"), told.end());
  ASSERT_NE(first("STOPPING=1\n"), told.end());
  EXPECT_LT(first("READY=1\n"), first("STOPPING=1\n"));
}

TEST(Serve, TheRecordIsWrittenMeanwhile) {
  const ScratchFolder folder;
  const std::string file = folder.path() + "/leatd.record";
  Leatd leatd(one_module("[0]", "[daemon]\nrecorder = \"" + file + "\"\n"));
  auto [client, stream] = connect(leatd, "recorded", small("echo"));
  ASSERT_TRUE(stream.ok()) << stream.error();
  (void)pump(*client, *stream, 100, 1);
  EXPECT_TRUE(eventually([&] {
    auto record = record::Record::read_file(file);
    if (!record.ok()) return false;
    const auto history = record::history(*record);
    return history.ok() && history->whole &&
           std::ranges::count(history->frames, Outcome::completed, &record::History::Frame::outcome) == 100;
  }));
  EXPECT_TRUE(leatd.alive());
}

TEST(Serve, AHungWorkerIsReplaced) {
  Leatd leatd(one_module("[10]", "[limits]\nbatch_timeout_ms = 200\n"));
  auto [client, stream] = connect(leatd, "hung", small("echo", 8));
  ASSERT_TRUE(stream.ok()) << stream.error();
  const auto workers = leatd.workers();
  ASSERT_EQ(workers.size(), 2U);
  for (const pid_t pid : workers) ASSERT_EQ(kill(pid, SIGSTOP), 0);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(stream->acquire()->submit(), LEAT_ERROR_ok);
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(client->next_answer(30s).has_value()) << "tried again or failed, but answered";
  EXPECT_TRUE(eventually([&] {
    const auto now = leatd.workers();
    return now.size() == 2 && now[0] != 0 && now[0] != workers[0] && now[1] != 0 && now[1] != workers[1];
  }));
  EXPECT_EQ(pump(*client, *stream, 20, 3).outcomes.at(Outcome::completed), 20U);
  EXPECT_TRUE(balances(*leatd.total()));
}

// All of them are stopped for longer than a batch may take, and leatd goes on first.
TEST(Serve, AWorkerDoesNotHangThatStoodStillTogetherWithLeatd) {
  Leatd leatd(one_module("[10]", "[limits]\nbatch_timeout_ms = 4000\n"));
  auto [client, stream] = connect(leatd, "still", small("echo", 1));
  ASSERT_TRUE(stream.ok()) << stream.error();
  const auto workers = leatd.workers();
  for (const pid_t pid : workers) ASSERT_EQ(kill(pid, SIGSTOP), 0);
  ASSERT_EQ(stream->acquire()->submit(), LEAT_ERROR_ok);
  ASSERT_TRUE(eventually([&] {
    std::uint64_t queued = 0;
    for (std::uint32_t p = 0; p < 2; ++p)
      queued += leatd.record(RecordKind::partition, p)->value(shm::PartitionCounter::queued).value_or(0);
    return queued == 1;
  }));
  ASSERT_EQ(kill(leatd.pid(), SIGSTOP), 0);
  const std::int64_t until = leat_now_ns() + 5'000'000'000;
  ASSERT_TRUE(eventually([&] { return leat_now_ns() > until; }));
  ASSERT_EQ(kill(leatd.pid(), SIGCONT), 0);
  EXPECT_FALSE(leatd.status_json().empty());  // it has looked
  for (const pid_t pid : workers) (void)kill(pid, SIGCONT);
  const auto answer = client->next_answer(60s);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->outcome(), Outcome::completed);
  EXPECT_EQ(leatd.workers(), workers) << leatd.log();
}

TEST(Serve, AKilledWorkerIsBackAndNothingIsLost) {
  Leatd leatd(one_module("[10]"));
  auto [client, stream] = connect(leatd, "kill", small("echo", 8));
  ASSERT_TRUE(stream.ok()) << stream.error();
  for (int i = 0; i < 8; ++i) ASSERT_EQ(stream->acquire()->submit(), LEAT_ERROR_ok);
  const auto workers = leatd.workers();
  ASSERT_EQ(workers.size(), 2U);
  ASSERT_EQ(kill(workers[0], SIGKILL), 0);
  EXPECT_TRUE(eventually(
      [&] {
        const auto now = leatd.workers();
        return now.size() == 2 && now[0] != 0 && now[0] != workers[0];
      },
      60s));
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(client->next_answer(30s).has_value());
  const auto total = leatd.total();
  EXPECT_TRUE(balances(*total));
  EXPECT_EQ(value(*total, StreamCounter::completed), 8U) << "there was slack to retry";
  EXPECT_EQ(pump(*client, *stream, 50, 5).outcomes.at(Outcome::completed), 50U);
  EXPECT_EQ(leatd.record(shm::RecordKind::partition, 0)->value(shm::PartitionCounter::end_status), 256U + SIGKILL);
  EXPECT_FALSE(client->open_stream(small("none")).ok());
  EXPECT_TRUE(eventually([&] {
    const auto refused = leatd.events(shm::EventKind::refused);
    return refused.size() == 1 && refused[0].b == static_cast<std::uint64_t>(shm::Refusal::bad_stream);
  }));
}

}  // namespace
}  // namespace leat::test
