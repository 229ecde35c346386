// The part of a module's batch that runs on its device: pictures into the input, features in and out, outputs down to
// pinned memory, and the one wait at the end. All of it is work on the device's stream, in the order of the calls.
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
#include "engine/exec/picture/preprocess.h"
#include "leat/executor.h"

namespace leat::exec {

class ModuleDevice {
 public:
  explicit ModuleDevice(Device* device) : device_(*device) {}

  // A picture of these channels and sides: float32, float16 or uint8; [n, c, h, w] or [n, h, w, c].
  Status open_pictures(leat_tensor& input, const std::string& model, leat_picture_target* target);
  // Room for the outputs there, and here for each of the sets; their data points there.
  Status open_outputs(std::span<leat_tensor> outputs, std::uint32_t sets);
  void keep_one_set() noexcept { pinned_.resize(std::min<std::size_t>(pinned_.size(), 1)); }
  // A stage whose features leave through host memory: room for them here.
  Status open_features(leat_tensor& output);

  // At a batch's beginning; then one add() for each row, then launch().
  void begin_jobs() noexcept { jobs_ = 0; }
  void add(const leat_picture_job& job, void* out) noexcept;
  bool launch() noexcept { return jobs_ == 0 || device_.pictures(target_, {job_list_.data(), jobs_}); }
  // The outputs' first rows, and from then on `outputs` are on the host.
  bool download(std::span<leat_tensor> outputs, std::uint32_t rows, std::uint32_t set) noexcept;
  bool copy(void* to, const void* from, std::uint64_t bytes) noexcept { return device_.copy(to, from, bytes); }
  bool wait() noexcept { return device_.wait(); }
  // A batch that overlaps: begun, put on the stream whole, and over (Device's).
  bool use_set(std::uint32_t set) noexcept { return device_.use_set(set); }
  bool mark(std::uint32_t set) noexcept { return device_.mark(set); }
  int wait_for(std::uint32_t set, std::span<char> error) const noexcept { return device_.wait_for(set, error); }
  void note(int status) noexcept { device_.note(status); }
  [[nodiscard]] const char* error() const noexcept { return device_.error(); }

 private:
  Device& device_;
  leat_picture_target target_{};
  DeviceBuffer input_;
  std::vector<DeviceBuffer> outputs_;
  std::vector<std::vector<PinnedBuffer>> pinned_;  // [set][output]
  std::vector<std::uint64_t> row_bytes_;           // of each output
  std::array<leat_picture_job, kMaxRows> job_list_;
  std::uint32_t jobs_ = 0;
};

}  // namespace leat::exec
