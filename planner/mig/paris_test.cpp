// PARIS's Algorithm 1 on figure 8, and the served load against its own dual and against hand calculation.
#include "planner/mig/paris.h"

#include <gtest/gtest.h>

#include <cmath>

#include "planner/mig/layout.h"
#include "planner/mig/served_load.h"
#include "planner/test/paris_workloads.h"

namespace leat::planner {
namespace {

// Figure 8: knees 2 and 4; the small partition serves batches 1 and 2 at 40 and 20 queries/s, the large one 3 and 4 at
// 30 and 20.
ParisProblem figure8() {
  ParisProblem p;
  p.batch_share = {0.2, 0.2, 0.4, 0.2};
  p.sizes = {{1, {0.5, 0.8, 0.9, 1.0}, {40, 20, 12, 9}}, {2, {0.3, 0.5, 0.7, 0.8}, {60, 40, 30, 20}}};
  p.total_compute = 7;
  return p;
}

TEST(Paris, Figure8) {
  const ParisProblem p = figure8();
  ASSERT_EQ(problem_of(p), "");
  const ParisResult r = paris(p);
  EXPECT_EQ(r.knee_batch, (std::vector<std::uint32_t>{2, 4}));
  EXPECT_NEAR(100 * r.ratio[0], 0.5 + 1.0, 1e-12);              // for 100 queries
  EXPECT_NEAR(100 * r.ratio[1], 40.0 / 30 + 20.0 / 20, 1e-12);  // 2.3
  EXPECT_NEAR(std::round(1000 * r.ratio[1]) / 10, 2.3, 0.05);
  EXPECT_NEAR(r.instances[0] / r.instances[1], 1.5 / (7.0 / 3), 1e-12);
  EXPECT_NEAR(r.instances[0] * 1 + r.instances[1] * 2, p.total_compute, 1e-12);  // step C spends every slice
}

TEST(Paris, SizesWithoutBatchesGetNone) {
  ParisProblem p = figure8();
  p.sizes[0].utilisation = {0.9, 1, 1, 1};  // knee 1: batch 2 is the large one's
  EXPECT_EQ(paris(p).knee_batch, (std::vector<std::uint32_t>{1, 4}));
  p.batch_share = {0, 0.3, 0.4, 0.3};
  EXPECT_EQ(paris(p).instances[0], 0.0);
}

TEST(Paris, KneesNeverFallAndTheLargestTakesTheRest) {
  ParisProblem p = figure8();
  p.sizes[1].utilisation = {0.9, 0.9, 0.9, 0.9};  // reaches the knee before the small one does
  const ParisResult r = paris(p);
  EXPECT_EQ(r.knee_batch.back(), 4u);
  EXPECT_GE(r.knee_batch[1], r.knee_batch[0]);
}

TEST(Paris, RefusesNonsense) {
  ParisProblem p = figure8();
  p.batch_share[0] = 0.5;
  EXPECT_NE(problem_of(p), "");
  p = figure8();
  p.sizes[1].throughput_qps[2] = 0;
  EXPECT_NE(problem_of(p), "");
  p = figure8();
  std::swap(p.sizes[0], p.sizes[1]);
  EXPECT_NE(problem_of(p), "");
}

TEST(ServedLoad, ByHand) {
  // One class, two sizes that both fit: rates add up.
  SizeDemand d{{1.0}, {{0.1}, {0.05}}, 0.2};
  EXPECT_NEAR(served_load(d, {3, 2}).rate_rps, 3 / 0.1 + 2 / 0.05, 1e-9);
  d.sla_s = 0.07;  // only the large one
  EXPECT_NEAR(served_load(d, {3, 2}).rate_rps, 2 / 0.05, 1e-9);
  d.sla_s = 0.01;
  EXPECT_EQ(served_load(d, {3, 2}).rate_rps, 0);
  // Two classes; the second fits on the large size only, which has time left for the first:
  // small 10/s; large: .5 L * .1 + x * .04 = 1, .5 L = 10 + x  =>  L = 28 / .14 * ... = 20 + 2x.
  SizeDemand two{{0.5, 0.5}, {{0.1, 0.4}, {0.04, 0.1}}, 0.2};
  const double x = (1 - 0.5 * 20 * 0.1) / (0.1 + 0.04);
  EXPECT_NEAR(served_load(two, {1, 1}).rate_rps, 20 + 2 * x, 1e-9);
}

TEST(ServedLoad, PricesAreADualSolutionOfTheSameValue) {
  for (std::uint32_t i = 0; i < 200; ++i) {
    const ParisWorkload w = paris_workload(11, i);
    const MigGeometry& g = *mig_table(w.geometry);
    const LayoutSpace space(g, profiles_for(g, 0), 1);
    const SizeDemand d = size_demand(w.model, w.batch_share, space.compute_of_sizes(), w.sla_factor);
    const LayoutChoice c = random_layout(space, i, d);
    std::vector<double> instances(c.counts.begin(), c.counts.end());
    instances.back() += 1;  // the largest serves every class
    const ServedLoad load = served_load(d, instances);
    double value = 0, covered = 0;
    for (std::size_t k = 0; k < instances.size(); ++k) {
      EXPECT_GE(load.price[k], -1e-9);
      value += instances[k] * load.price[k];
    }
    for (std::size_t b = 0; b < d.batch_share.size(); ++b) {
      double min = 1e300;
      for (std::size_t k = 0; k < instances.size(); ++k)
        if (d.latency_s[k][b] <= d.sla_s) min = std::min(min, load.price[k] * d.latency_s[k][b]);
      covered += d.batch_share[b] * min;
    }
    EXPECT_NEAR(value, load.rate_rps, 1e-6 * load.rate_rps) << i;  // strong duality
    EXPECT_GE(covered, 1 - 1e-6) << i;  // dual feasible: the value bounds every division of the load
  }
}

TEST(ServedLoad, LognormalSharesSumToOne) {
  const std::vector<double> p = lognormal_batches(1.1, 0.9, 32);
  double sum = 0;
  for (double x : p) sum += x;
  EXPECT_EQ(p.size(), 32u);
  EXPECT_NEAR(sum, 1.0, 1e-12);
}

}  // namespace
}  // namespace leat::planner
