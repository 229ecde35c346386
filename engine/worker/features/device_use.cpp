#include "engine/worker/features/device_use.h"

#include <algorithm>

namespace leat::worker {

Status DeviceUse::open(const DeviceSetup& wanted, DeviceFacts& facts) {
  if (wanted.plugin.empty()) return Done{};
  auto device = exec::Device::open(wanted.plugin, wanted.uuid, &never_had_);
  if (!device.ok()) return Error{device.error()};
  device_ = std::move(*device);
  const leat_device_info& info = device_->info();
  facts.name = info.name;
  facts.multiprocessors = info.multiprocessors;
  facts.memory_bytes = info.memory_bytes;
  facts.codecs = info.codecs;
  if (info.multiprocessors < wanted.multiprocessors_min || info.multiprocessors > wanted.multiprocessors_max)
    return Error{"sees " + std::to_string(info.multiprocessors) + " multiprocessors of " + std::string(info.name) +
                 ", its share has " + std::to_string(wanted.multiprocessors_min) + " to " +
                 std::to_string(wanted.multiprocessors_max) +
                 "; is it a client of leatd's own MPS daemon? see leatd's log"};
  return Done{};
}

leat_device_usage DeviceUse::usage() const {
  leat_device_usage out{};
  if (device_) device_->note(device_->api()->usage(device_->handle(), &out, nullptr, 0));
  return out;
}

void DeviceUse::note(const leat_device_usage& before, const exec::Module& module, DeviceFacts& facts) {
  if (!device_) return;
  const leat_device_usage now = usage();
  const std::uint64_t own = now.allocated_bytes - std::min(now.allocated_bytes, before.allocated_bytes),
                      taken = before.free_bytes - std::min(before.free_bytes, now.free_bytes);
  const bool provider = device_->info().has_provider != 0;
  facts.modules.push_back(
      {.graphs = module.graphs(), .bytes = own, .provider_bytes = provider ? taken - std::min(taken, own) : 0});
  facts.memory = memory_ = {now.allocated_bytes, now.imported_bytes, now.pinned_bytes};
}

bool DeviceUse::memory_changed(DeviceMemory* now) {
  const leat_device_usage usage = this->usage();
  *now = {usage.allocated_bytes, usage.imported_bytes, usage.pinned_bytes};
  if (*now == memory_) return false;
  memory_ = *now;
  return true;
}

}  // namespace leat::worker
