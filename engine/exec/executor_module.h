// The one kind of Module: an executor's session between pre- and post-processing. Opening stands in module_open.cpp,
// which items run together in module_run.cpp, how those run in module_batch.cpp.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "engine/exec/batch_room.h"
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

// Places of all items of a batch.
inline constexpr auto kAll = [] {
  std::array<std::uint8_t, kMaxRows> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
  return all;
}();

class ExecutorModule final : public Module {
 public:
  explicit ExecutorModule(const ModuleSpec& spec) : spec_(spec) {}
  Status open();

  bool run(std::span<const Item> items, std::span<ItemReport> reports, const std::byte* features_in,
           std::byte* features_out) noexcept override;
  std::uint32_t sets() const noexcept override { return static_cast<std::uint32_t>(rooms_.size()); }
  void keep_one_set() noexcept override {
    rooms_.resize(1);
    if (device_ != nullptr) device_->keep_one_set();
  }
  void begin(std::uint32_t set, HostStream& stream, std::span<const Item> items, const std::byte* features_in,
             std::byte* features_out, const Pause& pause) noexcept override;
  bool ended(std::uint32_t set) const noexcept override;
  bool finish(std::uint32_t set, std::span<ItemReport> reports) noexcept override;
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
    return inputs().takes_tensors() ? inputs().shapes() : std::vector<leat_tensor_shape>();
  }
  std::vector<std::string> tensor_names() const override {
    return inputs().takes_tensors() ? inputs().names() : std::vector<std::string>();
  }
  void give_back() noexcept override {
    session_.give_back();
    for (const auto& room : rooms_) room->inputs.give_back();
  }
  std::vector<Size> sizes() const override { return inputs().sizes(); }
  bool not_finite() const noexcept override { return not_finite_; }
  std::string_view error() const noexcept override { return session_.error(); }
  const ModuleSpec& spec() const noexcept override { return spec_; }
  const Recognised& recognised() const noexcept override { return recognised_; }

 private:
  Status ask_model();
  Status open_input();
  Status open_output();
  void open_buffers(BatchRoom& room) const;
  Status learn_open_sizes();
  bool try_size(Size size, std::uint32_t rows, std::span<leat_tensor> outputs) noexcept;

  using Chosen = std::span<const std::uint8_t>;  // places of items that run together
  struct Together {
    BatchRoom& room;
    std::span<const Item> items;
    std::span<ItemReport> reports;
    std::span<const Region> regions;
    Chosen chosen;
  };
  const char* wrong_with(std::span<const Item> items, const std::byte* features_in,
                         const std::byte* features_out) const noexcept;
  void look_at(std::span<const Item> items, std::span<Region> regions, std::span<ItemReport> reports) const noexcept;
  bool run_by_size(std::span<const Item> items, std::span<ItemReport> reports) noexcept;
  bool run_in_pieces(const Item& item, const Region& region, const Pieces& pieces, ItemReport& report) noexcept;
  bool run_together(std::span<const Item> items, std::span<ItemReport> reports, std::span<const Region> regions,
                    Chosen chosen, const std::byte* features_in, std::byte* features_out) noexcept;
  bool fail_all(std::span<ItemReport> reports, std::string_view why) noexcept;

  bool fill_input(BatchRoom& room, const Item& item, const Region& region, std::uint32_t row,
                  ItemReport& report) noexcept;
  bool prepare(const Together& batch, const std::byte* features_in, std::byte* features_out,
               const Pause& pause) noexcept;
  void execute(BatchRoom& room) noexcept;
  bool put_on_device(BatchRoom& room) noexcept;
  void settle_on_device(BatchRoom& room, bool good) noexcept;
  bool tell(const Together& batch) noexcept;
  void answer(const Together& batch, std::uint8_t i, std::uint32_t row) noexcept;
  void look_for_numbers(const BatchRoom& room, std::uint32_t row) noexcept;
  static void execute_on_stream(void* room) noexcept;
  static void wait_on_stream(void* room) noexcept;

  [[nodiscard]] const ModelInputs& inputs() const noexcept { return rooms_.front()->inputs; }
  [[nodiscard]] ModelInputs& inputs() noexcept { return rooms_.front()->inputs; }

  ModuleSpec spec_;
  Recognised recognised_;
  ExecutorSession session_;
  std::unique_ptr<ModuleDevice> device_;  // where the session runs; null: here
  bool takes_frames_ = false;             // the executor takes the frames where they are
  bool open_size_ = false;  // the model leaves its picture's size open; outputs lie where the executor lends them
  bool not_finite_ = false;
  std::uint64_t items_seen_ = 0;  // by who looks for numbers
  bool one_item_a_run_ = false;   // rows that only a run tells, or outputs that go where each item wants them
  std::vector<std::unique_ptr<BatchRoom>> rooms_;  // of each set
  CropSpec cut_;
  Preprocessor preprocessor_;  // on a device: it fills the input itself
  Postprocessor postprocessor_;
};

}  // namespace leat::exec
