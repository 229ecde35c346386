// Generated workloads for PARIS and ELSA: batch sizes of a log-normal distribution cut to 1..max (the paper's section
// V), and analytic latencies of light, medium and heavy models on partitions of s compute slices:
//   latency(s, b) = fixed + work * b / s,   utilisation(s, b) = (work * b / s) / latency(s, b).
// Deterministic for a seed on every machine. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/paris.h"
#include "planner/served_load.h"

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
std::vector<double> lognormal_batches(double mu, double sigma, std::uint32_t most);

ParisProblem paris_problem(const AnalyticModel& model, const std::vector<double>& batch_share,
                           const std::vector<double>& compute_of_sizes, double total_compute);
// The paper's SLA: `factor` times the latency of the largest size at the largest batch.
SizeDemand size_demand(const AnalyticModel& model, const std::vector<double>& batch_share,
                       const std::vector<double>& compute_of_sizes, double factor);

struct ParisWorkload {
  std::string geometry;
  std::uint32_t gpus = 1;
  AnalyticModel model;
  std::vector<double> batch_share;
  double sla_factor = 1.5;
};
// The i-th of a seed: geometry among the tables, 1 to 8 GPUs, a model between light and heavy, a distribution, an SLA
// factor.
ParisWorkload paris_workload(std::uint64_t seed, std::uint32_t index);

}  // namespace leat::planner
