#include "planner/child/solver_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace leat::planner {
namespace {

using End = SolverRun::End;
using std::chrono::milliseconds;
using testing::HasSubstr;
constexpr milliseconds kAmple{30'000};

SolverRun shell(const std::string& script, milliseconds limit = kAmple) {
  return run_solver({"/bin/sh", "-c", script}, limit);
}

TEST(SolverProcess, GivesBackWhatTheChildWrites) {
  const SolverRun run = shell("printf 'a plan'; echo noise >&2");
  EXPECT_EQ(run.end, End::done);
  EXPECT_EQ(run.output, "a plan");
  EXPECT_EQ(run.message, "");
}

TEST(SolverProcess, MoreOutputThanAPipeHolds) {
  const SolverRun run = shell("head -c 3000000 /dev/zero");
  EXPECT_EQ(run.end, End::done);
  EXPECT_EQ(run.output.size(), 3'000'000u);
}

TEST(SolverProcess, AHangingChildIsKilledAtTheLimit) {
  const auto start = std::chrono::steady_clock::now();
  const SolverRun run = shell("trap '' TERM INT HUP; while :; do sleep 1000; done", milliseconds(200));
  EXPECT_EQ(run.end, End::too_long);
  EXPECT_THAT(run.message, HasSubstr("200 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(SolverProcess, AnAbortIsAFailedChildWithItsMessage) {
  const SolverRun run = shell("echo 'glp_add_rows: nrs = -1; invalid number of rows' >&2; kill -ABRT $$");
  EXPECT_EQ(run.end, End::crashed);
  EXPECT_THAT(run.message, HasSubstr("Abort"));
  EXPECT_THAT(run.message, HasSubstr("invalid number of rows"));
}

#ifdef LEAT_GLPK_ABORTS
TEST(SolverProcess, GlpksOwnAbortIsCaughtToo) {
  const SolverRun run = run_solver({LEAT_GLPK_ABORTS}, kAmple);
  EXPECT_EQ(run.end, End::crashed);
  EXPECT_THAT(run.message, HasSubstr("Abort"));
}
#endif

TEST(SolverProcess, InfeasibleAndRefusedAreToldApart) {
  SolverRun run = shell("echo 'infeasible: SLO 5 ms'; echo '  a/m: 3 requests/s'; exit 1");
  EXPECT_EQ(run.end, End::infeasible);
  EXPECT_EQ(run.message, "infeasible: SLO 5 ms");
  run = shell("echo 'leat-plan: x.toml:3: wrong' >&2; exit 2");
  EXPECT_EQ(run.end, End::refused);
  EXPECT_EQ(run.message, "leat-plan: x.toml:3: wrong");
}

TEST(SolverProcess, AMissingProgramIsNotStarted) {
  const SolverRun run = run_solver({"/no/such/leat-plan"}, kAmple);
  EXPECT_NE(run.end, End::done);
  EXPECT_FALSE(run.message.empty());
  EXPECT_EQ(run_solver({}, kAmple).end, End::not_started);
}

TEST(SolverProcess, WhatTheChildLeavesBehindIsKilledAndNobodyWaitsForIt) {
  const auto start = std::chrono::steady_clock::now();
  const SolverRun run = shell("sleep 1000 & echo $!");
  EXPECT_EQ(run.end, End::done);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(SolverProcess, TheCallersSignalsStayAsTheyWere) {
  struct sigaction before {
  }, after{};
  sigaction(SIGCHLD, nullptr, &before);
  (void)shell("kill -ABRT $$");
  sigaction(SIGCHLD, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace leat::planner
