#include "engine/exec/onnx/libraries/onnx_library.h"

#include <dlfcn.h>
#include <link.h>
#include <onnxruntime_c_api.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "engine/exec/plugin_search.h"

namespace leat::exec {
namespace {

constexpr const char* kFile = "libonnxruntime.so.1";
constexpr std::uint32_t kApiVersion = 21;  // what this code uses; later libraries still serve it

Result<OnnxLibrary> load() {
  ::setenv("ORT_DISABLE_TELEMETRY", "1", 1);  // read when the library is loaded
  std::string why = "no such file";
  for (const std::string& path : onnx_library_candidates()) {
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* text = ::dlerror();
      if (path == kFile || ::access(path.c_str(), F_OK) == 0)
        why = text != nullptr ? text : "the loader gives no reason";
      continue;
    }
    const auto base = reinterpret_cast<const OrtApiBase* (*)()>(::dlsym(library, "OrtGetApiBase"));
    const OrtApi* api = base != nullptr ? base()->GetApi(kApiVersion) : nullptr;
    if (api == nullptr) {
      why = path + (base == nullptr ? " is not ONNX Runtime"
                                    : std::string(" is version ") + base()->GetVersionString() +
                                          ", too old; 1.21 or later is needed");
      ::dlclose(library);
      continue;
    }
    const link_map* map = nullptr;
    ::dlinfo(library, RTLD_DI_LINKMAP, &map);
    return OnnxLibrary{api, map != nullptr ? map->l_name : path, base()->GetVersionString()};
  }
  return Error{"ONNX Runtime cannot be loaded: " + why +
               "; run tools/setup, or name an unpacked release in ONNXRUNTIME_ROOT"};
}

}  // namespace

std::vector<std::string> onnx_library_candidates() {
  std::vector<std::string> out;
  if (const char* root = std::getenv("ONNXRUNTIME_ROOT"); root != nullptr && *root != '\0')
    out.push_back(std::string(root) + "/lib/" + kFile);
  std::error_code failed;
  const auto folders = folders_above_program();
  if (const auto folder = installed_libraries(); !folder.empty()) out.push_back((folder / kFile).string());
  for (const auto& folder : folders) {
    const auto path = folder / "deps" / "onnxruntime" / "lib" / kFile;
    if (std::filesystem::exists(path, failed)) out.push_back(path.string());
  }
  out.emplace_back(kFile);
  return out;
}

const Result<OnnxLibrary>& onnx_library() {
  static const Result<OnnxLibrary> kLibrary = load();
  return kLibrary;
}

}  // namespace leat::exec
