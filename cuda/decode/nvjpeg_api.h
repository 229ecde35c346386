// The part of nvJPEG's interface that Leat calls (libnvjpeg of a CUDA toolkit), in declarations of our own.
#pragma once

#include <cstddef>

#include "cuda/driver/api.h"

namespace leat::cuda::nvjpeg {

using Status = int;  // 0: done
using Handle = void*;
using State = void*;

enum : Status { kDone = 0, kBadJpeg = 3, kJpegNotSupported = 4, kExecutionFailed = 6 };
inline constexpr int kInterleavedRgb = 5;  // NVJPEG_OUTPUT_RGBI
inline constexpr std::size_t kMaxComponents = 4;

struct Image {
  unsigned char* channel[kMaxComponents];
  std::size_t pitch[kMaxComponents];
};
static_assert(sizeof(Image) == 64);

#define LEAT_NVJPEG_FUNCTIONS(X)                                                                               \
  X(create, nvjpegCreateSimple, (Handle*))                                                                     \
  X(destroy, nvjpegDestroy, (Handle))                                                                          \
  X(create_state, nvjpegJpegStateCreate, (Handle, State*))                                                     \
  X(destroy_state, nvjpegJpegStateDestroy, (State))                                                            \
  X(info, nvjpegGetImageInfo,                                                                                  \
    (Handle, const unsigned char*, std::size_t, int* components, int* subsampling, int* widths, int* heights)) \
  X(decode, nvjpegDecode, (Handle, State, const unsigned char*, std::size_t, int format, Image*, cuda::Stream))

}  // namespace leat::cuda::nvjpeg
