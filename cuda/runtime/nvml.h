// The few facts that only NVML knows (MIG, PCIe, clocks, memory in use), read through libnvidia-ml.so.1 opened at run
// time, with our own declarations: the CUDA toolkit brings no NVML header. Read only: nothing is ever set.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shm/include/leat/result.hpp"

namespace leat::gpu {

struct NvmlMigInstance {
  std::string uuid, name;
  unsigned gpu_instance = 0, compute_instance = 0;
  unsigned multiprocessors = 0, memory_mib = 0, gpu_slices = 0, compute_slices = 0;
};

// What the device offers as GPU instances, whether or not MIG is on. placements: "start:size" in memory slices; empty
// where the driver shows them to privileged users alone.
struct NvmlMigProfile {
  unsigned id = 0, slices = 0, count_max = 0, multiprocessors = 0, copy_engines = 0, decoders = 0;
  std::uint64_t memory_mib = 0;
  bool peer_to_peer = false;
  std::vector<std::string> placements;
};

struct NvmlDevice {
  std::string uuid, name, pci;
  std::uint64_t memory_bytes = 0, memory_used_bytes = 0;
  // Fields that a device or driver may not know.
  std::optional<bool> mig_on;
  std::optional<unsigned> pcie_generation, pcie_width, pcie_generation_max, pcie_width_max;
  std::optional<unsigned> sm_clock_mhz, memory_clock_mhz;
  std::vector<NvmlMigInstance> instances;
  std::vector<NvmlMigProfile> profiles;
};

struct NvmlFacts {
  std::string driver_version;
  std::vector<NvmlDevice> devices;
};

// All of it, in one go; the library is closed again.
Result<NvmlFacts> read_nvml();

// What changes from second to second. NVML tells it of whole GPUs, so a GPU's instances share it.
struct NvmlHeat {
  std::string uuid;
  std::optional<unsigned> temperature_c, power_mw, power_cap_mw, sm_clock_mhz;
  std::uint64_t memory_bytes = 0, memory_used_bytes = 0;
  std::vector<std::string> held_back;  // what lowers its clocks: "power cap", "heat", "hardware"
};

// The library stays open with it.
class NvmlWatch {
 public:
  static Result<NvmlWatch> open();
  NvmlWatch(NvmlWatch&&) noexcept;
  NvmlWatch& operator=(NvmlWatch&&) = delete;
  ~NvmlWatch();
  [[nodiscard]] std::vector<NvmlHeat> read() const;
  [[nodiscard]] NvmlFacts facts() const;

 private:
  struct Open;
  explicit NvmlWatch(std::unique_ptr<Open> open);
  std::unique_ptr<Open> open_;
};

}  // namespace leat::gpu
