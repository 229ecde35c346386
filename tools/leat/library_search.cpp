#include "tools/leat/library_search.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "engine/exec/onnx/libraries/onnx_library.h"

namespace leat::tools {
namespace {

struct CloseLibrary {
  void operator()(void* handle) const { ::dlclose(handle); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <class F>
F symbol(const Library& library, const char* name) {
  return reinterpret_cast<F>(::dlsym(library.get(), name));
}

std::string last_loader_error() {
  const char* text = ::dlerror();
  return text != nullptr ? text : "the loader gives no reason";
}

// The head of ONNX Runtime's C API, which has not changed since version 1: two functions, the second names the version.
struct ApiBase {
  const void* (*get_api)(std::uint32_t version);
  const char* (*version)();
};

}  // namespace

OnnxRuntimeFound find_onnx_runtime() {
  // Loading the library may start its telemetry where a release carries it; the variable must stand before.
  ::setenv("ORT_DISABLE_TELEMETRY", "1", 1);
  OnnxRuntimeFound found;
  for (const std::string& candidate : exec::onnx_library_candidates()) {
    const Library library(::dlopen(candidate.c_str(), RTLD_LAZY | RTLD_LOCAL));
    if (!library) {
      found.problem = last_loader_error();
      continue;
    }
    const auto get_base = symbol<const ApiBase* (*)()>(library, "OrtGetApiBase");
    if (get_base == nullptr) {
      found.problem = candidate + " has no OrtGetApiBase: it is not ONNX Runtime";
      continue;
    }
    const link_map* map = nullptr;
    ::dlinfo(library.get(), RTLD_DI_LINKMAP, &map);
    found.path = map != nullptr ? map->l_name : candidate;
    found.version = get_base()->version();
    return found;
  }
  return found;
}

GpuFound find_gpus() {
  GpuFound found;
  const Library nvml(::dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL));
  if (!nvml) {
    found.problem = last_loader_error();
    return found;
  }
  const auto init = symbol<int (*)()>(nvml, "nvmlInit_v2");
  const auto shutdown = symbol<int (*)()>(nvml, "nvmlShutdown");
  const auto error_text = symbol<const char* (*)(int)>(nvml, "nvmlErrorString");
  const auto get_count = symbol<int (*)(unsigned*)>(nvml, "nvmlDeviceGetCount_v2");
  const auto get_device = symbol<int (*)(unsigned, void**)>(nvml, "nvmlDeviceGetHandleByIndex_v2");
  const auto get_name = symbol<int (*)(void*, char*, unsigned)>(nvml, "nvmlDeviceGetName");
  const auto get_driver = symbol<int (*)(char*, unsigned)>(nvml, "nvmlSystemGetDriverVersion");
  if (!init || !shutdown || !error_text || !get_count || !get_device || !get_name || !get_driver) {
    found.problem = "libnvidia-ml.so.1 lacks a function that every driver since 2015 has";
    return found;
  }
  if (const int error = init(); error != 0) {
    found.problem = std::string("NVML does not start: ") + error_text(error);
    return found;
  }
  char text[96];
  if (get_count(&found.count) != 0 || found.count == 0) found.problem = "the driver is there, but shows no GPU";
  for (unsigned i = 0; i < found.count; ++i) {
    void* device = nullptr;
    if (get_device(i, &device) == 0 && get_name(device, text, sizeof text) == 0)
      found.names += (found.names.empty() ? "" : ", ") + std::string(text);
  }
  if (get_driver(text, sizeof text) == 0) found.driver = text;
  shutdown();
  const Library cuda(::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL));
  if (found.count > 0 && !cuda) found.cuda_problem = last_loader_error();
  return found;
}

}  // namespace leat::tools
