// What a driver can say and a test of plain work never hears, over the stand-in: every way of being lost, a driver that
// is older than the kernels, and pages that it cannot pin.
#include <sys/mman.h>
#include <time.h>

#include <cstring>
#include <vector>

#include "cuda/device/own_process.h"
#include "cuda/driver/api.h"
#include "leat/executor.h"
#include "leat/frame_format.h"

namespace leat {
namespace {

struct SaidAs {
  const leat_device_api& api;
  leat_device* device;
  char text[512] = "";
  int wait() { return api.wait(device, text, sizeof text); }
  int fill(void* at) { return api.copy(device, at, static_cast<char*>(at) + 64, 64, text, sizeof text); }
};

// A wait speaks of work that has run: whatever it says, known here or not, is the end. Other calls may be refused for
// their arguments, so of those the known ones are.
TEST(Fault, EveryStatusOfAWaitIsTheEndAndSoIsEachKnownOneElsewhere) {
  EXPECT_EQ(in_own_process([](fake::Host& host, exec::Device& device) {
              auto memory = device.allocate(4096);
              NEED(memory.ok());
              SaidAs said{*device.api(), device.handle()};
              const auto fault = [&](int status) {
                host.state().fault_status = static_cast<std::uint32_t>(status);
                host.state().fault_pid = ::getpid();
              };
              for (const int status :
                   {cuda::kEccUncorrectable, cuda::kNvlinkUncorrectable, cuda::kContained, cuda::kIllegalAddress,
                    cuda::kLaunchTimeout, cuda::kAssert, cuda::kHardwareStackError, cuda::kIllegalInstruction,
                    cuda::kMisalignedAddress, cuda::kInvalidAddressSpace, cuda::kInvalidPc, cuda::kLaunchFailed,
                    cuda::kTensorMemoryLeak, cuda::kMpsClientTerminated, cuda::kUnknown}) {
                fault(status);
                NEED(said.fill(memory->data()) == LEAT_DEVICE_LOST && said.wait() == LEAT_DEVICE_LOST);
              }
              constexpr int kOfALaterDriver = 4242;
              fault(kOfALaterDriver);
              NEED(said.fill(memory->data()) == LEAT_DEVICE_FAILED && said.wait() == LEAT_DEVICE_LOST);
              host.state().fault_pid = 0;
              // The same of a fault that comes while it waits.
              static fake::State* const kState = &host.state();
              const auto faults = [](void*) {
                constexpr timespec kWhile{0, 20'000'000};
                (void)::nanosleep(&kWhile, nullptr);
                kState->fault_pid = ::getpid();
              };
              NEED(said.api.enqueue(said.device, faults, nullptr, nullptr, 0) == LEAT_DEVICE_OK);
              NEED(said.wait() == LEAT_DEVICE_LOST);
              host.state().fault_pid = 0;
              NEED(said.wait() == LEAT_DEVICE_OK);
              return true;
            }),
            0);
}

TEST(Driver, OlderThanTheKernelsIsOneLineThatNamesTheOneNeeded) {
  EXPECT_EQ(in_own_process([](fake::Host& host, exec::Device&) {
              host.state().driver_version = 11040;
              const auto refused = exec::Device::open(LEAT_DEVICE_PLUGIN, "");
              NEED(!refused.ok());
              const std::string& why = refused.error();
              NEED(why.find("serves CUDA 11.4") != std::string::npos && why.find('\n') == std::string::npos);
              NEED(why.find("install driver 5") != std::string::npos && why.find(" or later") != std::string::npos);
              return true;
            }),
            0);
}

// A client's slots: pages that this process may only read.
struct Slots {
  static constexpr std::size_t kBytes = 64 * 4096;
  void* writable;
  std::uint8_t* frames;
  Slots() {
    const int fd = ::memfd_create("slots", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, kBytes) != 0) std::abort();
    writable = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    frames = static_cast<std::uint8_t*>(::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0));
    if (writable == MAP_FAILED || frames == MAP_FAILED) std::abort();
    ::close(fd);
    for (std::size_t i = 0; i < kBytes; ++i) static_cast<std::uint8_t*>(writable)[i] = static_cast<std::uint8_t>(i / 7);
  }
  [[nodiscard]] leat_picture_job picture(std::size_t slot, void* out) const {
    constexpr std::uint32_t kSide = 64;
    leat_picture_job job{};
    job.planes[0] = job.slot = frames + slot * kSide * kSide;
    job.slot_bytes = kSide * kSide, job.strides[0] = kSide, job.format = LEAT_FORMAT_gray8;
    job.width = job.height = kSide, job.scale_x = job.scale_y = 4, job.window_width = job.window_height = 16;
    job.factors[0][0] = 1, job.high[0] = 255, job.out = out;
    return job;
  }
};

// What is read of it by pictures and copies, in two batches of other sizes.
bool reads(exec::Device& device, const Slots& slots, std::vector<float>& pictures) {
  const leat_picture_target target{16, 16, 1, LEAT_F32, LEAT_NCHW, LEAT_RESIZE_linear};
  constexpr std::size_t kPixels = 256;
  auto out = device.allocate(32 * kPixels * sizeof(float)), row = device.allocate(Slots::kBytes);
  auto here = device.pinned(32 * kPixels * sizeof(float)), back = device.pinned(Slots::kBytes);
  NEED(out.ok() && row.ok() && here.ok() && back.ok());
  for (const std::size_t count : {2U, 9U, 3U}) {
    std::vector<leat_picture_job> jobs;
    for (std::size_t i = 0; i < count; ++i)
      jobs.push_back(slots.picture(i % 8, out->data() + i * kPixels * sizeof(float)));
    NEED(device.pictures(target, jobs) && device.copy(row->data(), slots.frames, Slots::kBytes));
    NEED(device.copy(here->data(), out->data(), count * kPixels * sizeof(float)));
    NEED(device.copy(back->data(), row->data(), Slots::kBytes) && device.wait());
    NEED(std::memcmp(back->data(), slots.frames, Slots::kBytes) == 0);
    const auto* const values = reinterpret_cast<const float*>(here->data());
    pictures.insert(pictures.end(), values, values + count * kPixels);
  }
  return true;
}

// A copy from pages that are not pinned makes the thread wait for it; so none is made.
TEST(ReadOnlyPages, ThatCannotBePinnedGoByWayOfPagesThatAre) {
  EXPECT_EQ(in_own_process(
                [](fake::Host& host, exec::Device& device) {
                  const Slots slots;
                  std::vector<float> staged, pageable;
                  NEED(device.register_host(slots.frames, Slots::kBytes, true).ok());
                  const std::uint64_t before = host.state().pageable_bytes;
                  NEED(reads(device, slots, staged) && host.state().pageable_bytes == before);
                  device.unregister_host(slots.frames);
                  // Pictures of what nobody has registered do so too; a plain copy of it is as the driver makes it.
                  NEED(reads(device, slots, pageable));
                  NEED(host.state().pageable_bytes == before + 3 * Slots::kBytes && pageable == staged);
                  return true;
                },
                [](fake::Host& host) { host.state().pins_no_read_only = 1; }),
            0);
}

}  // namespace
}  // namespace leat
