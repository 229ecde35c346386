#include "bench/gpu/device/driver.h"

#include <dlfcn.h>

namespace leat::probe {
namespace {

#define LEAT_TEXT(name) LEAT_TEXT_OF(name)
#define LEAT_TEXT_OF(name) #name

Driver load() {
  Driver driver;
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    driver.problem = why != nullptr ? why : "libcuda.so.1 could not be opened";
    return driver;
  }
  // The argument of X is expanded before it is turned to text, so "cuMemFree_v2" is looked up where cuda.h says so.
#define X(name) driver.name = reinterpret_cast<decltype(driver.name)>(::dlsym(library, LEAT_TEXT(name)));
  LEAT_DRIVER_FUNCTIONS(X)
#undef X
  if (driver.cuInit == nullptr) driver.problem = "libcuda.so.1 is not a CUDA driver: it has no cuInit";
  return driver;
}

}  // namespace

const Driver& driver() {
  static const Driver loaded = load();
  return loaded;
}

std::string name_of(CUresult result) {
  const char* name = nullptr;
  if (driver().cuGetErrorName == nullptr || driver().cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    return "error " + std::to_string(static_cast<int>(result));
  }
  return name;
}

void driver_failed(const char* call, CUresult result) {
  const char* text = nullptr;
  if (driver().cuGetErrorString != nullptr) driver().cuGetErrorString(result, &text);
  throw ProbeFailed(std::string(call) + ": " + name_of(result) +
                    (text != nullptr ? std::string(" (") + text + ")" : ""));
}

void runtime_check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  (void)cudaGetLastError();  // an error that was reported once must not fail the next launch
  throw ProbeFailed(std::string(call) + ": " + cudaGetErrorName(result) + " (" + cudaGetErrorString(result) + ")");
}

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = -1;
  if (driver().cuDeviceGetAttribute == nullptr ||
      driver().cuDeviceGetAttribute(&value, which, device) != CUDA_SUCCESS) {
    return -1;
  }
  return value;
}

}  // namespace leat::probe
