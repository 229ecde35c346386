// The worker's device, and what leatd hears of its memory. Without one everything is on the host. One thread.
#pragma once

#include <memory>

#include "engine/exec/device.h"
#include "engine/exec/device_plugin.h"
#include "engine/exec/module.h"
#include "engine/worker/link/protocol.h"

namespace leat::worker {

class DeviceUse {
 public:
  // Error: there is none, or it is not what leatd has planned with.
  Status open(const DeviceSetup& wanted, DeviceFacts& facts);
  [[nodiscard]] exec::Device* get() const noexcept { return device_.get(); }  // null: it has none
  // Its device is lost, or was before this process could have it.
  [[nodiscard]] bool lost() const noexcept { return device_ && device_->lost(); }
  [[nodiscard]] bool never_had() const noexcept { return never_had_; }

  [[nodiscard]] leat_device_usage usage() const;
  // After a module was opened and warmed; before: the usage before that.
  void note(const leat_device_usage& before, const exec::Module& module, DeviceFacts& facts);
  // True where the memory is not what leatd knows: it is now.
  bool memory_changed(DeviceMemory* now);

 private:
  bool never_had_ = false;
  std::unique_ptr<exec::Device> device_;
  DeviceMemory memory_;  // as leatd knows
};

}  // namespace leat::worker
