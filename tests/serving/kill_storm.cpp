// kill_storm: kill -9 of clients, workers and the daemon at random moments under load. Survivors' ledgers stay exact,
// killed workers serve again, clients reconnect after the daemon's restart, and nothing stays behind: no process,
// descriptor, mapping, socket or name in /dev/shm. tools/test runs a few hundred kills; `kill_storm --kills 10000` as
// many as you like.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "shm/src/protocol/control_protocol.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/cli/progress.h"
#include "tools/base/json/json.h"

extern char** environ;

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using shm::RecordKind;
using shm::StreamCounter;

constexpr int kWaitEvery = 8;  // one worker's return in so many is waited for and measured
constexpr std::uint32_t kVictims = 3, kSurvivors = 2, kPartitions = 3;

constexpr const char* kConfig = R"(
[workers]
max_backoff_ms = 10
overlap = "on"
[[partition]]
name = "p"
kind = "emulated"
count = 3
[[application]]
name = "chain"
slo_ms = 400
  [[application.module]]
  name = "first"
  latency_ms = [1.0, 1.5, 2.0, 2.5]
  [[application.module]]
  name = "second"
  after = ["first"]
  latency_ms = [0.5, 0.7]
)";

leat_stream_options options_of(std::uint64_t seed) {
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "chain";
  o.format = seed % 2 == 0 ? LEAT_FORMAT_gray8 : LEAT_FORMAT_nv12;
  o.width = 64 + static_cast<std::uint32_t>(seed % 3) * 32;
  o.height = 32;
  o.depth = o.slots = 6;
  o.overload = LEAT_OVERLOAD_fifo;
  return o;
}

// A client that lives to be killed: streams come and go, frames flow.
int victim(const std::string& socket, std::uint64_t seed) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::mt19937_64 random(seed);
  for (;;) {
    auto client = Client::connect(socket, "victim");
    if (!client.ok()) continue;
    while (client->connected()) {
      auto stream = client->open_stream(options_of(random()));
      if (!stream.ok()) break;
      for (int i = 0, frames = 1 + static_cast<int>(random() % 60); i < frames && client->connected(); ++i) {
        if (auto frame = stream->acquire()) {
          (void)paint(frame->raw(), random());
          if (random() % 16 != 0) (void)frame->submit();  // else abandoned
        }
        (void)client->next_answer(std::chrono::milliseconds(random() % 4));
      }
    }
  }
}

// A client that must never see anything wrong. Its thread pauses on demand with nothing in flight.
class Survivor {
 public:
  Survivor(std::string socket, std::uint64_t index)
      : socket_(std::move(socket)), name_("survivor" + std::to_string(index)), random_(index) {
    thread_ = std::thread([this] { live(); });
  }
  ~Survivor() {
    ending_ = true;
    thread_.join();
  }
  void pause() {
    paused_ = true;
    ASSERT_TRUE(eventually([&] { return quiet_.load(); }))
        << name_ << " still waits for " << outstanding_ << " answers";
  }
  void resume() {
    quiet_ = false;
    paused_ = false;
  }
  // Precondition: paused.
  const std::string& name() const { return name_; }
  std::uint64_t submitted() const { return submitted_; }  // on the stream that is open now
  std::map<Outcome, std::uint64_t> outcomes() const { return outcomes_; }
  std::uint64_t wrong() const { return wrong_; }
  std::uint64_t connections() const { return connections_; }
  std::uint64_t answers() const { return answers_; }
  bool has_stream() const { return has_stream_; }

 private:
  void live() {
    while (!ending_) {
      has_stream_ = false;
      auto client = Client::connect(socket_, name_);
      if (!client.ok()) {
        if (paused_) quiet_ = true;
        std::this_thread::sleep_for(2ms);  // the daemon is down or starting
        continue;
      }
      auto stream = client->open_stream(options_of(random_()));
      if (!stream.ok()) continue;
      ++connections_;
      submitted_ = outstanding_ = 0;
      outcomes_.clear();
      has_stream_ = true;
      while (!ending_ && client->connected()) step(*client, *stream);
    }
    quiet_ = true;
  }

  void step(Client& client, Stream& stream) {
    if (!paused_) {
      while (auto frame = stream.acquire()) {
        leat_submit_options o{};
        o.cookie = paint(frame->raw(), random_());
        if (frame->submit(o) != LEAT_ERROR_ok) return;
        ++submitted_;
        ++outstanding_;
      }
    } else if (outstanding_ == 0) {
      quiet_ = true;
      (void)client.next_answer(2ms);  // nothing to come; notices a hang-up
      return;
    }
    while (auto answer = client.next_answer(5ms)) {
      --outstanding_;
      ++answers_;
      ++outcomes_[answer->outcome()];
      if (answer->result() != nullptr && answer->result()->checksum != answer->raw().cookie) ++wrong_;
    }
  }

  std::string socket_, name_;
  std::mt19937_64 random_;
  std::atomic<bool> ending_{false}, paused_{false}, quiet_{false};
  std::atomic<std::uint64_t> outstanding_{0}, submitted_{0}, connections_{0}, answers_{0}, wrong_{0};
  std::atomic<bool> has_stream_{false};
  std::map<Outcome, std::uint64_t> outcomes_;
  std::thread thread_;
};

class Victims {
 public:
  Victims(std::string socket, std::uint64_t seed) : socket_(std::move(socket)), seed_(seed) {
    for (auto& pid : pids_) pid = spawn();
  }
  ~Victims() {
    for (const auto pid : pids_) end(pid);
  }
  // False: there was nobody alive to be killed.
  bool kill_one(std::uint64_t which) {
    auto& pid = pids_[which % kVictims];
    const bool killed = end(pid);
    pid = spawn();
    return killed;
  }
  void kill_all() {
    for (auto& pid : pids_) end(std::exchange(pid, 0));
  }

 private:
  pid_t spawn() {
    std::string self = "/proc/self/exe", word = "--victim", seed = std::to_string(++seed_);
    char* argv[] = {self.data(), word.data(), socket_.data(), seed.data(), nullptr};
    pid_t pid = 0;
    return posix_spawn(&pid, self.c_str(), nullptr, nullptr, argv, environ) == 0 ? pid : 0;
  }
  // Whether it was our signal that ended it.
  static bool end(pid_t pid) {
    int status = 0;
    if (pid == 0) return false;
    (void)::kill(pid, SIGKILL);
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  std::string socket_;
  std::uint64_t seed_;
  std::array<pid_t, kVictims> pids_{};
};

// kill -9 of a process that is not ours. False: it was gone before, or is a process that has ended already.
bool kill_stranger(pid_t pid) {
  const shm::Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  return process && poll(&ended, 1, 0) == 0 && syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) == 0;
}

// What a survivor counted is what leatd counted for its stream.
void expect_same_ledger(const Leatd& leatd, const Survivor& survivor) {
  ASSERT_TRUE(survivor.has_stream()) << survivor.name();
  for (std::uint32_t i = 0; i < 256; ++i) {
    const auto r = leatd.record(RecordKind::stream, i);
    if (!r) break;
    if (!r->live || r->label.rfind(survivor.name() + ":", 0) != 0) continue;
    auto mine = survivor.outcomes();
    EXPECT_TRUE(balances(*r)) << survivor.name();
    EXPECT_EQ(value(*r, StreamCounter::in_flight), 0U) << survivor.name();
    EXPECT_EQ(value(*r, StreamCounter::submitted), survivor.submitted()) << survivor.name();
    EXPECT_EQ(value(*r, StreamCounter::completed), mine[Outcome::completed]) << survivor.name();
    EXPECT_EQ(value(*r, StreamCounter::late), mine[Outcome::late]) << survivor.name();
    EXPECT_EQ(value(*r, StreamCounter::dropped), mine[Outcome::dropped]) << survivor.name();
    EXPECT_EQ(value(*r, StreamCounter::failed), mine[Outcome::failed]) << survivor.name();
    EXPECT_EQ(value(*r, StreamCounter::rejected), mine[Outcome::rejected]) << survivor.name();
    return;
  }
  ADD_FAILURE() << "leatd counts no stream of " << survivor.name();
}

std::size_t count_entries(const std::string& folder) {
  std::error_code ignored;
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder, ignored), {}));
}

// What a leatd holds that nobody uses yet: the same before and after an answered question, so that nothing of its start
// is left.
Footprint settled(Leatd& leatd) {
  Footprint last = footprint(leatd.pid());
  EXPECT_TRUE(eventually([&] {
    const Footprint before = last;
    EXPECT_FALSE(leatd.status_json().empty());
    last = footprint(leatd.pid());
    return last.descriptors == before.descriptors && last.threads == before.threads && last.mappings == before.mappings;
  }));
  return last;
}

constexpr cli::Option kOptions[] = {
    cli::integer_option("kills", "300", 1, 1e9, "processes to kill, each alive until then"),
    cli::integer_option("daemon-every", "25", 2, 1e9, "one kill in so many is leatd's"),
    cli::real_option("seconds", "0", 0, 1e9, "stop after so long, whatever was killed until then; 0: no limit", "S"),
    {.name = "seed", .type = cli::Type::integer, .value = "N", .min = 0, .help = "repeats a run; random by default"},
    cli::json_option("print the figures as one JSON object in place of text")};
constexpr cli::Command kCommand = {
    .name = "kill_storm",
    .summary = "kills clients, workers and leatd at random and checks that nothing is lost or left",
    .options = kOptions};

struct Settings {
  int kills = 0, daemon_every = 0;
  double seconds = 0;
  std::uint64_t seed = 0;
};

struct Figures {
  int clients = 0, workers = 0, daemons = 0;  // processes that lived until we killed them
  [[nodiscard]] int kills() const { return clients + workers + daemons; }
  std::uint64_t answers = 0;
  double seconds = 0;
  std::vector<double> back_ms;
};

// One storm, checked by GoogleTest's expectations.
class Storm {
 public:
  explicit Storm(const Settings& settings) : settings_(settings), random_(settings.seed) {}

  void run() {
    const Footprint own = footprint(getpid());
    const std::size_t shm_names = count_entries("/dev/shm");
    const auto start = Clock::now();
    rage(start);
    figures_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    EXPECT_EQ(count_entries("/dev/shm"), shm_names);
    EXPECT_EQ(footprint(getpid()).descriptors, own.descriptors);
    std::sort(figures_.back_ms.begin(), figures_.back_ms.end());
  }
  const Figures& figures() const { return figures_; }

 private:
  void rage(Clock::time_point start) {
    Leatd leatd(kConfig);
    if (testing::Test::HasFailure()) return;
    const Footprint fresh = settled(leatd);
    Victims victims(leatd.socket(), settings_.seed);
    for (std::uint64_t i = 0; i < kSurvivors; ++i) survivors_.push_back(std::make_unique<Survivor>(leatd.socket(), i));
    cli::Progress progress("kill_storm", static_cast<std::uint64_t>(settings_.kills), "kills");
    while (figures_.kills() < settings_.kills && !testing::Test::HasFailure()) {
      if (settings_.seconds > 0 && std::chrono::duration<double>(Clock::now() - start).count() > settings_.seconds)
        break;
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 10000));
      if (figures_.kills() / settings_.daemon_every > figures_.daemons) {
        kill_daemon(leatd);
      } else if (random_() % 2 == 0 || !kill_worker(leatd, static_cast<std::uint32_t>(random_() % kPartitions))) {
        const bool killed = victims.kill_one(random_());
        EXPECT_TRUE(killed) << "a victim ended before it was killed, or could not be started";
        figures_.clients += killed;
      }
      progress.set(static_cast<std::uint64_t>(figures_.kills()));
    }
    calm_down(leatd, victims, fresh);
  }

  void check_ledgers(const Leatd& leatd) {
    for (auto& s : survivors_) s->pause();
    for (auto& s : survivors_) expect_same_ledger(leatd, *s);
  }

  void kill_daemon(Leatd& leatd) {
    check_ledgers(leatd);
    for (auto& s : survivors_) s->resume();
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 10000));  // frames are in flight again
    const auto workers = leatd.workers();
    std::vector<std::uint64_t> connections;
    for (const auto& s : survivors_) connections.push_back(s->connections());
    EXPECT_TRUE(leatd.alive()) << leatd.log();
    leatd.kill();
    ++figures_.daemons;
    for (const auto pid : workers)
      EXPECT_TRUE(pid == 0 || eventually([&] { return ::kill(pid, 0) != 0; })) << "worker " << pid << " outlives leatd";
    leatd.start();
    EXPECT_TRUE(eventually([&] {
      // Anew, not still: a survivor may not have noticed yet.
      return std::ranges::equal(survivors_, connections, [](const auto& s, std::uint64_t before) {
        return s->has_stream() && s->connections() > before;
      });
    })) << "no reconnection:\n"
        << leatd.log();
  }

  // Whichever process serves there now, ready or on its way; the next partition's where there is none. False: nowhere.
  bool kill_worker(const Leatd& leatd, std::uint32_t partition) {
    const auto before = pids(leatd);
    if (before.size() != kPartitions) return false;
    for (std::uint32_t i = 0; i < kPartitions && before[partition] == 0; ++i) partition = (partition + 1) % kPartitions;
    if (before[partition] == 0) return false;
    const auto killed = Clock::now();
    if (!kill_stranger(before[partition])) return false;  // killed a moment ago, and leatd has not noticed yet
    ++figures_.workers;
    if (figures_.workers % kWaitEvery != 0) return true;
    EXPECT_TRUE(eventually([&] {
      const auto now = leatd.workers();
      return now.size() == kPartitions && now[partition] != 0 && now[partition] != before[partition];
    })) << "partition "
        << partition << " stays down:\n"
        << leatd.log();
    figures_.back_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - killed).count());
    return true;
  }
  static std::vector<pid_t> pids(const Leatd& leatd) {
    std::vector<pid_t> out;
    const std::string text = leatd.status_json();
    if (text.empty()) return out;
    const auto status = Json::parse(text);
    for (const auto& p : status.at("partitions")) out.push_back(p.at("pid").get<pid_t>());
    return out;
  }

  // Everybody leaves; leatd holds what it held when it was fresh.
  void calm_down(Leatd& leatd, Victims& victims, const Footprint& fresh) {
    EXPECT_TRUE(eventually([&] {
      return std::ranges::all_of(survivors_, [](const auto& s) { return s->answers() > 0; });
    })) << "survivors are not served";
    check_ledgers(leatd);
    const auto total = leatd.total();
    EXPECT_TRUE(total && balances(*total));
    for (const auto& s : survivors_) {
      EXPECT_EQ(s->wrong(), 0U) << s->name() << " got another frame's answer";
      EXPECT_GE(s->connections(), 1U + static_cast<std::uint64_t>(figures_.daemons));
      figures_.answers += s->answers();
    }
    survivors_.clear();
    victims.kill_all();
    EXPECT_TRUE(eventually([&] {
      const auto daemon = leatd.record(RecordKind::daemon, 0);
      return daemon && daemon->value(shm::DaemonCounter::clients) == 0U &&
             daemon->value(shm::DaemonCounter::streams) == 0U && daemon->value(shm::DaemonCounter::memory_bytes) == 0U;
    }));
    EXPECT_TRUE(eventually([&] {
      const auto workers = leatd.workers();
      return workers.size() == kPartitions && std::find(workers.begin(), workers.end(), 0) == workers.end();
    })) << leatd.log();
    EXPECT_TRUE(eventually([&] {
      const Footprint now = footprint(leatd.pid());
      return now.descriptors <= fresh.descriptors && now.threads <= fresh.threads && now.mappings <= fresh.mappings;
    })) << "descriptors "
        << fresh.descriptors << " -> " << footprint(leatd.pid()).descriptors << ", mappings " << fresh.mappings
        << " -> " << footprint(leatd.pid()).mappings << ", threads " << fresh.threads << " -> "
        << footprint(leatd.pid()).threads;
    const auto last = leatd.total();
    EXPECT_TRUE(last && balances(*last) && value(*last, StreamCounter::in_flight) == 0);
    for (const auto pid : leatd.workers()) {
      EXPECT_EQ(footprint(pid).threads, 2);
      // A worker lets go of a pool when it reads that it is closed.
      EXPECT_TRUE(eventually([&] { return footprint(pid).descriptors < 16; })) << "pools of streams long closed";
    }
    EXPECT_EQ(leatd.stop(), 0) << leatd.log();
    EXPECT_FALSE(std::filesystem::exists(leatd.socket()));
  }

  Settings settings_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Survivor>> survivors_;
  Figures figures_;
};

Settings g_settings;  // GoogleTest calls the test without arguments
Figures g_figures;

TEST(Kill, RandomKillsLeaveLedgersExactAndNothingBehind) {
  Storm storm(g_settings);
  storm.run();
  g_figures = storm.figures();
}

// Exit status.
int print(const cli::JsonOutput& json, bool passed) {
  const Figures& f = g_figures;
  const double median = f.back_ms.empty() ? 0 : f.back_ms[f.back_ms.size() / 2];
  const double worst = f.back_ms.empty() ? 0 : f.back_ms.back();
  if (!json.alone()) {
    std::printf(
        "killed: %d processes (%d clients, %d workers, %d daemons) in %.0f s; %llu answers checked; a worker is back "
        "after %.0f ms "
        "(median), %.0f ms (worst of %zu)\n",
        f.kills(), f.clients, f.workers, f.daemons, f.seconds, static_cast<unsigned long long>(f.answers), median,
        worst, f.back_ms.size());
  }
  const Json out = {
      {"seed", g_settings.seed},
      {"passed", passed},
      {"seconds", f.seconds},
      {"kills", {{"all", f.kills()}, {"clients", f.clients}, {"workers", f.workers}, {"daemons", f.daemons}}},
      {"answers", f.answers},
      {"worker_back_ms", {{"p50", median}, {"max", worst}, {"samples", f.back_ms.size()}}}};
  return json.write(out.dump(2));
}

}  // namespace
}  // namespace leat::test

int main(int argc, char** argv) {
  using namespace leat;
  if (argc == 4 && std::string_view(argv[1]) == "--victim")
    return test::victim(argv[2], std::strtoull(argv[3], nullptr, 10));
  const cli::Arguments arguments = cli::parse_or_exit(test::kCommand, argc, argv);
  test::g_settings = {
      .kills = static_cast<int>(arguments.integer("kills")),
      .daemon_every = static_cast<int>(arguments.integer("daemon-every")),
      .seconds = arguments.real("seconds"),
      .seed = arguments.given("seed") ? static_cast<std::uint64_t>(arguments.integer("seed")) : std::random_device{}()};
  const cli::JsonOutput json(arguments);
  if (!json.alone())
    std::printf("seed %llu (--seed repeats it)\n", static_cast<unsigned long long>(test::g_settings.seed));
  int words = 1;
  testing::InitGoogleTest(&words, argv);
  if (json.alone())
    delete testing::UnitTest::GetInstance()->listeners().Release(
        testing::UnitTest::GetInstance()->listeners().default_result_printer());
  const int failed = RUN_ALL_TESTS();
  const int unwritten = test::print(json, failed == 0);
  return failed != 0 ? failed : unwritten;
}
