#include "engine/exec/registry.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "engine/exec/plugin_search.h"

namespace leat::exec {
namespace {

Result<const leat_executor*> entry_of(void* library, const std::string& path) {
  using Entry = const leat_executor* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, "leat_executor_entry"));
  if (entry == nullptr) return Error{path + ": has no leat_executor_entry; it is not an executor plug-in of Leat"};
  const leat_executor* executor = entry();
  if (executor == nullptr || executor->abi != LEAT_EXECUTOR_ABI) {
    return Error{path + ": was built for version " + std::to_string(executor == nullptr ? 0 : executor->abi) +
                 " of the executor interface, this is " + std::to_string(LEAT_EXECUTOR_ABI) +
                 "; install the same release of both"};
  }
  return executor;
}

}  // namespace

Result<const leat_executor*> find_executor(const std::string& name) {
  if (name == "emulated") return emulated_executor();
  if (name == "onnx") return onnx_executor();
  std::string why;
  for (const std::string& path : plugin_candidates("executor", name)) {
    if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr)
      return entry_of(library, path);
    const char* text = ::dlerror();
    // Of several places, the reason of the one that exists says more than "no such file".
    if (why.empty() || ::access(path.c_str(), F_OK) == 0) why = text != nullptr ? text : "the loader gives no reason";
  }
  return Error{"executor '" + name + "' cannot be loaded: " + why + "; use onnx, emulated, or a plug-in's path"};
}

int executor_error(char* error, size_t error_bytes, const std::string& text) noexcept {
  if (error == nullptr || error_bytes == 0) return 1;
  const std::size_t length = std::min(text.size(), error_bytes - 1);
  std::memcpy(error, text.data(), length);
  error[length] = '\0';
  for (char* c = error; *c != '\0'; ++c) {
    if (*c == '\n' || *c == '\r') *c = ' ';
  }
  return 1;
}

std::string extra_value(const char* extra, const std::string& key) {
  const std::string start = key + "=";
  for (std::string_view rest = extra != nullptr ? extra : ""; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (rest.substr(0, start.size()) == start) return std::string(rest.substr(start.size(), end - start.size()));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

}  // namespace leat::exec
