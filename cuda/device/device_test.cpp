// What every device must do, over the stand-in driver here: memory that processes share, host memory, order, waits,
// pictures equal to preprocess.cpp, a fault. The stand-in shows that nothing is waited for too little and that no
// descriptor or mapping is lost; it cannot show a driver's own rules, nor any speed.
#include "engine/exec/device.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "cuda/device/picture_body.h"
#include "cuda/fake/state.h"
#include "engine/exec/picture/preprocess.h"
#include "leat/executor.h"
#include "leat/frame_format.h"
#include "shm/src/segments/segment_layout.h"

namespace leat {
namespace {

constexpr std::uint32_t kDelayUs = 2000;

void* fake_library() {
  static void* const kLibrary = ::dlopen(LEAT_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL);  // found by its name from now on
  return kLibrary;
}
const leat_device_api* plugin() {
  static const leat_device_api* const kApi = [] {
    EXPECT_NE(fake_library(), nullptr) << ::dlerror();
    void* const library = ::dlopen(LEAT_DEVICE_PLUGIN, RTLD_NOW);
    EXPECT_NE(library, nullptr) << ::dlerror();
    return reinterpret_cast<const leat_device_api* (*)()>(::dlsym(library, "leat_device_entry"))();
  }();
  return kApi;
}
fake::Host& host() {
  static const std::unique_ptr<fake::Host> kHost = [] {
    const std::string path = std::filesystem::temp_directory_path() / ("leat-fake-" + std::to_string(::getpid()));
    auto h = fake::Host::create(path, {"A100-40"});
    ::setenv("LEAT_FAKE_GPUS", path.c_str(), 1);
    h->state().longest_delay_us = kDelayUs;
    return h;
  }();
  return *kHost;
}

struct Device {
  char error[256] = "";
  leat_device* d = nullptr;
  explicit Device(leat_picture_source source = LEAT_PICTURE_MEASURED, const char* uuid = nullptr) {
    (void)host();
    const leat_device_options options{uuid, source};
    EXPECT_EQ(plugin()->open(&options, &d, error, sizeof error), LEAT_DEVICE_OK) << error;
  }
  ~Device() {
    if (d != nullptr) plugin()->close(d);
  }
  leat_device_memory memory(std::uint64_t bytes, bool shared = false) {
    leat_device_memory m{};
    EXPECT_EQ(plugin()->allocate(d, bytes, shared, &m, error, sizeof error), LEAT_DEVICE_OK) << error;
    return m;
  }
  void copy(void* to, const void* from, std::uint64_t bytes) {
    EXPECT_EQ(plugin()->copy(d, to, from, bytes, error, sizeof error), LEAT_DEVICE_OK) << error;
  }
  int wait() { return plugin()->wait(d, error, sizeof error); }
};

std::vector<std::uint8_t> noise(std::size_t bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> out(bytes);
  for (auto& b : out) b = static_cast<std::uint8_t>(random());
  return out;
}

TEST(Device, SaysWhatItIs) {
  EXPECT_EQ(plugin()->abi, LEAT_DEVICE_ABI);
  Device device;
  ASSERT_NE(device.d, nullptr);
  leat_device_info info{};
  plugin()->info(device.d, &info);
  EXPECT_EQ(info.uuid, fake::uuid_text(0));
  EXPECT_EQ(info.multiprocessors, 108U);
  EXPECT_EQ(info.has_provider, 0U);
  EXPECT_TRUE(info.picture_source == LEAT_PICTURE_IN_PLACE || info.picture_source == LEAT_PICTURE_UPLOADED);
  EXPECT_NE(info.stream, nullptr);
}

TEST(Device, OneThatIsNotThereIsOneLineWithThoseThatAre) {
  (void)host();
  const leat_device_options options{"GPU-00000000-0000-0000-0000-000000000000", 0};
  leat_device* d = nullptr;
  char error[256] = "";
  EXPECT_EQ(plugin()->open(&options, &d, error, sizeof error), LEAT_DEVICE_FAILED);
  EXPECT_NE(std::string(error).find(fake::uuid_text(0)), std::string::npos) << error;
}

TEST(Device, WorkRunsInOrderAndTheWaitIsTheEnd) {
  Device device;
  constexpr std::uint64_t kBytes = 1 << 20;
  const auto data = noise(kBytes, 1);
  auto a = device.memory(kBytes), b = device.memory(kBytes);
  std::vector<std::uint8_t> back(kBytes);
  for (int round = 0; round < 5; ++round) {
    std::fill(back.begin(), back.end(), 0);
    device.copy(a.address, data.data(), kBytes);
    device.copy(b.address, a.address, kBytes);
    device.copy(back.data(), b.address, kBytes);
    ASSERT_EQ(device.wait(), LEAT_DEVICE_OK);
    ASSERT_EQ(back, data);
  }
  plugin()->release(device.d, &a);
  plugin()->release(device.d, &b);
}

// The stand-in burns a core for whoever does not ask it to sleep, as a driver does.
TEST(Device, TheWaitSleeps) {
  Device device;
  static constexpr timespec kLong{0, 50'000'000};
  const auto sleeps = [](void*) { (void)::nanosleep(&kLong, nullptr); };
  const auto cpu_ns = [] {
    timespec t{};
    (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1'000'000'000L + t.tv_nsec;
  };
  const long before = cpu_ns();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(plugin()->enqueue(device.d, sleeps, nullptr, nullptr, 0), LEAT_DEVICE_OK);
  ASSERT_EQ(device.wait(), LEAT_DEVICE_OK);
  EXPECT_LT(cpu_ns() - before, kLong.tv_nsec) << "of four times that";
}

TEST(Device, EnqueuedWorkTakesItsTurn) {
  Device device;
  auto memory = device.memory(4096);
  const auto data = noise(4096, 3);
  struct Seen {
    void* at;
    std::vector<std::uint8_t> bytes;
  } seen{memory.address, std::vector<std::uint8_t>(4096)};
  device.copy(memory.address, data.data(), 4096);
  ASSERT_EQ(plugin()->enqueue(
                device.d,
                [](void* s) {
                  auto* const to = static_cast<Seen*>(s);
                  std::memcpy(to->bytes.data(), to->at, to->bytes.size());
                },
                &seen, device.error, sizeof device.error),
            LEAT_DEVICE_OK);
  ASSERT_EQ(device.wait(), LEAT_DEVICE_OK);
  EXPECT_EQ(seen.bytes, data);
  plugin()->release(device.d, &memory);
}

// A context is current for one thread. Another's wait makes it its own first; what else that calls is refused.
TEST(Device, AMarkIsWaitedForByAnotherThread) {
  Device device;
  auto memory = device.memory(4096);
  const auto data = noise(4096, 5);
  std::vector<std::uint8_t> back(4096);
  ASSERT_EQ(plugin()->use_set(device.d, 0, nullptr, 0), LEAT_DEVICE_OK);
  device.copy(memory.address, data.data(), 4096);
  device.copy(back.data(), memory.address, 4096);
  ASSERT_EQ(plugin()->mark(device.d, 0, nullptr, 0), LEAT_DEVICE_OK);
  std::thread([&] {
    char line[256] = "";
    EXPECT_EQ(plugin()->copy(device.d, memory.address, back.data(), 4096, line, sizeof line), LEAT_DEVICE_FAILED);
    EXPECT_NE(std::string(line).find("CUDA_ERROR_INVALID_CONTEXT"), std::string::npos) << line;
    EXPECT_EQ(plugin()->wait_for(device.d, 0, line, sizeof line), LEAT_DEVICE_OK) << line;
    EXPECT_EQ(back, data);
  }).join();
  ASSERT_EQ(device.wait(), LEAT_DEVICE_OK);
  plugin()->release(device.d, &memory);
}

// A descriptor sent over a socket pair, as leatd hands it on; the maker may be dead when it is imported.
void send_fd(int socket, int fd) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = room, message.msg_controllen = sizeof room;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (::sendmsg(socket, &message, 0) != 1) std::abort();
}
int receive_fd(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = room, message.msg_controllen = sizeof room;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

TEST(Device, MemoryOutlivesItsMaker) {
  (void)host();
  constexpr std::uint64_t kBytes = 3 << 20;
  const auto data = noise(kBytes, 9);
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  const pid_t maker = ::fork();  // before this process has a device of its own: the child makes one
  if (maker == 0) {
    Device device;
    auto memory = device.memory(kBytes, true);
    device.copy(memory.address, data.data(), kBytes);
    int fd = -1;
    if (device.wait() != 0 || plugin()->export_memory(device.d, &memory, &fd, device.error, sizeof device.error) != 0)
      ::_exit(1);
    send_fd(pair[1], fd);
    ::kill(::getpid(), SIGKILL);
  }
  const int fd = receive_fd(pair[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(maker, &status, 0), maker);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  Device device;
  leat_device_memory memory{};
  ASSERT_EQ(plugin()->import_memory(device.d, fd, kBytes, &memory, device.error, sizeof device.error), LEAT_DEVICE_OK)
      << device.error;
  ::close(fd);
  std::vector<std::uint8_t> back(kBytes);
  device.copy(back.data(), memory.address, kBytes);
  ASSERT_EQ(device.wait(), LEAT_DEVICE_OK);
  EXPECT_EQ(back, data);
  plugin()->release(device.d, &memory);
  ::close(pair[0]);
  ::close(pair[1]);
}

TEST(Device, DescriptorsExhaustedIsOneLineAndPasses) {
  Device device;
  auto memory = device.memory(4096, true);
  rlimit was{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &was), 0);
  const rlimit none{3, was.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  int fd = -1;
  leat_device_memory more{};
  EXPECT_EQ(plugin()->export_memory(device.d, &memory, &fd, device.error, sizeof device.error), LEAT_DEVICE_FAILED);
  EXPECT_STRNE(device.error, "");
  EXPECT_EQ(plugin()->allocate(device.d, 4096, 1, &more, device.error, sizeof device.error), LEAT_DEVICE_FAILED);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &was), 0);
  EXPECT_EQ(plugin()->export_memory(device.d, &memory, &fd, device.error, sizeof device.error), LEAT_DEVICE_OK);
  ::close(fd);
  plugin()->release(device.d, &memory);
}

TEST(Device, WhatIsNoDevicesMemoryIsRefused) {
  Device device;
  const int fd = ::memfd_create("something else", MFD_CLOEXEC);
  leat_device_memory memory{};
  EXPECT_EQ(plugin()->import_memory(device.d, fd, 4096, &memory, device.error, sizeof device.error),
            LEAT_DEVICE_FAILED);
  EXPECT_STRNE(device.error, "");
  ::close(fd);
}

// ---- pictures ----

struct Frame {
  std::vector<std::uint8_t> pixels;
  exec::FrameView view;
};
Frame frame_of(std::uint32_t format, std::uint32_t width, std::uint32_t height, std::uint32_t padding,
               std::uint32_t seed) {
  Frame out;
  std::uint64_t at[LEAT_MAX_PLANES] = {}, end = 0;
  for (std::uint32_t p = 0; p < shm::plane_count(format); ++p) {
    const auto shape = shm::plane_shape(format, p, width, height);
    out.view.strides[p] = shape.row_bytes + padding;
    at[p] = end;
    end += std::uint64_t{out.view.strides[p]} * shape.rows;
  }
  out.pixels = noise(end, seed);
  for (std::uint32_t p = 0; p < shm::plane_count(format); ++p) out.view.planes[p] = out.pixels.data() + at[p];
  out.view.format = format, out.view.width = width, out.view.height = height, out.view.bytes = end;
  return out;
}

float from_half(std::uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  const float magnitude = exponent == 0    ? std::ldexp(static_cast<float>(mantissa), -24)
                          : exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
                                           : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Pictures, HalfIsTheNearestThereIs) {
  for (std::uint32_t h = 0; h < 0x7c00; ++h) {  // every value, and the middle between it and the next
    const auto half = static_cast<std::uint16_t>(h);
    ASSERT_EQ(cuda::half_of(from_half(half)), half);
    if (h + 1 == 0x7c00) break;
    const float middle = (from_half(half) + from_half(static_cast<std::uint16_t>(h + 1))) / 2;
    ASSERT_EQ(cuda::half_of(middle), h % 2 == 0 ? half : h + 1);
    ASSERT_EQ(cuda::half_of(std::nextafter(middle, 0.0f)), half);
    ASSERT_EQ(cuda::half_of(-std::nextafter(middle, 1e9f)), 0x8000 | (h + 1));
  }
  EXPECT_EQ(cuda::half_of(65520.0f), 0x7c00);
  EXPECT_EQ(cuda::half_of(65519.0f), 0x7bff);
}

// All formats, fits, channels and element types, odd sizes, strides, and boxes: one launch a batch.
TEST(Pictures, EqualToPreprocessing) {
  constexpr std::uint32_t kWidth = 61, kHeight = 47;
  for (const auto source : {LEAT_PICTURE_IN_PLACE, LEAT_PICTURE_UPLOADED}) {
    Device device(source);
    host().state().longest_delay_us = 50;
    std::uint32_t seed = 1;
    for (const char* line :
         {"letterbox mean=0.485,0.456,0.406 std=0.229,0.224,0.225", "stretch bgr bt709 full pad=0.2",
          "letterbox gray crop=0.2 pad=1", "letterbox resize=antialias norm=half", "stretch resize=cubic",
          "stretch gray resize=lanczos full", "cover=0.8 bgr resize=area", "stretch resize=nearest"}) {
      const auto spec = exec::parse_preprocess(line);
      ASSERT_TRUE(spec.ok()) << spec.error();
      const std::uint32_t channels = spec->channels == exec::Channels::gray ? 1 : 3;
      // Of 1: weights are floats there and whole numbers here.
      const double tolerance = spec->resize == LEAT_RESIZE_linear ? 2e-5 : 1e-3;
      auto opened = exec::Preprocessor::open(*spec, channels, kWidth, kHeight);
      ASSERT_TRUE(opened.ok());
      constexpr std::size_t kPixels = std::size_t{kWidth} * kHeight;
      for (const std::uint32_t format : {1, 2, 3, 4, 5}) {
        std::vector<Frame> frames;
        for (const auto& [w, h] : {std::pair{96U, 64U}, std::pair{32U, 100U}, std::pair{2U, 2U}})
          frames.push_back(frame_of(format, w, h, 7, ++seed));
        const exec::Box boxes[] = {{3.5f, 4, 40, 31.25f}, {-5, -5, 1, 1000}, {NAN, 0, 8, 8}};
        for (const auto& [dtype, bytes] : {std::pair{LEAT_F32, 4U}, std::pair{LEAT_F16, 2U}, std::pair{LEAT_U8, 1U}}) {
          for (const auto layout : {LEAT_NCHW, LEAT_NHWC}) {
            // How values are stored does not depend on how they are resized.
            if (spec->resize != LEAT_RESIZE_linear && (dtype != LEAT_F32 || layout != LEAT_NCHW)) continue;
            std::vector<leat_picture_job> jobs;
            std::vector<std::vector<float>> wanted;
            const std::uint64_t row = kPixels * channels * bytes;
            auto out = device.memory(row * 12);
            for (Frame& f : frames) {
              for (const exec::Box* box : {static_cast<const exec::Box*>(nullptr), boxes, boxes + 1, boxes + 2}) {
                leat_picture_job job{};
                ASSERT_TRUE(opened->job(f.view, box, &job));
                job.out = static_cast<std::uint8_t*>(out.address) + row * jobs.size();
                jobs.push_back(job);
                wanted.emplace_back(kPixels * channels);
                ASSERT_TRUE(opened->run(f.view, box, wanted.back().data()));
              }
            }
            const leat_picture_target target{kWidth, kHeight, channels, dtype, layout, spec->resize};
            std::vector<std::uint8_t> got(row * jobs.size());
            ASSERT_EQ(plugin()->pictures(device.d, &target, jobs.data(), static_cast<std::uint32_t>(jobs.size()),
                                         device.error, sizeof device.error),
                      LEAT_DEVICE_OK)
                << device.error;
            device.copy(got.data(), out.address, got.size());
            ASSERT_EQ(device.wait(), LEAT_DEVICE_OK);
            plugin()->release(device.d, &out);
            for (std::size_t j = 0; j < jobs.size(); ++j) {
              for (std::size_t i = 0; i < kPixels * channels; ++i) {
                const std::size_t c = i / kPixels, p = i % kPixels, at = layout == LEAT_NCHW ? i : p * channels + c;
                const std::uint8_t* const from = got.data() + row * j + at * bytes;
                const float want = wanted[j][i];
                if (dtype == LEAT_F32) {
                  float value;
                  std::memcpy(&value, from, 4);
                  ASSERT_NEAR(value, want, tolerance) << line << " format " << format << " job " << j << " at " << i;
                } else if (dtype == LEAT_F16) {
                  std::uint16_t value;
                  std::memcpy(&value, from, 2);
                  ASSERT_NEAR(from_half(value), want, 2e-3);
                } else {
                  ASSERT_NEAR(*from, std::clamp(want * 255, 0.0f, 255.0f), 0.51);
                }
              }
            }
          }
        }
      }
    }
    host().state().longest_delay_us = kDelayUs;
  }
}

// A slot on pages of its own, registered or not, gives the same picture; several boxes of it are one upload.
TEST(Pictures, RegisteredSlotsAreReadInPlace) {
  constexpr std::uint64_t kBytes = 64 << 10;
  void* const pages = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  const auto data = noise(kBytes, 17);
  std::memcpy(pages, data.data(), kBytes);
  Device device(LEAT_PICTURE_IN_PLACE);
  ASSERT_EQ(plugin()->host_register(device.d, pages, kBytes, 0, device.error, sizeof device.error), LEAT_DEVICE_OK);
  EXPECT_EQ(plugin()->host_register(device.d, pages, kBytes, 0, device.error, sizeof device.error), LEAT_DEVICE_FAILED);
  auto out = device.memory(std::uint64_t{4} * 128 * 128);
  leat_picture_job job{};
  job.planes[0] = job.slot = static_cast<std::uint8_t*>(pages);
  job.slot_bytes = kBytes, job.strides[0] = 256, job.format = LEAT_FORMAT_gray8, job.width = job.height = 256;
  job.scale_x = job.scale_y = 2, job.window_width = job.window_height = 128;
  job.factors[0][0] = 1, job.high[0] = 255, job.out = out.address;
  const leat_picture_target target{128, 128, 1, LEAT_F32, LEAT_NCHW, LEAT_RESIZE_linear};
  ASSERT_EQ(plugin()->pictures(device.d, &target, &job, 1, device.error, sizeof device.error), LEAT_DEVICE_OK);
  ASSERT_EQ(device.wait(), LEAT_DEVICE_OK);
  std::vector<float> got(128 * 128);
  device.copy(got.data(), out.address, got.size() * 4);
  ASSERT_EQ(device.wait(), LEAT_DEVICE_OK);
  const float mean = static_cast<float>(data[0] + data[1] + data[256] + data[257]) / 4;
  EXPECT_NEAR(got[0], mean, 1e-3);
  plugin()->host_unregister(device.d, pages);
  ::munmap(pages, kBytes);
  plugin()->release(device.d, &out);
}

TEST(Pictures, TooManyBetweenTwoWaitsAreRefused) {
  Device device;
  Frame f = frame_of(LEAT_FORMAT_gray8, 4, 4, 0, 1);
  auto opened = exec::Preprocessor::open(*exec::parse_preprocess("stretch gray"), 1, 4, 4);
  auto out = device.memory(64);
  leat_picture_job job{};
  ASSERT_TRUE(opened->job(f.view, nullptr, &job));
  job.out = out.address;
  const std::vector<leat_picture_job> jobs(LEAT_DEVICE_MAX_JOBS, job);
  const leat_picture_target target{4, 4, 1, LEAT_F32, LEAT_NCHW, LEAT_RESIZE_linear};
  ASSERT_EQ(plugin()->pictures(device.d, &target, jobs.data(), LEAT_DEVICE_MAX_JOBS, nullptr, 0), LEAT_DEVICE_OK);
  EXPECT_EQ(plugin()->pictures(device.d, &target, jobs.data(), 1, device.error, sizeof device.error),
            LEAT_DEVICE_FAILED);
  ASSERT_EQ(device.wait(), LEAT_DEVICE_OK);
  EXPECT_EQ(plugin()->pictures(device.d, &target, jobs.data(), 1, device.error, sizeof device.error), LEAT_DEVICE_OK);
  ASSERT_EQ(device.wait(), LEAT_DEVICE_OK);
  plugin()->release(device.d, &out);
}

// Last: after it this process has no device.
TEST(DeviceFault, EveryLaterCallSaysLost) {
  const auto data = noise(4096, 1);
  Device device;
  auto memory = device.memory(4096);
  device.copy(memory.address, data.data(), 4096);
  host().state().fault_pid = ::getpid();
  EXPECT_EQ(device.wait(), LEAT_DEVICE_LOST);
  EXPECT_NE(std::string(device.error).find("lost"), std::string::npos) << device.error;
  EXPECT_EQ(plugin()->copy(device.d, memory.address, data.data(), 1, device.error, sizeof device.error),
            LEAT_DEVICE_LOST);
  host().state().fault_pid = 0;
}

}  // namespace
}  // namespace leat
