#include "bench/gpu/questions/groups.h"

#include <algorithm>

#include "bench/gpu/device/gpu.h"

namespace leat::probe {
namespace {

using std::chrono::seconds;

constexpr Group kGroups[] = {
    {"devices", "GPUs, MIG, memory, buses, what the driver offers", ask_devices, seconds(40), seconds(20)},
    {"clocks", "timers, launches, waking up", ask_clocks, seconds(40), seconds(15)},
    {"handover", "feature maps between two processes", ask_handover, seconds(180), seconds(45)},
    {"mps", "MPS: shares, limits, faults", ask_mps, seconds(150), seconds(45)},
    {"green", "green contexts", ask_green, seconds(40), seconds(15)},
    {"frames", "client frames in shared host memory", ask_frames, seconds(60), seconds(20)},
    {"cudnn", "cuDNN: one convolution, plain and as a graph", ask_cudnn, seconds(60), seconds(20)},
};

}  // namespace

std::span<const Group> groups() { return kGroups; }

const Group* group_named(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kGroups), std::end(kGroups), [&](const Group& g) { return g.name == name; });
  return found == std::end(kGroups) ? nullptr : found;
}

int run_group(Channel& channel, std::span<const std::string> arguments) {
  const Group* group = arguments.size() == 2 ? group_named(arguments[0]) : nullptr;
  if (group == nullptr) return 2;
  Asker asker(channel, arguments[1] == "quick");
  LEAT_DRIVER(cuInit, 0);
  CUdevice device = 0;
  LEAT_DRIVER(cuDeviceGet, &device, 0);
  asker.set_device(uuid_of(device));
  group->run(asker);
  return 0;
}

}  // namespace leat::probe
