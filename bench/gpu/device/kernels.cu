#include "bench/gpu/device/kernels.h"

namespace leat::probe::kernels {
namespace {

constexpr int kThreads = 256;

__device__ Stamp now() {
  Stamp value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
  return value;
}

__device__ void spin_for(std::uint64_t ns) {
  const Stamp start = now();
  while (now() - start < ns) {
  }
}

__device__ uint4 pattern(std::size_t index, std::uint32_t seed) {
  const std::uint32_t i = static_cast<std::uint32_t>(index) * 2654435761u ^ seed * 0x9e3779b9u;
  return {i, i ^ 0x85ebca6bu, i * 3u + seed, ~i};
}

__device__ bool same(uint4 a, uint4 b) { return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w; }

__global__ void empty_kernel() {}

__global__ void spin_kernel(std::uint64_t ns) { spin_for(ns); }

__global__ void post_kernel(volatile std::uint32_t* word, std::uint32_t value, std::uint64_t delay_ns) {
  spin_for(delay_ns);
  *word = value;
  __threadfence_system();
}

__global__ void echo_kernel(const volatile std::uint32_t* ask, volatile std::uint32_t* answer, std::uint32_t rounds,
                            std::uint64_t limit_ns) {
  const Stamp start = now();
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    while (*ask < round) {
      if (now() - start > limit_ns) return;
    }
    *answer = round;
    __threadfence_system();
  }
}

__global__ void timer_values_kernel(Stamp* values, std::uint32_t count) {
  std::uint32_t found = 0;
  Stamp last = 0;
  for (std::uint32_t looks = 0; looks < 1u << 28 && found < count; ++looks) {
    const Stamp value = now();
    if (value != last) values[found++] = last = value;
  }
}

__global__ void fill_kernel(uint4* data, std::size_t count, std::uint32_t seed, Stamp* last) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += step)
    data[i] = pattern(i, seed);
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(last, now());
}

__global__ void verify_kernel(const uint4* data, std::size_t count, std::uint32_t seed, Stamp* first,
                              unsigned long long* mismatches) {
  if (threadIdx.x == 0) atomicMin(first, now());
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  unsigned long long wrong = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += step) {
    if (!same(data[i], pattern(i, seed))) ++wrong;
  }
  if (wrong != 0) atomicAdd(mismatches, wrong);
}

__global__ void copy_kernel(uint4* to, const uint4* from, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += step) to[i] = from[i];
}

__global__ void sum_kernel(const uint4* data, std::size_t count, unsigned long long* total) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  unsigned long long sum = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += step) {
    const uint4 v = data[i];
    sum += std::uint64_t{v.x} + v.y + v.z + v.w;
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}

constexpr int kTile = 8, kOutputsPerBlock = 16;

// A block makes an 8x8 tile of 16 output channels: one thread per place, 16 accumulators each.
__global__ void convolution_kernel(const float* in, const float* weights, const float* bias, float* out) {
  __shared__ float tile[(kTile + 2) * (kTile + 2)];
  __shared__ float filter[kOutputsPerBlock * 9];
  constexpr int tiles = kSide / kTile;
  const int left = static_cast<int>(blockIdx.x) % tiles * kTile, top = static_cast<int>(blockIdx.x) / tiles * kTile;
  const int first_output = static_cast<int>(blockIdx.y) * kOutputsPerBlock;
  const float* image = in + blockIdx.z * kImageFloats;
  const int thread = static_cast<int>(threadIdx.x), x = thread % kTile, y = thread / kTile;
  float sums[kOutputsPerBlock] = {};
  for (int c = 0; c < kChannels; ++c) {
    __syncthreads();
    for (int i = thread; i < (kTile + 2) * (kTile + 2); i += kTile * kTile) {
      const int row = top + i / (kTile + 2) - 1, column = left + i % (kTile + 2) - 1;
      const bool inside = row >= 0 && row < kSide && column >= 0 && column < kSide;
      tile[i] = inside ? image[(c * kSide + row) * kSide + column] : 0.0f;
    }
    for (int i = thread; i < kOutputsPerBlock * 9; i += kTile * kTile) {
      filter[i] = weights[((first_output + i / 9) * kChannels + c) * 9 + i % 9];
    }
    __syncthreads();
    for (int tap = 0; tap < 9; ++tap) {
      const float value = tile[(y + tap / 3) * (kTile + 2) + x + tap % 3];
#pragma unroll
      for (int k = 0; k < kOutputsPerBlock; ++k) sums[k] += value * filter[k * 9 + tap];
    }
  }
#pragma unroll
  for (int k = 0; k < kOutputsPerBlock; ++k) {
    const int channel = first_output + k;
    out[blockIdx.z * kImageFloats + (channel * kSide + top + y) * kSide + left + x] =
        fmaxf(sums[k] + bias[channel], 0.0f);
  }
}

__global__ void census_kernel(std::uint32_t* seen) {
  std::uint32_t sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (threadIdx.x == 0) atomicOr(&seen[sm / 32 % 32], 1u << sm % 32);
  spin_for(20'000);  // long enough that the next blocks go elsewhere
}

// One plane or one channel of interleaved chroma, sampled bilinearly at (x, y) in its own pixels.
__device__ float sample(const std::uint8_t* plane, int width, int height, int step, float x, float y) {
  x = fminf(fmaxf(x, 0.0f), static_cast<float>(width - 1));
  y = fminf(fmaxf(y, 0.0f), static_cast<float>(height - 1));
  const int x0 = static_cast<int>(x), y0 = static_cast<int>(y);
  const int x1 = min(x0 + 1, width - 1), y1 = min(y0 + 1, height - 1);
  const float fx = x - static_cast<float>(x0), fy = y - static_cast<float>(y0);
  const std::uint8_t* upper = plane + y0 * width * step;
  const std::uint8_t* lower = plane + y1 * width * step;
  const float above = upper[x0 * step] + fx * (static_cast<float>(upper[x1 * step]) - upper[x0 * step]);
  const float below = lower[x0 * step] + fx * (static_cast<float>(lower[x1 * step]) - lower[x0 * step]);
  return above + fy * (below - above);
}

__global__ void nv12_kernel(const std::uint8_t* frames, std::size_t frame_stride, Nv12Shape shape, float* out) {
  const int pixel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int pixels = shape.out_width * shape.out_height;
  if (pixel >= pixels) return;
  const std::uint8_t* luma = frames + blockIdx.y * frame_stride;
  const std::uint8_t* chroma = luma + shape.width * shape.height;
  const float scale_x = static_cast<float>(shape.width) / static_cast<float>(shape.out_width);
  const float scale_y = static_cast<float>(shape.height) / static_cast<float>(shape.out_height);
  const float x = (static_cast<float>(pixel % shape.out_width) + 0.5f) * scale_x - 0.5f;
  const float y = (static_cast<float>(pixel / shape.out_width) + 0.5f) * scale_y - 0.5f;
  const float cx = (x + 0.5f) * 0.5f - 0.5f, cy = (y + 0.5f) * 0.5f - 0.5f;
  const float l = (sample(luma, shape.width, shape.height, 1, x, y) - 16.0f) * (1.0f / 219.0f);
  const float u = (sample(chroma, shape.width / 2, shape.height / 2, 2, cx, cy) - 128.0f) * (1.0f / 224.0f);
  const float v = (sample(chroma + 1, shape.width / 2, shape.height / 2, 2, cx, cy) - 128.0f) * (1.0f / 224.0f);
  const float rgb[3] = {l + 1.5748f * v, l - 0.1873f * u - 0.4681f * v, l + 1.8556f * u};
  float* image = out + blockIdx.y * std::size_t{3} * pixels;
#pragma unroll
  for (int c = 0; c < 3; ++c) image[c * pixels + pixel] = (fminf(fmaxf(rgb[c], 0.0f), 1.0f) - 0.5f) * 2.0f;
}

__global__ void fault_kernel(volatile std::uint32_t* nowhere) { *nowhere = 1; }

// Enough blocks for every device, few enough that each has something to do.
unsigned blocks_for(std::size_t vectors) {
  const std::size_t blocks = (vectors + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > 2048 ? 2048 : blocks);
}

}  // namespace

cudaError_t empty(cudaStream_t stream) {
  empty_kernel<<<1, 1, 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t spin(std::uint64_t ns, cudaStream_t stream) {
  spin_kernel<<<1, 1, 0, stream>>>(ns);
  return cudaGetLastError();
}

cudaError_t post(std::uint32_t* word, std::uint32_t value, std::uint64_t delay_ns, cudaStream_t stream) {
  post_kernel<<<1, 1, 0, stream>>>(word, value, delay_ns);
  return cudaGetLastError();
}

cudaError_t echo(const std::uint32_t* ask, std::uint32_t* answer, std::uint32_t rounds, std::uint64_t limit_ns,
                 cudaStream_t stream) {
  echo_kernel<<<1, 1, 0, stream>>>(ask, answer, rounds, limit_ns);
  return cudaGetLastError();
}

cudaError_t timer_values(Stamp* values, std::uint32_t count, cudaStream_t stream) {
  timer_values_kernel<<<1, 1, 0, stream>>>(values, count);
  return cudaGetLastError();
}

cudaError_t fill(void* data, std::size_t bytes, std::uint32_t seed, Stamp* last, cudaStream_t stream) {
  const std::size_t vectors = bytes / sizeof(uint4);
  fill_kernel<<<blocks_for(vectors), kThreads, 0, stream>>>(static_cast<uint4*>(data), vectors, seed, last);
  return cudaGetLastError();
}

cudaError_t verify(const void* data, std::size_t bytes, std::uint32_t seed, Stamp* first,
                   unsigned long long* mismatches, cudaStream_t stream) {
  const std::size_t vectors = bytes / sizeof(uint4);
  verify_kernel<<<blocks_for(vectors), kThreads, 0, stream>>>(static_cast<const uint4*>(data), vectors, seed, first,
                                                              mismatches);
  return cudaGetLastError();
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  const std::size_t vectors = bytes / sizeof(uint4);
  copy_kernel<<<blocks_for(vectors), kThreads, 0, stream>>>(static_cast<uint4*>(to), static_cast<const uint4*>(from),
                                                            vectors);
  return cudaGetLastError();
}

cudaError_t sum(const void* data, std::size_t bytes, unsigned long long* total, cudaStream_t stream) {
  const std::size_t vectors = bytes / sizeof(uint4);
  sum_kernel<<<blocks_for(vectors), kThreads, 0, stream>>>(static_cast<const uint4*>(data), vectors, total);
  return cudaGetLastError();
}

cudaError_t convolution(const float* in, const float* weights, const float* bias, float* out, int batch,
                        cudaStream_t stream) {
  const dim3 grid((kSide / kTile) * (kSide / kTile), kChannels / kOutputsPerBlock, static_cast<unsigned>(batch));
  convolution_kernel<<<grid, kTile * kTile, 0, stream>>>(in, weights, bias, out);
  return cudaGetLastError();
}

cudaError_t census(std::uint32_t* seen, int blocks, cudaStream_t stream) {
  census_kernel<<<static_cast<unsigned>(blocks), 1024, 0, stream>>>(seen);
  return cudaGetLastError();
}

cudaError_t nv12_to_tensor(const std::uint8_t* frames, std::size_t frame_stride, int batch, Nv12Shape shape, float* out,
                           cudaStream_t stream) {
  const int pixels = shape.out_width * shape.out_height;
  const dim3 grid(static_cast<unsigned>((pixels + kThreads - 1) / kThreads), static_cast<unsigned>(batch));
  nv12_kernel<<<grid, kThreads, 0, stream>>>(frames, frame_stride, shape, out);
  return cudaGetLastError();
}

cudaError_t fault(cudaStream_t stream) {
  fault_kernel<<<1, 1, 0, stream>>>(reinterpret_cast<std::uint32_t*>(std::uintptr_t{16}));
  return cudaGetLastError();
}

}  // namespace leat::probe::kernels
