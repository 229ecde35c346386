// The picture kernel: a thread a target pixel, a layer of the grid a job. Jobs lie in device memory.
#include "cuda/device/picture_body.h"

extern "C" __global__ void __launch_bounds__(256)
    leat_picture(const leat_picture_job* jobs, leat_picture_target target) {
  const std::uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= target.width || y >= target.height) return;
  leat::cuda::picture_pixel(jobs[blockIdx.z], target, x, y);
}
