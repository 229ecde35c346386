// cuDNN 9 without linking it: libcudnn.so.9 (or the file named by LEAT_CUDNN) is opened at run time, with our own
// declarations of the few functions used; cudnn_test.cpp compares them with the installed header where there is one.
// Thread rule: one thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>

namespace leat::probe {

namespace cudnn {

// Values of the header's enumerations.
inline constexpr int kSuccess = 0;
inline constexpr int kFloat = 0, kHalf = 2;
inline constexpr int kNchw = 0, kNhwc = 1;
inline constexpr int kCrossCorrelation = 1;
inline constexpr int kRelu = 1, kNotPropagateNan = 0;
inline constexpr int kDefaultMath = 0, kTensorOpMath = 1, kFmaMath = 3;

struct AlgorithmPerf {
  int algorithm, status;
  float time;
  std::size_t memory;
  int determinism, math, reserved[3];
};

}  // namespace cudnn

enum class Precision : unsigned char { fp32, tf32, fp16 };
[[nodiscard]] const char* name_of(Precision precision) noexcept;

// The library, opened. Throws NotApplicable where it is not there.
class Cudnn;
std::shared_ptr<Cudnn> open_cudnn();
// "9.19.0 (path)"
[[nodiscard]] std::string version_of(const Cudnn& library);

// y = relu(conv3x3(x) + bias), 64 -> 64 channels, 56x56, with its memory and the fastest algorithm that cuDNN's own
// heuristic offers and that runs. fp32: plain FMA units, NCHW; tf32: fp32 data on tensor cores; fp16: NHWC, fp32 sums.
class CudnnConvolution {
 public:
  CudnnConvolution(std::shared_ptr<Cudnn> library, Precision precision, int batch, cudaStream_t stream);
  CudnnConvolution(const CudnnConvolution&) = delete;
  ~CudnnConvolution();
  void launch() const;  // on the stream of the constructor
  // Compares one output with the host's sum of constant inputs; the largest relative difference.
  [[nodiscard]] double check() const;
  [[nodiscard]] std::string algorithm() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leat::probe
