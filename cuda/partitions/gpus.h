// The GPUs of this host and how they are cut, from the driver and from NVML, both opened at run time. Reads only.
// Thread rule: any. Errors: one line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/runtime/child.h"
#include "leat/result.hpp"

namespace leat::partitions {

struct Pair;
struct Instance {
  std::string uuid;     // "MIG-..."
  std::string profile;  // "1g.10gb"
  unsigned gpu_instance = 0, compute_instance = 0, multiprocessors = 0, memory_mib = 0;
};
struct Gpu {
  std::string uuid, name;
  unsigned multiprocessors = 0;  // in MIG mode: of all instances together; 0: not known
  std::uint64_t memory_mib = 0;
  bool mig = false;
  std::vector<Instance> instances;
};

// In the driver's order. Takes this process's MPS and visibility settings out of the environment first.
Result<std::vector<Gpu>> read_gpus();

// Takes each instance's multiprocessors from CUDA, which shows one at a time: a process each, this executable with
// multiprocessors_role(). NVML counts otherwise for some profiles, and what a worker sees is CUDA's number. An instance
// that cannot be asked keeps NVML's.
void ask_cuda_for_instances(std::vector<Gpu>& gpus);
gpu::Role multiprocessors_role();

std::string as_json(const std::vector<Gpu>& gpus);
// A host file for the planner (docs/guide/plans.md): whole GPUs, or their MIG instances. pairs: of places() (peers.h),
// one entry for each two partitions, and the slowest for all others; none: nothing is said of them.
std::string as_host(const std::vector<Gpu>& gpus, const std::vector<Pair>& pairs);
// Where a device's memory is shared: its GPU, or its GPU instance.
std::string place_of(const std::vector<Gpu>& gpus, const std::string& uuid);

}  // namespace leat::partitions
