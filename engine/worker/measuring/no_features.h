// Features of nothing, for a stage that is measured: what a batch of it reads and writes, where its module wants them.
// One thread; the module outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/exec/device_plugin.h"
#include "engine/exec/module.h"
#include "leat/result.hpp"

namespace leat::worker {

class NoFeatures {
 public:
  static Result<NoFeatures> of(const exec::Module& module, std::uint32_t batch) {
    NoFeatures out;
    const bool there = module.on_device();
    exec::Device* const device = module.spec().device;
    const std::pair<std::uint64_t, bool> wanted[] = {
        {module.feature_bytes_in(), there}, {module.feature_bytes_out(), there && !module.spec().host_features_out}};
    Rows* const sides[] = {&out.in_, &out.out_};
    for (std::size_t i = 0; i < 2; ++i) {
      const auto& [row, on_device] = wanted[i];
      if (row == 0) continue;
      if (!on_device) {
        sides[i]->host = std::make_unique<std::byte[]>(row * batch);
        continue;
      }
      auto made = device->allocate(row * batch);
      if (!made.ok()) return Error{made.error()};
      sides[i]->there = std::move(*made);
    }
    return out;
  }
  // Null where the module has none.
  [[nodiscard]] const std::byte* in() const noexcept { return in_.at(); }
  [[nodiscard]] std::byte* out() const noexcept { return out_.at(); }

 private:
  struct Rows {
    std::unique_ptr<std::byte[]> host;
    exec::DeviceBuffer there;
    [[nodiscard]] std::byte* at() const noexcept { return there ? there.data() : host.get(); }
  };
  Rows in_, out_;
};

}  // namespace leat::worker
