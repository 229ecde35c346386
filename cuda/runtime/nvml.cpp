#include "cuda/runtime/nvml.h"

#include <dlfcn.h>

#include <array>

#include "cuda/driver/nvml_api.h"

namespace leat::gpu {
namespace {

using namespace nvml;

struct Library {
#define X(name, arguments) Return(*name) arguments = nullptr;
  LEAT_NVML_READS(X)
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

std::vector<NvmlMigInstance> instances_of(const Library& lib, Handle device) {
  std::vector<NvmlMigInstance> found;
  const unsigned slots = number_from(lib.nvmlDeviceGetMaxMigDeviceCount, device).value_or(0);
  for (unsigned slot = 0; slot < slots; ++slot) {
    Handle instance = nullptr;
    if (!knows(lib.nvmlDeviceGetMigDeviceHandleByIndex, device, slot, &instance)) continue;  // a free slot
    NvmlMigInstance entry;
    entry.uuid = text_from(lib.nvmlDeviceGetUUID, instance);
    entry.name = text_from(lib.nvmlDeviceGetName, instance);
    entry.gpu_instance = number_from(lib.nvmlDeviceGetGpuInstanceId, instance).value_or(0);
    entry.compute_instance = number_from(lib.nvmlDeviceGetComputeInstanceId, instance).value_or(0);
    Attributes attributes{};
    if (knows(lib.nvmlDeviceGetAttributes_v2, instance, &attributes)) {
      entry.multiprocessors = attributes.multiprocessors;
      entry.memory_mib = static_cast<unsigned>(attributes.memory_mb);
      entry.gpu_slices = attributes.gpu_slices;
      entry.compute_slices = attributes.compute_slices;
    }
    found.push_back(std::move(entry));
  }
  return found;
}

std::vector<std::string> placements_of(const Library& lib, Handle device, unsigned profile) {
  std::array<Placement, 64> placements{};
  unsigned count = 0;
  std::vector<std::string> texts;
  // First the count alone, as NVML wants it; a count beyond the room here is no device of today.
  if (!knows(lib.nvmlDeviceGetGpuInstancePossiblePlacements_v2, device, profile, static_cast<Placement*>(nullptr),
             &count) ||
      count > placements.size() ||
      !knows(lib.nvmlDeviceGetGpuInstancePossiblePlacements_v2, device, profile, placements.data(), &count)) {
    return texts;
  }
  for (unsigned i = 0; i < count; ++i) {
    texts.push_back(std::to_string(placements[i].start) + ":" + std::to_string(placements[i].size));
  }
  return texts;
}

std::vector<NvmlMigProfile> profiles_of(const Library& lib, Handle device) {
  std::vector<NvmlMigProfile> found;
  for (unsigned index = 0; index < kProfileIndexes; ++index) {
    ProfileInfo info{};
    if (!knows(lib.nvmlDeviceGetGpuInstanceProfileInfo, device, index, &info)) continue;
    found.push_back({.id = info.id,
                     .slices = info.slices,
                     .count_max = info.instances,
                     .multiprocessors = info.multiprocessors,
                     .copy_engines = info.copy_engines,
                     .decoders = info.decoders,
                     .memory_mib = info.memory_mb,
                     .peer_to_peer = info.peer_to_peer != 0,
                     .placements = placements_of(lib, device, info.id)});
  }
  return found;
}

NvmlDevice read_device(const Library& lib, Handle device) {
  NvmlDevice facts;
  facts.uuid = text_from(lib.nvmlDeviceGetUUID, device);
  facts.name = text_from(lib.nvmlDeviceGetName, device);
  PciInfo pci{};
  if (knows(lib.nvmlDeviceGetPciInfo_v3, device, &pci)) facts.pci = pci.text;
  Memory memory{};
  if (knows(lib.nvmlDeviceGetMemoryInfo, device, &memory)) {
    facts.memory_bytes = memory.total;
    facts.memory_used_bytes = memory.used;
  }
  unsigned mode = 0, pending = 0;
  if (knows(lib.nvmlDeviceGetMigMode, device, &mode, &pending)) facts.mig_on = mode == 1;
  facts.pcie_generation = number_from(lib.nvmlDeviceGetCurrPcieLinkGeneration, device);
  facts.pcie_width = number_from(lib.nvmlDeviceGetCurrPcieLinkWidth, device);
  facts.pcie_generation_max = number_from(lib.nvmlDeviceGetMaxPcieLinkGeneration, device);
  facts.pcie_width_max = number_from(lib.nvmlDeviceGetMaxPcieLinkWidth, device);
  facts.sm_clock_mhz = number_from(lib.nvmlDeviceGetClockInfo, device, kClockSm);
  facts.memory_clock_mhz = number_from(lib.nvmlDeviceGetClockInfo, device, kClockMemory);
  if (facts.mig_on.value_or(false)) facts.instances = instances_of(lib, device);
  facts.profiles = profiles_of(lib, device);
  return facts;
}

std::vector<Handle> devices_of(const Library& lib) {
  std::vector<Handle> found;
  unsigned count = 0;
  if (!knows(lib.nvmlDeviceGetCount_v2, &count)) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    Handle device = nullptr;
    if (knows(lib.nvmlDeviceGetHandleByIndex_v2, i, &device)) found.push_back(device);
  }
  return found;
}

NvmlHeat heat_of(const Library& lib, Handle device) {
  NvmlHeat heat;
  heat.uuid = text_from(lib.nvmlDeviceGetUUID, device);
  heat.temperature_c = number_from(lib.nvmlDeviceGetTemperature, device, kTemperatureOfGpu);
  heat.power_mw = number_from(lib.nvmlDeviceGetPowerUsage, device);
  heat.power_cap_mw = number_from(lib.nvmlDeviceGetEnforcedPowerLimit, device);
  heat.sm_clock_mhz = number_from(lib.nvmlDeviceGetClockInfo, device, kClockSm);
  Memory memory{};
  if (knows(lib.nvmlDeviceGetMemoryInfo, device, &memory)) {
    heat.memory_bytes = memory.total;
    heat.memory_used_bytes = memory.used;
  }
  unsigned long long reasons = 0;
  if (!knows(lib.nvmlDeviceGetCurrentClocksThrottleReasons, device, &reasons)) return heat;
  if ((reasons & kSlowPowerCap) != 0) heat.held_back.emplace_back("power cap");
  if ((reasons & (kSlowHeat | kSlowHardwareHeat)) != 0) heat.held_back.emplace_back("heat");
  if ((reasons & kSlowPowerBrake) != 0) heat.held_back.emplace_back("power brake");
  // The hardware's bit comes with each of its own reasons too.
  if ((reasons & kSlowHardware) != 0 && heat.held_back.empty()) heat.held_back.emplace_back("hardware");
  return heat;
}

}  // namespace

struct NvmlWatch::Open {
  void* library = nullptr;
  Library lib;
  Open() = default;
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  ~Open() {
    if (library == nullptr) return;
    (void)knows(lib.nvmlShutdown);
    ::dlclose(library);
  }
  // Empty: it can be asked.
  std::string begin() {
    void* const opened = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) return "libnvidia-ml.so.1 could not be opened";
#define X(name, arguments) lib.name = reinterpret_cast<decltype(lib.name)>(::dlsym(opened, #name));
    LEAT_NVML_READS(X)
#undef X
    if (!knows(lib.nvmlInit_v2)) {
      ::dlclose(opened);
      return "NVML would not start";
    }
    library = opened;
    return {};
  }
};

NvmlWatch::NvmlWatch(std::unique_ptr<Open> open) : open_(std::move(open)) {}
NvmlWatch::NvmlWatch(NvmlWatch&&) noexcept = default;
NvmlWatch::~NvmlWatch() = default;

Result<NvmlWatch> NvmlWatch::open() {
  auto open = std::make_unique<Open>();
  if (const std::string problem = open->begin(); !problem.empty()) return Error{problem};
  return NvmlWatch(std::move(open));
}

std::vector<NvmlHeat> NvmlWatch::read() const {
  std::vector<NvmlHeat> out;
  for (const Handle device : devices_of(open_->lib)) out.push_back(heat_of(open_->lib, device));
  return out;
}

Result<NvmlFacts> read_nvml() {
  auto watch = NvmlWatch::open();
  if (!watch.ok()) return Error{watch.error()};
  return watch->facts();
}

NvmlFacts NvmlWatch::facts() const {
  const Library& lib = open_->lib;
  NvmlFacts facts;
  std::array<char, 128> version{};
  if (knows(lib.nvmlSystemGetDriverVersion, version.data(), static_cast<unsigned>(version.size()))) {
    facts.driver_version = version.data();
  }
  for (const Handle device : devices_of(lib)) facts.devices.push_back(read_device(lib, device));
  return facts;
}

}  // namespace leat::gpu
