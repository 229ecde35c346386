// The one kind of Module: an executor's session between pre- and post-processing. Opening stands in module_open.cpp,
// running in module_run.cpp.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "engine/exec/decode/postprocess.h"
#include "engine/exec/executor_session.h"
#include "engine/exec/module.h"
#include "engine/exec/module_device.h"
#include "engine/exec/onnx/model_inputs.h"
#include "engine/exec/picture/preprocess.h"

namespace leat::exec {

[[nodiscard]] inline std::uint64_t row_bytes(const leat_tensor& t) noexcept {
  return t.bytes / static_cast<std::uint64_t>(t.shape[0]);
}

class ExecutorModule final : public Module {
 public:
  explicit ExecutorModule(const ModuleSpec& spec) : spec_(spec) {}
  Status open();

  bool run(std::span<const Item> items, std::span<ItemReport> reports, const std::byte* features_in,
           std::byte* features_out) noexcept override;
  std::uint64_t feature_bytes_in() const noexcept override {
    return spec_.first_stage ? 0 : row_bytes(session_.inputs()[0]);
  }
  std::uint64_t feature_bytes_out() const noexcept override {
    return spec_.last_stage ? 0 : row_bytes(session_.outputs()[0]);
  }
  bool on_device() const noexcept override { return device_ != nullptr; }
  GraphReport graphs() const override { return device_ != nullptr ? session_.graphs() : GraphReport{}; }
  std::vector<PartSpec> parts() const override { return postprocessor_.parts(); }
  std::vector<leat_tensor_shape> tensor_shapes() const override {
    return model_inputs_.takes_tensors() ? model_inputs_.shapes() : std::vector<leat_tensor_shape>();
  }
  std::vector<std::string> tensor_names() const override {
    return model_inputs_.takes_tensors() ? model_inputs_.names() : std::vector<std::string>();
  }
  void give_back() noexcept override {
    session_.give_back();
    model_inputs_.give_back();
  }
  std::vector<Size> sizes() const override { return model_inputs_.sizes(); }
  std::string_view error() const noexcept override { return session_.error(); }
  const ModuleSpec& spec() const noexcept override { return spec_; }
  const Recognised& recognised() const noexcept override { return recognised_; }

 private:
  Status ask_model();
  Status open_input();
  Status open_output();
  Status learn_open_sizes();
  bool try_size(Size size, std::uint32_t rows, std::span<leat_tensor> outputs) noexcept;
  bool fill_input(const Item& item, const Region& region, std::uint32_t row, ItemReport& report) noexcept;
  using Chosen = std::span<const std::uint8_t>;  // places of items that run together
  bool run_together(std::span<const Item> items, std::span<ItemReport> reports, std::span<const Region> regions,
                    Chosen chosen, const std::byte* features_in, std::byte* features_out) noexcept;
  bool run_by_size(std::span<const Item> items, std::span<ItemReport> reports) noexcept;
  bool run_in_pieces(const Item& item, const Region& region, const Pieces& pieces, ItemReport& report) noexcept;
  void answer(const Item& item, const Region& region, std::span<const leat_tensor> outputs, std::uint32_t row,
              ItemReport& report) noexcept;
  int execute(std::span<const leat_tensor> inputs, std::span<leat_tensor> outputs, std::uint32_t rows,
              std::byte* features_out) noexcept;
  bool fail_all(std::span<ItemReport> reports, std::string_view why) noexcept;

  ModuleSpec spec_;
  Recognised recognised_;
  ExecutorSession session_;
  std::unique_ptr<ModuleDevice> device_;  // where the session runs; null: here
  bool takes_frames_ = false;             // the executor takes the frames where they are
  bool open_size_ = false;       // the model leaves its picture's size open; outputs lie where the executor lends them
  bool one_item_a_run_ = false;  // rows that only a run tells, or outputs that go where each item wants them
  std::vector<AlignedBuffer> output_buffers_;  // none where the executor lends
  leat_tensor raw_items_[kMaxRows] = {};
  std::array<Region, kMaxRows> regions_;  // of the items of a batch
  ModelInputs model_inputs_;
  CropSpec cut_;
  Preprocessor preprocessor_;  // on a device: it fills the input itself
  Postprocessor postprocessor_;
};

}  // namespace leat::exec
