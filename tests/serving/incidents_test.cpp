// Ten incidents, each in a real leatd that records, and replayed to the last action: overload, a worker killed, a plan
// applied, coordinated streams, applications that come and go, a configuration read again, clients killed, two users,
// frames that supersede one another or are cancelled, and streams that wait for grants.
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/papers/presets.h"
#include "engine/record/replay.h"
#include "leat/client.hpp"
#include "tests/serving/change_helpers.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMs = 1'000'000;

// A module of 4 to 10 ms, and one behind it of 2 to 5.
std::string chain(const std::string& name = "boxes", const std::string& slo_ms = "60") {
  return "[[application]]\nname = \"" + name + "\"\nslo_ms = " + slo_ms + R"(
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

std::string single(const std::string& name, const std::string& latency, const std::string& slo_ms = "500") {
  return "[[application]]\nname = \"" + name + "\"\nslo_ms = " + slo_ms +
         "\n[[application.module]]\nname = \"m\"\nexecutor = \"emulated\"\nbatch = 2\nlatency_ms = " + latency + "\n";
}

// A leatd that records; replays() ends it.
class Recorded {
 public:
  explicit Recorded(const std::string& config) : file_(folder_.path() + "/leatd.record"), leatd_(with_record(config)) {}
  Leatd& leatd() { return leatd_; }
  void rewrite(const std::string& config) { leatd_.rewrite(with_record(config)); }

  record::Replayed replays() {
    EXPECT_EQ(leatd_.stop(), 0) << leatd_.log();
    auto record = record::Record::read_file(file_);
    EXPECT_TRUE(record.ok()) << record.error();
    if (!record.ok()) return {};
    const auto again = record::replay(*record, papers::presets());
    EXPECT_TRUE(again.ok()) << again.error();
    if (!again.ok()) return {};
    EXPECT_EQ(again->difference, "");
    EXPECT_EQ(again->cut, "");
    EXPECT_EQ(again->same, again->actions);
    EXPECT_GT(again->actions, again->total.submitted) << "answers alone are as many";
    std::printf("%llu of %llu actions the same; %llu events, %llu plans, %llu losses, %llu frames\n",
                static_cast<unsigned long long>(again->same), static_cast<unsigned long long>(again->actions),
                static_cast<unsigned long long>(again->events), static_cast<unsigned long long>(again->plans),
                static_cast<unsigned long long>(again->losses),
                static_cast<unsigned long long>(again->total.submitted));
    return *again;
  }

 private:
  std::string with_record(const std::string& config) const {
    return "[daemon]\nsocket_mode = \"0666\"\nrecorder = \"" + file_ + "\"\n" + config;
  }
  ScratchFolder folder_;
  std::string file_;
  Leatd leatd_;
};

StreamOptions options(const std::string& application, leat_overload overload = LEAT_OVERLOAD_fifo) {
  StreamOptions o;
  o.application = application.c_str();
  o.format = LEAT_FORMAT_gray8;
  o.width = o.height = 16;
  o.depth = 8;
  o.overload = overload;
  return o;
}

// A client with some streams of one application, which submits as fast as there are slots.
class Hurried {
 public:
  Hurried(const std::string& socket, std::string application, std::vector<leat_overload> streams)
      : application_(std::move(application)) {
    auto client = Client::connect(socket, "hurry");
    EXPECT_TRUE(client.ok()) << client.error();
    if (!client.ok()) return;
    client_.emplace(std::move(*client));
    for (const leat_overload overload : streams) {
      auto stream = client_->open_stream(options(application_, overload));
      EXPECT_TRUE(stream.ok()) << stream.error();
      if (stream.ok()) streams_.push_back(std::move(*stream));
    }
  }
  // Until so many more have been answered; with cancel, every third is cancelled again.
  void hurry(std::uint64_t count, bool cancel = false) {
    const std::uint64_t until = answered_ + count;
    const auto limit = std::chrono::steady_clock::now() + 60s;
    while (answered_ < until && std::chrono::steady_clock::now() < limit) turn(cancel);
    EXPECT_GE(answered_, until);
  }
  void turn(bool cancel = false) {
    for (Stream& stream : streams_) {
      auto frame = stream.acquire();
      if (!frame) continue;
      leat_submit_options how{};
      how.key = static_cast<std::uint32_t>(sent_ % 3);
      std::uint64_t ticket = 0;
      if (frame->submit(how, &ticket) != LEAT_ERROR_ok) continue;
      if (cancel && ++sent_ % 3 == 0) (void)stream.cancel(ticket);
    }
    while (auto answer = client_->next_answer(1ms)) ++answered_;
  }

 private:
  std::string application_;
  std::optional<Client> client_;
  std::vector<Stream> streams_;
  std::uint64_t sent_ = 0, answered_ = 0;
};

// The same on a thread of its own, for as long as this lives.
class Beside {
 public:
  Beside(const std::string& socket, const std::string& application)
      : client_(socket, application, {LEAT_OVERLOAD_fifo, LEAT_OVERLOAD_latest}), thread_([this] {
          while (!ending_) client_.turn(), ++turns_;
        }) {}
  ~Beside() {
    ending_ = true;
    thread_.join();
  }
  void go_on() {
    const std::uint64_t until = turns_ + 50;
    EXPECT_TRUE(eventually([&] { return turns_ > until; }));
  }

 private:
  Hurried client_;
  std::atomic<bool> ending_{false};
  std::atomic<std::uint64_t> turns_{0};
  std::thread thread_;
};

// How a change ended that was asked for.
std::string changed(const Leatd& leatd, shm::ChangeKind kind, const std::string& name = {},
                    const std::string& text = {}) {
  return changed(leatd, of_kind(kind, name), text).at("state").get<std::string>();
}

// Another process, which may be another user. It is killed when this goes, unless it has ended.
class Other {
 public:
  Other(uid_t uid, const std::function<void()>& does) : pid_(fork()) {
    if (pid_ != 0) return;
    if (uid == getuid() ||
        (setgroups(0, nullptr) == 0 && setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0))
      does();
    _exit(0);
  }
  ~Other() { kill(); }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  void kill() {
    if (pid_ <= 0) return;
    (void)::kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void wait() {
    (void)waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

std::uint64_t submitted(const Leatd& leatd) {
  const auto total = leatd.total();
  return total ? value(*total, shm::StreamCounter::submitted) : 0;
}

TEST(Incidents, Overload) {
  Recorded run(partitions(2) + chain());
  {
    Hurried client(run.leatd().socket(), "boxes", {LEAT_OVERLOAD_fifo, LEAT_OVERLOAD_latest, LEAT_OVERLOAD_fifo});
    client.hurry(800);
  }
  EXPECT_GE(run.replays().total.submitted, 800u);
}

TEST(Incidents, WorkersKilled) {
  Recorded run(partitions(2) + chain());
  {
    Hurried client(run.leatd().socket(), "boxes", {LEAT_OVERLOAD_fifo, LEAT_OVERLOAD_never_drop});
    for (std::size_t i = 0; i < 4; ++i) {
      client.hurry(50);
      const pid_t worker = run.leatd().workers()[i % 2];
      ASSERT_GT(worker, 0);
      ASSERT_EQ(kill(worker, SIGKILL), 0);
      client.hurry(50);
      ASSERT_TRUE(eventually([&] { return std::ranges::count(run.leatd().workers(), 0) == 0; }, 60000ms));
    }
  }
  EXPECT_GE(run.replays().losses, 4u);
}

Json list(Json one) {
  Json out = Json::array();
  out.push_back(std::move(one));
  return out;
}

// One module on some of four partitions.
std::string plan(const std::vector<int>& pool, std::int64_t first_ns) {
  Json latency = Json::array();
  for (int b = 1; b <= 4; ++b) {
    const std::int64_t ns = first_ns + b * 200'000;
    latency.push_back({{"p50_ns", ns}, {"p99_ns", ns}, {"samples", 0}});
  }
  Json stage = {
      {"first_block", 0}, {"end_block", 1}, {"pool", pool}, {"transfer_bytes", 0}, {"latency_by_batch", latency}};
  Json route = {{"application", 0}, {"module", 0}, {"batch", 4}, {"rate_rps", 100}, {"stages", list(std::move(stage))}};
  Json module = {{"name", "m"}, {"model", "m"}};
  Json application = {
      {"name", "pipe"}, {"slo_ns", 500 * kMs}, {"rate_rps", 100}, {"weight", 1}, {"module", list(std::move(module))}};
  return Json{{"schema", "leat-plan/1"},
              {"applications", list(std::move(application))},
              {"partitions", emulated_partitions(4)},
              {"hosts", Json::array()},
              {"routes", list(std::move(route))},
              {"budget_ns", Json::array()},
              {"certificate",
               {{"objective", 100}, {"upper_bound", 100}, {"gap", 0}, {"binding", ""}, {"method", ""}, {"seconds", 0}}}}
      .dump();
}

TEST(Incidents, PlansApplied) {
  const ScratchFolder folder;
  const std::string first = folder.write("0.json", plan({0, 1}, 1'000'000)),
                    second = folder.write("1.json", plan({2, 3}, 1'500'000));
  std::string four;
  for (int p = 0; p < 4; ++p)
    four += "[[partition]]\nname = \"p" + std::to_string(p) + "\"\nclass = \"p\"\nkind = \"emulated\"\n";
  Recorded run("plan = \"" + first + "\"\n" + four + single("pipe", "[1.2, 1.4]"));
  {
    Beside load(run.leatd().socket(), "pipe");
    for (int i = 0; i < 3; ++i) {
      load.go_on();
      ASSERT_EQ(changed(run.leatd(), shm::ChangeKind::plan, {}, i % 2 == 0 ? second : first), "done")
          << run.leatd().log();
    }
    load.go_on();
  }
  EXPECT_GE(run.replays().plans, 3u);
}

TEST(Incidents, CoordinatedStreams) {
  constexpr std::int64_t kPeriod = 16'666'667;
  Recorded run(partitions(2) + single("boxes", "[6.0, 8.0]", "150"));
  {
    auto client = Client::connect(run.leatd().socket(), "cameras");
    ASSERT_TRUE(client.ok()) << client.error();
    StreamOptions o = options("boxes", LEAT_OVERLOAD_latest);
    o.period_ns = kPeriod;
    o.sla_drop_ppm = 60'000;
    struct Camera {
      Stream stream;
      std::uint64_t frame = 0, shown = 0;
    };
    std::vector<Camera> cameras;
    for (int i = 0; i < 4; ++i) {
      auto stream = client->open_stream(o);
      ASSERT_TRUE(stream.ok()) << stream.error();
      cameras.push_back({.stream = std::move(*stream)});
    }
    const std::int64_t start = leat_now_ns();
    std::uint64_t answers = 0;
    const auto limit = std::chrono::steady_clock::now() + 60s;
    while (answers < 150 && std::chrono::steady_clock::now() < limit) {
      for (Camera& c : cameras) {
        for (std::int64_t due; (due = start + static_cast<std::int64_t>(c.frame) * kPeriod) <= leat_now_ns();) {
          const std::uint64_t number = c.frame++;
          if (leat_should_submit(c.stream.raw(), due) == 0) continue;
          auto frame = c.stream.acquire();
          leat_submit_options how{};
          how.capture_ns = due;
          how.cookie = number;
          if (frame) (void)frame->submit(how);
        }
      }
      while (auto answer = client->next_answer(5ms)) {
        ++answers;
        if (answer->result() == nullptr) continue;
        const auto of =
            std::ranges::find_if(cameras, [&](const Camera& c) { return c.stream.raw() == answer->raw().stream; });
        if (of == cameras.end() || answer->raw().cookie <= of->shown) continue;
        const auto stride = static_cast<std::uint32_t>(std::min<std::uint64_t>(answer->raw().cookie - of->shown, 255));
        (void)leat_observe(of->stream.raw(), stride, 0.05 + 0.002 * stride);
        of->shown = answer->raw().cookie;
      }
    }
    EXPECT_GE(answers, 150u);
  }
  (void)run.replays();
}

TEST(Incidents, ApplicationsLoadedAndUnloaded) {
  Recorded run(partitions(2) + single("a", "[2.0, 3.0]"));
  {
    Beside load(run.leatd().socket(), "a");
    for (const char* name : {"b", "c"}) {
      ASSERT_EQ(changed(run.leatd(), shm::ChangeKind::load, name, single(name, "[1.0, 1.5]")), "done")
          << run.leatd().log();
      {
        Beside other(run.leatd().socket(), name);
        other.go_on();
        ASSERT_EQ(changed(run.leatd(), shm::ChangeKind::unload, name), "done") << run.leatd().log();
      }
      load.go_on();
    }
  }
  EXPECT_GE(run.replays().plans, 4u);
}

TEST(Incidents, AConfigurationReadAgain) {
  Recorded run(partitions(2) + single("a", "[2.0, 3.0]"));
  {
    Beside load(run.leatd().socket(), "a");
    load.go_on();
    run.rewrite(partitions(3) + single("a", "[3.0, 4.0]") + single("b", "[1.0, 1.5]"));
    ASSERT_EQ(changed(run.leatd(), shm::ChangeKind::reload), "done") << run.leatd().log();
    Beside other(run.leatd().socket(), "b");
    other.go_on();
    run.rewrite(partitions(1) + single("a", "[2.0, 3.0]"));
    ASSERT_EQ(changed(run.leatd(), shm::ChangeKind::reload), "done") << run.leatd().log();
    load.go_on();
  }
  EXPECT_GE(run.replays().plans, 2u);
}

TEST(Incidents, ClientsKilled) {
  Recorded run(partitions(2) + chain());
  const std::string socket = run.leatd().socket();
  for (int i = 0; i < 6; ++i) {
    const std::uint64_t before = submitted(run.leatd());
    Other client(getuid(), [&] {
      Hurried hurried(socket, "boxes", {LEAT_OVERLOAD_fifo, LEAT_OVERLOAD_fifo});
      for (;;) hurried.turn();
    });
    EXPECT_TRUE(eventually([&] { return submitted(run.leatd()) >= before + 20; }));
    client.kill();
  }
  EXPECT_TRUE(eventually(
      [&] { return run.leatd().total() && value(*run.leatd().total(), shm::StreamCounter::in_flight) == 0; }));
  EXPECT_GE(run.replays().total.submitted, 120u);
}

TEST(Incidents, TwoUsers) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become other users";
  Recorded run(partitions(2) + chain() + single("plain", "[3.0, 4.0]", "100"));
  const std::string socket = run.leatd().socket();
  ASSERT_EQ(chmod(socket.substr(0, socket.rfind('/')).c_str(), 0755), 0);
  {
    Other modest(4'000'000'001, [&] {
      Hurried client(socket, "plain", {LEAT_OVERLOAD_fifo});
      client.hurry(200);
    });
    Other greedy(4'000'000'002, [&] {
      Hurried client(socket, "boxes",
                     {LEAT_OVERLOAD_fifo, LEAT_OVERLOAD_fifo, LEAT_OVERLOAD_fifo, LEAT_OVERLOAD_latest});
      client.hurry(600);
    });
    modest.wait();
    greedy.wait();
  }
  EXPECT_GE(run.replays().total.submitted, 800u);
}

TEST(Incidents, FramesSupersededAndCancelled) {
  Recorded run(partitions(1) + chain());
  {
    Hurried client(run.leatd().socket(), "boxes",
                   {LEAT_OVERLOAD_latest, LEAT_OVERLOAD_latest_per_key, LEAT_OVERLOAD_never_drop, LEAT_OVERLOAD_fifo});
    client.hurry(600, true);
  }
  const record::Replayed again = run.replays();
  EXPECT_GT(again.total.of(Reason::superseded), 0u);
  EXPECT_GT(again.total.of(Reason::cancelled), 0u);
}

TEST(Incidents, StreamsThatWaitForGrants) {
  constexpr std::int64_t kPeriod = 20 * kMs;
  Recorded run(partitions(1) + single("sum", "[10.0, 20.0]", "60000"));
  {
    auto client = Client::connect(run.leatd().socket(), "cameras");
    ASSERT_TRUE(client.ok()) << client.error();
    StreamOptions o = options("sum");
    o.waits_for_grants = 1;
    std::vector<std::pair<Stream, std::int64_t>> cameras;
    for (int i = 0; i < 6; ++i) {
      auto stream = client->open_stream(o);
      ASSERT_TRUE(stream.ok()) << stream.error();
      cameras.emplace_back(std::move(*stream), leat_now_ns() + i * kPeriod / 6);
    }
    std::uint64_t answers = 0;
    const auto limit = std::chrono::steady_clock::now() + 60s;
    while (answers < 150 && std::chrono::steady_clock::now() < limit) {
      for (auto& [stream, due] : cameras) {
        if (due > leat_now_ns()) continue;
        if (stream.wanted(due)) {
          auto frame = stream.acquire();
          leat_submit_options how{};
          how.capture_ns = due;
          if (frame) (void)frame->submit(how);
          due += kPeriod;
        }
        if (due + kPeriod < leat_now_ns()) due += kPeriod;  // a newer picture
      }
      while (auto answer = client->next_answer(1ms)) ++answers;
    }
    EXPECT_GE(answers, 150u);
  }
  EXPECT_GT(run.replays().total.granted, 0u);
}

}  // namespace
}  // namespace leat::test
