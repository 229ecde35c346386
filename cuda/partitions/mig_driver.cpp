// MIG instances by NVML, opened at run time.
#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "cuda/driver/nvml_api.h"
#include "cuda/partitions/mig.h"

namespace leat::partitions {
namespace {

using namespace nvml;

std::string words_for(const char* call, Return status) {
  const std::string at = std::string(call) + ": ";
  switch (status) {
    case kNoPermission:
      return at + "not permitted; be root, or be given /proc/driver/nvidia/capabilities/mig/config (docs/guide/gpu.md)";
    case kInUse:
      return at + "in use; stop what runs there";
    case kInsufficientResources:
      return at + "there is no room for it";
    default:
      return at + "NVML's error " + std::to_string(status);
  }
}

}  // namespace

struct MigDriver::Library {
#define X(name, arguments) Return(*name) arguments = nullptr;
  LEAT_NVML_READS(X)
  LEAT_NVML_INSTANCES(X)
#undef X
  void* handle = nullptr;

  std::vector<MigProfile> profiles_of(Handle device) const {
    std::vector<MigProfile> out;
    for (unsigned index = 0; index < kProfileIndexes; ++index) {
      ProfileInfoNamed info{};
      info.version = kProfileInfoNamed;
      if (nvmlDeviceGetGpuInstanceProfileInfoV(device, index, &info) != kSuccess) continue;
      std::string name = info.name;
      if (name.starts_with("MIG ")) name.erase(0, 4);
      MigProfile p{info.id, name, info.slices, 0, info.instances, info.multiprocessors, info.memory_mb, {}};
      std::array<Placement, 64> places{};
      unsigned count = 0;
      if (nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, info.id, nullptr, &count) != kSuccess || count == 0 ||
          count > places.size() ||
          nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, info.id, places.data(), &count) != kSuccess)
        continue;
      for (unsigned i = 0; i < count; ++i) p.starts.push_back(places[i].start);
      p.memory = places[0].size;
      out.push_back(std::move(p));
    }
    return out;
  }
  std::vector<Handle> instances_of(Handle device, const MigProfile& profile, Return* status) const {
    std::array<Handle, kMaxInstancesListed> list{};
    unsigned count = 0;
    if (const Return r = nvmlDeviceGetGpuInstances(device, profile.id, list.data(), &count); r != kSuccess) {
      *status = r;
      return {};
    }
    return std::vector<Handle>(list.begin(), list.begin() + std::min<std::size_t>(count, list.size()));
  }
  std::vector<Handle> computes_of(Handle instance) const {
    std::vector<Handle> out;
    for (unsigned index = 0; index < kProfileIndexes; ++index) {
      ComputeProfileInfo info{};
      if (nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, index, 0, &info) != kSuccess) continue;
      std::array<Handle, kMaxInstancesListed> list{};
      unsigned count = 0;
      if (nvmlGpuInstanceGetComputeInstances(instance, info.id, list.data(), &count) == kSuccess)
        out.insert(out.end(), list.begin(), list.begin() + std::min<std::size_t>(count, list.size()));
    }
    return out;
  }
  Return create_compute(Handle instance, unsigned slices) const {
    for (unsigned index = 0; index < kProfileIndexes; ++index) {
      ComputeProfileInfo info{};
      if (nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, index, 0, &info) != kSuccess || info.slices != slices)
        continue;
      Handle made = nullptr;
      return nvmlGpuInstanceCreateComputeInstance(instance, info.id, &made);
    }
    return kNotFound;
  }
  Handle find(Handle device, const MigGpu& gpu, const MigInstance& wanted) const {
    Return status = kSuccess;
    for (const Handle h : instances_of(device, gpu.profiles[wanted.profile], &status)) {
      GpuInstanceInfo info{};
      if (nvmlGpuInstanceGetInfo(h, &info) == kSuccess && info.id == wanted.id) return h;
    }
    return nullptr;
  }
};

MigDriver::MigDriver(std::unique_ptr<Library> library) : library_(std::move(library)) {}

MigDriver::~MigDriver() {
  (void)library_->nvmlShutdown();
  ::dlclose(library_->handle);
}

Result<std::unique_ptr<MigDriver>> MigDriver::open() {
  auto library = std::make_unique<Library>();
  library->handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) return Error{"there is no NVIDIA driver here: libnvidia-ml.so.1 cannot be opened"};
  std::string missing;
#define X(name, arguments)                                                                    \
  library->name = reinterpret_cast<decltype(library->name)>(::dlsym(library->handle, #name)); \
  if (library->name == nullptr && missing.empty()) missing = #name;
  LEAT_NVML_INSTANCES(X)
  X(nvmlDeviceGetGpuInstanceProfileInfoV, )
  X(nvmlDeviceGetGpuInstancePossiblePlacements_v2, )
  X(nvmlDeviceGetMigMode, )
  X(nvmlDeviceGetHandleByIndex_v2, )
  X(nvmlDeviceGetCount_v2, )
  X(nvmlDeviceGetName, )
  X(nvmlDeviceGetUUID, )
  X(nvmlInit_v2, )
  X(nvmlShutdown, )
#undef X
  if (!missing.empty()) {
    ::dlclose(library->handle);
    return Error{"the NVIDIA driver is too old for MIG, it lacks " + missing};
  }
  if (const Return r = library->nvmlInit_v2(); r != kSuccess) {
    ::dlclose(library->handle);
    return Error{words_for("nvmlInit", r) + "; see nvidia-smi"};
  }
  return std::unique_ptr<MigDriver>(new MigDriver(std::move(library)));
}

std::vector<MigGpu> MigDriver::read() const {
  const Library& lib = *library_;
  std::vector<MigGpu> out;
  unsigned count = 0;
  (void)lib.nvmlDeviceGetCount_v2(&count);
  for (unsigned g = 0; g < count; ++g) {
    Handle device = nullptr;
    if (lib.nvmlDeviceGetHandleByIndex_v2(g, &device) != kSuccess) continue;
    MigGpu gpu;
    gpu.index = g;
    std::array<char, 128> text{};
    if (lib.nvmlDeviceGetUUID(device, text.data(), text.size()) == kSuccess) gpu.uuid = text.data();
    if (lib.nvmlDeviceGetName(device, text.data(), text.size()) == kSuccess) gpu.name = text.data();
    unsigned now = 0, pending = 0;
    if (lib.nvmlDeviceGetMigMode(device, &now, &pending) == kSuccess) {
      gpu.on = now == 1;
      gpu.pending = now != pending;
    }
    gpu.profiles = lib.profiles_of(device);
    Return status = kSuccess;
    for (unsigned p = 0; gpu.on && p < gpu.profiles.size(); ++p) {
      for (const Handle h : lib.instances_of(device, gpu.profiles[p], &status)) {
        GpuInstanceInfo info{};
        if (lib.nvmlGpuInstanceGetInfo(h, &info) != kSuccess) continue;
        gpu.instances.push_back(
            {info.id, p, info.placement.start, static_cast<unsigned>(lib.computes_of(h).size()), {}});
      }
    }
    if (status != kSuccess) gpu.hidden = words_for("its instances cannot be read", status);
    std::array<Process, kMaxProcessesListed> processes{};
    unsigned running = kMaxProcessesListed;
    if (gpu.on && gpu.hidden.empty()) {
      if (const Return r = lib.nvmlDeviceGetComputeRunningProcesses_v3(device, &running, processes.data());
          r != kSuccess)
        gpu.hidden = words_for("its processes cannot be read", r);
      else
        for (unsigned i = 0; i < running; ++i)
          for (MigInstance& there : gpu.instances)
            if (there.id == processes[i].gpu_instance) there.processes.push_back(processes[i].pid);
    }
    out.push_back(std::move(gpu));
  }
  return out;
}

Status MigDriver::take(const MigGpu& gpu, const MigSteps& steps, unsigned* done) const {
  const Library& lib = *library_;
  Handle device = nullptr;
  if (const Return r = lib.nvmlDeviceGetHandleByIndex_v2(gpu.index, &device); r != kSuccess)
    return Error{words_for("nvmlDeviceGetHandleByIndex", r)};
  const auto destroy = [&](Handle instance) {
    for (const Handle compute : lib.computes_of(instance))
      if (const Return r = lib.nvmlComputeInstanceDestroy(compute); r != kSuccess) return r;
    return lib.nvmlGpuInstanceDestroy(instance);
  };
  const auto create = [&](unsigned profile, unsigned start) {
    const Placement at{start, gpu.profiles[profile].memory};
    Handle made = nullptr;
    if (const Return r = lib.nvmlDeviceCreateGpuInstanceWithPlacement(device, gpu.profiles[profile].id, &at, &made);
        r != kSuccess)
      return r;
    return lib.create_compute(made, gpu.profiles[profile].compute);
  };
  const auto step = [&](Return r, const std::string& what) -> Status {
    if (r != kSuccess) return Error{words_for(what.c_str(), r)};
    ++*done;
    return Done{};
  };
  const auto name = [&](unsigned profile, unsigned start) {
    return gpu.profiles[profile].name + " at " + std::to_string(start);
  };
  for (const auto* list : {&steps.destroy, &steps.finish}) {
    for (const unsigned i : *list) {
      const MigInstance& there = gpu.instances[i];
      const Handle h = lib.find(device, gpu, there);
      const bool goes = list == &steps.destroy;
      const Return r = h == nullptr ? Return{kNotFound}
                       : goes       ? destroy(h)
                                    : lib.create_compute(h, gpu.profiles[there.profile].compute);
      if (auto s = step(r, (goes ? "destroying " : "finishing ") + name(there.profile, there.start)); !s) return s;
    }
  }
  for (const auto& [profile, start] : steps.create)
    if (auto s = step(create(profile, start), "creating " + name(profile, start)); !s) return s;
  return Done{};
}

}  // namespace leat::partitions
