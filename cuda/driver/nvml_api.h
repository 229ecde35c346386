// The part of NVIDIA's management library (NVML, API version 13) that Leat calls, in declarations of our own: the CUDA
// toolkit brings no header of it. The structures have not changed since version 11. Ids of profiles are the driver's
// own (19 is one slice of an A100); the index under which a profile is asked for counts from 0.
#pragma once

namespace leat::nvml {

using Handle = void*;  // nvmlDevice_t, nvmlGpuInstance_t, nvmlComputeInstance_t
using Return = int;

enum : Return {
  kSuccess = 0,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kInUse = 19,
  kInsufficientResources = 23,
};

inline constexpr unsigned kProfileIndexes = 32;  // the library answers "invalid argument" beyond its own last one
inline constexpr unsigned kClockSm = 1, kClockMemory = 2;
inline constexpr unsigned kTemperatureOfGpu = 0;
// Why clocks are lower than they might be, as bits. Those that only mean that nobody works or somebody chose them are
// left out here.
inline constexpr unsigned long long kSlowPowerCap = 0x4, kSlowHardware = 0x8, kSlowHeat = 0x20,
                                    kSlowHardwareHeat = 0x40, kSlowPowerBrake = 0x80;
inline constexpr unsigned kMaxInstancesListed = 8, kMaxProcessesListed = 256;

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
struct ProfileInfoNamed {  // nvmlGpuInstanceProfileInfo_v2_t
  unsigned version, id, peer_to_peer, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs,
      flows;
  unsigned long long memory_mb;
  char name[96];
};
inline constexpr unsigned kProfileInfoNamed = sizeof(ProfileInfoNamed) | 2u << 24;
struct ComputeProfileInfo {
  unsigned id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, flows;
};
struct Placement {  // of a GPU instance in memory slices, of a compute instance in compute slices
  unsigned start, size;
};
struct GpuInstanceInfo {
  Handle device;
  unsigned id, profile;
  Placement placement;
};
struct ComputeInstanceInfo {
  Handle device, gpu_instance;
  unsigned id, profile;
  Placement placement;
};
struct Attributes {
  unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, flows, gpu_slices, compute_slices;
  unsigned long long memory_mb;
};
struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

// Symbol in the library and arguments: what only reads.
#define LEAT_NVML_READS(X)                                                                                   \
  X(nvmlInit_v2, ())                                                                                         \
  X(nvmlShutdown, ())                                                                                        \
  X(nvmlSystemGetDriverVersion, (char*, unsigned))                                                           \
  X(nvmlDeviceGetCount_v2, (unsigned*))                                                                      \
  X(nvmlDeviceGetHandleByIndex_v2, (unsigned, ::leat::nvml::Handle*))                                        \
  X(nvmlDeviceGetName, (::leat::nvml::Handle, char*, unsigned))                                              \
  X(nvmlDeviceGetUUID, (::leat::nvml::Handle, char*, unsigned))                                              \
  X(nvmlDeviceGetMemoryInfo, (::leat::nvml::Handle, ::leat::nvml::Memory*))                                  \
  X(nvmlDeviceGetPciInfo_v3, (::leat::nvml::Handle, ::leat::nvml::PciInfo*))                                 \
  X(nvmlDeviceGetCurrPcieLinkGeneration, (::leat::nvml::Handle, unsigned*))                                  \
  X(nvmlDeviceGetCurrPcieLinkWidth, (::leat::nvml::Handle, unsigned*))                                       \
  X(nvmlDeviceGetMaxPcieLinkGeneration, (::leat::nvml::Handle, unsigned*))                                   \
  X(nvmlDeviceGetMaxPcieLinkWidth, (::leat::nvml::Handle, unsigned*))                                        \
  X(nvmlDeviceGetClockInfo, (::leat::nvml::Handle, unsigned, unsigned*))                                     \
  X(nvmlDeviceGetTemperature, (::leat::nvml::Handle, unsigned, unsigned*))                                   \
  X(nvmlDeviceGetPowerUsage, (::leat::nvml::Handle, unsigned*))                                              \
  X(nvmlDeviceGetEnforcedPowerLimit, (::leat::nvml::Handle, unsigned*))                                      \
  X(nvmlDeviceGetCurrentClocksThrottleReasons, (::leat::nvml::Handle, unsigned long long*))                  \
  X(nvmlDeviceGetMigMode, (::leat::nvml::Handle, unsigned*, unsigned*))                                      \
  X(nvmlDeviceGetMaxMigDeviceCount, (::leat::nvml::Handle, unsigned*))                                       \
  X(nvmlDeviceGetMigDeviceHandleByIndex, (::leat::nvml::Handle, unsigned, ::leat::nvml::Handle*))            \
  X(nvmlDeviceGetGpuInstanceId, (::leat::nvml::Handle, unsigned*))                                           \
  X(nvmlDeviceGetComputeInstanceId, (::leat::nvml::Handle, unsigned*))                                       \
  X(nvmlDeviceGetAttributes_v2, (::leat::nvml::Handle, ::leat::nvml::Attributes*))                           \
  X(nvmlDeviceGetGpuInstanceProfileInfo, (::leat::nvml::Handle, unsigned, ::leat::nvml::ProfileInfo*))       \
  X(nvmlDeviceGetGpuInstanceProfileInfoV, (::leat::nvml::Handle, unsigned, ::leat::nvml::ProfileInfoNamed*)) \
  X(nvmlDeviceGetGpuInstancePossiblePlacements_v2,                                                           \
    (::leat::nvml::Handle, unsigned, ::leat::nvml::Placement*, unsigned*))

// What an administrator's tool needs besides; the last four change the device.
#define LEAT_NVML_INSTANCES(X)                                                                              \
  X(nvmlDeviceGetGpuInstances, (::leat::nvml::Handle, unsigned, ::leat::nvml::Handle*, unsigned*))          \
  X(nvmlGpuInstanceGetInfo, (::leat::nvml::Handle, ::leat::nvml::GpuInstanceInfo*))                         \
  X(nvmlGpuInstanceGetComputeInstanceProfileInfo,                                                           \
    (::leat::nvml::Handle, unsigned, unsigned, ::leat::nvml::ComputeProfileInfo*))                          \
  X(nvmlGpuInstanceGetComputeInstances, (::leat::nvml::Handle, unsigned, ::leat::nvml::Handle*, unsigned*)) \
  X(nvmlComputeInstanceGetInfo_v2, (::leat::nvml::Handle, ::leat::nvml::ComputeInstanceInfo*))              \
  X(nvmlDeviceGetComputeRunningProcesses_v3, (::leat::nvml::Handle, unsigned*, ::leat::nvml::Process*))     \
  X(nvmlDeviceCreateGpuInstanceWithPlacement,                                                               \
    (::leat::nvml::Handle, unsigned, const ::leat::nvml::Placement*, ::leat::nvml::Handle*))                \
  X(nvmlGpuInstanceCreateComputeInstance, (::leat::nvml::Handle, unsigned, ::leat::nvml::Handle*))          \
  X(nvmlComputeInstanceDestroy, (::leat::nvml::Handle))                                                     \
  X(nvmlGpuInstanceDestroy, (::leat::nvml::Handle))

}  // namespace leat::nvml
