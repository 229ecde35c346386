// What a batch has for itself from its beginning to its end: buffers for the model's inputs and outputs, and what has
// to be known again when it is answered. A module whose batches overlap has two (module.h). Thread rule: the module's;
// while its model runs on a stream, nobody else touches what `run` reads and writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/exec/host_stream.h"
#include "engine/exec/module.h"
#include "engine/exec/onnx/model_inputs.h"
#include "leat/executor.h"

namespace leat::exec {

class ExecutorModule;

struct BatchRoom {
  BatchRoom(ExecutorModule* of, std::uint32_t place) : module(of), set(place) {}
  ExecutorModule* module;
  std::uint32_t set;

  // Buffers.
  ModelInputs inputs;
  std::vector<AlignedBuffer> output_buffers;          // none where the executor lends, or on a device
  std::array<void*, kMaxModelTensors> output_data{};  // where outputs go; null: the executor lends
  std::array<leat_tensor, kMaxRows> raw_items{};

  // The batch.
  std::span<const Item> items;
  std::array<Region, kMaxRows> regions;  // of the items
  std::array<ItemReport, kMaxRows> reports;
  std::byte* features_out = nullptr;
  leat_tensor features{};
  std::span<const leat_tensor> run_inputs;
  std::array<leat_tensor, kMaxModelTensors> run_outputs;
  std::uint32_t rows = 0;
  int code = 0;  // what its run returned
  // On a device: whether its run was tried, all of it put on the stream, and what the wait for it said.
  bool ran = false, put = false;
  int waited = 0;
  std::array<char, 512> wait_error{};
  std::array<char, 512> error{};
  const char* wrong = nullptr;  // with the batch itself
  std::uint64_t ticket = 0;     // of the stream; 0: it is not there
  HostStream* stream = nullptr;

  void set_error(std::string_view why) noexcept { error[why.copy(error.data(), error.size() - 1)] = '\0'; }
};

}  // namespace leat::exec
