// The part of NVIDIA's driver interface that Leat calls, in declarations of our own, so that the room builds without a
// toolkit. Values and layouts are the driver's; api_test.cpp compares them with cuda.h where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leat::cuda {

using Status = int;
using Ordinal = int;            // CUdevice
using Address = std::uint64_t;  // CUdeviceptr
using Handle = std::uint64_t;   // CUmemGenericAllocationHandle
struct ContextTag;
struct StreamTag;
struct EventTag;
struct ModuleTag;
struct FunctionTag;
struct GraphTag;
struct GraphRunTag;
using Context = ContextTag*;
using Stream = StreamTag*;
using Event = EventTag*;
using Module = ModuleTag*;
using Function = FunctionTag*;
using Graph = GraphTag*;
using GraphRun = GraphRunTag*;  // CUgraphExec

enum : Status {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kEccUncorrectable = 214,
  kNvlinkUncorrectable = 220,
  kContained = 226,  // a fault that was held to this process
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchTimeout = 702,
  kAssert = 710,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kTensorMemoryLeak = 721,
  kNotPermitted = 800,
  kNotSupported = 801,
  kMpsConnectionFailed = 805,
  kMpsRpcFailure = 806,
  kMpsServerNotReady = 807,
  kMpsMaxClientsReached = 808,
  kMpsClientTerminated = 810,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCapturedEvent = 907,
  kUnknown = 999,
};

enum Attribute : int {
  kMultiprocessors = 16,
  kVirtualMemory = 102,
  kDescriptorHandles = 103,
  kReadOnlyRegistration = 113,
};

inline constexpr unsigned kBlockingSync = 4;       // CU_CTX_SCHED_BLOCKING_SYNC
inline constexpr unsigned kNonBlockingStream = 1;  // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kEventBlocking = 1, kEventNoTiming = 2;
inline constexpr unsigned kRegisterPortable = 1, kRegisterDeviceMap = 2, kRegisterReadOnly = 8;
inline constexpr int kPinnedAllocation = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
inline constexpr int kFileDescriptor = 1;    // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
inline constexpr int kDeviceLocation = 1;    // CU_MEM_LOCATION_TYPE_DEVICE
inline constexpr int kReadWrite = 3;         // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
inline constexpr int kRecommendedGranularity = 1, kMinimumGranularity = 0;
inline constexpr int kCaptureOfThread = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

struct Uuid {
  unsigned char bytes[16];
};
struct Location {
  int type;
  int id;
};
struct AllocationProperties {
  int type;
  int handle_types;
  Location location;
  void* windows_metadata;
  struct {
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
};
struct AccessDescription {
  Location location;
  int flags;
};

// name in our table, symbol in the library, result and arguments.
#define LEAT_CUDA_FUNCTIONS(X)                                                                               \
  X(init, cuInit, (unsigned))                                                                                \
  X(driver_version, cuDriverGetVersion, (int*))                                                              \
  X(error_name, cuGetErrorName, (Status, const char**))                                                      \
  X(error_text, cuGetErrorString, (Status, const char**))                                                    \
  X(device_count, cuDeviceGetCount, (int*))                                                                  \
  X(device_get, cuDeviceGet, (Ordinal*, int))                                                                \
  X(device_name, cuDeviceGetName, (char*, int, Ordinal))                                                     \
  X(device_uuid, cuDeviceGetUuid_v2, (Uuid*, Ordinal))                                                       \
  X(device_attribute, cuDeviceGetAttribute, (int*, int, Ordinal))                                            \
  X(device_memory, cuDeviceTotalMem_v2, (std::size_t*, Ordinal))                                             \
  X(context_flags, cuDevicePrimaryCtxSetFlags_v2, (Ordinal, unsigned))                                       \
  X(context_retain, cuDevicePrimaryCtxRetain, (Context*, Ordinal))                                           \
  X(context_release, cuDevicePrimaryCtxRelease_v2, (Ordinal))                                                \
  X(context_set, cuCtxSetCurrent, (Context))                                                                 \
  X(stream_create, cuStreamCreate, (Stream*, unsigned))                                                      \
  X(stream_destroy, cuStreamDestroy_v2, (Stream))                                                            \
  X(event_create, cuEventCreate, (Event*, unsigned))                                                         \
  X(event_destroy, cuEventDestroy_v2, (Event))                                                               \
  X(event_record, cuEventRecord, (Event, Stream))                                                            \
  X(event_wait, cuEventSynchronize, (Event))                                                                 \
  X(event_elapsed, cuEventElapsedTime, (float*, Event, Event))                                               \
  X(capture_begin, cuStreamBeginCapture_v2, (Stream, int))                                                   \
  X(capture_end, cuStreamEndCapture, (Stream, Graph*))                                                       \
  X(graph_instantiate, cuGraphInstantiateWithFlags, (GraphRun*, Graph, unsigned long long))                  \
  X(graph_launch, cuGraphLaunch, (GraphRun, Stream))                                                         \
  X(graph_run_destroy, cuGraphExecDestroy, (GraphRun))                                                       \
  X(graph_destroy, cuGraphDestroy, (Graph))                                                                  \
  X(memory_info, cuMemGetInfo_v2, (std::size_t*, std::size_t*))                                              \
  X(granularity, cuMemGetAllocationGranularity, (std::size_t*, const AllocationProperties*, int))            \
  X(memory_create, cuMemCreate, (Handle*, std::size_t, const AllocationProperties*, unsigned long long))     \
  X(memory_release, cuMemRelease, (Handle))                                                                  \
  X(memory_export, cuMemExportToShareableHandle, (void*, Handle, int, unsigned long long))                   \
  X(memory_import, cuMemImportFromShareableHandle, (Handle*, void*, int))                                    \
  X(address_reserve, cuMemAddressReserve, (Address*, std::size_t, std::size_t, Address, unsigned long long)) \
  X(address_free, cuMemAddressFree, (Address, std::size_t))                                                  \
  X(memory_map, cuMemMap, (Address, std::size_t, std::size_t, Handle, unsigned long long))                   \
  X(memory_unmap, cuMemUnmap, (Address, std::size_t))                                                        \
  X(memory_access, cuMemSetAccess, (Address, std::size_t, const AccessDescription*, std::size_t))            \
  X(host_allocate, cuMemHostAlloc, (void**, std::size_t, unsigned))                                          \
  X(host_free, cuMemFreeHost, (void*))                                                                       \
  X(host_register, cuMemHostRegister_v2, (void*, std::size_t, unsigned))                                     \
  X(host_unregister, cuMemHostUnregister, (void*))                                                           \
  X(host_address, cuMemHostGetDevicePointer_v2, (Address*, void*, unsigned))                                 \
  X(copy, cuMemcpyAsync, (Address, Address, std::size_t, Stream))                                            \
  X(fill, cuMemsetD8Async, (Address, unsigned char, std::size_t, Stream))                                    \
  X(host_function, cuLaunchHostFunc, (Stream, void (*)(void*), void*))                                       \
  X(module_load, cuModuleLoadData, (Module*, const void*))                                                   \
  X(module_unload, cuModuleUnload, (Module))                                                                 \
  X(function_get, cuModuleGetFunction, (Function*, Module, const char*))                                     \
  X(launch, cuLaunchKernel,                                                                                  \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**))

}  // namespace leat::cuda
