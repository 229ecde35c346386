// An executor with the session that it has opened for one stage of a model, and the tensors that the session describes.
// Thread rule: its user's; run() may be on another thread, one at a time. Errors: one line; run() leaves it where it is
// told to, and so does finish().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "engine/exec/module.h"
#include "engine/exec/onnx/around.h"
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
  // Its runs may be on one thread and on another, and on a device a second be put on the stream before the first has
  // been finished: so the built-in executors have it, which is more than the ABI says.
  [[nodiscard]] bool may_run_beside() const noexcept;
  [[nodiscard]] GraphReport graphs() const;

  // What the executor's run() returns: 0, LEAT_RUN_TOO_LARGE or another. around: on a device, what it puts before and
  // behind it.
  int run(std::span<const leat_tensor> inputs, std::span<leat_tensor> outputs, std::uint32_t rows,
          std::span<char> error) noexcept;
  int run(std::span<const leat_tensor> inputs, std::span<leat_tensor> outputs, std::uint32_t rows, Around& around,
          std::span<char> error) noexcept;
  // The next run lets go of the memory that earlier ones took and no run holds.
  void give_back() noexcept;
  bool finish(std::span<char> error) noexcept;  // once for each run(), in their order, where work goes on behind it

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
