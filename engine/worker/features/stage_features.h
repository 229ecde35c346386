// The features of one stage, as its worker finds them: where a batch's rows lie when they lie together, a copy side by
// side when they do not; and where the batch's own go. Views belong to the worker and outlive this. Thread rule: one
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/exec/device_plugin.h"
#include "engine/exec/module.h"
#include "engine/worker/link/channel.h"
#include "leat/result.hpp"
#include "shm/src/segments/feature_slots.h"

namespace leat::worker {

class StageFeatures {
 public:
  // Null where the stage takes frames, or ends with results. in_is_peer: `in` is another device's memory, which is slow
  // to read twice: a batch is copied out of it. An error where leatd and the model disagree about an item's bytes.
  static Result<StageFeatures> open(const exec::Module& module, const shm::FeatureView* in, const shm::FeatureView* out,
                                    bool in_is_peer = false);

  // Null on the first stage. Cells of one batch, as they came; rows that had to be copied are counted in *rows_copied.
  // On a device the copies are work on its stream, and rows in host memory are always copied. set: of buffers; what it
  // was given before is over.
  [[nodiscard]] const std::byte* input(std::span<const DispatchCell> cells, std::uint32_t* rows_copied,
                                       std::uint32_t set = 0) noexcept;
  // Null on the last stage.
  [[nodiscard]] std::byte* output(std::span<const DispatchCell> cells) const noexcept {
    return out_ == nullptr ? nullptr : out_->row(cells[0].row_out);
  }
  void keep_one_set() noexcept { gathered_[1].reset(); }
  [[nodiscard]] bool any() const noexcept { return in_ != nullptr || out_ != nullptr; }

 private:
  const shm::FeatureView* in_ = nullptr;
  bool in_is_peer_ = false;
  const shm::FeatureView* out_ = nullptr;
  std::array<std::unique_ptr<std::byte[]>, exec::kSets> gathered_;  // a batch, side by side
  exec::Device* device_ = nullptr;                                  // where the stage runs
  exec::DeviceBuffer gathered_there_;  // one: its stream reads a batch before it writes the next
};

}  // namespace leat::worker
