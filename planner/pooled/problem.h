// PPipe's planning problem (Kong et al., section 5 and appendix A, as its artifact solves it) and its solutions.
//
// GPUs of T types; each GPU is cut into v equal virtual GPUs, v chosen stage by stage. A DNN has one slot for each
// element of {types}^D. A slot holds at most one pipeline: stages in order, stage s on the slot's s-th type, trailing
// stages left out at will; stages are contiguous block ranges that cover the model; one batch size for the pipeline.
//   n vGPUs of a stage deliver n X,  X = min(1e6 b / latency, link cap of its two ends);  the pipeline min over its
//   stages batch building + sum of stage latencies + transfers <= budget GPUs of (DNN, stage index, type) = ceil(sum of
//   n / v over the DNN's pipelines); their sum per type <= its count
// Maximise z = min over DNNs of rate / weight. Units: microseconds, bytes, requests per second.
// Plain values; no thread rule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan.h"
#include "planner/profile.h"

namespace leat::planner {

inline constexpr std::uint32_t kMaxStages = 4;

struct GpuType {
  std::string name;  // matches ProfileRow::partition_class
  std::uint32_t count = 0;
  double gpus_per_server = 1;   // they share one network card
  std::uint32_t max_share = 1;  // largest v
  // Partitions that are cut already: profiled at this share of their device, never cut further. 0: whole devices.
  std::uint32_t profile_share = 0;
  std::int64_t memory_bytes = 0;  // of a whole one; a stage's blocks must fit its 1/v. 0: no limit
  std::uint32_t share_of(std::uint32_t v) const { return profile_share > 0 ? profile_share : v; }  // as profiled
};

struct PooledDnn {
  const Profile* profile = nullptr;  // not owned
  double budget_us = 0;              // SLO less its margin
  double weight = 1;
  double est_rps = 0;  // for the batch building time; 0: building costs nothing
};

struct PooledProblem {
  std::vector<GpuType> types;
  std::vector<PooledDnn> dnns;
  double bandwidth_gbps = 0;  // of a server's card, each direction; 0: links cost nothing
  // [type that hands over][type that takes], row by row, where it differs: of the slowest such pair of devices, each
  // with a link of its own that a device's virtual GPUs share; 0: in place, free. Empty: bandwidth_gbps for all.
  std::vector<double> pair_gbps;
  double batch_build_factor = 1.3;
  std::uint32_t max_stages = 2;  // D
  bool budget_by_p99 = false;    // hold the budget with p99 latencies; rates always come from p50
};

struct PooledStage {
  std::uint32_t type = 0, share = 1;
  std::uint32_t first_block = 0, end_block = 1;
  std::uint64_t vgpus = 0;
  double latency_us = 0, transfer_us = 0;
  double rps_per_vgpu = 0;  // X
};

struct PooledPipeline {
  std::uint32_t slot = 0;  // base-T digits, most significant first: the slot's types
  std::uint32_t batch = 1;
  double rps = 0;
  std::vector<PooledStage> stages;
};

struct PooledDnnPlan {
  double rps = 0;
  std::vector<PooledPipeline> pipelines;
};

struct PooledSolution {
  bool feasible = false;  // some DNN fits no pipeline: false, and certificate.binding names it
  std::vector<PooledDnnPlan> dnns;
  double whole_gpu_objective = 0;  // best found when no two pipelines share a GPU
  double lp_bound = 0;
  Certificate certificate;
};

}  // namespace leat::planner
