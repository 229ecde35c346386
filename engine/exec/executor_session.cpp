#include "engine/exec/executor_session.h"

#include <algorithm>
#include <utility>

#include "engine/exec/device.h"
#include "engine/exec/device_plugin.h"
#include "engine/exec/onnx/onnx_graphs.h"
#include "engine/exec/onnx/onnx_split.h"
#include "engine/exec/registry.h"

namespace leat::exec {
namespace {

// What an executor is told besides, as key=value lines.
std::string extra_lines(const ModuleSpec& spec) {
  std::string extra;
  if (!spec.emulated_ns.empty()) {
    extra = "latency_ns=";
    for (std::size_t i = 0; i < spec.emulated_ns.size(); ++i)
      extra += (i == 0 ? "" : ",") + std::to_string(spec.emulated_ns[i]);
    extra += '\n';
  }
  for (const auto& [key, bytes] :
       {std::pair{"bytes_in=", spec.emulated_in}, std::pair{"bytes_out=", spec.emulated_out}})
    if (bytes != 0) extra += key + std::to_string(bytes) + '\n';
  if (!spec.cuts.empty()) extra += "cuts=" + join_cuts(spec.cuts) + "\n";
  for (const auto& [key, value] : spec.extra) extra += key + "=" + value + "\n";
  if (spec.device != nullptr && spec.executor == "onnx") {  // rows of an edge move from batch to batch
    const bool moves_out = !spec.last_stage && !spec.host_features_out;
    if (!spec.first_stage) extra += "moving_inputs=1\n";
    if (moves_out) extra += "moving_outputs=1\n";
    if (spec.first_stage && !moves_out) extra += "fixed_buffers=1\n";
  }
  return extra;
}

}  // namespace

Status ExecutorSession::open(const ModuleSpec& spec) {
  auto executor = find_executor(spec.executor);
  if (!executor) return Error{executor.error()};
  executor_ = *executor;
  const std::string extra = extra_lines(spec);
  const leat_session_options options{.model_path = spec.model_path.c_str(),
                                     .first_block = spec.first_block,
                                     .end_block = spec.end_block,
                                     .batch_max = spec.batch_max,
                                     .threads = spec.threads,
                                     .extra = extra.c_str(),
                                     .device_api = spec.device != nullptr ? spec.device->api() : nullptr,
                                     .device = spec.device != nullptr ? spec.device->handle() : nullptr};
  leat_session* session = nullptr;
  if (executor_->open(&options, &session, error_, sizeof error_) != 0) return Error{error_};
  session_ = {session, Closer{executor_}};
  input_count_ = output_count_ = kMaxModelTensors;
  if (executor_->describe(session, spec.batch_max, inputs_, &input_count_, outputs_, &output_count_, error_,
                          sizeof error_) != 0)
    return Error{error_};
  const bool one_memory =
      std::ranges::all_of(outputs(), [&](const leat_tensor& t) { return t.memory == inputs_[0].memory; });
  if (!one_memory || (output_count_ != 0 && on_device() && spec.device == nullptr))
    return Error{"executor '" + spec.executor + "' wants device memory, and this partition has none"};
  return Done{};
}

bool ExecutorSession::may_run_beside() const noexcept {
  return executor_ == onnx_executor() || executor_ == emulated_executor();
}

GraphReport ExecutorSession::graphs() const {
  return executor_ == onnx_executor() ? onnx_graph_report(session_.get()) : GraphReport{};
}

void ExecutorSession::give_back() noexcept {
  if (executor_ == onnx_executor()) onnx_give_back(session_.get());
}

int ExecutorSession::run(std::span<const leat_tensor> inputs, std::span<leat_tensor> outputs, std::uint32_t rows,
                         std::span<char> error) noexcept {
  return executor_->run(session_.get(), rows, inputs.data(), static_cast<std::uint32_t>(inputs.size()), outputs.data(),
                        output_count_, error.data(), error.size());
}

int ExecutorSession::run(std::span<const leat_tensor> inputs, std::span<leat_tensor> outputs, std::uint32_t rows,
                         Around& around, std::span<char> error) noexcept {
  if (executor_ == onnx_executor()) return onnx_run(session_.get(), rows, inputs, outputs, around, error);
  const bool before = around.before(around.set());
  if (before) {
    if (const int code = run(inputs, outputs, rows, error); code != 0) return code;
    if (around.behind(around.set())) return 0;
  }
  return executor_error(error.data(), error.size(), around.error());
}

bool ExecutorSession::finish(std::span<char> error) noexcept {
  return executor_->finish == nullptr || executor_->finish(session_.get(), error.data(), error.size()) == 0;
}

}  // namespace leat::exec
