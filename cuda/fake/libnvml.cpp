// A libnvidia-ml.so.1 over the GPUs of state.h: what there is, how it is cut, who uses it, and the four calls that
// change a cut. As the real one it refuses what does not fit, what is in use, and who may not. What it cannot show: a
// real driver's own numbers and rules.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "cuda/driver/nvml_api.h"
#include "cuda/fake/state.h"

namespace leat::fake {
namespace {

using namespace nvml;

constexpr unsigned kFirstId = 100;  // a profile's id is not its index, so that nobody takes one for the other

struct Named {
  unsigned kind, gpu, instance, compute;
};
enum : unsigned { kGpu = 1, kMigDevice = 2, kGpuInstance = 3, kComputeInstance = 4 };

Handle handle_of(Named n) {
  return reinterpret_cast<Handle>(std::uintptr_t{n.kind << 24 | n.gpu << 16 | n.instance << 8 | n.compute});
}
Named named(Handle h) {
  const auto v = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(h));
  return {v >> 24, v >> 16 & 0xff, v >> 8 & 0xff, v & 0xff};
}
Host& host() { return Host::mine(); }
State& state() { return host().state(); }
Gpu& gpu_of(const Named& n) { return state().gpus[n.gpu]; }
Instance& instance_of(const Named& n) { return gpu_of(n).instances[n.instance]; }
const Profile& profile_of(const Named& n) { return *find_profile(host().model(n.gpu), instance_of(n).profile); }
bool there(const Named& n) {
  if (n.gpu >= state().gpu_count) return false;
  if (n.kind == kGpu) return true;
  if (gpu_of(n).mig == 0 || n.instance >= kMaxInstances || instance_of(n).there == 0) return false;
  return n.kind == kGpuInstance || (n.compute < kMaxCompute && instance_of(n).compute[n.compute].there != 0);
}
#define LEAT_KNOWN(handle, wanted) \
  const Named n = named(handle);   \
  if (n.kind != (wanted) || !there(n)) return kInvalidArgument

// Before each change: whether it may be, and whether this process has reached the change it is to die at.
Return may_change() {
  if (state().refuse_changes != 0) return kNoPermission;
  if (state().fail_after != 0 && state().fail_after.fetch_sub(1) == 1) (void)::raise(SIGKILL);
  return kSuccess;
}

Return put(const std::string& text, char* out, unsigned room) {
  if (text.size() + 1 > room) return kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kSuccess;
}

// The handles of what is there, as NVML gives them: their number, and they themselves where there is room.
template <class Is>
Return list(unsigned max, Is is, Handle* out, unsigned* count) {
  unsigned found = 0;
  for (unsigned i = 0; i < max; ++i)
    if (const Handle h = is(i); h != nullptr) out[found++] = h;
  *count = found;
  return kSuccess;
}

}  // namespace
}  // namespace leat::fake

using namespace leat::fake;
using namespace leat::nvml;

#define LEAT_EXPORT extern "C" __attribute__((visibility("default")))

LEAT_EXPORT Return nvmlInit_v2() { return kSuccess; }
LEAT_EXPORT Return nvmlShutdown() { return kSuccess; }
LEAT_EXPORT const char* nvmlErrorString(Return) { return "stand-in"; }
LEAT_EXPORT Return nvmlSystemGetDriverVersion(char* out, unsigned room) { return put("0.stand-in", out, room); }
LEAT_EXPORT Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = state().gpu_count;
  return kSuccess;
}
LEAT_EXPORT Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* out) {
  if (index >= state().gpu_count) return kInvalidArgument;
  *out = handle_of({kGpu, index, kWhole, kWhole});
  return kSuccess;
}
LEAT_EXPORT Return nvmlDeviceGetName(Handle device, char* out, unsigned room) {
  const Named n = named(device);
  if (!there(n)) return kInvalidArgument;
  const std::string whole = std::string("stand-in ") + host().model(n.gpu).name;
  return put(n.kind == kGpu ? whole : whole + " MIG " + profile_of(n).name, out, room);
}
LEAT_EXPORT Return nvmlDeviceGetUUID(Handle device, char* out, unsigned room) {
  const Named n = named(device);
  return there(n) ? put(uuid_text(n.gpu, n.instance, n.compute), out, room) : kInvalidArgument;
}
LEAT_EXPORT Return nvmlDeviceGetMemoryInfo(Handle device, Memory* out) {
  LEAT_KNOWN(device, kGpu);
  *out = {host().model(n.gpu).memory_mib << 20, host().model(n.gpu).memory_mib << 20, 0};
  return kSuccess;
}

LEAT_EXPORT Return nvmlDeviceGetClockInfo(Handle device, unsigned kind, unsigned* out) {
  LEAT_KNOWN(device, kGpu);
  *out = kind == kClockSm ? 1410 : 1215;
  return kSuccess;
}
LEAT_EXPORT Return nvmlDeviceGetTemperature(Handle device, unsigned sensor, unsigned* out) {
  LEAT_KNOWN(device, kGpu);
  if (state().hides_heat != 0) return kNotSupported;
  *out = 40 + n.gpu;
  return sensor == kTemperatureOfGpu ? kSuccess : kInvalidArgument;
}
LEAT_EXPORT Return nvmlDeviceGetPowerUsage(Handle device, unsigned* out) {
  LEAT_KNOWN(device, kGpu);
  if (state().hides_heat != 0) return kNotSupported;
  *out = 312'400;
  return kSuccess;
}
LEAT_EXPORT Return nvmlDeviceGetEnforcedPowerLimit(Handle device, unsigned* out) {
  LEAT_KNOWN(device, kGpu);
  *out = 400'000;
  return kSuccess;
}
LEAT_EXPORT Return nvmlDeviceGetCurrentClocksThrottleReasons(Handle device, unsigned long long* out) {
  LEAT_KNOWN(device, kGpu);
  *out = state().slow_reasons;
  return kSuccess;
}

// ---- MIG ----

LEAT_EXPORT Return nvmlDeviceGetMigMode(Handle device, unsigned* now, unsigned* pending) {
  LEAT_KNOWN(device, kGpu);
  *now = gpu_of(n).mig;
  *pending = gpu_of(n).mig_pending != 0 ? 1 - *now : *now;
  return kSuccess;
}
LEAT_EXPORT Return nvmlDeviceGetMaxMigDeviceCount(Handle device, unsigned* count) {
  LEAT_KNOWN(device, kGpu);
  *count = kMaxCompute;
  return kSuccess;
}
LEAT_EXPORT Return nvmlDeviceGetMigDeviceHandleByIndex(Handle device, unsigned index, Handle* out) {
  LEAT_KNOWN(device, kGpu);
  unsigned seen = 0;
  for (unsigned i = 0; i < kMaxInstances; ++i) {
    for (unsigned c = 0; c < kMaxCompute; ++c) {
      const Named here{kMigDevice, n.gpu, i, c};
      if (!there(here) || seen++ != index) continue;
      *out = handle_of(here);
      return kSuccess;
    }
  }
  return kNotFound;
}
LEAT_EXPORT Return nvmlDeviceGetGpuInstanceId(Handle device, unsigned* id) {
  LEAT_KNOWN(device, kMigDevice);
  *id = n.instance;
  return kSuccess;
}
LEAT_EXPORT Return nvmlDeviceGetComputeInstanceId(Handle device, unsigned* id) {
  LEAT_KNOWN(device, kMigDevice);
  *id = n.compute;
  return kSuccess;
}
LEAT_EXPORT Return nvmlDeviceGetAttributes_v2(Handle device, Attributes* out) {
  LEAT_KNOWN(device, kMigDevice);
  const Profile& p = profile_of(n);
  const unsigned slices = instance_of(n).compute[n.compute].slices;
  *out = {};
  out->multiprocessors = p.multiprocessors * slices / p.slices;
  out->gpu_slices = p.slices;
  out->compute_slices = slices;
  out->memory_mb = p.memory_mib;
  return kSuccess;
}
LEAT_EXPORT Return nvmlDeviceGetGpuInstanceProfileInfoV(Handle device, unsigned index, ProfileInfoNamed* out) {
  LEAT_KNOWN(device, kGpu);
  if (out->version != kProfileInfoNamed) return kInvalidArgument;
  const Profile* const p = find_profile(host().model(n.gpu), index);
  if (p == nullptr) return index < kProfileIndexes / 2 ? kNotSupported : kInvalidArgument;
  *out = {};
  out->version = kProfileInfoNamed;
  out->id = kFirstId + p->id;
  out->slices = p->slices;
  out->instances = p->count;
  out->multiprocessors = p->multiprocessors;
  out->copy_engines = p->slices;
  out->memory_mb = p->memory_mib;
  return put(std::string("MIG ") + p->name, out->name, sizeof out->name);
}
LEAT_EXPORT Return nvmlDeviceGetGpuInstanceProfileInfo(Handle device, unsigned index, ProfileInfo* out) {
  ProfileInfoNamed named_info{};
  named_info.version = kProfileInfoNamed;
  const Return r = nvmlDeviceGetGpuInstanceProfileInfoV(device, index, &named_info);
  *out = {};
  out->id = named_info.id;
  out->slices = named_info.slices;
  out->instances = named_info.instances;
  out->multiprocessors = named_info.multiprocessors;
  out->copy_engines = named_info.copy_engines;
  out->memory_mb = named_info.memory_mb;
  return r;
}
LEAT_EXPORT Return nvmlDeviceGetGpuInstancePossiblePlacements_v2(Handle device, unsigned id, Placement* out,
                                                                 unsigned* count) {
  LEAT_KNOWN(device, kGpu);
  const Profile* const p = id < kFirstId ? nullptr : find_profile(host().model(n.gpu), id - kFirstId);
  if (p == nullptr) return kInvalidArgument;
  unsigned found = 0;
  for (unsigned s = 0; s < 32; ++s) {
    if ((p->starts >> s & 1) == 0) continue;
    if (out != nullptr) out[found] = {s, p->size};
    ++found;
  }
  *count = found;
  return kSuccess;
}
LEAT_EXPORT Return nvmlDeviceGetGpuInstances(Handle device, unsigned id, Handle* out, unsigned* count) {
  LEAT_KNOWN(device, kGpu);
  if (state().refuse_changes != 0) return kNoPermission;
  return list(
      kMaxInstances,
      [&](unsigned i) {
        const Named here{kGpuInstance, n.gpu, i, kWhole};
        return there(here) && instance_of(here).profile + kFirstId == id ? handle_of(here) : nullptr;
      },
      out, count);
}
LEAT_EXPORT Return nvmlGpuInstanceGetInfo(Handle instance, GpuInstanceInfo* out) {
  LEAT_KNOWN(instance, kGpuInstance);
  const Profile& p = profile_of(n);
  *out = {handle_of({kGpu, n.gpu, kWhole, kWhole}), n.instance, kFirstId + p.id, {instance_of(n).start, p.size}};
  return kSuccess;
}
LEAT_EXPORT Return nvmlGpuInstanceGetComputeInstanceProfileInfo(Handle instance, unsigned index, unsigned engine,
                                                                ComputeProfileInfo* out) {
  LEAT_KNOWN(instance, kGpuInstance);
  const unsigned slices[] = {1, 2, 3, 4, 7};
  if (engine != 0 || index >= std::size(slices)) return kInvalidArgument;
  if (slices[index] > profile_of(n).slices) return kNotSupported;
  *out = {};
  out->id = index;
  out->slices = slices[index];
  return kSuccess;
}
LEAT_EXPORT Return nvmlGpuInstanceGetComputeInstances(Handle instance, unsigned id, Handle* out, unsigned* count) {
  LEAT_KNOWN(instance, kGpuInstance);
  return list(
      kMaxCompute,
      [&](unsigned c) {
        ComputeProfileInfo profile{};
        (void)nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, id, 0, &profile);
        const Named here{kComputeInstance, n.gpu, n.instance, c};
        const bool same = there(here) && instance_of(here).compute[c].slices == profile.slices;
        return same ? handle_of(here) : nullptr;
      },
      out, count);
}
LEAT_EXPORT Return nvmlComputeInstanceGetInfo_v2(Handle compute, ComputeInstanceInfo* out) {
  LEAT_KNOWN(compute, kComputeInstance);
  const ComputeInstance& c = instance_of(n).compute[n.compute];
  *out = {handle_of({kGpu, n.gpu, kWhole, kWhole}),
          handle_of({kGpuInstance, n.gpu, n.instance, kWhole}),
          n.compute,
          0,
          {c.start, c.slices}};
  return kSuccess;
}
LEAT_EXPORT Return nvmlDeviceGetComputeRunningProcesses_v3(Handle device, unsigned* count, Process* out) {
  LEAT_KNOWN(device, kGpu);
  if (state().refuse_changes != 0) return kNoPermission;
  unsigned found = 0;
  for (const User& u : gpu_of(n).users) {
    if (u.pid == 0 || ::kill(u.pid, 0) != 0) continue;
    if (found < *count) out[found] = {static_cast<unsigned>(u.pid.load()), 0, u.instance, u.compute};
    ++found;
  }
  const bool fits = found <= *count;
  *count = found;
  return fits ? kSuccess : kInsufficientSize;
}

// ---- changes ----

LEAT_EXPORT Return nvmlDeviceCreateGpuInstanceWithPlacement(Handle device, unsigned id, const Placement* at,
                                                            Handle* out) {
  LEAT_KNOWN(device, kGpu);
  if (const Return r = may_change(); r != kSuccess) return r;
  if (gpu_of(n).mig == 0) return kNotSupported;
  if (id < kFirstId || find_profile(host().model(n.gpu), id - kFirstId) == nullptr) return kInvalidArgument;
  const int made = host().add_instance(n.gpu, id - kFirstId, at->start, 0);
  if (made < 0) return kInsufficientResources;
  *out = handle_of({kGpuInstance, n.gpu, static_cast<unsigned>(made), kWhole});
  return kSuccess;
}
LEAT_EXPORT Return nvmlGpuInstanceCreateComputeInstance(Handle instance, unsigned id, Handle* out) {
  LEAT_KNOWN(instance, kGpuInstance);
  if (const Return r = may_change(); r != kSuccess) return r;
  ComputeProfileInfo profile{};
  if (const Return r = nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, id, 0, &profile); r != kSuccess) return r;
  return host().locked([&]() -> Return {
    unsigned used = 0;
    for (const ComputeInstance& c : instance_of(n).compute) used += c.there != 0 ? c.slices.load() : 0;
    if (used + profile.slices > profile_of(n).slices) return kInsufficientResources;
    for (unsigned c = 0; c < kMaxCompute; ++c) {
      ComputeInstance& here = instance_of(n).compute[c];
      if (here.there != 0) continue;
      here.slices = profile.slices;
      here.start = used;
      here.there = 1;
      *out = handle_of({kComputeInstance, n.gpu, n.instance, c});
      return kSuccess;
    }
    return kInsufficientResources;
  });
}
LEAT_EXPORT Return nvmlComputeInstanceDestroy(Handle compute) {
  LEAT_KNOWN(compute, kComputeInstance);
  if (const Return r = may_change(); r != kSuccess) return r;
  if (!host().users_of(n.gpu, n.instance, n.compute).empty()) return kInUse;
  instance_of(n).compute[n.compute].there = 0;
  return kSuccess;
}
LEAT_EXPORT Return nvmlGpuInstanceDestroy(Handle instance) {
  LEAT_KNOWN(instance, kGpuInstance);
  if (const Return r = may_change(); r != kSuccess) return r;
  for (const ComputeInstance& c : instance_of(n).compute)
    if (c.there != 0) return kInUse;
  instance_of(n).there = 0;
  return kSuccess;
}
