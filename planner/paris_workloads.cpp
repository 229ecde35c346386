#include "planner/paris_workloads.h"

#include <cmath>
#include <random>

#include "planner/mig_geometry.h"

namespace leat::planner {
namespace {

double uniform(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random() >> 11) * 0x1.0p-53;
}

double normal_below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace

const std::vector<AnalyticModel>& analytic_models() {
  static const std::vector<AnalyticModel> all = {
      {"light", 0.0020, 0.0015}, {"medium", 0.0030, 0.0060}, {"heavy", 0.0040, 0.0240}};
  return all;
}

std::vector<double> lognormal_batches(double mu, double sigma, std::uint32_t most) {
  std::vector<double> share;
  double before = 0, sum = 0;
  for (std::uint32_t b = 1; b <= most; ++b) {
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

ParisWorkload paris_workload(std::uint64_t seed, std::uint32_t index) {
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15ull + index);
  ParisWorkload out;
  const std::vector<std::string> names = mig_table_names();
  out.geometry = names[random() % names.size()];
  out.gpus = 1 + static_cast<std::uint32_t>(random() % 8);
  out.model.name = "random";
  out.model.fixed_s = uniform(random, 0.001, 0.006);
  out.model.work_s = 0.0008 * std::pow(40.0, uniform(random, 0, 1));  // 0.8 to 32 ms, log-uniform
  const std::uint32_t most = 8u << (random() % 3);                    // 8, 16 or 32
  out.batch_share = lognormal_batches(uniform(random, 0.0, 2.2), uniform(random, 0.5, 1.3), most);
  out.sla_factor = uniform(random, 1.2, 3.0);
  return out;
}

}  // namespace leat::planner
