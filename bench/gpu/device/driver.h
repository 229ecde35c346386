// The CUDA driver API without linking it: libcuda.so.1 is opened at the first use, so that the program starts where no
// driver is. Every call is checked. Thread rule: as CUDA's.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

#include "bench/gpu/ask.h"

namespace leat::probe {

// Looked up under the very names (with version suffix) that this build's cuda.h maps them to. One that the installed
// driver lacks stays null, and calling it throws NotApplicable.
// The formatter never comes to an end with this list.
// clang-format off
#define LEAT_DRIVER_FUNCTIONS(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) X(cuDeviceGet) X(cuDeviceGetCount) \
  X(cuDeviceGetAttribute) X(cuDeviceGetUuid) X(cuDeviceGetName) X(cuMemCreate) X(cuMemRelease) \
  X(cuMemExportToShareableHandle) X(cuMemImportFromShareableHandle) X(cuMemAddressReserve) X(cuMemAddressFree) \
  X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) X(cuMemGetAllocationGranularity) X(cuStreamWaitValue32) \
  X(cuStreamWriteValue32) X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuDeviceGetDevResource) \
  X(cuDevSmResourceSplitByCount) X(cuDevResourceGenerateDesc) X(cuGreenCtxCreate) X(cuGreenCtxDestroy) \
  X(cuCtxFromGreenCtx) X(cuGreenCtxStreamCreate) X(cuStreamDestroy)
// clang-format on

struct Driver {
#define X(name) decltype(&::name) name = nullptr;
  LEAT_DRIVER_FUNCTIONS(X)
#undef X
  // Empty when the library is there; otherwise why not. No other member is usable then.
  std::string problem;
};
// Opens the library once per process; calls nothing in it.
const Driver& driver();

[[noreturn]] void driver_failed(const char* call, CUresult result);
// The driver's name of an error ("CUDA_ERROR_NOT_SUPPORTED").
[[nodiscard]] std::string name_of(CUresult result);

template <class Function, class... Arguments>
void driver_call(const char* name, Function function, const Arguments&... arguments) {
  if (function == nullptr) throw NotApplicable(std::string("this driver has no ") + name);
  if (const CUresult result = function(arguments...); result != CUDA_SUCCESS) driver_failed(name, result);
}
void runtime_check(cudaError_t result, const char* call);

// LEAT_DRIVER(cuMemRelease, handle): calls and checks. The argument names the function by its plain name.
#define LEAT_DRIVER(name, ...) ::leat::probe::driver_call(#name, ::leat::probe::driver().name, __VA_ARGS__)
// LEAT_CUDA(cudaFree(p)): checks a call of the runtime, or a launch of kernels.h.
#define LEAT_CUDA(call) ::leat::probe::runtime_check((call), #call)

// An attribute of a device as the driver reports it; -1 where it does not know the attribute.
[[nodiscard]] int attribute(CUdevice device, CUdevice_attribute which);

}  // namespace leat::probe
