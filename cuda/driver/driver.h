// The driver's library, opened at run time, so that everything starts where there is none. Thread rule: as the
// driver's; loading happens once a process. Errors: one line.
#pragma once

#include <string>

#include "cuda/driver/api.h"
#include "leat/result.hpp"

namespace leat::cuda {

struct Driver {
#define X(name, symbol, arguments) Status(*name) arguments = nullptr;
  LEAT_CUDA_FUNCTIONS(X)
#undef X
  bool stand_in = false;  // cuda/fake: streams of threads, device memory that the host can touch
  bool provider = true;   // ONNX Runtime computes there; not so on a stand-in, unless a test has one of that too

  // "cuMemMap: CUDA_ERROR_INVALID_VALUE (invalid argument)"
  [[nodiscard]] std::string text(const char* call, Status status) const;
};

// Opened and initialised (cuInit). Error: why there is no usable driver, and what to do.
Result<const Driver*> driver();

// "GPU-8a3c...", with the prefix of what it names.
[[nodiscard]] std::string text_of(const Uuid& uuid, const char* prefix);

// The driver that programs of this release of CUDA need: 580 for 13.
[[nodiscard]] int driver_for(int cuda_major) noexcept;

// Whether nothing can be done on this device any more by this process. What a wait for the stream returns is not asked
// here: any error of one is of work that has run.
[[nodiscard]] bool is_lost(Status status) noexcept;

}  // namespace leat::cuda
