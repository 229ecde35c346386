// A worker whose executor has turned against its daemon: what it tries is refused, leatd's threads keep their place,
// and the frames of another partition are served all the while. As root, as root with workers of another user, and as
// an ordinary user; with all that the kernel offers, and as on an older one.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "engine/worker/sandbox/kernel_features.h"
#include "tests/executors/turned.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kOrdinaryUser = 65534;

enum class As : std::uint8_t { root, root_with_user, ordinary };
struct Setting {
  As as = As::root;
  bool old_kernel = false;
};
std::vector<Setting> settings() {
  std::vector<Setting> out;
  for (const As as : {As::root, As::root_with_user, As::ordinary})
    if (getuid() == 0 || as == As::root)
      for (const bool old_kernel : {false, true}) out.push_back({as, old_kernel});
  return out;
}
std::string name_of(const testing::TestParamInfo<Setting>& info) {
  static constexpr const char* kNames[] = {"Root", "RootWithUser", "OrdinaryUser"};
  return std::string(kNames[static_cast<std::size_t>(info.param.as)]) + (info.param.old_kernel ? "OnAnOldKernel" : "");
}

struct TurnName {
  Turn turn;
  const char* name;
  bool sure;
};
constexpr TurnName kTurns[] = {
#define X(name, sure) {Turn::name, #name, (sure) != 0},
    LEAT_TURNS(X)
#undef X
};

// Two partitions by a plan, so that each has one application: 'honest', emulated, and 'turned', which runs the
// executor.
Json planned(const char* name, const char* kind, std::uint32_t device) {
  return {{"name", name},     {"kind", kind}, {"class", name},
          {"share", 1},       {"size", 1},    {"price", 1},
          {"device", device}, {"host", 0},    {"selector", device == 0 ? "" : "0"}};
}
Json route(std::uint32_t application) {
  return {{"application", application},
          {"module", 0},
          {"batch", 1},
          {"rate_rps", 500},
          {"stages",
           {{{"first_block", 0},
             {"end_block", 1},
             {"pool", {application}},
             {"transfer_bytes", 0},
             {"latency_by_batch", {{{"p50_ns", 1'000'000}, {"p99_ns", 2'000'000}, {"samples", 1}}}}}}}};
}
Json application(const char* name) {
  return {{"name", name},
          {"slo_ns", 60'000'000'000},
          {"rate_rps", 100},
          {"weight", 1},
          {"module", {{{"name", "m"}, {"model", name}}}}};
}

std::string profile_of(const char* name) {
  Json row = {{"class", name}, {"share", 1}, {"batch", 1}};
  row["blocks"].push_back({{"p50_ns", 1'000'000}, {"p99_ns", 2'000'000}, {"samples", 1}});
  Json out = {{"schema", "leat-profile/1"}, {"model", name}, {"blocks", 1}, {"boundary_bytes", Json::array()}};
  out["rows"].push_back(row);
  return out.dump();
}

class Host {
 public:
  explicit Host(const Setting& setting, const char* sandbox = "on") {
    EXPECT_EQ(chmod(folder_.path().c_str(), 0755), 0);
    Json plan = {{"schema", "leat-plan/1"}};
    plan["applications"] = {application("honest"), application("turned")};
    plan["partitions"] = {planned("honest", "emulated", 0), planned("turned", "cpu", 1)};
    plan["hosts"] = Json::array();
    plan["routes"] = {route(0), route(1)};
    std::vector<std::string> prefix;
    if (setting.as == As::ordinary) {
      const std::string user = std::to_string(kOrdinaryUser);
      prefix = {"/usr/bin/setpriv", "--reuid", user, "--regid", user, "--clear-groups"};
    }
    if (setting.old_kernel) prefix.insert(prefix.end(), {"/usr/bin/env", "LEAT_OLD_KERNEL=1"});
    leatd_.emplace("[daemon]\nsocket_mode = \"0666\"\nplan = \"" + folder_.write("plan.json", plan.dump()) +
                       "\"\n[workers]\nmax_backoff_ms = 10\nsandbox = \"" + sandbox + "\"\n" +
                       (setting.as == As::root_with_user ? "user = \"nobody\"\n" : "") + R"(
[[partition]]
name = "honest"
kind = "emulated"
[[partition]]
name = "turned"
kind = "cpu"
cores = "0"
class = "turned"
[[application]]
name = "honest"
slo_ms = 60000
  [[application.module]]
  name = "m"
  model = "honest"
  latency_ms = [1.0]
[[application]]
name = "turned"
slo_ms = 60000
  [[application.module]]
  name = "m"
  model = "turned"
  batch = 1
  executor = ")" + TURNED_EXECUTOR +
                       "\"\n  profile = \"" + folder_.write("turned.json", profile_of("turned")) + "\"\n",
                   std::vector<std::string>{}, prefix, setting.as == As::ordinary ? kOrdinaryUser : getuid());
  }
  Leatd& leatd() { return *leatd_; }

 private:
  ScratchFolder folder_;
  std::optional<Leatd> leatd_;
};

// A client of one of the two applications: a frame, and its answer.
class Asker {
 public:
  Asker(Leatd& leatd, const char* application) {
    auto client = Client::connect(leatd.socket(), application);
    EXPECT_TRUE(client.ok()) << client.error() << leatd.log();
    if (!client.ok()) return;
    client_.emplace(std::move(*client));
    StreamOptions o;
    o.application = application;
    o.format = LEAT_FORMAT_gray8;
    o.width = o.height = 16;
    o.depth = o.slots = 8;
    o.overload = LEAT_OVERLOAD_fifo;
    auto stream = client_->open_stream(o);
    EXPECT_TRUE(stream.ok()) << stream.error() << leatd.log();
    if (stream.ok()) stream_.emplace(std::move(*stream));
  }
  Outcome ask(Turn turn) {
    if (!stream_) return Outcome::pending;
    auto frame = stream_->acquire();
    if (!frame) return Outcome::pending;
    std::memset(frame->raw().planes[0], static_cast<int>(turn), frame->raw().bytes);
    if (frame->submit({}) != LEAT_ERROR_ok) return Outcome::pending;
    const auto answer = client_->next_answer(60s);
    return answer ? answer->outcome() : Outcome::pending;
  }

 private:
  std::optional<Client> client_;
  std::optional<Stream> stream_;
};

// Frames of the other partition, one behind the other, until it ends.
class Honest {
 public:
  explicit Honest(Leatd& leatd)
      : thread_([this, &leatd] {
          Asker asker(leatd, "honest");
          while (!ending_) ++(asker.ask(Turn::nothing) == Outcome::completed ? served : lost);
        }) {}
  ~Honest() { end(); }
  void end() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::atomic<std::uint64_t> served{0}, lost{0};

 private:
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

// Of every thread: where and how it runs.
using Places = std::map<pid_t, std::string>;
Places places_of(pid_t leatd) {
  Places out;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(leatd) + "/task", none)) {
    const auto thread = static_cast<pid_t>(std::stol(entry.path().filename()));
    cpu_set_t cores;
    CPU_ZERO(&cores);
    (void)sched_getaffinity(thread, sizeof cores, &cores);
    out[thread] = "policy " + std::to_string(sched_getscheduler(thread)) + ", nice " +
                  std::to_string(getpriority(PRIO_PROCESS, static_cast<id_t>(thread))) + ", cores " +
                  std::to_string(CPU_COUNT(&cores));
  }
  return out;
}
// Threads come and go (engine/daemon/clients/jobs/job_threads.h): those that were there before and are there still.
void expect_unmoved(const Places& before, const Places& after) {
  std::size_t compared = 0;
  for (const auto& [thread, place] : after)
    if (const auto was = before.find(thread); was != before.end()) {
      EXPECT_EQ(place, was->second) << "thread " << thread;
      ++compared;
    }
  EXPECT_GE(compared, 2U) << "the control thread and the scheduler's";
}

class TurnedWorker : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(LeatdIs, TurnedWorker, testing::ValuesIn(settings()), name_of);

TEST_P(TurnedWorker, IsRefusedWhatItTriesAndTheOthersAreServed) {
  Host host(GetParam());
  Leatd& leatd = host.leatd();
  Honest honest(leatd);
  Asker turned(leatd, "turned");
  ASSERT_EQ(turned.ask(Turn::nothing), Outcome::completed) << leatd.log();
  const Places before = places_of(leatd.pid());
  for (const TurnName& t : kTurns) {
    if (t.turn == Turn::nothing || t.turn == Turn::storm) continue;
    const bool permitted = t.turn == Turn::command_line && (GetParam().old_kernel || worker::landlock_abi() == 0);
    EXPECT_EQ(turned.ask(t.turn), permitted ? Outcome::completed : Outcome::failed) << t.name;
  }
  EXPECT_EQ(turned.ask(Turn::nothing), Outcome::completed) << "nobody died of it" << leatd.log();
  expect_unmoved(before, places_of(leatd.pid()));
  EXPECT_EQ(turned.ask(Turn::storm), Outcome::completed);
  const std::uint64_t served = honest.served;
  const std::int64_t from = leat_now_ns();
  while (leat_now_ns() - from < 1'200'000'000) {
    EXPECT_TRUE(eventually([&] { return !leatd.status_json().empty(); }));
    EXPECT_NE(turned.ask(Turn::nothing), Outcome::pending) << "its own frames are answered too, somehow";
  }
  EXPECT_TRUE(eventually([&] { return honest.served > served + 10; })) << leatd.log();
  if (const auto daemon = leatd.record(shm::RecordKind::daemon, 0))
    std::printf("longest turn %.3f ms of CPU time, %llu long ones\n",
                static_cast<double>(daemon->value(shm::DaemonCounter::loop_own_ns_max).value_or(0)) / 1e6,
                static_cast<unsigned long long>(daemon->value(shm::DaemonCounter::own_stalls).value_or(0)));
  honest.end();
  EXPECT_EQ(honest.lost, 0U) << leatd.log();
  EXPECT_LT(leatd.log().size(), 100'000U) << "a worker's lines fill no log";
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// What is tried above is not refused for reasons of its own. (A newer kernel refuses to pass descriptors on leatd's
// behalf, with the sandbox off as well.)
TEST(TurnedWorkerInNoSandbox, GetsAllOfIt) {
  if (getuid() != 0) GTEST_SKIP() << "some of it is root's only";
  Host host({As::root, true}, "off");
  Asker turned(host.leatd(), "turned");
  for (const TurnName& t : kTurns) {
    if (!t.sure || t.turn == Turn::storm) continue;
    EXPECT_EQ(turned.ask(t.turn), Outcome::completed) << t.name;
  }
}

TEST(TurnedWorkerAsRoot, IsWarnedOf) {
  if (getuid() != 0) GTEST_SKIP() << "only root's workers can be root";
  const auto warned = [](As as) { return Host({as, false}).leatd().log().find("workers run as root"); };
  EXPECT_NE(warned(As::root), std::string::npos);
  EXPECT_EQ(warned(As::root_with_user), std::string::npos);
  EXPECT_EQ(warned(As::ordinary), std::string::npos);
}

}  // namespace
}  // namespace leat::test
