// The device in hand: owners of CUDA objects, and timing. All of a probe process uses device 0 of its environment (the
// probe narrows CUDA_VISIBLE_DEVICES). Destructors ignore errors: at that time a context may be lost already.
// Thread rule: as CUDA's; one thread per object.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/gpu/device/driver.h"
#include "bench/gpu/device/kernels.h"

namespace leat::probe {

inline constexpr std::size_t kKiB = 1024, kMiB = 1024 * 1024;

// Makes device 0 current and its context ready. Returns its UUID ("GPU-..." or "MIG-..."). Throws ProbeFailed.
std::string open_device();
[[nodiscard]] std::string uuid_of(CUdevice device);
[[nodiscard]] int sm_count();

// Memory of the device (or pinned host memory, mapped), freed at the end.
class Buffer {
 public:
  enum class Where : unsigned char { device, host };
  explicit Buffer(std::size_t bytes, Where where = Where::device);
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_), where_(other.where_) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer();
  template <class T = void>
  [[nodiscard]] T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  // Device memory only; both wait for the copy.
  template <class T>
  [[nodiscard]] T read(std::size_t offset = 0) const {
    T value;
    LEAT_CUDA(cudaMemcpy(&value, as<std::byte>() + offset, sizeof value, cudaMemcpyDeviceToHost));
    return value;
  }
  void clear(int byte = 0) const { LEAT_CUDA(cudaMemset(data_, byte, bytes_)); }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
  Where where_;
};

class Stream {
 public:
  Stream() { LEAT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  explicit Stream(cudaStream_t owned) : stream_(owned) {}
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream() {
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }
  operator cudaStream_t() const noexcept { return stream_; }
  void wait() const { LEAT_CUDA(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) { LEAT_CUDA(cudaEventCreateWithFlags(&event_, flags)); }
  Event(const Event&) = delete;
  ~Event() { (void)cudaEventDestroy(event_); }
  operator cudaEvent_t() const noexcept { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// A captured graph, ready to launch.
class Graph {
 public:
  // Records what `work` puts into the stream. Warm the work up before: lazy loading must not happen during capture.
  Graph(const Stream& stream, const std::function<void()>& work);
  Graph(const Graph&) = delete;
  ~Graph() { (void)cudaGraphExecDestroy(graph_); }
  void launch(const Stream& stream) const { LEAT_CUDA(cudaGraphLaunch(graph_, stream)); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

// Time between two events around `work`, in microseconds, `repeats` times, each waited for; `warm_up` runs before.
std::vector<double> time_us(cudaStream_t stream, int repeats, const std::function<void()>& work, int warm_up = 3);

// Host time of `work` in microseconds, `repeats` times.
std::vector<double> host_time_us(int repeats, const std::function<void()>& work, int warm_up = 3);

// The same samples as a rate: `amount` per sample, scaled ("GB/s": bytes and 1e-3).
std::vector<double> rates(std::vector<double> times_us, double amount, double scale);

// The probe's fixed convolution with its memory, filled with small values.
class FixedConvolution {
 public:
  explicit FixedConvolution(int batch);
  void launch(cudaStream_t stream) const {
    LEAT_CUDA(kernels::convolution(in_.as<float>(), weights_.as<float>(), bias_.as<float>(), out_.as<float>(), batch_,
                                   stream));
  }

 private:
  int batch_;
  Buffer in_, weights_, bias_, out_;
};

// How many different SMs ran blocks of a kernel that offers work to all.
int count_sms(cudaStream_t stream);

}  // namespace leat::probe
