#include "cuda/driver/driver.h"

#include <dlfcn.h>

#include <cstdio>

namespace leat::cuda {
namespace {

struct Loaded {
  Driver driver;
  std::string problem;
};

Loaded load() {
  Loaded out;
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    out.problem = std::string("there is no NVIDIA driver here: ") +
                  (why != nullptr ? why : "libcuda.so.1 cannot be opened") + "; install it, or use cpu partitions";
    return out;
  }
  std::string missing;
#define X(name, symbol, arguments)                                                          \
  out.driver.name = reinterpret_cast<decltype(out.driver.name)>(::dlsym(library, #symbol)); \
  if (out.driver.name == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(#symbol);
  LEAT_CUDA_FUNCTIONS(X)
#undef X
  out.driver.stand_in = ::dlsym(library, "leat_stand_in_driver") != nullptr;
  const auto has_provider = reinterpret_cast<int (*)()>(::dlsym(library, "leat_stand_in_provider"));
  out.driver.provider = has_provider != nullptr ? has_provider() != 0 : !out.driver.stand_in;
  if (!missing.empty()) {
    out.problem = "the NVIDIA driver is too old, it lacks " + missing + "; install version " +
                  std::to_string(driver_for(12)) + " or later";
  } else if (const Status status = out.driver.init(0); status != kSuccess) {
    out.problem = out.driver.text("cuInit", status) + "; see nvidia-smi";
  }
  return out;
}

}  // namespace

std::string Driver::text(const char* call, Status status) const {
  const char *name = nullptr, *words = nullptr;
  if (error_name != nullptr) (void)error_name(status, &name);
  if (error_text != nullptr) (void)error_text(status, &words);
  std::string out = std::string(call) + ": " + (name != nullptr ? name : "error " + std::to_string(status));
  if (words != nullptr) out += std::string(" (") + words + ")";
  return out;
}

Result<const Driver*> driver() {
  static const Loaded kLoaded = load();
  if (!kLoaded.problem.empty()) return Error{kLoaded.problem};
  return &kLoaded.driver;
}

int driver_for(int cuda_major) noexcept { return cuda_major >= 13 ? 580 : 525; }

bool is_lost(Status status) noexcept {
  switch (status) {
    case kEccUncorrectable:
    case kNvlinkUncorrectable:
    case kContained:
    case kIllegalAddress:
    case kLaunchTimeout:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed:
    case kTensorMemoryLeak:
    case kUnknown:
    case kMpsConnectionFailed:
    case kMpsRpcFailure:
    case kMpsServerNotReady:
    case kMpsClientTerminated:
      return true;
    default:
      return false;
  }
}

std::string text_of(const Uuid& uuid, const char* prefix) {
  std::string out = prefix;
  for (int i = 0; i < 16; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", uuid.bytes[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += two;
  }
  return out;
}

}  // namespace leat::cuda
