// The part of a module's batch that runs on its device: pictures into the input, features in and out, outputs down to
// pinned memory, and the one wait at the end. All of it is work on the device's stream, in the order of the calls.
// Thread rule: the module's. Errors: false; error() says why.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "engine/exec/device_plugin.h"
#include "engine/exec/frame_view.h"
#include "engine/exec/module.h"
#include "engine/exec/picture/preprocess.h"
#include "leat/executor.h"

namespace leat::exec {

class ModuleDevice {
 public:
  explicit ModuleDevice(Device* device) : device_(*device) {}

  // A picture of these channels and sides: float32, float16 or uint8; [n, c, h, w] or [n, h, w, c].
  Status open_pictures(leat_tensor& input, const std::string& model, leat_picture_target* target);
  // Room for the outputs there and here; their data points there.
  Status open_outputs(std::span<leat_tensor> outputs);
  // A stage whose features leave through host memory: room for them here.
  Status open_features(leat_tensor& output);

  // At batch's begin; then one add() for each row, then launch().
  void begin() noexcept { jobs_ = 0; }
  void add(const leat_picture_job& job, void* out) noexcept;
  bool launch() noexcept { return jobs_ == 0 || device_.pictures(target_, {job_list_.data(), jobs_}); }
  // The outputs' first rows, and from then on `outputs` are on the host.
  bool download(std::span<leat_tensor> outputs, std::uint32_t rows) noexcept;
  bool copy(void* to, const void* from, std::uint64_t bytes) noexcept { return device_.copy(to, from, bytes); }
  bool wait() noexcept { return device_.wait(); }
  [[nodiscard]] const char* error() const noexcept { return device_.error(); }

 private:
  Device& device_;
  leat_picture_target target_{};
  DeviceBuffer input_;
  std::vector<DeviceBuffer> outputs_;
  std::vector<PinnedBuffer> pinned_;
  std::vector<std::uint64_t> row_bytes_;  // of each output
  std::array<leat_picture_job, kMaxRows> job_list_;
  std::uint32_t jobs_ = 0;
};

}  // namespace leat::exec
