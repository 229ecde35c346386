// Plans that take over one after the other under everything at once: a model that is split between partitions,
// coordinated streams, two users. Nothing fails, every frame has one answer, and as many as ever are in time. By hand
// LEAT_CHANGES=100 build/tests/swaps_test prints what is in time with and without swaps, measured in turns.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "leat/leat.h"
#include "tests/serving/change_helpers.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr uid_t kOther = 65534;
constexpr std::uint32_t kBatch = 4;
constexpr std::int64_t kPeriodNs = 33'333'333, kSloNs = 500'000'000;

Json stage(int first, int end, const std::vector<int>& pool, std::int64_t bytes) {
  Json latency = Json::array();
  for (std::uint32_t b = 1; b <= kBatch; ++b) {
    const std::int64_t ns = (end - first) * (600'000 + b * 200'000);
    latency.push_back({{"p50_ns", ns}, {"p99_ns", ns}, {"samples", 0}});
  }
  return {{"first_block", first},
          {"end_block", end},
          {"pool", pool},
          {"transfer_bytes", bytes},
          {"latency_by_batch", latency}};
}

// 'pipe' in two stages, or whole; 'watched', whose streams are coordinated, on half of the partitions.
std::string plan(int kind) {
  const std::vector<int> front = kind == 0 ? std::vector<int>{0, 1} : std::vector<int>{2, 3},
                         back = kind == 0 ? std::vector<int>{2, 3} : std::vector<int>{0, 1};
  Json pipe = Json::array(), whole = Json::array();
  if (kind == 2) {
    pipe.push_back(stage(0, 2, {0, 1, 2, 3}, 0));
  } else {
    pipe.push_back(stage(0, 1, front, 3000));
    pipe.push_back(stage(1, 2, back, 0));
  }
  whole.push_back(stage(0, 2, back, 0));
  const auto application = [](const char* name) {
    return Json{{"name", name},
                {"slo_ns", kSloNs},
                {"rate_rps", 100},
                {"weight", 1},
                {"module", {{{"name", "sum"}, {"model", "sum"}}}}};
  };
  const auto route = [](int app, const Json& stages) {
    return Json{{"application", app}, {"module", 0}, {"batch", kBatch}, {"rate_rps", 100}, {"stages", stages}};
  };
  Json out = {{"schema", "leat-plan/1"}, {"partitions", emulated_partitions(4)}, {"hosts", Json::array()}};
  out["applications"] = {application("pipe"), application("watched")};
  out["routes"] = Json::array();
  out["routes"].push_back(route(0, pipe));
  out["routes"].push_back(route(1, whole));
  out["budget_ns"] = Json::array();
  out["certificate"] = {{"objective", 100}, {"upper_bound", 100}, {"gap", 0},
                        {"binding", ""},    {"method", ""},       {"seconds", 0}};
  return out.dump();
}

std::string config(const std::string& plan_file) {
  std::string out = "[daemon]\nsocket_mode = \"0666\"\nplan = \"" + plan_file + "\"\n" +
                    "[limits.user]\noverload = [\"latest\", \"never_drop\"]\n";
  for (int p = 0; p < 4; ++p)
    out += "[[partition]]\nname = \"p" + std::to_string(p) + "\"\nclass = \"p\"\nkind = \"emulated\"\n";
  for (const char* name : {"pipe", "watched"})
    out += std::string("[[application]]\nname = \"") + name +
           "\"\nslo_ms = 500\n[[application.module]]\nname = \"sum\"\nexecutor = \"emulated\"\nlatency_ms = [1]\n";
  return out;
}

// Connects as another user: whom a socket's peer takes it for is the thread's, by the call itself.
template <class Make>
auto as_user(uid_t uid, const Make& make) {
  decltype(make()) out;
  std::thread([&] {
    if (uid != getuid() && syscall(SYS_setresuid, -1, uid, -1) != 0) return;
    out = make();
  }).join();
  return out;
}

// A camera whose stream is coordinated: it submits when it is asked to, and says what tracking has lost.
class Watching {
 public:
  Watching(const Leatd& leatd, std::uint32_t number)
      : client_(std::move(Client::connect(leatd.socket(), "w")).value()) {
    leat_stream_options o;
    leat_stream_options_init(&o);
    o.application = "watched", o.format = LEAT_FORMAT_gray8, o.width = o.height = 32, o.depth = 4;
    o.overload = LEAT_OVERLOAD_latest;
    o.period_ns = kPeriodNs, o.sla_drop_ppm = 60'000;
    auto stream = client_.open_stream(o);
    EXPECT_TRUE(stream.ok()) << stream.error() << leatd.log();
    if (!stream.ok()) return;
    stream_ = std::move(*stream);
    thread_ = std::thread([this, number] { run(number); });
  }
  ~Watching() { end(); }
  void end() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::atomic<std::uint64_t> submitted{0}, answered{0}, in_time{0}, failed{0};

 private:
  void run(std::uint32_t number) {
    std::int64_t next = leat_now_ns() + number * kPeriodNs / 4, last = 0;
    while (!ending_ || answered < submitted) {
      while (auto answer =
                 client_.next_answer(std::chrono::nanoseconds(std::max<std::int64_t>(0, next - leat_now_ns())))) {
        ++answered;
        in_time += answer->outcome() == Outcome::completed ? 1 : 0;
        failed += answer->outcome() == Outcome::failed ? 1 : 0;
      }
      const std::int64_t capture = next;
      next += kPeriodNs;
      if (ending_ || leat_should_submit(stream_.raw(), capture) == 0) continue;
      auto frame = stream_.acquire();
      if (!frame) continue;
      if (frame->submit({.capture_ns = capture}) != LEAT_ERROR_ok) return;
      ++submitted;
      const auto stride = static_cast<std::uint32_t>(last == 0 ? 1 : (capture - last) / kPeriodNs);
      (void)leat_observe(stream_.raw(), stride, 0.01 * stride);
      last = capture;
    }
  }
  Client client_;
  Stream stream_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

struct Counted {
  std::uint64_t answered = 0, in_time = 0;
  Counted operator-(const Counted& o) const { return {answered - o.answered, in_time - o.in_time}; }
  void operator+=(const Counted& o) { answered += o.answered, in_time += o.in_time; }
  [[nodiscard]] double percent() const {
    return answered == 0 ? 0 : 100.0 * static_cast<double>(in_time) / static_cast<double>(answered);
  }
};

TEST(Swaps, OfSplitModelsWithCoordinatedStreamsAndTwoUsersLoseNothing) {
  ScratchFolder folder;
  std::array<std::string, 3> plans;
  for (int kind = 0; kind < 3; ++kind)
    plans[static_cast<std::size_t>(kind)] = folder.write(std::to_string(kind) + ".json", plan(kind));
  Leatd leatd(config(plans[0]));
  const uid_t other = getuid() == 0 ? kOther : getuid();
  std::vector<std::unique_ptr<Load>> loads;
  std::vector<std::unique_ptr<Watching>> watching;
  for (const uid_t uid : {getuid(), other}) {
    loads.push_back(as_user(uid, [&] { return std::make_unique<Load>(leatd, "pipe", 64, LEAT_FORMAT_gray8); }));
    for (std::uint32_t n : {0U, 1U})
      watching.push_back(as_user(uid, [&] { return std::make_unique<Watching>(leatd, n); }));
  }
  const auto counted = [&] {
    Counted out;
    for (const auto& l : loads) out += {l->so_far, l->in_time};
    for (const auto& w : watching) out += {w->answered, w->in_time};
    return out;
  };
  const auto own_stalls = [&] {
    const auto daemon = leatd.record(shm::RecordKind::daemon, 0);
    return daemon ? daemon->value(shm::DaemonCounter::own_stalls).value_or(0) : 0;
  };
  constexpr int kInARow = 5;
  Counted with, without;
  std::uint64_t stalls_with = 0, stalls_without = 0;
  Clock::duration swapping{};
  const int swaps = times(6);
  for (int i = 0; i < swaps;) {
    const auto began = Clock::now();
    const Counted first = counted();
    const std::uint64_t stalls_first = own_stalls();
    for (int n = 0; n < kInARow && i < swaps; ++n, ++i) {
      const Json done = changed(leatd, of_kind(shm::ChangeKind::plan), plans[static_cast<std::size_t>(i + 1) % 3]);
      ASSERT_EQ(state(done), "done") << done.dump() << leatd.log();
    }
    const auto took = Clock::now() - began;
    const Counted second = counted();
    const std::uint64_t stalls_second = own_stalls();
    // As long again without.
    ASSERT_TRUE(eventually([&] { return Clock::now() - began >= 2 * took; }, 600000ms));
    with += second - first;
    without += counted() - second;
    stalls_with += stalls_second - stalls_first;
    stalls_without += own_stalls() - stalls_second;
    swapping += took;
  }
  for (const auto& load : loads) {
    expect_sound(*load, leatd);
    EXPECT_EQ(load->served(), load->answered) << leatd.log();
  }
  std::uint64_t asked = 0;
  for (const auto& w : watching) {
    w->end();
    EXPECT_EQ(w->submitted, w->answered) << leatd.log();
    EXPECT_EQ(w->failed, 0U);
    asked += w->answered;
  }
  EXPECT_GT(asked, 0U);
  expect_balance(leatd);
  const auto daemon = leatd.record(shm::RecordKind::daemon, 0);
  ASSERT_TRUE(daemon);
  std::printf("%d swaps in %.1f s: in time %.3f %% of %llu while swapping, %.3f %% of %llu beside\n", swaps,
              std::chrono::duration<double>(swapping).count(), with.percent(),
              static_cast<unsigned long long>(with.answered), without.percent(),
              static_cast<unsigned long long>(without.answered));
  std::printf("turns of leatd over 1 ms of its own time: %llu and %llu; the longest %.2f ms\n",
              static_cast<unsigned long long>(stalls_with), static_cast<unsigned long long>(stalls_without),
              static_cast<double>(daemon->value(shm::DaemonCounter::loop_own_ns_max).value_or(0)) / 1e6);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

}  // namespace
}  // namespace leat::test
