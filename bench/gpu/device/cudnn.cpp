#include "bench/gpu/device/cudnn.h"

#include <dlfcn.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "bench/gpu/device/gpu.h"

namespace leat::probe {
namespace {

constexpr std::size_t kMaxWorkspace = 256 * kMiB;

// cuDNN's handles and descriptors are pointers to structures of its own.
#define LEAT_CUDNN_FUNCTIONS(X)                                                                                      \
  X(cudnnGetVersion, std::size_t, ())                                                                                \
  X(cudnnGetErrorString, const char*, (int))                                                                         \
  X(cudnnCreate, int, (void**))                                                                                      \
  X(cudnnDestroy, int, (void*))                                                                                      \
  X(cudnnSetStream, int, (void*, cudaStream_t))                                                                      \
  X(cudnnCreateTensorDescriptor, int, (void**))                                                                      \
  X(cudnnDestroyTensorDescriptor, int, (void*))                                                                      \
  X(cudnnSetTensor4dDescriptor, int, (void*, int, int, int, int, int, int))                                          \
  X(cudnnCreateFilterDescriptor, int, (void**))                                                                      \
  X(cudnnDestroyFilterDescriptor, int, (void*))                                                                      \
  X(cudnnSetFilter4dDescriptor, int, (void*, int, int, int, int, int, int))                                          \
  X(cudnnCreateConvolutionDescriptor, int, (void**))                                                                 \
  X(cudnnDestroyConvolutionDescriptor, int, (void*))                                                                 \
  X(cudnnSetConvolution2dDescriptor, int, (void*, int, int, int, int, int, int, int, int))                           \
  X(cudnnSetConvolutionMathType, int, (void*, int))                                                                  \
  X(cudnnCreateActivationDescriptor, int, (void**))                                                                  \
  X(cudnnDestroyActivationDescriptor, int, (void*))                                                                  \
  X(cudnnSetActivationDescriptor, int, (void*, int, int, double))                                                    \
  X(cudnnGetConvolutionForwardAlgorithm_v7, int,                                                                     \
    (void*, void*, void*, void*, void*, int, int*, cudnn::AlgorithmPerf*))                                           \
  X(cudnnConvolutionBiasActivationForward, int,                                                                      \
    (void*, const void*, void*, const void*, void*, const void*, void*, int, void*, std::size_t, const void*, void*, \
     const void*, void*, const void*, void*, void*, void*))

std::uint16_t half_of(float value) {  // for the few exact powers of two used here
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
  return static_cast<std::uint16_t>(exponent << 10 | (bits >> 13 & 0x3ff));
}

float float_of_half(std::uint16_t half) {
  const int exponent = half >> 10 & 0x1f;
  const float mantissa = static_cast<float>((half & 0x3ff) | (exponent != 0 ? 0x400 : 0));
  return std::ldexp(mantissa, (exponent != 0 ? exponent : 1) - 25) * (half >> 15 != 0 ? -1.0f : 1.0f);
}

}  // namespace

class Cudnn {
 public:
  Cudnn() {
    const char* named = std::getenv("LEAT_CUDNN");
    path_ = named != nullptr && *named != '\0' ? named : "libcudnn.so.9";
    void* library = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw NotApplicable(path_ + " could not be opened; LEAT_CUDNN may name the file");
#define X(name, result, arguments)                                  \
  name = reinterpret_cast<decltype(name)>(::dlsym(library, #name)); \
  if (name == nullptr) throw NotApplicable(path_ + " has no " #name);
    LEAT_CUDNN_FUNCTIONS(X)
#undef X
    check(cudnnCreate(&handle_), "cudnnCreate");
  }
  Cudnn(const Cudnn&) = delete;
  ~Cudnn() { (void)cudnnDestroy(handle_); }

  void check(int status, const char* call) const {
    if (status != cudnn::kSuccess) throw ProbeFailed(std::string(call) + ": " + cudnnGetErrorString(status));
  }
  [[nodiscard]] void* handle() const noexcept { return handle_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

#define X(name, result, arguments) result(*name) arguments = nullptr;
  LEAT_CUDNN_FUNCTIONS(X)
#undef X

 private:
  std::string path_;
  void* handle_ = nullptr;
};

std::shared_ptr<Cudnn> open_cudnn() { return std::make_shared<Cudnn>(); }

std::string version_of(const Cudnn& library) {
  const std::size_t version = library.cudnnGetVersion();  // 91900 is 9.19.0
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100) + " (" + library.path() + ")";
}

const char* name_of(Precision precision) noexcept {
  constexpr std::array<const char*, 3> names{"fp32", "tf32", "fp16"};
  return names[static_cast<std::size_t>(precision)];
}

struct CudnnConvolution::State {
  static constexpr float kInput = 0.25f, kWeight = 0.03125f, kBias = 0.5f;

  std::shared_ptr<Cudnn> library;
  Precision precision;
  int batch;
  cudaStream_t stream;
  void *image = nullptr, *filter = nullptr, *bias_shape = nullptr, *convolution = nullptr, *activation = nullptr;
  Buffer x, w, b, y;
  std::optional<Buffer> workspace;
  int algorithm = -1;

  State(std::shared_ptr<Cudnn> from, Precision p, int n, cudaStream_t s)
      : library(std::move(from)),
        precision(p),
        batch(n),
        stream(s),
        x(element() * kernels::kImageFloats * static_cast<std::size_t>(n)),
        w(element() * kernels::kWeightFloats),
        b(element() * kernels::kChannels),
        y(x.bytes()) {}
  ~State() {
    if (image != nullptr) (void)library->cudnnDestroyTensorDescriptor(image);
    if (filter != nullptr) (void)library->cudnnDestroyFilterDescriptor(filter);
    if (bias_shape != nullptr) (void)library->cudnnDestroyTensorDescriptor(bias_shape);
    if (convolution != nullptr) (void)library->cudnnDestroyConvolutionDescriptor(convolution);
    if (activation != nullptr) (void)library->cudnnDestroyActivationDescriptor(activation);
  }

  [[nodiscard]] std::size_t element() const { return precision == Precision::fp16 ? 2 : 4; }
  [[nodiscard]] std::size_t workspace_bytes() const { return workspace ? workspace->bytes() : 0; }

  void set(const Buffer& buffer, float value) const {
    if (precision == Precision::fp16) {
      const std::vector<std::uint16_t> values(buffer.bytes() / 2, half_of(value));
      LEAT_CUDA(cudaMemcpy(buffer.as(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice));
    } else {
      const std::vector<float> values(buffer.bytes() / 4, value);
      LEAT_CUDA(cudaMemcpy(buffer.as(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice));
    }
  }

  void describe() {
    const Cudnn& l = *library;
    const int type = precision == Precision::fp16 ? cudnn::kHalf : cudnn::kFloat;
    const int format = precision == Precision::fp16 ? cudnn::kNhwc : cudnn::kNchw;
    const int c = kernels::kChannels, side = kernels::kSide;
    l.check(l.cudnnSetStream(l.handle(), stream), "cudnnSetStream");
    l.check(l.cudnnCreateTensorDescriptor(&image), "cudnnCreateTensorDescriptor");
    l.check(l.cudnnSetTensor4dDescriptor(image, format, type, batch, c, side, side), "cudnnSetTensor4dDescriptor");
    l.check(l.cudnnCreateTensorDescriptor(&bias_shape), "cudnnCreateTensorDescriptor");
    l.check(l.cudnnSetTensor4dDescriptor(bias_shape, format, type, 1, c, 1, 1), "cudnnSetTensor4dDescriptor");
    l.check(l.cudnnCreateFilterDescriptor(&filter), "cudnnCreateFilterDescriptor");
    l.check(l.cudnnSetFilter4dDescriptor(filter, type, format, c, c, 3, 3), "cudnnSetFilter4dDescriptor");
    l.check(l.cudnnCreateConvolutionDescriptor(&convolution), "cudnnCreateConvolutionDescriptor");
    l.check(l.cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, cudnn::kCrossCorrelation, cudnn::kFloat),
            "cudnnSetConvolution2dDescriptor");
    constexpr std::array<int, 3> maths{cudnn::kFmaMath, cudnn::kDefaultMath, cudnn::kTensorOpMath};  // by Precision
    const int math = maths[static_cast<std::size_t>(precision)];
    l.check(l.cudnnSetConvolutionMathType(convolution, math), "cudnnSetConvolutionMathType");
    l.check(l.cudnnCreateActivationDescriptor(&activation), "cudnnCreateActivationDescriptor");
    l.check(l.cudnnSetActivationDescriptor(activation, cudnn::kRelu, cudnn::kNotPropagateNan, 0.0),
            "cudnnSetActivationDescriptor");
  }

  int forward(int with) const {
    const float one = 1.0f, zero = 0.0f;
    return library->cudnnConvolutionBiasActivationForward(library->handle(), &one, image, x.as(), filter, w.as(),
                                                          convolution, with, workspace ? workspace->as() : nullptr,
                                                          workspace_bytes(), &zero, image, y.as(), bias_shape, b.as(),
                                                          activation, image, y.as());
  }

  // In the heuristic's order, the first that fits into the workspace and runs.
  void choose() {
    std::array<cudnn::AlgorithmPerf, 8> offers{};
    int count = 0;
    library->check(
        library->cudnnGetConvolutionForwardAlgorithm_v7(library->handle(), image, filter, convolution, image,
                                                        static_cast<int>(offers.size()), &count, offers.data()),
        "cudnnGetConvolutionForwardAlgorithm_v7");
    std::string why = "no algorithm was offered";
    for (int i = 0; i < count; ++i) {
      const cudnn::AlgorithmPerf& offer = offers[static_cast<std::size_t>(i)];
      if (offer.status != cudnn::kSuccess || offer.memory > kMaxWorkspace) continue;
      workspace.reset();
      if (offer.memory > 0) workspace.emplace(offer.memory);
      // An offer may allow more than was asked for: plain fp32 must not become TF32.
      if (precision != Precision::fp32) {
        library->check(library->cudnnSetConvolutionMathType(convolution, offer.math), "cudnnSetConvolutionMathType");
      }
      const int status = forward(offer.algorithm);
      if (status == cudnn::kSuccess) {
        LEAT_CUDA(cudaStreamSynchronize(stream));
        algorithm = offer.algorithm;
        return;
      }
      why = library->cudnnGetErrorString(status);
    }
    throw ProbeFailed("cudnnConvolutionBiasActivationForward: " + why);
  }
};

CudnnConvolution::CudnnConvolution(std::shared_ptr<Cudnn> library, Precision precision, int batch, cudaStream_t stream)
    : state_(std::make_unique<State>(std::move(library), precision, batch, stream)) {
  state_->set(state_->x, State::kInput);
  state_->set(state_->w, State::kWeight);
  state_->set(state_->b, State::kBias);
  LEAT_CUDA(
      cudaDeviceSynchronize());  // copies of pageable memory may be under way, and the convolution's stream is another
  state_->describe();
  state_->choose();
}

CudnnConvolution::~CudnnConvolution() = default;

void CudnnConvolution::launch() const {
  state_->library->check(state_->forward(state_->algorithm), "cudnnConvolutionBiasActivationForward");
}

double CudnnConvolution::check() const {
  launch();
  LEAT_CUDA(cudaStreamSynchronize(state_->stream));
  // Away from the border every output is the sum over 64 channels and 9 taps, plus the bias. Channel 0, the middle
  // pixel.
  const bool half = state_->precision == Precision::fp16;  // NHWC; the others are NCHW
  const std::size_t pixel = std::size_t{kernels::kSide / 2} * kernels::kSide + kernels::kSide / 2;
  const std::size_t index = half ? pixel * kernels::kChannels : pixel;
  const float got = half ? float_of_half(state_->y.read<std::uint16_t>(2 * index)) : state_->y.read<float>(4 * index);
  const float expected = 64.0f * 9.0f * State::kInput * State::kWeight + State::kBias;
  return std::fabs(double{got} - double{expected}) / double{expected};
}

std::string CudnnConvolution::algorithm() const {
  return "algorithm " + std::to_string(state_->algorithm) + ", workspace " +
         std::to_string(state_->workspace_bytes() / kKiB) + " KiB";
}

}  // namespace leat::probe
