// Group 5: client frames. A client writes NV12 frames into a sealed memfd; may a worker register its mapping, what does
// that cost, and is it better to read the frames where they are or to copy them first?
#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "bench/gpu/device/gpu.h"
#include "bench/gpu/questions/groups.h"

namespace leat::probe {
namespace {

constexpr kernels::Nv12Shape kShape{1920, 1080, 640, 640};
constexpr std::size_t kFrameBytes = std::size_t{1920} * 1080 * 3 / 2;
constexpr std::size_t kTensorBytes = std::size_t{3} * 640 * 640 * sizeof(float);
constexpr int kBatches[] = {1, 2, 4, 8, 16, 32};
constexpr int kQuickBatches[] = {1, 8};

// Shared memory as a client's segment is: a memfd sealed against resizing, mapped here with or without write access.
class Segment {
 public:
  Segment(std::size_t bytes, bool writable) : bytes_((bytes + 4095) / 4096 * 4096) {
    const Fd fd(::memfd_create("leat-probe-frames", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes_)) != 0 ||
        ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
      throw ProbeFailed(std::string("memfd: ") + std::strerror(errno));
    }
    client_ = map(fd.get(), PROT_READ | PROT_WRITE);
    auto* pixels = static_cast<std::uint8_t*>(client_);
    for (std::size_t i = 0; i < bytes_; ++i) pixels[i] = pixel(i);
    worker_ = writable ? client_ : map(fd.get(), PROT_READ);
  }
  Segment(const Segment&) = delete;
  ~Segment() {
    if (worker_ != client_) ::munmap(worker_, bytes_);
    ::munmap(client_, bytes_);
  }
  static std::uint8_t pixel(std::size_t i) { return static_cast<std::uint8_t>(16 + (i * 7 + i / 1920 * 3) % 200); }
  [[nodiscard]] void* worker() const noexcept { return worker_; }
  [[nodiscard]] const std::uint8_t* pixels() const noexcept { return static_cast<const std::uint8_t*>(worker_); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void* map(int fd, int protection) const {
    void* mapped = ::mmap(nullptr, bytes_, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (mapped == MAP_FAILED) throw ProbeFailed(std::string("mmap: ") + std::strerror(errno));
    return mapped;
  }
  std::size_t bytes_;
  void *client_ = nullptr, *worker_ = nullptr;
};

// A segment registered with CUDA for as long as this lives.
class Registered {
 public:
  Registered(const Segment& segment, unsigned flags) : address_(segment.worker()) {
    LEAT_CUDA(cudaHostRegister(address_, segment.bytes(), flags));
    void* device = nullptr;
    if (const cudaError_t got = cudaHostGetDevicePointer(&device, address_, 0); got != cudaSuccess) {
      (void)cudaHostUnregister(address_);
      LEAT_CUDA(got);
    }
    device_ = static_cast<const std::uint8_t*>(device);
  }
  Registered(const Registered&) = delete;
  ~Registered() { (void)cudaHostUnregister(address_); }
  [[nodiscard]] const std::uint8_t* device() const noexcept { return device_; }

 private:
  void* address_;
  const std::uint8_t* device_ = nullptr;
};

constexpr unsigned kWritable = cudaHostRegisterMapped | cudaHostRegisterPortable;
constexpr unsigned kReadOnly = kWritable | cudaHostRegisterReadOnly;

// The sum that the device finds must be the sum of what the client wrote.
void check_read(const Segment& segment, const std::uint8_t* device) {
  const Buffer total(sizeof(unsigned long long));
  total.clear();
  const Stream stream;
  LEAT_CUDA(cudaDeviceSynchronize());
  LEAT_CUDA(kernels::sum(device, segment.bytes(), total.as<unsigned long long>(), stream));
  stream.wait();
  unsigned long long expected = 0;
  for (std::size_t i = 0; i < segment.bytes(); i += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, segment.pixels() + i, 4);
    expected += word;
  }
  if (total.read<unsigned long long>() != expected)
    throw ProbeFailed("the kernel read other bytes than the client wrote");
}

}  // namespace

void register_and_read(const std::string& way, std::size_t bytes) {
  const Segment segment(bytes, way == "writable");
  const Registered registered(segment, way == "read-only, marked" ? kReadOnly : kWritable);
  check_read(segment, registered.device());
}

namespace {

void ask_registration(Asker& asker) {
  struct Way {
    const char* mapping;
    bool writable;
    unsigned flags;
    const char* flag_text;
  };
  constexpr Way ways[] = {{"writable", true, kWritable, "mapped"},
                          {"read-only", false, kWritable, "mapped"},
                          {"read-only", false, kReadOnly, "mapped, read-only"}};
  for (const Way& way : ways) {
    const Conditions conditions{{"mapping", way.mapping}, {"flags", way.flag_text}};
    bool works = false;
    asker.yes_no({"frames.register", "Can a mapping of a sealed memfd be registered and read by a kernel?",
                  "cudaHostRegister, then a kernel adds up all words; compared with the host's sum", conditions},
                 [&] {
                   const Segment segment(4 * kFrameBytes, way.writable);
                   try {
                     const Registered registered(segment, way.flags);
                     check_read(segment, registered.device());
                   } catch (const ProbeFailed& refused) {
                     return YesNo{false, refused.what()};
                   }
                   works = true;
                   return YesNo{true};
                 });
    if (!works) continue;
    for (std::size_t mib : {std::size_t{16}, std::size_t{128}}) {
      Conditions sized = conditions;
      sized["size_mib"] = std::to_string(mib);
      asker.number({"frames.register_cost", "What does registering and unregistering cost per MiB?",
                    "host clock; pages present", sized},
                   "us/MiB", [&] {
                     const Segment segment(mib * kMiB, way.writable);
                     auto times = host_time_us(
                         asker.repeats(30), [&] { const Registered registered(segment, way.flags); }, 1);
                     for (double& t : times) t /= static_cast<double>(mib);
                     return Samples{std::move(times)};
                   });
    }
  }
}

// ---- reading in place against copying, and the fused kernel ----

// What a plain copy kernel moves per second within the device, both directions counted: the floor of byte-bound work.
double device_bytes_per_us() {
  constexpr std::size_t bytes = 128 * kMiB;
  const Buffer from(bytes), to(bytes);
  const Stream stream;
  const auto times =
      summarise(time_us(stream, 30, [&] { LEAT_CUDA(kernels::copy(to.as(), from.as(), bytes, stream)); }));
  return 2.0 * double{bytes} / times->median;
}

float reference(const std::uint8_t* frame, int channel, int out_x, int out_y) {
  const auto sample = [&](std::size_t offset, int width, int height, int step, float x, float y) {
    x = std::fmin(std::fmax(x, 0.0f), static_cast<float>(width - 1));
    y = std::fmin(std::fmax(y, 0.0f), static_cast<float>(height - 1));
    const int x0 = static_cast<int>(x), y0 = static_cast<int>(y);
    const int x1 = std::min(x0 + 1, width - 1), y1 = std::min(y0 + 1, height - 1);
    const auto at = [&](int px, int py) {
      return static_cast<float>(frame[offset + static_cast<std::size_t>((py * width + px) * step)]);
    };
    const float fx = x - static_cast<float>(x0), fy = y - static_cast<float>(y0);
    const float above = at(x0, y0) + fx * (at(x1, y0) - at(x0, y0)),
                below = at(x0, y1) + fx * (at(x1, y1) - at(x0, y1));
    return above + fy * (below - above);
  };
  const float x = (static_cast<float>(out_x) + 0.5f) * 3.0f - 0.5f;
  const float y = (static_cast<float>(out_y) + 0.5f) * 1.6875f - 0.5f;
  const float cx = (x + 0.5f) * 0.5f - 0.5f, cy = (y + 0.5f) * 0.5f - 0.5f;
  constexpr std::size_t chroma = std::size_t{1920} * 1080;
  const float l = (sample(0, 1920, 1080, 1, x, y) - 16.0f) / 219.0f;
  const float u = (sample(chroma, 960, 540, 2, cx, cy) - 128.0f) / 224.0f;
  const float v = (sample(chroma + 1, 960, 540, 2, cx, cy) - 128.0f) / 224.0f;
  const float rgb[3] = {l + 1.5748f * v, l - 0.1873f * u - 0.4681f * v, l + 1.8556f * u};
  return (std::fmin(std::fmax(rgb[channel], 0.0f), 1.0f) - 0.5f) * 2.0f;
}

void ask_fused_is_right(Asker& asker, const Segment& segment, const std::uint8_t* device) {
  asker.yes_no({"frames.fused_is_right", "Does the fused kernel give what the host computes?",
                "500 values over all channels of one frame, within 1e-3"},
               [&] {
                 const Buffer out(kTensorBytes);
                 const Stream stream;
                 LEAT_CUDA(kernels::nv12_to_tensor(device, kFrameBytes, 1, kShape, out.as<float>(), stream));
                 stream.wait();
                 double worst = 0;
                 for (int i = 0; i < 500; ++i) {
                   const int channel = i % 3, x = i * 97 % 640, y = i * 61 % 640;
                   const float got =
                       out.read<float>(sizeof(float) * static_cast<std::size_t>((channel * 640 + y) * 640 + x));
                   worst = std::max(worst, std::fabs(double{got} - double{reference(segment.pixels(), channel, x, y)}));
                 }
                 return YesNo{worst < 1e-3, "largest difference " + std::to_string(worst)};
               });
}

void ask_batch(Asker& asker, const std::uint8_t* host_frames, int batch, double bytes_per_us) {
  const auto count = static_cast<std::size_t>(batch);
  const int repeats = asker.repeats(batch > 8 ? 50 : 100);
  const Conditions conditions{{"batch", std::to_string(batch)}};
  const Buffer frames(count * kFrameBytes), out(count * kTensorBytes), total(sizeof(unsigned long long));
  const Stream stream;
  const auto timed = [&](const char* id, const char* question, const char* how, const std::function<void()>& work,
                         std::string note = {}) {
    asker.number({id, question, how, conditions}, "us", [&] { return Samples{time_us(stream, repeats, work), note}; });
  };
  const auto upload = [&] {
    LEAT_CUDA(cudaMemcpyAsync(frames.as(), host_frames, frames.bytes(), cudaMemcpyDefault, stream));
  };
  const auto fuse = [&](const std::uint8_t* from) {
    LEAT_CUDA(kernels::nv12_to_tensor(from, kFrameBytes, batch, kShape, out.as<float>(), stream));
  };
  timed("frames.read_in_place", "How long does a kernel take to read the frames from host memory?",
        "every byte is added up",
        [&] { LEAT_CUDA(kernels::sum(host_frames, frames.bytes(), total.as<unsigned long long>(), stream)); });
  timed("frames.upload", "How long does one asynchronous copy of the frames take?",
        "cudaMemcpyAsync from the registered mapping", upload);
  timed("frames.fused_in_place", "NV12 to tensor, straight from host memory: how long?",
        "fused resize and normalise, 1920x1080 to 640x640", [&] { fuse(host_frames); });
  timed("frames.upload_then_fused", "NV12 to tensor with one copy before: how long?",
        "copy and fused kernel in one stream", [&] {
          upload();
          fuse(frames.as<std::uint8_t>());
        });
  upload();
  stream.wait();
  const double floor_us = static_cast<double>(count * (kFrameBytes + kTensorBytes)) / bytes_per_us;
  timed(
      "frames.fused_on_device", "NV12 to tensor from device memory: how long?",
      "the floor counts each frame read and each tensor written once", [&] { fuse(frames.as<std::uint8_t>()); },
      "byte floor " + std::to_string(floor_us) + " us");
}

}  // namespace

void ask_frames(Asker& asker) {
  open_device();
  ask_registration(asker);
  const std::span<const int> batches =
      asker.quick() ? std::span<const int>(kQuickBatches) : std::span<const int>(kBatches);
  const Segment segment(static_cast<std::size_t>(batches.back()) * kFrameBytes, true);
  const Registered registered(segment, kWritable);
  ask_fused_is_right(asker, segment, registered.device());
  const double bytes_per_us = device_bytes_per_us();
  for (int batch : batches) ask_batch(asker, registered.device(), batch, bytes_per_us);
}

}  // namespace leat::probe
