// What one slot of one DNN may hold: every pipeline that meets the budget and that no other beats at every stage.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/pooled/problem.h"

namespace leat::planner {

struct CandidateStage {
  std::uint16_t share = 1;
  std::uint16_t end_block = 1;
  double rps_per_vgpu = 0;
};

struct Candidate {
  std::uint32_t batch = 1;
  std::uint32_t stages = 1;  // those of its slot
  CandidateStage stage[kMaxStages];
  double gpu_rps(std::uint32_t s) const { return stage[s].rps_per_vgpu * stage[s].share; }  // of a whole GPU
};

// The pipelines of one sequence of types. A sequence shorter than D may sit in any of the T^(D - stages) slots that
// begin with it, which only the number of pipelines can tell apart: `copies` of them at most (and no more than its
// beginnings leave room for).
struct Slot {
  std::uint32_t stages = 1;
  std::uint32_t types[kMaxStages] = {};  // type of each stage
  std::uint32_t copies = 1;              // pipelines it may hold, all different
  std::vector<Candidate> candidates;
};

// All sequences of one DNN, shorter first, those without a candidate left out. `largest_share` caps v below the types'
// own (1: whole GPUs only). A class, share or batch that the profile lacks is simply not used.
std::vector<Slot> enumerate_slots(const PooledProblem& problem, const PooledDnn& dnn, std::uint32_t largest_share);

// Leaves out what another candidate of the slot beats when every stage takes whole GPUs.
void keep_best_for_whole_gpus(std::vector<Slot>& slots);

// Pipelines of all D stages first, then ever shorter ones, each into the first free slot that begins with its types:
// which of them makes no difference to shorter ones.
void give_slots(std::vector<PooledPipeline>& pipelines, const PooledProblem& problem);

// Budget the fastest pipeline of batch 1 would use up: no smaller one is enough. Infinite where nothing is profiled or
// fits.
double min_latency_us(const PooledProblem& problem, const PooledDnn& dnn);

// A stage's type, and those of the stages before and behind it; its own where there is none.
struct Neighbours {
  std::uint32_t before, type, behind;
};
// Latency and rate of one stage; what the checker must agree with, derived on its own there.
PooledStage describe_stage(const PooledProblem& problem, const PooledDnn& dnn, Neighbours at, std::uint32_t share,
                           std::uint32_t batch, std::uint32_t first_block, std::uint32_t end_block);

}  // namespace leat::planner
