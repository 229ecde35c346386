// A session of the onnx executor, on a device or on the host, with buffers of its own. Throws std::runtime_error.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/exec/device_plugin.h"
#include "engine/exec/registry.h"
#include "leat/executor.h"
#include "tests/gpu/check/check.h"

namespace leat::check {

struct Session {
  const leat_executor* onnx = nullptr;
  leat_session* session = nullptr;
  exec::Device* device = nullptr;
  std::vector<std::byte> host_in;
  std::vector<std::vector<std::byte>> host_out;
  exec::DeviceBuffer in;
  std::vector<exec::DeviceBuffer> out;
  leat_tensor inputs[16] = {}, outputs[16] = {};
  std::uint32_t input_count = 16, output_count = 16;
  char error[512] = "";

  Session(const std::string& path, const std::string& extra, std::uint32_t batch, exec::Device* on,
          std::uint32_t threads = 1, std::uint32_t first_block = 0, std::uint32_t end_block = UINT32_MAX)
      : device(on) {
    onnx = *exec::find_executor("onnx");
    const leat_session_options options{.model_path = path.c_str(),
                                       .first_block = first_block,
                                       .end_block = end_block,
                                       .batch_max = batch,
                                       .threads = threads,
                                       .extra = extra.c_str(),
                                       .device_api = on != nullptr ? on->api() : nullptr,
                                       .device = on != nullptr ? on->handle() : nullptr};
    need(onnx->open(&options, &session, error, sizeof error) == 0);
    need(onnx->describe(session, batch, inputs, &input_count, outputs, &output_count, error, sizeof error) == 0);
    if (input_count != 1) throw std::runtime_error(path + ": has more than one input");
    host_in.resize(inputs[0].bytes);
    inputs[0].data = host_in.data();
    if (on != nullptr) inputs[0].data = (in = take(on->allocate(inputs[0].bytes))).data();
    for (std::uint32_t o = 0; o < output_count; ++o) {
      outputs[o].data = host_out.emplace_back(outputs[o].bytes).data();
      if (on != nullptr) outputs[o].data = out.emplace_back(take(on->allocate(outputs[o].bytes))).data();
    }
  }
  ~Session() {
    if (session != nullptr) onnx->close(session);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  static exec::DeviceBuffer take(Result<exec::DeviceBuffer> made) {
    if (!made.ok()) throw std::runtime_error(made.error());
    return std::move(*made);
  }
  void need(bool good) const {
    if (!good) throw std::runtime_error(error);
  }
  // On a device: on its stream, without the copies to and from it.
  bool put(std::uint32_t batch) {
    leat_tensor now[16];
    std::copy_n(outputs, output_count, now);
    return onnx->run(session, batch, inputs, input_count, now, output_count, error, sizeof error) == 0;
  }
  bool run(std::uint32_t batch) {
    bool good = put(batch);
    if (device != nullptr) good = device->wait() && good;
    return (onnx->finish == nullptr || onnx->finish(session, error, sizeof error) == 0) && good;
  }
  void upload() {
    if (device != nullptr) need(device->copy(inputs[0].data, host_in.data(), host_in.size()) && device->wait());
  }
  void download() {
    for (std::uint32_t o = 0; device != nullptr && o < output_count; ++o)
      need(device->copy(host_out[o].data(), outputs[o].data, host_out[o].size()));
    if (device != nullptr) need(device->wait());
  }
};

}  // namespace leat::check
