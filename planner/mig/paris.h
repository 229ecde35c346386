// PARIS (section IV-B, Algorithm 1): how many partitions of each size serve a distribution of batch sizes.
// Vectors by batch are indexed [batch - 1]; sizes ascend. Any thread: pure functions. No errors: problem_of() says what
// is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leat::planner {

struct ParisSize {
  double compute = 1;                  // slices: GPC[k]
  std::vector<double> utilisation;     // [batch - 1], 0..1
  std::vector<double> throughput_qps;  // [batch - 1]: requests of that batch size per second, alone on one partition
};

struct ParisProblem {
  std::vector<double> batch_share;  // [batch - 1], sums to 1
  std::vector<ParisSize> sizes;
  double total_compute = 0;
  double knee = 0.8;  // utilisation from which a larger batch no longer pays (the paper's 80 %)
};

struct ParisResult {
  std::vector<std::uint32_t> knee_batch;  // B_k: the largest batch size that is this size's to serve; 0: none is
  std::vector<double> ratio;              // R_k: partitions per request per second
  std::vector<double> instances;          // N_k, not yet whole numbers
};

std::string problem_of(const ParisProblem& problem);
// Precondition: problem_of() is empty. The largest size serves what lies beyond every knee.
ParisResult paris(const ParisProblem& problem);

}  // namespace leat::planner
