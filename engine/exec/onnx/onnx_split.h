// Where an ONNX model can be cut into blocks, and the sub-models between two cuts.
//
// A cut point is a place in the model's topological order where exactly one activation is alive: everything behind it
// depends on everything before it through that one tensor alone (constants are not activations; each block gets its
// own). Its first dimension must be the batch and the others numbers, so that the rows of a batch can be handed over as
// they lie. A block range [first, end) over chosen cuts c_1..c_n runs from c_first (0: the model's inputs) to c_end (n
// + 1: its outputs). A chosen cut may be handed over in half precision (half_cut()): the block before it then ends in a
// cast to float16 and the one behind it begins with a cast back, so that what crosses has half the bytes (PPipe's
// halving of feature maps). Ownership: a graph owns its model; values are copies. Thread rule: const members from any
// thread. Control plane: allocates. Errors: one line, "NAME: what is wrong; what to do".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/result.hpp"

namespace leat::exec {

struct OnnxCut {
  std::string tensor;
  std::vector<std::int64_t> shape;  // of one item: without the batch
  std::uint64_t item_bytes = 0;
  std::uint32_t layers_before = 0;  // layers (nodes that are no constants) before the cut
  bool single = false;              // it is in float32, and can be handed over in half precision
  bool fuses = false;  // the layer behind it would be fused with the one before it, so that cutting here costs time
};

class OnnxGraph {
 public:
  static Result<OnnxGraph> read(const std::string& path);
  static Result<OnnxGraph> parse(std::string_view bytes, const std::string& name);  // name: for messages
  ~OnnxGraph();
  OnnxGraph(OnnxGraph&&) noexcept;
  OnnxGraph& operator=(OnnxGraph&&) noexcept;

  const std::vector<OnnxCut>& cuts() const;       // in the model's order
  std::vector<std::int64_t> input_shape() const;  // one item of the first input; empty: not known
  std::int64_t fixed_batch() const;               // 0: the batch is open
  std::uint32_t layers() const;                   // nodes that are no constants and that an output needs
  bool external_weights() const;     // some are in files beside the model's; a block finds them in the same folder
  std::string why_few_cuts() const;  // empty, or what kept shapes from being known

  // The model of block range [first, end), serialised; `cuts` names the chosen tensors in order. The whole range is the
  // model itself.
  Result<std::string> block(std::span<const std::string> cuts, std::uint32_t first, std::uint32_t end) const;
  // Weights of a block range, and the most that its activations of `batch` items need at any one time.
  Result<std::uint64_t> memory_bytes(std::span<const std::string> cuts, std::uint32_t first, std::uint32_t end,
                                     std::uint32_t batch) const;

  // Every float matrix and filter drawn anew from a normal distribution of variance 2 / fan-in (activations keep their
  // size from layer to layer); vectors stay. For models whose published weights are constants.
  void randomize_weights(std::uint64_t seed);
  Result<std::string> serialize() const;

 private:
  struct State;
  explicit OnnxGraph(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The cut at a tensor, handed over in float16: a name for block(), profiles and plans like the tensor's own. Where the
// tensor is in no float32, nothing is cast.
std::string half_cut(const std::string& tensor);
bool is_half_cut(std::string_view cut);
std::string tensor_of_cut(const std::string& cut);

// Names of cuts as one value of leat_session_options::extra ("cuts=..."), and back.
std::string join_cuts(std::span<const std::string> cuts);
std::vector<std::string> parse_cuts(std::string_view line);

}  // namespace leat::exec
