#include "cuda/probe/nvml.h"

#include <dlfcn.h>

#include <array>

namespace leat::probe {
namespace {

// NVML's C interface as far as it is used here (API version 13; these structures have not changed since version 11).
using Handle = void*;
using Return = int;
constexpr Return kSuccess = 0;
constexpr unsigned kProfileIds = 32;  // the library answers "invalid argument" beyond its own last one
constexpr unsigned kClockSm = 1, kClockMemory = 2;

struct Memory {
  unsigned long long total, free, used;
};
struct PciInfo {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char text[32];
};
struct ProfileInfo {
  unsigned id, peer_to_peer, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, flows;
  unsigned long long memory_mb;
};
struct Placement {
  unsigned start, size;
};
struct Attributes {
  unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, flows, gpu_slices, compute_slices;
  unsigned long long memory_mb;
};

#define LEAT_NVML_FUNCTIONS(X)                                             \
  X(nvmlInit_v2, ())                                                       \
  X(nvmlShutdown, ())                                                      \
  X(nvmlSystemGetDriverVersion, (char*, unsigned))                         \
  X(nvmlDeviceGetCount_v2, (unsigned*))                                    \
  X(nvmlDeviceGetHandleByIndex_v2, (unsigned, Handle*))                    \
  X(nvmlDeviceGetName, (Handle, char*, unsigned))                          \
  X(nvmlDeviceGetUUID, (Handle, char*, unsigned))                          \
  X(nvmlDeviceGetMemoryInfo, (Handle, Memory*))                            \
  X(nvmlDeviceGetPciInfo_v3, (Handle, PciInfo*))                           \
  X(nvmlDeviceGetCurrPcieLinkGeneration, (Handle, unsigned*))              \
  X(nvmlDeviceGetCurrPcieLinkWidth, (Handle, unsigned*))                   \
  X(nvmlDeviceGetMaxPcieLinkGeneration, (Handle, unsigned*))               \
  X(nvmlDeviceGetMaxPcieLinkWidth, (Handle, unsigned*))                    \
  X(nvmlDeviceGetClockInfo, (Handle, unsigned, unsigned*))                 \
  X(nvmlDeviceGetMigMode, (Handle, unsigned*, unsigned*))                  \
  X(nvmlDeviceGetMaxMigDeviceCount, (Handle, unsigned*))                   \
  X(nvmlDeviceGetMigDeviceHandleByIndex, (Handle, unsigned, Handle*))      \
  X(nvmlDeviceGetGpuInstanceId, (Handle, unsigned*))                       \
  X(nvmlDeviceGetComputeInstanceId, (Handle, unsigned*))                   \
  X(nvmlDeviceGetAttributes_v2, (Handle, Attributes*))                     \
  X(nvmlDeviceGetGpuInstanceProfileInfo, (Handle, unsigned, ProfileInfo*)) \
  X(nvmlDeviceGetGpuInstancePossiblePlacements_v2, (Handle, unsigned, Placement*, unsigned*))

struct Nvml {
#define X(name, arguments) Return(*name) arguments = nullptr;
  LEAT_NVML_FUNCTIONS(X)
#undef X
};

// A function the library lacks and one that fails are the same here: the fact is not known.
template <class Function, class... Arguments>
bool knows(Function function, Arguments... arguments) {
  return function != nullptr && function(arguments...) == kSuccess;
}

template <class Function>
std::string text_from(Function function, Handle device) {
  std::array<char, 128> text{};
  return knows(function, device, text.data(), static_cast<unsigned>(text.size())) ? text.data() : "";
}

template <class Function, class... Arguments>
std::optional<unsigned> number_from(Function function, Handle device, Arguments... arguments) {
  unsigned value = 0;
  return knows(function, device, arguments..., &value) ? std::optional(value) : std::nullopt;
}

std::vector<NvmlMigInstance> instances_of(const Nvml& nvml, Handle device) {
  std::vector<NvmlMigInstance> found;
  const unsigned slots = number_from(nvml.nvmlDeviceGetMaxMigDeviceCount, device).value_or(0);
  for (unsigned slot = 0; slot < slots; ++slot) {
    Handle instance = nullptr;
    if (!knows(nvml.nvmlDeviceGetMigDeviceHandleByIndex, device, slot, &instance)) continue;  // a free slot
    NvmlMigInstance entry;
    entry.uuid = text_from(nvml.nvmlDeviceGetUUID, instance);
    entry.name = text_from(nvml.nvmlDeviceGetName, instance);
    entry.gpu_instance = number_from(nvml.nvmlDeviceGetGpuInstanceId, instance).value_or(0);
    entry.compute_instance = number_from(nvml.nvmlDeviceGetComputeInstanceId, instance).value_or(0);
    Attributes attributes{};
    if (knows(nvml.nvmlDeviceGetAttributes_v2, instance, &attributes)) {
      entry.multiprocessors = attributes.multiprocessors;
      entry.memory_mib = static_cast<unsigned>(attributes.memory_mb);
      entry.gpu_slices = attributes.gpu_slices;
      entry.compute_slices = attributes.compute_slices;
    }
    found.push_back(std::move(entry));
  }
  return found;
}

std::vector<std::string> placements_of(const Nvml& nvml, Handle device, unsigned profile) {
  std::array<Placement, 64> placements{};
  unsigned count = 0;
  std::vector<std::string> texts;
  // First the count alone, as NVML wants it; a count beyond the room here is no device of today.
  if (!knows(nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2, device, profile, static_cast<Placement*>(nullptr),
             &count) ||
      count > placements.size() ||
      !knows(nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2, device, profile, placements.data(), &count)) {
    return texts;
  }
  for (unsigned i = 0; i < count; ++i) {
    texts.push_back(std::to_string(placements[i].start) + ":" + std::to_string(placements[i].size));
  }
  return texts;
}

std::vector<NvmlMigProfile> profiles_of(const Nvml& nvml, Handle device) {
  std::vector<NvmlMigProfile> found;
  for (unsigned index = 0; index < kProfileIds; ++index) {
    ProfileInfo info{};
    if (!knows(nvml.nvmlDeviceGetGpuInstanceProfileInfo, device, index, &info)) continue;
    found.push_back({.id = info.id,
                     .slices = info.slices,
                     .count_max = info.instances,
                     .multiprocessors = info.multiprocessors,
                     .copy_engines = info.copy_engines,
                     .decoders = info.decoders,
                     .memory_mib = info.memory_mb,
                     .peer_to_peer = info.peer_to_peer != 0,
                     .placements = placements_of(nvml, device, info.id)});
  }
  return found;
}

NvmlDevice read_device(const Nvml& nvml, Handle device) {
  NvmlDevice facts;
  facts.uuid = text_from(nvml.nvmlDeviceGetUUID, device);
  facts.name = text_from(nvml.nvmlDeviceGetName, device);
  PciInfo pci{};
  if (knows(nvml.nvmlDeviceGetPciInfo_v3, device, &pci)) facts.pci = pci.text;
  Memory memory{};
  if (knows(nvml.nvmlDeviceGetMemoryInfo, device, &memory)) {
    facts.memory_bytes = memory.total;
    facts.memory_used_bytes = memory.used;
  }
  unsigned mode = 0, pending = 0;
  if (knows(nvml.nvmlDeviceGetMigMode, device, &mode, &pending)) facts.mig_on = mode == 1;
  facts.pcie_generation = number_from(nvml.nvmlDeviceGetCurrPcieLinkGeneration, device);
  facts.pcie_width = number_from(nvml.nvmlDeviceGetCurrPcieLinkWidth, device);
  facts.pcie_generation_max = number_from(nvml.nvmlDeviceGetMaxPcieLinkGeneration, device);
  facts.pcie_width_max = number_from(nvml.nvmlDeviceGetMaxPcieLinkWidth, device);
  facts.sm_clock_mhz = number_from(nvml.nvmlDeviceGetClockInfo, device, kClockSm);
  facts.memory_clock_mhz = number_from(nvml.nvmlDeviceGetClockInfo, device, kClockMemory);
  if (facts.mig_on.value_or(false)) facts.instances = instances_of(nvml, device);
  facts.profiles = profiles_of(nvml, device);
  return facts;
}

}  // namespace

Result<NvmlFacts> read_nvml() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{"libnvidia-ml.so.1 could not be opened"};
  Nvml nvml;
#define X(name, arguments) nvml.name = reinterpret_cast<decltype(nvml.name)>(::dlsym(library, #name));
  LEAT_NVML_FUNCTIONS(X)
#undef X
  if (!knows(nvml.nvmlInit_v2)) {
    ::dlclose(library);
    return Error{"NVML would not start"};
  }
  NvmlFacts facts;
  std::array<char, 128> version{};
  if (knows(nvml.nvmlSystemGetDriverVersion, version.data(), static_cast<unsigned>(version.size()))) {
    facts.driver_version = version.data();
  }
  unsigned count = 0;
  if (!knows(nvml.nvmlDeviceGetCount_v2, &count)) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    Handle device = nullptr;
    if (knows(nvml.nvmlDeviceGetHandleByIndex_v2, i, &device)) facts.devices.push_back(read_device(nvml, device));
  }
  (void)knows(nvml.nvmlShutdown);
  ::dlclose(library);
  return facts;
}

}  // namespace leat::probe
