// What a model's file holds besides its weights, and where it lies: the ground of every conclusion. Control plane; any
// thread; allocates; reads the file once.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "leat/result.hpp"
#include "leat/tensor_types.h"

namespace leat::exec {

struct ModelPort {
  std::string name;
  std::vector<std::int64_t> shape;  // -1: open
  std::uint32_t dtype = LEAT_F32;

  [[nodiscard]] std::size_t rank() const noexcept { return shape.size(); }
  // Dimension i, -1 where it is open or there is none; i < 0 counts from the end.
  [[nodiscard]] std::int64_t dim(int i) const noexcept {
    const auto n = static_cast<std::size_t>(i < 0 ? static_cast<int>(shape.size()) + i : i);
    return n < shape.size() ? shape[n] : -1;
  }
  // "output0 [1, 84, 8400]".
  [[nodiscard]] std::string text() const;
};

struct ModelFacts {
  std::string path;
  std::map<std::string, std::string> metadata;
  std::vector<ModelPort> inputs, outputs;
  std::vector<std::string> last;     // [output]: the operation that makes it, behind what only moves values
  std::set<std::string> operations;  // of the graph

  [[nodiscard]] const ModelPort* input(std::string_view name) const;
  [[nodiscard]] const ModelPort* output(std::string_view name) const;
  [[nodiscard]] std::string meta(const std::string& key) const;  // empty: it has none
  [[nodiscard]] std::string outputs_text() const;

  // The picture's input: the first of three or four dimensions of which one is 1, 3 or 4 channels.
  [[nodiscard]] const ModelPort* picture() const;
  [[nodiscard]] bool nhwc() const;
  [[nodiscard]] std::int64_t width() const;  // of the picture; -1: open, or there is none
  [[nodiscard]] std::int64_t height() const;
};

Result<ModelFacts> read_facts(const std::string& path);

}  // namespace leat::exec
