// leat-gpu-check fault: writes where nothing is, as a client of whatever MPS daemon its environment names: everybody
// who shares the device with it loses it. For tests/gpu/run's own leatd.
#include <cstdlib>

#include "leat/executor.h"
#include "leat/frame_format.h"
#include "tests/gpu/check/check.h"

namespace leat::check {
namespace {

constexpr cli::Option kOptions[] = {kGpuOption};
constexpr cli::Command kCommand = {.name = "leat-gpu-check fault",
                                   .summary = "makes the device fault for all processes that share it",
                                   .options = kOptions};

int run(const cli::Arguments& arguments) {
  Answers answers("fault");
  auto device = open_device(arguments);
  if (!device.ok()) return cli::fail("leat-gpu-check", device.error());
  if ((*device)->info().has_provider == 0)
    return cli::fail("leat-gpu-check", "a stand-in has no kernel that can fault");
  constexpr std::uint32_t kSide = 64;
  auto frame = (*device)->pinned(std::uint64_t{kSide} * kSide);
  if (!frame.ok()) return cli::fail("leat-gpu-check", frame.error());
  leat_picture_job job{};
  job.planes[0] = job.slot = reinterpret_cast<std::uint8_t*>(frame->data());
  job.slot_bytes = std::uint64_t{kSide} * kSide, job.strides[0] = kSide, job.format = LEAT_FORMAT_gray8;
  job.width = job.height = kSide, job.scale_x = job.scale_y = 1, job.window_width = job.window_height = kSide;
  job.out = reinterpret_cast<void*>(std::uintptr_t{64});  // no memory of the device's
  const leat_picture_target target{kSide, kSide, 1, LEAT_F32, LEAT_NCHW, LEAT_RESIZE_linear};
  const bool survived = (*device)->pictures(target, {&job, 1}) && (*device)->wait();
  answers.value("status", (*device)->error());
  answers.verdict("it_faulted", !survived);
  answers.verdict("the_device_is_lost", (*device)->lost());
  std::exit(answers.print());  // nothing of the device can be given back
}

}  // namespace

extern const cli::Subcommand kCheckFault;
const cli::Subcommand kCheckFault = {&kCommand, run};

}  // namespace leat::check
