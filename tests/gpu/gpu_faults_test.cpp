// What must not matter to anybody but the frames it hits: the cases of section 4 of the GPU half's plan, each under its
// own name, over the stand-in drivers. Workers killed in each of their roles, a fault of a whole group, an MPS daemon
// that is missing or dies, leatd killed, no descriptors left, a client's death while its frames are pinned; and, last,
// kills and faults drawn at random with an exact ledger. What a stand-in cannot show: whether a real driver keeps a
// killed client's memory and leaves its neighbours alone (docs/guide/gpu.md).
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "cuda/driver/api.h"
#include "tests/gpu/gpu_fixture.h"
#include "tools/base/subprocess/user.h"

namespace leat::test {
namespace {

// All batches run plain where nothing else is said, so that it is soon known of each how it runs: most of what a
// worker's start takes here is that.
constexpr Times kPlain{.graph_launch_us = 1000};
class RunsPlain : public testing::Environment {
  void SetUp() override { times_.emplace(kPlain); }
  void TearDown() override { times_.reset(); }
  std::optional<CountedTimes> times_;
};
[[maybe_unused]] const auto* const kRunsPlain = testing::AddGlobalTestEnvironment(new RunsPlain);

// Three shares of one GPU: p0 and p1 produce, p2 consumes. p0 makes the edge's memory.
std::string three_shares() {
  return shapes_on(
      partition_on("p0", "mps", 0, 30) + partition_on("p1", "mps", 0, 30) + partition_on("p2", "mps", 0, 30),
      with_plan("mps", "leat", 2) + "[workers]\nmax_backoff_ms = 20\noverlap = \"on\"\n", split().profiles);
}

// All run, and those that were hit are others than before.
bool replaced(const Leatd& leatd, const std::vector<pid_t>& before, const std::vector<bool>& hit) {
  const auto now = leatd.workers();
  if (now.size() != before.size()) return false;
  for (std::size_t w = 0; w < now.size(); ++w)
    if (now[w] == 0 || (hit[w] && now[w] == before[w])) return false;
  return true;
}

// Children of a process by what they were started as.
std::vector<pid_t> children_of(pid_t parent, const std::string& word) {
  std::vector<pid_t> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    std::ifstream stat(entry.path() / "stat"), command(entry.path() / "cmdline");
    std::string words, line;
    if (pid <= 0 || !std::getline(stat, line)) continue;
    std::getline(command, words, '\n');
    std::istringstream fields(line.substr(std::min(line.rfind(')') + 2, line.size())));
    char state = 0;
    pid_t of = 0;
    fields >> state >> of;
    if (of == parent && state != 'Z' && words.find(word) != std::string::npos) out.push_back(pid);
  }
  return out;
}

bool alive(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  return std::getline(stat, line) && line.compare(line.rfind(')') + 2, 1, "Z") != 0;
}

// Leat's segments that a process maps, by inode.
std::set<unsigned long> segments_of(pid_t pid) {
  std::set<unsigned long> out;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::string range, rights, offset, device;
    unsigned long inode = 0;
    if (line.find("memfd:leat") != std::string::npos &&
        std::istringstream(line) >> range >> rights >> offset >> device >> inode)
      out.insert(inode);
  }
  return out;
}

// In a folder for temporary ones that is this test's alone: others run beside it.
std::size_t mps_folders() {
  static const ScratchFolder kOurs;
  ::setenv("TMPDIR", kOurs.path().c_str(), 1);
  std::size_t out = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kOurs.path()))
    out += entry.path().filename().string().starts_with("leatd-mps-") ? 1 : 0;
  return out;
}

// Frames are sent meanwhile.
void are_replaced(Leatd& leatd, Camera& camera, const std::vector<pid_t>& before, const std::vector<bool>& hit) {
  ASSERT_TRUE(eventually([&] { return camera.pump(1), replaced(leatd, before, hit); }, 60s)) << leatd.log();
}

// As if nothing had happened, and every frame has one answer. leatd and its workers understood each other, also while
// some of them started.
void serves_and_ends(Leatd& leatd, Camera& camera) {
  ASSERT_NO_FATAL_FAILURE(camera.serves_again());
  EXPECT_EQ(leatd.log().find("does not understand"), std::string::npos) << leatd.log();
  ASSERT_NO_FATAL_FAILURE(camera.drain());
  expect_exact_ledger(leatd, camera.sent);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// ---- a worker killed in each of its roles: it alone is started again, and the edge's memory is what it was ----

class KillOf : public testing::TestWithParam<std::size_t> {};
TEST_P(KillOf, HarmsNobodyElse) {
  (void)gpus();
  Leatd leatd(three_shares());
  Camera camera(leatd, "kills");
  ASSERT_NO_FATAL_FAILURE(camera.pump(10));
  const auto before = leatd.workers();
  std::vector<bool> hit(before.size());
  hit[GetParam()] = true;
  ASSERT_EQ(::kill(before[GetParam()], SIGKILL), 0);
  ASSERT_NO_FATAL_FAILURE(are_replaced(leatd, camera, before, hit));
  const auto after = leatd.workers();
  for (std::size_t w = 0; w < after.size(); ++w) EXPECT_EQ(after[w] == before[w], !hit[w]) << "worker " << w;
  ASSERT_NO_FATAL_FAILURE(camera.serves_again());
  EXPECT_EQ(*leatd.record(RecordKind::edge, 0)->value(EdgeCounter::bytes_copied), 0U);
  ASSERT_NO_FATAL_FAILURE(serves_and_ends(leatd, camera));
}
INSTANTIATE_TEST_SUITE_P(TheMakerOfTheMemory, KillOf, testing::Values(0U));
INSTANTIATE_TEST_SUITE_P(AnotherProducer, KillOf, testing::Values(1U));
INSTANTIATE_TEST_SUITE_P(TheConsumer, KillOf, testing::Values(2U));

// ---- a fault ----

TEST(GroupFault, EndsAllSharesAndStartsThemTogether) {
  (void)gpus();
  Leatd leatd(three_shares());
  Camera camera(leatd, "fault");
  ASSERT_NO_FATAL_FAILURE(camera.pump(10));
  const auto before = leatd.workers();
  gpus().fault_group(0);
  ASSERT_NO_FATAL_FAILURE(are_replaced(leatd, camera, before, {true, true, true}));
  EXPECT_NE(leatd.log().find("were lost with their device"), std::string::npos) << leatd.log();
  ASSERT_NO_FATAL_FAILURE(serves_and_ends(leatd, camera));
}

// What holds device memory ends the process that gives it back: the worker's exit status says all the same why it ends.
TEST(GroupFault, ShowsThoughDestructorsEndTheProcess) {
  (void)gpus();
  Leatd leatd(three_shares());
  Camera camera(leatd, "destructors");
  ASSERT_NO_FATAL_FAILURE(camera.pump(5));
  const auto before = leatd.workers();
  gpus().state().abort_in_destructors = 1;
  gpus().fault_group(0);
  ASSERT_NO_FATAL_FAILURE(are_replaced(leatd, camera, before, {true, true, true}));
  gpus().state().abort_in_destructors = 0;
  EXPECT_NE(leatd.log().find("were lost with their device"), std::string::npos) << leatd.log();
  EXPECT_EQ(leatd.log().find("signal 6"), std::string::npos) << leatd.log();
  ASSERT_NO_FATAL_FAILURE(serves_and_ends(leatd, camera));
}

// A share that does not reach the MPS daemon when it starts again is in trouble alone.
TEST(RefusedShare, LeavesItsNeighboursAlone) {
  (void)gpus();
  Leatd leatd(three_shares());
  Camera camera(leatd, "refused");
  ASSERT_NO_FATAL_FAILURE(camera.pump(5));
  const auto before = leatd.workers();
  gpus().state().refused_by = cuda::kMpsConnectionFailed;
  gpus().state().refused_opens = 30;  // more than a start asks for
  ASSERT_EQ(::kill(before[1], SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return camera.pump(1), gpus().state().refused_opens == 0U; }, 60s)) << leatd.log();
  ASSERT_NO_FATAL_FAILURE(are_replaced(leatd, camera, before, {false, true, false}));
  const auto after = leatd.workers();
  EXPECT_EQ(after[0], before[0]) << leatd.log();
  EXPECT_EQ(after[2], before[2]) << leatd.log();
  ASSERT_NO_FATAL_FAILURE(serves_and_ends(leatd, camera));
}

// A process outside of leatd that shares the GPU and takes its time to end after a fault: until so many newcomers have
// been refused.
pid_t slow_to_die(unsigned gpu, std::uint32_t refusals) {
  fake::Gpu& shared = gpus().state().gpus[gpu];
  const std::uint32_t until = shared.refused_joins + refusals;
  const pid_t child = ::fork();
  if (child == 0) {
    while (shared.refused_joins < until) {
      constexpr timespec kLook{0, 1'000'000};
      (void)::nanosleep(&kLook, nullptr);
    }
    ::_exit(0);
  }
  fake::Client& entry = shared.clients[fake::kMaxClients - 1];
  entry.epoch = shared.fault_epoch.load();
  entry.pid = child;
  return child;
}

TEST(GroupFault, IsOverOnceAClientThatDiesSlowlyIsGone) {
  (void)gpus();
  Leatd leatd(three_shares());
  Camera camera(leatd, "slow");
  ASSERT_NO_FATAL_FAILURE(camera.pump(5));
  const auto before = leatd.workers();
  const pid_t other = slow_to_die(0, 6);
  gpus().fault_group(0);
  ASSERT_TRUE(eventually([&] { return camera.pump(1), ::waitpid(other, nullptr, WNOHANG) == other; }, 60s))
      << leatd.log();
  ASSERT_NO_FATAL_FAILURE(are_replaced(leatd, camera, before, {true, true, true}));
  ASSERT_NO_FATAL_FAILURE(serves_and_ends(leatd, camera));
}

// leatd starts into it.
TEST(GroupFault, OfOthersBeforeTheStartIsWaitedFor) {
  (void)gpus();
  (void)split();
  const pid_t other = slow_to_die(0, 6);
  gpus().fault_group(0);
  std::thread buries([other] { EXPECT_EQ(::waitpid(other, nullptr, 0), other); });
  Leatd leatd(three_shares());
  buries.join();
  Camera camera(leatd, "after");
  EXPECT_NE(leatd.log().find("MPS_SERVER_NOT_READY"), std::string::npos) << leatd.log();
  ASSERT_NO_FATAL_FAILURE(serves_and_ends(leatd, camera));
}

// ---- MPS ----

TEST(MissingMpsDaemon, IsSaidAndNothingIsServed) {
  (void)gpus();
  const ScratchFolder folder;
  const std::string config =
      folder.write("a.toml", "[daemon]\nsocket = \"s\"\n" + shapes_on(partition_on("s", "mps", 0, 50), "", ""));
  ::setenv("LEAT_MPS_CONTROL", "/nonexistent/nvidia-cuda-mps-control", 1);
  const std::size_t folders = mps_folders();
  const Exit e = run_to_end({LEATD_BINARY, config});
  ::setenv("LEAT_MPS_CONTROL", LEAT_FAKE_MPS, 1);
  EXPECT_EQ(e.status, 2) << e.err;
  EXPECT_NE(e.err.find("MPS daemon"), std::string::npos) << e.err;
  EXPECT_EQ(mps_folders(), folders);
}

// A process that does not reach its daemon runs beside it, silently, with all multiprocessors.
TEST(MissingMpsDaemon, ShowsByTheMultiprocessorsAndTheWorkerIsRefused) {
  (void)gpus();
  const ScratchFolder folder;
  const std::string config =
      folder.write("a.toml", "[daemon]\nsocket = \"s\"\n" + shapes_on(partition_on("s", "mps", 0, 50), "", ""));
  gpus().state().mps_unreachable = 1;
  const Exit e = run_to_end({LEATD_BINARY, config});
  gpus().state().mps_unreachable = 0;
  EXPECT_NE(e.err.find("sees 108 multiprocessors"), std::string::npos) << e.err;
  EXPECT_NE(e.status, 0);
}

// Workers of another user: the daemon is theirs, or their shares would be refused to them.
TEST(WorkersOfAnotherUser, ShareAGpuByADaemonOfTheirOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can start workers as somebody else";
  (void)gpus();
  const auto reaches = [](const char* path) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(subprocess::become_user("nobody").ok() && ::access(path, R_OK) == 0 ? 0 : 1);
    int status = 1;
    return ::waitpid(child, &status, 0) == child && status == 0;
  };
  const std::string state = std::getenv("LEAT_FAKE_GPUS");
  std::filesystem::permissions(state, std::filesystem::perms{0666});
  std::filesystem::permissions(std::filesystem::path(state).parent_path(), std::filesystem::perms{0755});
  for (const char* path : {state.c_str(), LEAT_FAKE_DRIVERS, LEAT_FAKE_MPS, LEAT_MODELS, LEATD_BINARY})
    if (!reaches(path)) GTEST_SKIP() << "nobody cannot read " << path;
  Leatd leatd(shapes_on(partition_on("p0", "mps", 0, 30) + partition_on("p1", "mps", 0, 30),
                        "[workers]\nuser = \"nobody\"\nmax_backoff_ms = 20\n", ""));
  Camera camera(leatd, "nobody");
  ASSERT_NO_FATAL_FAILURE(camera.pump(5));
  const auto before = leatd.workers();
  const auto keepers = children_of(leatd.pid(), "keep");
  ASSERT_EQ(keepers.size(), 1U);
  const auto daemons = children_of(keepers[0], "mps");
  ASSERT_FALSE(daemons.empty());
  ASSERT_EQ(::kill(daemons[0], SIGKILL), 0);
  ASSERT_NO_FATAL_FAILURE(are_replaced(leatd, camera, before, {true, true}));
  ASSERT_NO_FATAL_FAILURE(camera.serves_again());
  ASSERT_NO_FATAL_FAILURE(camera.drain());
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

TEST(KilledMpsDaemon, IsReplacedWithItsWorkers) {
  (void)gpus();
  Leatd leatd(three_shares());
  Camera camera(leatd, "daemon");
  ASSERT_NO_FATAL_FAILURE(camera.pump(5));
  const auto before = leatd.workers();
  const auto keepers = children_of(leatd.pid(), "keep");
  ASSERT_EQ(keepers.size(), 1U);
  const auto daemons = children_of(keepers[0], "mps");
  ASSERT_FALSE(daemons.empty());
  ASSERT_EQ(::kill(daemons[0], SIGKILL), 0);
  ASSERT_NO_FATAL_FAILURE(are_replaced(leatd, camera, before, {true, true, true}));
  ASSERT_NO_FATAL_FAILURE(serves_and_ends(leatd, camera));
}

// ---- leatd itself ----

TEST(LeatdKilled, LeavesNoWorkerNoMpsDaemonNoFolderAndServesWhenStartedAgain) {
  (void)gpus();
  const std::size_t folders = mps_folders();
  Leatd leatd(three_shares());
  {
    Camera camera(leatd, "before");
    ASSERT_NO_FATAL_FAILURE(camera.pump(5));
  }
  auto gone = leatd.workers();
  for (const pid_t keeper : children_of(leatd.pid(), "keep")) {
    gone.push_back(keeper);
    for (const pid_t daemon : children_of(keeper, "")) gone.push_back(daemon);
  }
  ASSERT_GE(gone.size(), 5U);  // three workers, the keeper, the daemon
  leatd.kill();
  EXPECT_TRUE(eventually([&] { return std::none_of(gone.begin(), gone.end(), alive); }, 60s));
  EXPECT_TRUE(eventually([&] { return mps_folders() == folders; }, 60s));
  leatd.start();
  Camera camera(leatd, "after");
  ASSERT_NO_FATAL_FAILURE(serves_and_ends(leatd, camera));
  EXPECT_EQ(mps_folders(), folders);
}

// ---- descriptors ----

// Workers die while leatd has no descriptor left for new ones: they come when there are some again.
TEST(DescriptorsExhausted, DelaysTheWorkersAndLosesNoFrame) {
  (void)gpus();
  Leatd leatd(three_shares());
  Camera camera(leatd, "descriptors");
  ASSERT_NO_FATAL_FAILURE(camera.pump(5));
  const auto before = leatd.workers();
  rlimit was{};
  ASSERT_EQ(::prlimit(leatd.pid(), RLIMIT_NOFILE, nullptr, &was), 0);
  const rlimit none{3, was.rlim_max};
  ASSERT_EQ(::prlimit(leatd.pid(), RLIMIT_NOFILE, &none, nullptr), 0);
  ASSERT_EQ(::kill(before[2], SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return !alive(before[2]); }, 60s)) << leatd.log();
  ASSERT_NO_FATAL_FAILURE(camera.pump(4));
  ASSERT_EQ(::prlimit(leatd.pid(), RLIMIT_NOFILE, &was, nullptr), 0);
  ASSERT_NO_FATAL_FAILURE(are_replaced(leatd, camera, before, {false, false, true}));
  ASSERT_NO_FATAL_FAILURE(serves_and_ends(leatd, camera));
}

// ---- a client ----

TEST(ClientKilled, WhileItsFramesArePinnedIsForgottenByEveryWorker) {
  (void)gpus();
  Leatd leatd(three_shares());
  Camera camera(leatd, "stays");
  ASSERT_NO_FATAL_FAILURE(camera.pump(5));
  const std::set<unsigned long> others = segments_of(::getpid());  // a fork maps them too
  int report[2];
  ASSERT_EQ(::pipe(report), 0);
  const pid_t client = ::fork();
  if (client == 0) {
    Camera dies(leatd, "dies");
    dies.pump(6);
    for (const unsigned long segment : segments_of(::getpid()))
      if (!others.contains(segment) && ::write(report[1], &segment, sizeof segment) != sizeof segment) break;
    ::kill(::getpid(), SIGKILL);
  }
  ::close(report[1]);
  std::set<unsigned long> its;
  for (unsigned long segment = 0; ::read(report[0], &segment, sizeof segment) == sizeof segment;) its.insert(segment);
  ::close(report[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(client, &status, 0), client);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  ASSERT_FALSE(its.empty());
  const auto maps_its = [&](pid_t process) {
    const auto mapped = segments_of(process);
    return std::any_of(its.begin(), its.end(), [&](unsigned long segment) { return mapped.contains(segment); });
  };
  EXPECT_TRUE(eventually(
      [&] {
        camera.pump(1);  // a worker reads its messages between batches
        const auto workers = leatd.workers();
        return std::none_of(workers.begin(), workers.end(), maps_its) && !maps_its(leatd.pid());
      },
      60s))
      << leatd.log();
  ASSERT_NO_FATAL_FAILURE(camera.drain());
  EXPECT_TRUE(eventually([&] { return value(*leatd.total(), StreamCounter::in_flight) == 0; }));
  EXPECT_TRUE(balances(*leatd.total()));
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// ---- all of it at random ----

// A way in which every batch gets onto a device's stream, since none is faster by what these take.
struct Way {
  const char* name;
  Times times;
  int Ways::*all;  // sizes run so
  bool one_launch;
};
// Two batches of a share are on its stream, each as one launch where that is asked for.
bool two_are_in_hand(bool one_launch) {
  return std::ranges::any_of(gpus().state().gpus[0].clients, [one_launch](const fake::Client& c) {
    return c.pid != 0 && c.marks >= 2 && (!one_launch || c.graphs >= 2) && alive(c.pid);
  });
}

// A fault of the group, at once or as soon as two batches are in hand; frames must be sent meanwhile.
class GroupFaults {
 public:
  GroupFaults(bool waits, bool one_launch)
      : thread_([this, waits, one_launch] {
          // Looked at once: this thread may be held up between a look and the fault.
          while (!(two_ = two_are_in_hand(one_launch)) && waits && !given_up_) std::this_thread::yield();
          gpus().fault_group(0);
        }) {}
  ~GroupFaults() {
    given_up_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Once it has come, whether it found two.
  [[nodiscard]] bool found_two() {
    given_up_ = true;
    thread_.join();
    return two_;
  }

 private:
  std::atomic<bool> given_up_{false}, two_{false};
  std::thread thread_;
};

void expect_all_run_so(const Leatd& leatd, const Way& way) {
  const Ways ways = ways_of(leatd);
  EXPECT_GT(ways.sizes, 0);
  EXPECT_EQ(ways.*way.all, ways.sizes) << leatd.status_json();
}

// Three kills of a random worker, then a fault: LEAT_GPU_ROUNDS rounds of that; 100 of them are 300 kills and 100
// faults. Every other fault waits until two batches are in hand, which they are at once: behind each frame come 16
// crops for three shares. Of the rest it is counted how often they were.
class LedgerBalanced : public testing::TestWithParam<Way> {};
TEST_P(LedgerBalanced, ThroughRandomKillsAndFaultsOfTheWholeGroup) {
  const Way& way = GetParam();
  const char* const asked = std::getenv("LEAT_GPU_ROUNDS");
  const int rounds = asked != nullptr ? std::atoi(asked) : 2;
  const char* const seed = std::getenv("LEAT_GPU_SEED");
  std::mt19937 random(seed != nullptr ? static_cast<unsigned>(std::atoi(seed)) : 7U);
  const auto began = std::chrono::steady_clock::now();
  const CountedTimes counted(way.times);
  Leatd leatd(three_shares());
  expect_all_run_so(leatd, way);
  Camera camera(leatd, "faults");
  int kills = 0, faults = 0, two_in_hand = 0, two_by_chance = 0;
  for (int i = 0; i < 4 * rounds; ++i) {
    SCOPED_TRACE("event " + std::to_string(i));
    ASSERT_NO_FATAL_FAILURE(camera.pump(random() % 6));
    const auto before = leatd.workers();
    std::vector<bool> hit(before.size(), i % 4 == 3);
    std::optional<GroupFaults> fault;
    if (i % 4 == 3) {
      fault.emplace(faults++ % 2 == 0, way.one_launch);
    } else {
      const std::size_t w = random() % before.size();
      hit[w] = true;
      kills += ::kill(before[w], SIGKILL) == 0 ? 1 : 0;
    }
    ASSERT_TRUE(eventually(
        [&] {  // a fault is noticed by whoever calls the device
          return testing::Test::HasFatalFailure() || (camera.pump(1), replaced(leatd, before, hit));
        },
        60s))
        << leatd.log();
    if (fault && fault->found_two()) ++(faults % 2 == 1 ? two_in_hand : two_by_chance);
  }
  EXPECT_EQ(two_in_hand, (faults + 1) / 2);
  ASSERT_NO_FATAL_FAILURE(camera.serves_again());
  expect_all_run_so(leatd, way);
  ASSERT_NO_FATAL_FAILURE(serves_and_ends(leatd, camera));
  std::printf(
      "%s: %d kills, %d faults (%d with two batches in hand, %d more by chance), %llu frames sent, %llu answered, %llu "
      "completed, %.0f s\n",
      way.name, kills, faults, two_in_hand, two_by_chance, static_cast<unsigned long long>(camera.sent),
      static_cast<unsigned long long>(camera.answered), static_cast<unsigned long long>(camera.completed),
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
}
INSTANTIATE_TEST_SUITE_P(EachWay, LedgerBalanced,
                         testing::Values(Way{"Plain", kPlain, &Ways::plain, false},
                                         Way{"OneLaunch", {1000, 10'000, 0}, &Ways::one_launch, true}),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace leat::test
