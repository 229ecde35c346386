#include "planner/mig/paris.h"

#include <algorithm>
#include <cmath>

namespace leat::planner {

std::string problem_of(const ParisProblem& problem) {
  if (problem.sizes.empty()) return "no partition sizes";
  double sum = 0;
  for (double p : problem.batch_share) {
    if (!(p >= 0)) return "a batch size's share is negative";
    sum += p;
  }
  if (std::abs(sum - 1) > 1e-6) return "the shares of the batch sizes must sum to 1";
  if (!(problem.total_compute > 0)) return "no compute slices to divide";
  if (!(problem.knee > 0 && problem.knee <= 1)) return "the knee lies between 0 and 1";
  for (std::size_t k = 0; k < problem.sizes.size(); ++k) {
    const ParisSize& s = problem.sizes[k];
    if (s.utilisation.size() != problem.batch_share.size() || s.throughput_qps.size() != problem.batch_share.size())
      return "size " + std::to_string(k) + ": one utilisation and one throughput for every batch size";
    for (double t : s.throughput_qps)
      if (!(t > 0)) return "size " + std::to_string(k) + ": a throughput is not positive";
    if (k > 0 && s.compute <= problem.sizes[k - 1].compute) return "sizes must ascend";
  }
  return "";
}

ParisResult paris(const ParisProblem& problem) {
  ParisResult out;
  const auto batches = static_cast<std::uint32_t>(problem.batch_share.size());
  std::uint32_t below = 0;
  double sum = 0;
  for (std::size_t k = 0; k < problem.sizes.size(); ++k) {
    const ParisSize& size = problem.sizes[k];
    std::uint32_t knee = 1;  // step A: the first batch size that reaches the knee
    while (knee < batches && size.utilisation[knee - 1] < problem.knee) ++knee;
    if (k + 1 == problem.sizes.size()) knee = batches;
    knee = std::max(knee, below);
    double ratio = 0;  // step B
    for (std::uint32_t b = below + 1; b <= knee; ++b) ratio += problem.batch_share[b - 1] / size.throughput_qps[b - 1];
    out.knee_batch.push_back(knee);
    out.ratio.push_back(ratio);
    sum += size.compute * ratio;
    below = knee;
  }
  for (double ratio : out.ratio) out.instances.push_back(problem.total_compute / sum * ratio);  // step C
  return out;
}

}  // namespace leat::planner
