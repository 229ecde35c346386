// The part of a module's batch that runs on its device: pictures into the input, features in and out, outputs down to
// pinned memory, and the one wait at the end. All of it is work on the device's stream, in the order of the calls.
// Pictures and downloads are put there by whoever runs the model, as what is around that (Around).
// Thread rule: the module's. Errors: false; error() says why.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/exec/device_plugin.h"
#include "engine/exec/frame_view.h"
#include "engine/exec/module.h"
#include "engine/exec/onnx/around.h"
#include "engine/exec/picture/preprocess.h"
#include "leat/executor.h"

namespace leat::exec {

class ModuleDevice final : public Around {
 public:
  ModuleDevice(Device* device, std::uint32_t sets) : device_(*device), sets_(sets) {}

  // A picture of these channels and sides: float32, float16 or uint8; [n, c, h, w] or [n, h, w, c].
  Status open_pictures(leat_tensor& input, const std::string& model, std::uint32_t resize, leat_picture_target* target);
  // Room for the outputs there, and here for each of the sets; their data points there.
  Status open_outputs(std::span<leat_tensor> outputs);
  void keep_one_set() noexcept {
    sets_ = 1;
    pinned_.resize(std::min<std::size_t>(pinned_.size(), sets_));
  }
  // A stage whose features leave through host memory: room for them here.
  Status open_features(leat_tensor& output);

  // At a batch's beginning; then one add() for each row that has a picture, then ready().
  void begin_jobs() noexcept { jobs_ = 0; }
  void add(const leat_picture_job& job, void* out) noexcept;
  bool ready(std::uint32_t rows, std::uint32_t set) noexcept;
  bool before(std::uint32_t set) noexcept override;
  bool behind(std::uint32_t set) noexcept override;  // the outputs' first rows
  [[nodiscard]] std::uint32_t set() const noexcept override { return set_; }
  [[nodiscard]] std::uint32_t sets() const noexcept override { return sets_; }
  [[nodiscard]] bool complete() const noexcept override { return !input_ || jobs_ == rows_; }
  // What was downloaded, once that has been waited for: from then on `outputs` are on the host.
  void downloaded(std::span<leat_tensor> outputs) const noexcept;
  bool copy(void* to, const void* from, std::uint64_t bytes) noexcept { return device_.copy(to, from, bytes); }
  bool wait() noexcept { return device_.wait(); }
  // A batch that overlaps: begun, put on the stream whole, and over (Device's).
  bool mark(std::uint32_t set) noexcept { return device_.mark(set); }
  int wait_for(std::uint32_t set, std::span<char> error) const noexcept { return device_.wait_for(set, error); }
  void note(int status) noexcept { device_.note(status); }
  [[nodiscard]] const char* error() const noexcept override { return device_.error(); }

 private:
  Device& device_;
  std::uint32_t sets_;
  leat_picture_target target_{};
  DeviceBuffer input_;
  std::vector<DeviceBuffer> outputs_;
  std::vector<std::vector<PinnedBuffer>> pinned_;  // [set][output]
  std::vector<std::uint64_t> row_bytes_;           // of each output
  std::array<leat_picture_job, kMaxRows> job_list_;
  std::uint32_t jobs_ = 0, rows_ = 0, set_ = 0;  // of the batch
};

}  // namespace leat::exec
