// The JSON head of an inference request, held against the model: which tensor comes from where, and what is wanted.
// Pure; values. Errors: one line, for the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/leat.h"
#include "leat/result.hpp"
#include "tools/base/json/json.h"
#include "tools/leat/gateway/serving/catalogue.h"

namespace leat::gateway {

// A place in memory that a client has registered (shared_memory.h).
struct RegionPlace {
  std::string region;  // empty: none
  std::uint64_t offset = 0, bytes = 0;
};

struct GivenInput {
  std::size_t input = 0;  // of the model's
  bool binary = false;    // its bytes come behind the head, in the order of these
  std::size_t at = 0;     // of the request's own list, for JSON data
  RegionPlace place;
};
struct WantedOutput {
  std::string name;
  bool binary = false;
  RegionPlace place;
};

// A request's batch: so many items at most, one frame each.
inline constexpr std::uint32_t kMaxItems = 64;

struct InferRequest {
  Json head;
  std::string id;
  std::int64_t budget_ns = 0;  // of parameters.timeout; 0: none said
  std::uint32_t priority = LEAT_PRIORITY_NORMAL;
  bool binary_outputs = false;  // what no output says of itself
  std::vector<GivenInput> inputs;
  std::uint32_t items = 0;              // in front of each shape; where none is said, 1
  std::vector<std::uint64_t> bytes;     // of each of the model's inputs, all items
  std::uint32_t width = 0, height = 0;  // of a picture
  std::vector<WantedOutput> outputs;    // empty: all
};

// `binary_bytes`: of the body behind the head.
Result<InferRequest> infer_request_of(std::string_view json, const Model& model, std::uint64_t binary_bytes);

// The JSON numbers of a tensor ("data", flat or nested), all items, into its place. Empty: done; else what is wrong.
[[nodiscard]] std::string write_json_tensor(const Json& data, const Tensor& tensor,
                                            std::span<std::byte> to);  // all of `to`

// 0 and 2 are normal, 1 is high, more is background; as Triton counts.
[[nodiscard]] std::uint32_t priority_of_number(std::uint64_t number) noexcept;

}  // namespace leat::gateway
