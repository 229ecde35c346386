// Analytic latencies of light, medium and heavy models on partitions of s compute slices, and batch sizes of a
// log-normal distribution cut to 1..max (PARIS and ELSA, section V):
//   latency(s, b) = fixed + work * b / s,   utilisation(s, b) = (work * b / s) / latency(s, b).
// Any thread: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/mig/paris.h"
#include "planner/mig/served_load.h"

namespace leat::planner {

struct AnalyticModel {
  std::string name;
  double fixed_s = 0, work_s = 0;  // work: one item on one slice
  double latency_s(double slices, std::uint32_t batch) const { return fixed_s + work_s * batch / slices; }
  double utilisation(double slices, std::uint32_t batch) const {
    return work_s * batch / slices / latency_s(slices, batch);
  }
};

// "light", "medium", "heavy" (in the place of MobileNet, ResNet, BERT).
const std::vector<AnalyticModel>& analytic_models();

// Shares of batch sizes 1..most of a log-normal with these parameters of log(batch), rounded up, what lies beyond cut
// off.
std::vector<double> lognormal_batches(double mu, double sigma, std::uint32_t max);

ParisProblem paris_problem(const AnalyticModel& model, const std::vector<double>& batch_share,
                           const std::vector<double>& compute_of_sizes, double total_compute);
// The paper's SLA: `factor` times the latency of the largest size at the largest batch.
SizeDemand size_demand(const AnalyticModel& model, const std::vector<double>& batch_share,
                       const std::vector<double>& compute_of_sizes, double factor);

}  // namespace leat::planner
