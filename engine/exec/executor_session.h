// An executor with the session that it has opened for one stage of a model, and the tensors that the session describes.
// Thread rule: its user's. Errors: one line; run() and finish() leave it in error().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "engine/exec/module.h"
#include "engine/exec/onnx/model_inputs.h"
#include "leat/executor.h"
#include "leat/result.hpp"

namespace leat::exec {

class ExecutorSession {
 public:
  Status open(const ModuleSpec& spec);

  // As described at batch_max rows.
  [[nodiscard]] std::span<leat_tensor> inputs() noexcept { return {inputs_, input_count_}; }
  [[nodiscard]] std::span<leat_tensor> outputs() noexcept { return {outputs_, output_count_}; }
  [[nodiscard]] std::span<const leat_tensor> inputs() const noexcept { return {inputs_, input_count_}; }
  [[nodiscard]] std::span<const leat_tensor> outputs() const noexcept { return {outputs_, output_count_}; }
  // Its tensors lie in the memory of the spec's device.
  [[nodiscard]] bool on_device() const noexcept { return inputs_[0].memory != LEAT_MEMORY_HOST; }
  [[nodiscard]] GraphReport graphs() const;

  // What the executor's run() returns: 0, LEAT_RUN_TOO_LARGE or another.
  int run(std::span<const leat_tensor> inputs, std::span<leat_tensor> outputs, std::uint32_t rows) noexcept;
  // The next run lets go of the memory that earlier ones took and no run holds.
  void give_back() noexcept;
  bool finish() noexcept;  // where work goes on behind run()

  [[nodiscard]] std::string_view error() const noexcept { return error_; }
  void set_error(std::string_view why) noexcept { error_[why.copy(error_, sizeof error_ - 1)] = '\0'; }

 private:
  struct Closer {
    const leat_executor* executor;
    void operator()(leat_session* s) const { executor->close(s); }
  };

  const leat_executor* executor_ = nullptr;
  std::unique_ptr<leat_session, Closer> session_{nullptr, {nullptr}};
  leat_tensor inputs_[kMaxModelTensors] = {}, outputs_[kMaxModelTensors] = {};
  std::uint32_t input_count_ = 0, output_count_ = 0;
  char error_[512] = {};
};

}  // namespace leat::exec
