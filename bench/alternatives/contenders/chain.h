// The application `shapes` in one call, for who has no leatd: its two models with Leat's own pre- and post-processing
// and ONNX Runtime's settings, the classifier on what the detector has found. One thread an object.
#pragma once

#include <memory>
#include <vector>

#include "engine/exec/module.h"
#include "leat/leat.h"
#include "leat/result.hpp"

namespace leat::bench::alternatives {

// A picture's memory, as a frame that can be read into.
class Buffer {
 public:
  explicit Buffer(leat_format format);  // NV12 or I420
  [[nodiscard]] const leat_frame& frame() const { return frame_; }

 private:
  std::unique_ptr<std::uint8_t[]> pixels_;
  leat_frame frame_{};
};

class Chain {
 public:
  // As tools/models/shapes/shapes.toml says. It has run once when this returns.
  static Result<Chain> open(leat_format format);
  // False: a model failed.
  bool run(const leat_frame& frame);
  [[nodiscard]] const leat_result& result() const { return *result_; }

 private:
  Chain() = default;
  std::unique_ptr<exec::Module> detect_, classify_;
  std::unique_ptr<leat_result> result_ = std::make_unique<leat_result>();
  std::uint32_t cap_ = 1;  // detections that are classified
};

// One for each worker of a server.
Result<std::vector<Chain>> open_chains(leat_format format, std::size_t count);

}  // namespace leat::bench::alternatives
