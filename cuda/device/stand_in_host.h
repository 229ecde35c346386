// This process over the stand-in driver: before it opens a device, since the driver's state is read once a process.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "cuda/fake/state.h"

namespace leat {

// Null: there is no stand-in. What it returns is changed before the device is opened, and goes behind it.
inline std::unique_ptr<fake::Host> stand_in_host() {
  if (::dlopen(LEAT_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL) == nullptr) return nullptr;
  const std::string path = std::filesystem::temp_directory_path() / ("leat-device-" + std::to_string(::getpid()));
  auto host = fake::Host::create(path, {"A100-40"});
  ::setenv("LEAT_FAKE_GPUS", path.c_str(), 1);
  return host;
}

}  // namespace leat
