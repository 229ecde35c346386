#include "engine/exec/onnx/onnx_split.h"

#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "engine/exec/model_files/pinned_models.h"

namespace leat::exec {
namespace {

constexpr int kMaxRank = 8;           // of leat_tensor
constexpr int kSmallConstant = 4096;  // elements: a shape that a Reshape reads, never a weight
constexpr std::uint32_t kForever = UINT32_MAX;
constexpr char kBetweenCuts = '\t';
constexpr const char* kHalfCut = " as float16";  // behind the name of a cut
constexpr int kSingle = onnx::TensorProto_DataType_FLOAT, kHalf = onnx::TensorProto_DataType_FLOAT16;
constexpr const char* kBatchName = "n";

using Names = std::unordered_set<std::string>;

std::uint64_t element_bytes(int type) {
  switch (type) {
    case onnx::TensorProto_DataType_FLOAT:
    case onnx::TensorProto_DataType_INT32:
      return 4;
    case onnx::TensorProto_DataType_FLOAT16:
      return 2;
    case onnx::TensorProto_DataType_INT64:
      return 8;
    case onnx::TensorProto_DataType_UINT8:
      return 1;
    default:
      return 0;  // not a type of leat_tensor
  }
}

std::uint64_t elements(const onnx::TensorProto& t) {
  std::uint64_t out = 1;
  for (const auto d : t.dims()) out *= static_cast<std::uint64_t>(std::max<std::int64_t>(d, 0));
  return out;
}

std::uint64_t weight_bytes(const onnx::TensorProto& t) {
  const std::uint64_t known = element_bytes(t.data_type());
  return known > 0 ? elements(t) * known : t.ByteSizeLong();
}

struct Tensor {
  int type = 0;
  std::vector<std::int64_t> shape;  // of one item where it has a batch
  bool known = false;               // shape is
  bool batched = false;             // the batch is its first dimension
  std::uint64_t bytes() const {
    std::uint64_t out = element_bytes(type);
    for (const auto d : shape) out *= static_cast<std::uint64_t>(d);
    return out;
  }
};

// Where they are one tensor there is nothing to cast.
void add_cast(onnx::GraphProto& to, const std::string& from, const std::string& made, int type) {
  if (from == made) return;
  onnx::NodeProto* const node = to.add_node();
  node->set_op_type("Cast");
  node->set_name("cast to " + made);
  node->add_input(from);
  node->add_output(made);
  onnx::AttributeProto* const wanted = node->add_attribute();
  wanted->set_name("to");
  wanted->set_type(onnx::AttributeProto_AttributeType_INT);
  wanted->set_i(type);
}

// Everything a node reads: its inputs, and what the bodies of its loops and branches take from outside.
void add_reads(const onnx::NodeProto& node, std::vector<std::string>& out) {
  for (const std::string& name : node.input()) {
    if (!name.empty()) out.push_back(name);
  }
  const auto add_graph = [&out](const onnx::GraphProto& g) {
    for (const auto& inner : g.node()) add_reads(inner, out);
    for (const auto& o : g.output()) out.push_back(o.name());
  };
  for (const auto& a : node.attribute()) {
    if (a.has_g()) add_graph(a.g());
    for (const auto& g : a.graphs()) add_graph(g);
  }
}

bool draws_numbers(const onnx::NodeProto& node) {
  return node.op_type().starts_with("Random") || node.op_type() == "Multinomial" || node.op_type() == "Bernoulli";
}

// A runtime makes one kernel of these two, or runs the second in place.
bool fuses_after(const std::string& before, const std::string& behind) {
  static const std::set<std::string> kBefore{"Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "BatchNormalization"};
  static const std::set<std::string> kBehind{"Relu",        "LeakyRelu",          "Clip",    "Sigmoid", "Tanh",
                                             "HardSigmoid", "HardSwish",          "PRelu",   "Elu",     "Add",
                                             "Mul",         "BatchNormalization", "Dropout", "Identity"};
  return kBefore.contains(before) && kBehind.contains(behind);
}

// Names come from the file: anything may be in them.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  return text;
}

struct Layer {
  int node = 0;                    // index in the model's graph
  std::vector<std::string> reads;  // names that are no constants
};

}  // namespace

struct OnnxGraph::State {
  std::string name;
  onnx::ModelProto model;
  std::int64_t fixed_batch = 0;
  std::string inference_problem;
  std::map<std::string, Tensor> tensors;                // activations whose type is known
  std::unordered_map<std::string, int> constant_nodes;  // output of a constant node: its index
  std::unordered_map<std::string, int> initializers;    // index in the graph
  Names inputs, outputs;                                // of the graph, without initializers
  std::vector<Layer> layers;                            // needed, in topological order
  std::unordered_map<std::string, std::uint32_t>
      last_use;  // activation: the last layer that reads it, kForever for outputs
  std::vector<OnnxCut> cuts;

  bool constant(const std::string& n) const { return constant_nodes.contains(n) || initializers.contains(n); }
  Error error(const std::string& text) const { return Error{one_line(name + ": " + text)}; }
  Status index();
  void infer();
  bool infer_at(std::int64_t batch, std::map<std::string, Tensor>* out);
  void find_cuts();
  void add_cut(std::uint32_t layer, const std::string& tensor);
  onnx::ValueInfoProto boundary(const std::string& cut) const;
  std::string handed_over(const std::string& cut) const;
  Result<std::pair<std::uint32_t, std::uint32_t>> layer_range(std::span<const std::string> names, std::uint32_t first,
                                                              std::uint32_t end) const;
  std::vector<int> constants_of(std::uint32_t from, std::uint32_t to, Names* used) const;
};

// Constants, the layers that an output needs, and who reads what last.
Status OnnxGraph::State::index() {
  const onnx::GraphProto& g = model.graph();
  if (g.node_size() == 0 || g.output_size() == 0)
    return error("is an ONNX file without a graph; copy or download the model again");
  for (int i = 0; i < g.initializer_size(); ++i) initializers.emplace(g.initializer(i).name(), i);
  for (int i = 0; i < g.sparse_initializer_size(); ++i)
    initializers.emplace(g.sparse_initializer(i).values().name(), -1);
  for (const auto& i : g.input()) {
    if (!initializers.contains(i.name())) inputs.insert(i.name());
  }
  if (inputs.empty()) return error("has no input; name a model that takes frames");
  for (const auto& o : g.output()) outputs.insert(o.name());
  Names defined = inputs;
  std::unordered_map<std::string, int> producer;
  for (int i = 0; i < g.node_size(); ++i) {
    std::vector<std::string> reads;
    add_reads(g.node(i), reads);
    bool fixed = !draws_numbers(g.node(i));
    for (const auto& r : reads) fixed = fixed && !defined.contains(r);
    for (const auto& r : g.node(i).input()) {
      if (!r.empty() && !defined.contains(r) && !constant(r))
        return error("node '" + g.node(i).op_type() + "' reads '" + r +
                     "', which nothing before it makes; export the model in topological order");
    }
    for (const auto& o : g.node(i).output()) {
      if (o.empty()) continue;
      if (fixed)
        constant_nodes.emplace(o, i);
      else
        defined.insert(o), producer.emplace(o, i);
    }
  }
  std::vector<bool> needed(static_cast<std::size_t>(g.node_size()), false);
  Names wanted = outputs;
  for (int i = g.node_size() - 1; i >= 0; --i) {
    const auto& made = g.node(i).output();
    if (made.empty() || std::none_of(made.begin(), made.end(),
                                     [&](const auto& o) { return producer.contains(o) && wanted.contains(o); }))
      continue;
    needed[static_cast<std::size_t>(i)] = true;
    std::vector<std::string> reads;
    add_reads(g.node(i), reads);
    wanted.insert(reads.begin(), reads.end());
  }
  for (int i = 0; i < g.node_size(); ++i) {
    if (!needed[static_cast<std::size_t>(i)]) continue;
    Layer layer{.node = i, .reads = {}};
    std::vector<std::string> reads;
    add_reads(g.node(i), reads);
    for (const auto& r : reads) {
      if (!defined.contains(r)) continue;
      layer.reads.push_back(r);
      last_use[r] = static_cast<std::uint32_t>(layers.size());
    }
    layers.push_back(std::move(layer));
  }
  for (const auto& o : outputs) last_use[o] = kForever;
  if (layers.empty()) return error("none of its outputs depends on an input; name a model that computes something");
  return Done{};
}

// Shapes with the batch set to a number, on a copy without weights.
bool OnnxGraph::State::infer_at(std::int64_t batch, std::map<std::string, Tensor>* out) {
  onnx::ModelProto light;
  light.set_ir_version(model.ir_version());
  *light.mutable_opset_import() = model.opset_import();
  *light.mutable_functions() = model.functions();
  onnx::GraphProto* g = light.mutable_graph();
  g->set_name(model.graph().name());
  *g->mutable_node() = model.graph().node();
  *g->mutable_input() = model.graph().input();
  for (const auto& t : model.graph().initializer()) {
    onnx::TensorProto* copy = g->add_initializer();
    if (elements(t) <= kSmallConstant) {
      *copy = t;
      continue;
    }
    copy->set_name(t.name());
    copy->set_data_type(t.data_type());
    *copy->mutable_dims() = t.dims();
  }
  for (auto& i : *g->mutable_input()) {
    if (!inputs.contains(i.name()) || !i.type().has_tensor_type()) continue;
    auto* shape = i.mutable_type()->mutable_tensor_type()->mutable_shape();
    if (shape->dim_size() > 0 && !shape->dim(0).has_dim_value()) shape->mutable_dim(0)->set_dim_value(batch);
  }
  for (const auto& o : model.graph().output()) {
    onnx::ValueInfoProto* bare = g->add_output();
    bare->set_name(o.name());
    bare->mutable_type()->mutable_tensor_type()->set_elem_type(o.type().tensor_type().elem_type());
  }
  try {
    onnx::shape_inference::InferShapes(light, onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions(false, 0, true));
  } catch (const std::exception& e) {
    inference_problem = one_line(e.what());
    return false;
  }
  const auto keep = [out](const onnx::ValueInfoProto& v) {
    const auto& type = v.type().tensor_type();
    Tensor t{.type = type.elem_type(), .shape = {}, .known = type.has_shape() && type.shape().dim_size() <= kMaxRank};
    for (const auto& d : type.shape().dim()) {
      t.known = t.known && d.has_dim_value() && d.dim_value() > 0;
      t.shape.push_back(d.dim_value());
    }
    (*out)[v.name()] = std::move(t);
  };
  for (const auto& v : g->value_info()) keep(v);
  for (const auto& v : g->input()) keep(v);
  for (const auto& v : g->output()) keep(v);
  return true;
}

// A tensor has the batch as its first dimension if that, and nothing else, follows the batch. Where the model fixes the
// batch only one size can be looked at.
void OnnxGraph::State::infer() {
  for (const auto& i : model.graph().input()) {
    const auto& shape = i.type().tensor_type().shape();
    if (inputs.contains(i.name()) && shape.dim_size() > 0 && shape.dim(0).has_dim_value() &&
        shape.dim(0).dim_value() > 0)
      fixed_batch = shape.dim(0).dim_value();
  }
  const std::int64_t low = fixed_batch > 0 ? fixed_batch : 1, high = fixed_batch > 0 ? fixed_batch : 2;
  std::map<std::string, Tensor> at_low, at_high;
  if (!infer_at(low, &at_low) || !infer_at(high, &at_high)) return;
  for (auto& [tensor, t] : at_low) {
    const Tensor& other = at_high[tensor];
    const bool alike = t.known && other.known && t.shape.size() == other.shape.size() && !t.shape.empty() &&
                       std::equal(t.shape.begin() + 1, t.shape.end(), other.shape.begin() + 1);
    t.batched = alike && t.shape[0] == low && other.shape[0] == high;
    if (t.batched) t.shape.erase(t.shape.begin());
    tensors.emplace(tensor, t);
  }
}

void OnnxGraph::State::add_cut(std::uint32_t layer, const std::string& tensor) {
  const auto found = tensors.find(tensor);
  if (found == tensors.end() || !found->second.batched || element_bytes(found->second.type) == 0 ||
      inputs.contains(tensor) || outputs.contains(tensor))
    return;
  if (one_line(tensor) != tensor) return;  // it could not be named in a profile
  const onnx::NodeProto& before = model.graph().node(layers[layer].node);
  const Layer* reader = nullptr;
  int readers = 0;
  for (std::uint32_t i = layer + 1; i < layers.size(); ++i) {
    if (std::find(layers[i].reads.begin(), layers[i].reads.end(), tensor) == layers[i].reads.end()) continue;
    if (readers++ == 0) reader = &layers[i];
  }
  const bool fuses = readers == 1 && fuses_after(before.op_type(), model.graph().node(reader->node).op_type());
  cuts.push_back({.tensor = tensor,
                  .shape = found->second.shape,
                  .item_bytes = found->second.bytes(),
                  .layers_before = layer + 1,
                  .single = found->second.type == onnx::TensorProto_DataType_FLOAT,
                  .fuses = fuses});
}

void OnnxGraph::State::find_cuts() {
  std::set<std::string> live;
  for (const auto& i : inputs) {
    if (last_use.contains(i)) live.insert(i);
  }
  for (std::uint32_t i = 0; i + 1 < layers.size(); ++i) {
    for (const auto& o : model.graph().node(layers[i].node).output()) {
      const auto use = last_use.find(o);
      if (use != last_use.end() && use->second > i) live.insert(o);
    }
    for (const auto& r : layers[i].reads) {
      if (last_use.at(r) <= i) live.erase(r);
    }
    if (live.size() == 1) add_cut(i, *live.begin());
  }
}

// What crosses there: the tensor, or another made of it.
std::string OnnxGraph::State::handed_over(const std::string& cut) const {
  std::string tensor = tensor_of_cut(cut);
  if (is_half_cut(cut) && tensors.at(tensor).type == onnx::TensorProto_DataType_FLOAT) tensor += kHalfCut;
  return tensor;
}

onnx::ValueInfoProto OnnxGraph::State::boundary(const std::string& cut) const {
  const Tensor& t = tensors.at(tensor_of_cut(cut));
  onnx::ValueInfoProto out;
  out.set_name(handed_over(cut));
  auto* type = out.mutable_type()->mutable_tensor_type();
  type->set_elem_type(out.name() == tensor_of_cut(cut) ? t.type : onnx::TensorProto_DataType_FLOAT16);
  auto* batch = type->mutable_shape()->add_dim();
  if (fixed_batch > 0)
    batch->set_dim_value(fixed_batch);
  else
    batch->set_dim_param(kBatchName);
  for (const auto d : t.shape) type->mutable_shape()->add_dim()->set_dim_value(d);
  return out;
}

// Layers [from, to) of a block range. Refuses names that are no cut points, out of order or too few for the range.
Result<std::pair<std::uint32_t, std::uint32_t>> OnnxGraph::State::layer_range(std::span<const std::string> names,
                                                                              std::uint32_t first,
                                                                              std::uint32_t end) const {
  if (first >= end || end > names.size() + 1)
    return error("has " + std::to_string(names.size() + 1) + " blocks; blocks " + std::to_string(first) + " to " +
                 std::to_string(end) + " are not among them; name cuts for as many blocks as the plan has");
  std::uint32_t from = 0, to = static_cast<std::uint32_t>(layers.size()), before = 0;
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    const std::string tensor = tensor_of_cut(names[i]);
    const auto cut = std::find_if(cuts.begin(), cuts.end(), [&](const OnnxCut& c) { return c.tensor == tensor; });
    if (cut == cuts.end())
      return error("cannot be cut at '" + tensor +
                   "': it is not a tensor that alone is alive there; profile this model again");
    if (cut->layers_before <= before)
      return error("the cut at '" + names[i] + "' does not lie behind the one before it; profile this model again");
    before = cut->layers_before;
    if (i + 1 == first) from = before;
    if (i + 1 == end) to = before;
  }
  return std::pair{from, to};
}

// Constant nodes that layers [from, to) need, in order; all constant names they read, initializers too, into `used`.
std::vector<int> OnnxGraph::State::constants_of(std::uint32_t from, std::uint32_t to, Names* used) const {
  const onnx::GraphProto& g = model.graph();
  std::vector<std::string> open;
  for (std::uint32_t i = from; i < to; ++i) add_reads(g.node(layers[i].node), open);
  if (to == layers.size()) open.insert(open.end(), outputs.begin(), outputs.end());  // an output may be a constant
  std::set<int> nodes;
  while (!open.empty()) {
    const std::string tensor = std::move(open.back());
    open.pop_back();
    if (!constant(tensor) || !used->insert(tensor).second) continue;
    const auto made = constant_nodes.find(tensor);
    if (made != constant_nodes.end() && nodes.insert(made->second).second) add_reads(g.node(made->second), open);
  }
  return {nodes.begin(), nodes.end()};
}

OnnxGraph::OnnxGraph(std::unique_ptr<State> state) : state_(std::move(state)) {}
OnnxGraph::~OnnxGraph() = default;
OnnxGraph::OnnxGraph(OnnxGraph&&) noexcept = default;
OnnxGraph& OnnxGraph::operator=(OnnxGraph&&) noexcept = default;

Result<OnnxGraph> OnnxGraph::parse(std::string_view bytes, const std::string& name) {
  static google::protobuf::LogHandler* const kSilenced =
      google::protobuf::SetLogHandler(nullptr);  // our one line says it
  (void)kSilenced;
  auto state = std::make_unique<State>();
  state->name = name;
  if (bytes.empty()) return state->error("is empty; copy or download the model again");
  if (bytes.size() > INT32_MAX)
    return state->error("is larger than 2 GiB; export it with its weights in a file of their own");
  if (!state->model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return state->error("is not an ONNX model; name an ONNX file");
  if (auto status = state->index(); !status) return Error{status.error()};
  state->infer();
  state->find_cuts();
  return OnnxGraph(std::move(state));
}

Result<OnnxGraph> OnnxGraph::read(const std::string& path) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) return Error{path + ": is a directory; name an ONNX file"};
  std::ifstream file(pinned_path(path), std::ios::binary);
  if (!file) return Error{path + ": cannot be read: " + std::strerror(errno) + "; name an ONNX file"};
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return parse(bytes, path);
}

const std::vector<OnnxCut>& OnnxGraph::cuts() const { return state_->cuts; }
std::vector<std::int64_t> OnnxGraph::input_shape() const {
  for (const auto& i : state_->model.graph().input()) {
    const auto t = state_->tensors.find(i.name());
    if (state_->inputs.contains(i.name()))
      return t != state_->tensors.end() && t->second.batched ? t->second.shape : std::vector<std::int64_t>{};
  }
  return {};
}
std::int64_t OnnxGraph::fixed_batch() const { return state_->fixed_batch; }
std::uint32_t OnnxGraph::layers() const { return static_cast<std::uint32_t>(state_->layers.size()); }
bool OnnxGraph::external_weights() const {
  const auto& all = state_->model.graph().initializer();
  return std::any_of(all.begin(), all.end(), [](const onnx::TensorProto& t) {
    return t.data_location() == onnx::TensorProto_DataLocation_EXTERNAL;
  });
}
std::string OnnxGraph::why_few_cuts() const { return state_->inference_problem; }

Result<std::string> OnnxGraph::serialize() const {
  std::string out;
  if (state_->model.ByteSizeLong() > INT32_MAX || !state_->model.SerializeToString(&out))
    return state_->error("is larger than 2 GiB; keep its weights in a file of their own");
  return out;
}

Result<std::string> OnnxGraph::block(std::span<const std::string> names, std::uint32_t first, std::uint32_t end) const {
  const State& s = *state_;
  const auto range = s.layer_range(names, first, end);
  if (!range) return Error{range.error()};
  const auto [from, to] = *range;
  if (from == 0 && to == s.layers.size()) return serialize();
  const onnx::GraphProto& g = s.model.graph();
  Names used;
  std::vector<int> nodes = s.constants_of(from, to, &used);
  for (std::uint32_t i = from; i < to; ++i) nodes.push_back(s.layers[i].node);
  std::sort(nodes.begin(), nodes.end());

  onnx::ModelProto out;
  out.set_ir_version(s.model.ir_version());
  *out.mutable_opset_import() = s.model.opset_import();
  *out.mutable_functions() = s.model.functions();
  onnx::GraphProto* block = out.mutable_graph();
  block->set_name(g.name() + "/" + std::to_string(first) + "-" + std::to_string(end));
  if (first > 0) add_cast(*block, s.handed_over(names[first - 1]), tensor_of_cut(names[first - 1]), kSingle);
  for (const int i : nodes) *block->add_node() = g.node(i);
  if (end <= names.size()) add_cast(*block, tensor_of_cut(names[end - 1]), s.handed_over(names[end - 1]), kHalf);
  for (const auto& t : g.initializer()) {
    if (used.contains(t.name())) *block->add_initializer() = t;
  }
  for (const auto& t : g.sparse_initializer()) {
    if (used.contains(t.values().name())) *block->add_sparse_initializer() = t;
  }
  if (first > 0) *block->add_input() = s.boundary(names[first - 1]);
  for (const auto& i : g.input()) {
    if (s.inputs.contains(i.name()) ? first == 0 : used.contains(i.name()))
      *block->add_input() = i;  // old models list their weights as inputs
  }
  if (end <= names.size())
    *block->add_output() = s.boundary(names[end - 1]);
  else
    *block->mutable_output() = g.output();
  std::string bytes;
  if (out.ByteSizeLong() > INT32_MAX || !out.SerializeToString(&bytes))
    return s.error("a block of it is larger than 2 GiB; cut it into more blocks");
  return bytes;
}

Result<std::uint64_t> OnnxGraph::memory_bytes(std::span<const std::string> names, std::uint32_t first,
                                              std::uint32_t end, std::uint32_t batch) const {
  const State& s = *state_;
  const auto range = s.layer_range(names, first, end);
  if (!range) return Error{range.error()};
  Names used;
  std::uint64_t weights = 0;
  for (const int i : s.constants_of(range->first, range->second, &used))
    weights += s.model.graph().node(i).ByteSizeLong();
  for (const auto& t : s.model.graph().initializer()) weights += used.contains(t.name()) ? weight_bytes(t) : 0;
  const auto size = [&](const std::string& tensor) {
    const auto t = s.tensors.find(tensor);
    return t == s.tensors.end() ? 0 : t->second.bytes() * (t->second.batched ? batch : 1);
  };
  std::map<std::string, std::uint64_t> live;
  std::uint64_t now = 0, max = 0;
  const auto add = [&](const std::string& tensor) {
    if (live.emplace(tensor, size(tensor)).second) now += live[tensor];
  };
  for (std::uint32_t i = range->first; i < range->second; ++i) {
    for (const auto& r : s.layers[i].reads) add(r);  // what came in from before
    for (const auto& o : s.model.graph().node(s.layers[i].node).output()) {
      if (s.last_use.contains(o)) add(o);
    }
    max = std::max(max, now);
    for (const auto& r : s.layers[i].reads) {
      const auto it = live.find(r);
      if (it == live.end() || s.last_use.at(r) > i) continue;
      now -= it->second;
      live.erase(it);
    }
  }
  return weights + max;
}

void OnnxGraph::randomize_weights(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (auto& t : *state_->model.mutable_graph()->mutable_initializer()) {
    if (t.data_type() != onnx::TensorProto_DataType_FLOAT || t.dims_size() < 2 ||
        t.data_location() == onnx::TensorProto_DataLocation_EXTERNAL)
      continue;
    const std::uint64_t count = elements(t),
                        fan_in = std::max<std::uint64_t>(
                            1, count / static_cast<std::uint64_t>(std::max<std::int64_t>(1, t.dims(0))));
    std::normal_distribution<float> normal(0, std::sqrt(2.0F / static_cast<float>(fan_in)));
    std::string raw(count * sizeof(float), '\0');
    for (std::uint64_t i = 0; i < count; ++i) {
      const float value = normal(random);
      std::memcpy(raw.data() + i * sizeof value, &value, sizeof value);
    }
    t.clear_float_data();
    t.set_raw_data(std::move(raw));
  }
}

std::string half_cut(const std::string& tensor) { return tensor + kHalfCut; }
bool is_half_cut(std::string_view cut) { return cut.ends_with(kHalfCut); }
std::string tensor_of_cut(const std::string& cut) {
  return is_half_cut(cut) ? cut.substr(0, cut.size() - std::string_view(kHalfCut).size()) : cut;
}

std::string join_cuts(std::span<const std::string> cuts) {
  std::string out;
  for (const auto& c : cuts) out += (out.empty() ? "" : std::string(1, kBetweenCuts)) + c;
  return out;
}

std::vector<std::string> parse_cuts(std::string_view line) {
  std::vector<std::string> out;
  while (!line.empty()) {
    const std::size_t tab = std::min(line.find(kBetweenCuts), line.size());
    out.emplace_back(line.substr(0, tab));
    line.remove_prefix(std::min(tab + 1, line.size()));
  }
  return out;
}

}  // namespace leat::exec
