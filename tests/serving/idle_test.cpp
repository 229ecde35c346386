// An idle daemon with idle clients makes no wake-ups: not one voluntary context switch in any thread of leatd or a
// worker.
#include <dirent.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/serving/daemon_fixture.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

std::uint64_t voluntary_switches(pid_t pid) {
  std::uint64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream in(task.path() / "status");
    const std::string key = "voluntary_ctxt_switches:";
    for (std::string line; std::getline(in, line);)
      if (line.rfind(key, 0) == 0) sum += std::stoull(line.substr(key.size()));
  }
  return sum;
}

TEST(Idle, FourIdleClientsCauseNoWakeUps) {
  Leatd leatd(R"(
[[partition]]
name = "p"
kind = "emulated"
count = 2
[[application]]
name = "echo"
slo_ms = 500
  [[application.module]]
  name = "sum"
  latency_ms = [0.5]
)");
  ASSERT_TRUE(leatd.alive());
  std::vector<Client> clients;
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) {
    auto client = Client::connect(leatd.socket(), "idle");
    ASSERT_TRUE(client.ok()) << client.error();
    clients.push_back(std::move(*client));
    leat_stream_options o;
    leat_stream_options_init(&o);
    o.application = "echo";
    o.format = LEAT_FORMAT_gray8;
    o.width = o.height = 64;
    auto stream = clients.back().open_stream(o);
    ASSERT_TRUE(stream.ok()) << stream.error();
    ASSERT_EQ(stream->acquire()->submit(), LEAT_ERROR_ok);  // it has worked before it idles
    ASSERT_TRUE(clients.back().next_answer(60s).has_value());
    streams.push_back(std::move(*stream));
  }
  std::vector<pid_t> processes = leatd.workers();
  processes.push_back(leatd.pid());
  const auto sum = [&] {
    std::uint64_t all = 0;
    for (const auto pid : processes) all += voluntary_switches(pid);
    return all;
  };
  // Settled: the last estimate of the last second's work has been made.
  std::uint64_t before = sum();
  ASSERT_TRUE(eventually(
      [&] {
        std::this_thread::sleep_for(1500ms);
        return std::exchange(before, sum()) == before;
      },
      std::chrono::minutes(2)));
  // The measurement itself. On a busy host a page that was read from disk again is a switch too, now and then; what
  // wakes by itself does so in every window.
  std::uint64_t lowest = ~0ull;
  for (int window = 0; window < 6 && lowest != 0; ++window) {
    before = sum();
    std::this_thread::sleep_for(10s);
    lowest = std::min(lowest, sum() - before);
  }
  EXPECT_EQ(lowest, 0u);
  streams.clear();
  clients.clear();
  EXPECT_EQ(leatd.stop(), 0);
}

}  // namespace
}  // namespace leat::test
