// A profile that says a model takes far longer than it does, through a real leatd: its frames are served all the same.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cstring>
#include <optional>

#include "leat/client.hpp"
#include "tests/executors/burning.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

constexpr int kFrames = 60;
constexpr std::int64_t kSloNs = 5'000'000'000, kSaidNs = 20'000'000'000;  // a batch takes less than a millisecond

// How many of the frames that come one after another are answered in time, and how many are given up.
std::pair<int, int> served(const std::string& policy) {
  ScratchFolder folder;
  Json profile = {{"schema", "leat-profile/1"}, {"model", "m"}, {"blocks", 1}, {"boundary_bytes", Json::array()}};
  profile["rows"].push_back({{"class", "cpu:1"}, {"share", 1}, {"batch", 1}, {"blocks", {{{"p50_ns", kSaidNs}}}}});
  Leatd leatd("[[partition]]\nname = \"p\"\ncores = \"0\"\n" + policy +
              "[[application]]\nname = \"a\"\nslo_ms = 5000\n[[application.module]]\nname = \"m\"\nbatch = 1\n"
              "executor = \"" COSTLY_EXECUTOR "\"\nprofile = \"" +
              folder.write("p.json", profile.dump()) + "\"\n");
  EXPECT_NE(leatd.log().find("needs 20 s on an idle host, more than its SLO of 5000 ms"), std::string::npos)
      << leatd.log();
  auto client = Client::connect(leatd.socket(), "healing");
  EXPECT_TRUE(client.ok()) << leatd.log();
  if (!client.ok()) return {-1, -1};
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "a";
  o.format = LEAT_FORMAT_gray8;
  o.width = o.height = 64;
  o.slo_ns = kSloNs;
  auto stream = client->open_stream(o);
  EXPECT_TRUE(stream.ok()) << stream.error();
  int in_time = 0, dropped = 0;
  for (int i = 0; stream.ok() && i < kFrames; ++i) {
    auto frame = stream->acquire();
    if (!frame) break;
    std::memset(frame->raw().planes[0], 0, frame->raw().bytes);
    if (frame->submit() != LEAT_ERROR_ok) break;
    const auto answer = client->next_answer(kPatience);
    if (!answer) break;
    in_time += answer->outcome() == Outcome::completed ? 1 : 0;
    dropped += answer->outcome() == Outcome::dropped ? 1 : 0;
  }
  const auto total = leatd.total();
  EXPECT_TRUE(total && balances(*total));
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
  return {in_time, dropped};
}

TEST(Healing, AProfileThatIsFarTooHighCostsNoFrames) {
  EXPECT_EQ(served("[policy]\ncanaries = false\n"), std::pair(0, kFrames)) << "else there is nothing to heal";
  EXPECT_GE(served("").first, kFrames * 9 / 10);
}

// A process that never lets go of the first core while this lives.
class BusyLoop {
 public:
  BusyLoop() : pid_(::fork()) {
    if (pid_ != 0) return;
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    (void)::sched_setaffinity(0, sizeof first, &first);
    for (std::atomic<unsigned> i = 0;; ++i) {
    }
  }
  BusyLoop(const BusyLoop&) = delete;
  BusyLoop& operator=(const BusyLoop&) = delete;
  ~BusyLoop() {
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

// What leatd says that batches take: [b-1], ms.
std::vector<double> said_ms(const Leatd& leatd) {
  const Json status = Json::parse(leatd.status_json());
  return status.at("applications").at(0).at("modules").at(0).at("latency_ms").at("cpu:1").get<std::vector<double>>();
}

double objective_ms(const Leatd& leatd) {
  return Json::parse(leatd.status_json()).at("applications").at(0).at("slo_ms").get<double>();
}

// By the processor's time, which a processor's speed does not decide.
double alone_ms(std::size_t batch) {
  return static_cast<double>(kBurnBatchNs + static_cast<std::int64_t>(batch) * kBurnFrameNs) / 1e6;
}

TEST(Healing, WhatWasMeasuredOnABusyCoreIsMeasuredAgainOnceItIsIdle) {
  // What else this machine does is not to be what disturbs: all that follows goes before it, where that is permitted.
  (void)::setpriority(PRIO_PROCESS, 0, -15);
  std::optional<std::array<BusyLoop, 4>> others(std::in_place);
  Leatd leatd(
      "[[partition]]\nname = \"p\"\ncores = \"0\"\n[[application]]\nname = \"a\"\nslo_ms = \"auto\"\n"
      "[[application.module]]\nname = \"m\"\nbatch = 8\nexecutor = \"" BURNING_EXECUTOR "\"\n");
  others.reset();
  EXPECT_NE(leatd.log().find("while its models were measured "), std::string::npos) << leatd.log();
  const std::vector<double> busy = said_ms(leatd);
  ASSERT_EQ(busy.size(), 8U);
  EXPECT_GT(busy[0], 2 * alone_ms(1));
  const double objective = objective_ms(leatd);
  // Whatever else this machine does, it is less than that.
  EXPECT_TRUE(eventually([&] { return said_ms(leatd)[0] < busy[0] / 2; }, 60'000ms)) << leatd.log();
  EXPECT_NE(leatd.log().find("its models were measured again"), std::string::npos) << leatd.log();
  const std::vector<double> idle = said_ms(leatd);
  ASSERT_EQ(idle.size(), 8U);
  for (const std::size_t b : {1, 2, 4, 8}) EXPECT_GE(idle[b - 1], alone_ms(b));
  EXPECT_LT(objective_ms(leatd), objective);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// Before it is served, and with no profile: what one frame takes, and that the objective is less.
TEST(Healing, CheckSaysThatTheObjectiveIsTooShort) {
  ScratchFolder folder;
  const std::string file = folder.write(
      "c.toml",
      "[daemon]\nsocket = \"" + folder.path() +
          "/s\"\n[[partition]]\nname = \"p\"\ncores = \"0\"\n[[application]]\n"
          "name = \"a\"\nslo_ms = 5\n[[application.module]]\nname = \"m\"\nbatch = 8\nexecutor = \"" BURNING_EXECUTOR
          "\"\n");
  const Exit checked =
      run_to_end({"/bin/sh", "-c", "exec " LEAT_BINARY " check --worker " LEAT_WORKER_BINARY " " + file + " >&2"});
  EXPECT_EQ(checked.status, 0);
  EXPECT_NE(checked.err.find("more than its SLO of 5 ms"), std::string::npos) << checked.err;
  EXPECT_NE(checked.err.find("one frame takes up to "), std::string::npos) << checked.err;
}

// What is left to leatd comes from what its workers measured.
TEST(Healing, AnObjectiveIsTakenFromWhatWasMeasured) {
  Leatd leatd(
      "[[partition]]\nname = \"p\"\ncores = \"0\"\n[[application]]\nname = \"a\"\nslo_ms = \"auto\"\n"
      "[[application.module]]\nname = \"m\"\nexecutor = \"emulated\"\nlatency_ms = [70]\n");
  EXPECT_NE(leatd.log().find("its objective is 250 ms from capture to answer, by the 70 ms"), std::string::npos)
      << leatd.log();
  const Json status = Json::parse(leatd.status_json());
  EXPECT_EQ(status.at("applications").at(0).at("slo_ms").get<double>(), 250);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

}  // namespace
}  // namespace leat::test
