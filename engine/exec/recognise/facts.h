// What a model's file holds besides its weights, and where it lies: the ground of every conclusion. Control plane; any
// thread; allocates; reads the file once.
#pragma once

#include <cstdint>
#include <map>
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

// What makes an output, behind what only moves values.
struct Tail {
  std::string operation;            // "Sigmoid"; empty: nothing, it is an input
  std::vector<std::string> joined;  // of a Concat: what makes each of its parts
};

// What a graph does to the picture before anything else: value = scale * value + shift. One entry for all channels, or
// one each; none: it does nothing.
struct GraphNorm {
  std::vector<double> scale, shift;
  bool learned = false;  // with a BatchNormalization: its numbers may be trained, and no normalisation of pixels

  [[nodiscard]] bool none() const noexcept { return scale.empty(); }
};

struct ModelFacts {
  std::string path;
  std::map<std::string, std::string> metadata;
  std::string producer;
  std::vector<ModelPort> inputs, outputs;
  std::vector<Tail> tails;                          // [output]
  std::map<std::string, std::uint32_t> operations;  // of the graph, and how often each is in it
  std::string names;                                // of its nodes and weights, each between line breaks
  GraphNorm norm;
  std::int64_t stem = 0;  // the largest side of the convolutions that read the picture first; 0: there are none

  [[nodiscard]] const ModelPort* input(std::string_view name) const;
  [[nodiscard]] const ModelPort* output(std::string_view name) const;
  [[nodiscard]] std::string meta(const std::string& key) const;  // empty: it has none
  [[nodiscard]] std::string outputs_text() const;
  [[nodiscard]] bool uses(const char* operation) const { return operations.contains(operation); }
  // What makes output `o`; empty: there is no such output.
  [[nodiscard]] const std::string& last(std::size_t o) const;

  // The picture's input: the first of three or four dimensions of which one is 1, 3 or 4 channels.
  [[nodiscard]] const ModelPort* picture() const;
  [[nodiscard]] bool nhwc() const;
  [[nodiscard]] std::int64_t width() const;  // of the picture; -1: open, or there is none
  [[nodiscard]] std::int64_t height() const;
};

Result<ModelFacts> read_facts(const std::string& path);

}  // namespace leat::exec
