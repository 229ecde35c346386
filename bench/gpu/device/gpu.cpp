#include "bench/gpu/device/gpu.h"

#include <array>
#include <bit>
#include <cstdio>

namespace leat::probe {

std::string uuid_of(CUdevice device) {
  CUuuid uuid{};
  LEAT_DRIVER(cuDeviceGetUuid, &uuid, device);
  std::array<char, 256> name{};
  LEAT_DRIVER(cuDeviceGetName, name.data(), static_cast<int>(name.size()), device);
  const bool mig = std::string(name.data()).find(" MIG ") != std::string::npos;
  std::string text = mig ? "MIG-" : "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += hex;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

std::string open_device() {
  LEAT_CUDA(cudaSetDevice(0));
  LEAT_CUDA(cudaFree(nullptr));  // makes the context
  CUdevice device = 0;
  LEAT_DRIVER(cuDeviceGet, &device, 0);
  return uuid_of(device);
}

int sm_count() {
  int count = 0;
  LEAT_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

Buffer::Buffer(std::size_t bytes, Where where) : bytes_(bytes), where_(where) {
  if (where == Where::device) {
    LEAT_CUDA(cudaMalloc(&data_, bytes));
  } else {
    LEAT_CUDA(cudaHostAlloc(&data_, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
  }
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  if (where_ == Where::device) {
    (void)cudaFree(data_);
  } else {
    (void)cudaFreeHost(data_);
  }
}

Graph::Graph(const Stream& stream, const std::function<void()>& work) {
  cudaGraph_t recorded = nullptr;
  LEAT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  try {
    work();
  } catch (...) {
    if (cudaStreamEndCapture(stream, &recorded) == cudaSuccess && recorded != nullptr) (void)cudaGraphDestroy(recorded);
    throw;
  }
  LEAT_CUDA(cudaStreamEndCapture(stream, &recorded));
  const cudaError_t made = cudaGraphInstantiate(&graph_, recorded, 0);
  (void)cudaGraphDestroy(recorded);
  LEAT_CUDA(made);
}

std::vector<double> time_us(cudaStream_t stream, int repeats, const std::function<void()>& work, int warm_up) {
  for (int i = 0; i < warm_up; ++i) work();
  LEAT_CUDA(cudaStreamSynchronize(stream));
  Event begin, end;
  std::vector<double> samples;
  for (int i = 0; i < repeats; ++i) {
    LEAT_CUDA(cudaEventRecord(begin, stream));
    work();
    LEAT_CUDA(cudaEventRecord(end, stream));
    LEAT_CUDA(cudaEventSynchronize(end));
    float ms = 0;
    LEAT_CUDA(cudaEventElapsedTime(&ms, begin, end));
    samples.push_back(1e3 * static_cast<double>(ms));
  }
  return samples;
}

std::vector<double> host_time_us(int repeats, const std::function<void()>& work, int warm_up) {
  for (int i = 0; i < warm_up; ++i) work();
  std::vector<double> samples;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = Clock::now();
    work();
    samples.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return samples;
}

std::vector<double> rates(std::vector<double> times_us, double amount, double scale) {
  for (double& sample : times_us) sample = sample > 0 ? amount / sample * scale : 0;
  return times_us;
}

FixedConvolution::FixedConvolution(int batch)
    : batch_(batch),
      in_(sizeof(float) * kernels::kImageFloats * static_cast<std::size_t>(batch)),
      weights_(sizeof(float) * kernels::kWeightFloats),
      bias_(sizeof(float) * kernels::kChannels),
      out_(in_.bytes()) {
  for (const Buffer* buffer : {&in_, &weights_, &bias_}) buffer->clear(0x3a);  // 0x3a3a3a3a is 7.1e-4
  LEAT_CUDA(cudaDeviceSynchronize());
}

int count_sms(cudaStream_t stream) {
  // Everything in the one stream, so that it also works while a green context is current.
  const Buffer seen(32 * sizeof(std::uint32_t));
  LEAT_CUDA(cudaMemsetAsync(seen.as(), 0, seen.bytes(), stream));
  LEAT_CUDA(kernels::census(seen.as<std::uint32_t>(), 16 * sm_count(), stream));
  std::array<std::uint32_t, 32> bits{};
  LEAT_CUDA(cudaMemcpyAsync(bits.data(), seen.as(), seen.bytes(), cudaMemcpyDeviceToHost, stream));
  LEAT_CUDA(cudaStreamSynchronize(stream));
  int count = 0;
  for (std::uint32_t word : bits) count += std::popcount(word);
  return count;
}

}  // namespace leat::probe
