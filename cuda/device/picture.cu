// The picture kernels: a thread a target pixel, a layer of the grid a job. Jobs lie in device memory.
#include "cuda/device/picture_body.h"

namespace {

template <bool kLinear>
__device__ __forceinline__ void picture(const leat_picture_job* jobs, const leat_picture_target& target) {
  const std::uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= target.width || y >= target.height) return;
  leat::cuda::picture_pixel<kLinear>(jobs[blockIdx.z], target, x, y);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    leat_picture(const leat_picture_job* jobs, leat_picture_target target) {
  picture<true>(jobs, target);
}

// Two blocks a multiprocessor: left to itself the compiler keeps to 64 registers for some devices, and spills.
extern "C" __global__ void __launch_bounds__(256, 2)
    leat_picture_weighted(const leat_picture_job* jobs, leat_picture_target target) {
  picture<false>(jobs, target);
}
