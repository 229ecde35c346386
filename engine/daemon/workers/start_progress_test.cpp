#include "engine/daemon/workers/start_progress.h"

#include <gtest/gtest.h>

namespace leat::daemon {
namespace {

TEST(StartProgress, SaysWhoLoadsAndWhoMeasures) {
  const std::vector<StartingWorker> workers = {
      {.partition = "cpu0", .modules = 2, .opened = 2, .module = "", .runs = 0, .most_runs = 0},
      {.partition = "cpu1", .modules = 2, .opened = 1, .module = "a/read", .runs = 10, .most_runs = 40},
      {.partition = "cpu2", .modules = 2, .opened = 0, .module = "a/find", .runs = 0, .most_runs = 0}};
  EXPECT_EQ(text_of(workers, 4), "cpu1 measures a/read (10 of 40 runs), cpu2 loads a/find");
  EXPECT_EQ(percent_of(workers), 60U) << "3 of 6, and five eighths of one";
}

TEST(StartProgress, NamesAFewOfMany) {
  std::vector<StartingWorker> workers;
  for (int i = 0; i < 9; ++i)
    workers.push_back(
        {.partition = "p" + std::to_string(i), .modules = 1, .opened = 0, .module = "", .runs = 0, .most_runs = 0});
  EXPECT_EQ(text_of(workers, 2), "p0 starts, p1 starts, and 7 more");
  EXPECT_EQ(percent_of(workers), 0U);
  EXPECT_EQ(percent_of({}), 0U);
}

}  // namespace
}  // namespace leat::daemon
