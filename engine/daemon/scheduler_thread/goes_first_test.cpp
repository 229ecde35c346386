#include "engine/daemon/scheduler_thread/goes_first.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

namespace leat::daemon {
namespace {

// The nice value of a thread that went first at `before`; -100: it may not have that.
int nice_after(int before) {
  int after = -100;
  std::thread([&] {
    const auto self = static_cast<id_t>(gettid());
    if (setpriority(PRIO_PROCESS, self, before) != 0) return;
    go_first();
    after = getpriority(PRIO_PROCESS, self);
  }).join();
  return after;
}

TEST(GoesFirst, NobodyIsPutBackByIt) {
  const int ordinary = nice_after(0), ahead = nice_after(-15);
  if (ahead == -100) GTEST_SKIP() << "only root may";
  EXPECT_EQ(ordinary, -10);
  EXPECT_EQ(ahead, -15);
}

}  // namespace
}  // namespace leat::daemon
