// The probe's kernels. Each function launches and returns the launch's error; nothing is waited for. Pointers are
// device pointers (host memory only where it is registered and mapped). Stamps are nanoseconds of the device's
// %globaltimer, which all processes on one device share; its step is one of the things the probe measures. Thread rule:
// as CUDA's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace leat::probe::kernels {

using Stamp = unsigned long long;

cudaError_t empty(cudaStream_t stream);
// Occupies one block until the timer has advanced by ns.
cudaError_t spin(std::uint64_t ns, cudaStream_t stream);
// Spins, then writes value to *word with system-wide visibility.
cudaError_t post(std::uint32_t* word, std::uint32_t value, std::uint64_t delay_ns, cudaStream_t stream);
// Answers `rounds` questions: waits for *ask >= r, then sets *answer = r. Gives up after limit_ns.
cudaError_t echo(const std::uint32_t* ask, std::uint32_t* answer, std::uint32_t rounds, std::uint64_t limit_ns,
                 cudaStream_t stream);
// The first `count` different values of the timer that one thread sees (at most 2^28 looks; the rest stay 0).
cudaError_t timer_values(Stamp* values, std::uint32_t count, cudaStream_t stream);

// Fills `bytes` (a multiple of 16) with a pattern of `seed`; *last becomes the latest stamp any block ended at.
cudaError_t fill(void* data, std::size_t bytes, std::uint32_t seed, Stamp* last, cudaStream_t stream);
// *first becomes the earliest stamp any block began at (preset it to all ones); *mismatches counts wrong 16-byte words.
cudaError_t verify(const void* data, std::size_t bytes, std::uint32_t seed, Stamp* first,
                   unsigned long long* mismatches, cudaStream_t stream);
// Copies on the SMs (not on a copy engine). bytes: a multiple of 16.
cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
// Adds up all 32-bit words, so that every byte is read. bytes: a multiple of 16.
cudaError_t sum(const void* data, std::size_t bytes, unsigned long long* total, cudaStream_t stream);

// The probe's fixed work: 3x3 convolution, 64 -> 64 channels, 56x56, padding 1, bias, ReLU, fp32, NCHW, on plain FMA
// units.
inline constexpr int kChannels = 64, kSide = 56;
inline constexpr std::size_t kImageFloats = std::size_t{kChannels} * kSide * kSide;
inline constexpr std::size_t kWeightFloats = std::size_t{kChannels} * kChannels * 9;
cudaError_t convolution(const float* in, const float* weights, const float* bias, float* out, int batch,
                        cudaStream_t stream);

// Sets bit i of seen[32] for every SM i that ran one of the many blocks.
cudaError_t census(std::uint32_t* seen, int blocks, cudaStream_t stream);

// NV12 (full-size luma, then half-size interleaved chroma; BT.709, limited range) -> bilinear resize -> (rgb - 0.5) *
// 2, planar fp32. Frame i begins at frames + i * frame_stride.
struct Nv12Shape {
  int width, height, out_width, out_height;
};
cudaError_t nv12_to_tensor(const std::uint8_t* frames, std::size_t frame_stride, int batch, Nv12Shape shape, float* out,
                           cudaStream_t stream);

// Writes to an address nobody mapped: the context is lost. For children made to be lost.
cudaError_t fault(cudaStream_t stream);

}  // namespace leat::probe::kernels
