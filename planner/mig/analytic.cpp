#include "planner/mig/analytic.h"

#include <cmath>

namespace leat::planner {
namespace {

double normal_below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace

const std::vector<AnalyticModel>& analytic_models() {
  static const std::vector<AnalyticModel> all = {
      {"light", 0.0020, 0.0015}, {"medium", 0.0030, 0.0060}, {"heavy", 0.0040, 0.0240}};
  return all;
}

std::vector<double> lognormal_batches(double mu, double sigma, std::uint32_t max) {
  std::vector<double> share;
  double before = 0, sum = 0;
  for (std::uint32_t b = 1; b <= max; ++b) {
    const double below = normal_below((std::log(static_cast<double>(b)) - mu) / sigma);
    share.push_back(below - before);
    sum += below - before;
    before = below;
  }
  for (double& p : share) p /= sum;
  return share;
}

ParisProblem paris_problem(const AnalyticModel& model, const std::vector<double>& batch_share,
                           const std::vector<double>& compute_of_sizes, double total_compute) {
  ParisProblem problem;
  problem.batch_share = batch_share;
  problem.total_compute = total_compute;
  for (double slices : compute_of_sizes) {
    ParisSize size{slices, {}, {}};
    for (std::uint32_t b = 1; b <= batch_share.size(); ++b) {
      size.utilisation.push_back(model.utilisation(slices, b));
      size.throughput_qps.push_back(1 / model.latency_s(slices, b));
    }
    problem.sizes.push_back(std::move(size));
  }
  return problem;
}

SizeDemand size_demand(const AnalyticModel& model, const std::vector<double>& batch_share,
                       const std::vector<double>& compute_of_sizes, double factor) {
  SizeDemand demand;
  demand.batch_share = batch_share;
  for (double slices : compute_of_sizes) {
    demand.latency_s.emplace_back();
    for (std::uint32_t b = 1; b <= batch_share.size(); ++b)
      demand.latency_s.back().push_back(model.latency_s(slices, b));
  }
  demand.sla_s = factor * demand.latency_s.back().back();
  return demand;
}

}  // namespace leat::planner
