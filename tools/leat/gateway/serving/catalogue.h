// What the node's leatd serves, as its status says it: the models that clients of the gateway know. Pure; values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "leat/result.hpp"
#include "leat/tensor_types.h"
#include "tools/base/json/json.h"

namespace leat::gateway {

struct Tensor {
  std::string name;
  leat_tensor_shape shape{};  // of one item, without the batch
  std::uint64_t bytes = 0;
};

inline constexpr std::string_view kPictureInput = "image";
inline constexpr std::uint32_t kMaxSide = 16384;

// An application.
struct Model {
  std::string name;
  std::string version = "1";
  std::int64_t slo_ns = 0;
  std::uint32_t batch = 1;
  double batch_of_one_ms = 0;   // the fastest class's; 0: unknown
  double items_per_second = 0;  // what all partitions that run it could do together; 0: unknown
  // It takes pictures: one input, kPictureInput, [height, width, 3] of R, G and B, both sides as the client has them.
  bool pictures = false;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;  // tensors that an answer holds, and what its head does (HeadTensors)
};

struct Catalogue {
  bool serving = false;  // models are loaded and measured, and frames are taken
  std::string phase;     // leatd's word, or why there is none
  std::string leatd_version;
  std::uint32_t partitions = 0, partitions_up = 0;
  std::vector<Model> models;

  // Ready: it serves, and something is up to run on.
  [[nodiscard]] bool ready() const noexcept { return serving && partitions_up > 0; }
  [[nodiscard]] const Model* find(std::string_view name) const noexcept;
};

// Of `leat status --json`.
Result<Catalogue> catalogue_of(std::string_view status_json);

}  // namespace leat::gateway
