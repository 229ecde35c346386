// Commands that ask leatd once, while it is stopped: they tell a terminal what they wait for, go on waiting, and answer
// once leatd goes on.
#include <signal.h>
#include <stdlib.h>

#include "tests/serving/daemon_fixture.h"
#include "tests/serving/on_terminal.h"

namespace leat::test {
namespace {

constexpr char kConfig[] = R"([[partition]]
name = "p"
kind = "emulated"
[[application]]
name = "echo"
slo_ms = 500
  [[application.module]]
  name = "sum"
  latency_ms = [1]
)";

// What only a host undoes that stands still for all of the time that is waited is done again.
void waits_for(const std::vector<std::string>& words) {
  constexpr int kAttempts = 3;
  Leatd leatd(kConfig);
  ASSERT_EQ(::setenv("LEAT_SOCKET", leatd.socket().c_str(), 1), 0);  // each finds it so
  std::vector<std::string> command{LEAT_BINARY};
  command.insert(command.end(), words.begin(), words.end());
  int status = -1;
  bool told = false;
  std::string shown;
  for (int attempt = 0; attempt < kAttempts && !(told && status == 0); ++attempt) {
    ASSERT_EQ(::kill(leatd.pid(), SIGSTOP), 0);
    OnTerminal asking(command);
    told = asking.shows("leatd has not answered yet, it is waited for up to 10 s, 3 s so far");
    ASSERT_EQ(::kill(leatd.pid(), SIGCONT), 0);
    status = asking.end();
    shown = asking.shown();
  }
  EXPECT_TRUE(told && status == 0) << status << ": " << shown;
  EXPECT_NE(shown.find("so far\r\033[K"), std::string::npos) << "it is taken away: " << shown;
}

TEST(SilentLeatd, IsWaitedForByStatus) { waits_for({"status"}); }
TEST(SilentLeatd, IsWaitedForByMetrics) { waits_for({"metrics"}); }
TEST(SilentLeatd, IsWaitedForByTopsOnePage) { waits_for({"top", "--once"}); }
TEST(SilentLeatd, IsWaitedForByAChange) { waits_for({"reload", "--dry-run"}); }

}  // namespace
}  // namespace leat::test
