#include "engine/exec/recognise/graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "engine/exec/picture/half.h"

namespace leat::exec {
namespace {

constexpr int kMaxHeadNodes = 12;  // between the picture and the first operation that learned

bool one_of(const std::string& operation, std::initializer_list<const char*> known) {
  return std::any_of(known.begin(), known.end(), [&](const char* k) { return operation == k; });
}
bool moves_only(const std::string& operation) {
  return one_of(operation, {"Identity", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Flatten", "Cast",
                            "QuantizeLinear", "DequantizeLinear"});
}

using Makers = std::unordered_map<std::string, const onnx::NodeProto*>;
using Constants = std::unordered_map<std::string, const onnx::TensorProto*>;

const onnx::NodeProto* maker_of(std::string name, const Makers& makers) {
  for (std::size_t steps = 0; steps <= makers.size(); ++steps) {
    const auto at = makers.find(name);
    if (at == makers.end()) return nullptr;
    if (!moves_only(at->second->op_type()) || at->second->input_size() == 0) return at->second;
    name = at->second->input(0);
  }
  return nullptr;
}

Tail tail_of(const std::string& output, const Makers& makers) {
  const onnx::NodeProto* const node = maker_of(output, makers);
  if (node == nullptr) return {};
  Tail tail{.operation = node->op_type(), .joined = {}};
  if (tail.operation != "Concat") return tail;
  for (const std::string& part : node->input()) {
    const onnx::NodeProto* const made = maker_of(part, makers);
    tail.joined.push_back(made == nullptr ? "" : made->op_type());
  }
  return tail;
}

template <class T>
std::vector<double> raw_values(const std::string& bytes) {
  std::vector<double> out;
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T v;
    std::memcpy(&v, bytes.data() + at, sizeof v);
    out.push_back(static_cast<double>(v));
  }
  return out;
}

// The values of a constant of at most four; nothing where it has more, or none that are numbers.
std::optional<std::vector<double>> few_values(const onnx::TensorProto& t) {
  std::int64_t count = 1;
  for (const auto d : t.dims()) count *= d;
  if (count < 1 || count > 4) return std::nullopt;
  std::vector<double> out;
  switch (t.data_type()) {
    case onnx::TensorProto_DataType_FLOAT:
      out = raw_values<float>(t.raw_data());
      if (out.empty()) out.assign(t.float_data().begin(), t.float_data().end());
      break;
    case onnx::TensorProto_DataType_DOUBLE:
      out = raw_values<double>(t.raw_data());
      if (out.empty()) out.assign(t.double_data().begin(), t.double_data().end());
      break;
    case onnx::TensorProto_DataType_FLOAT16:
      for (const double bits : raw_values<std::uint16_t>(t.raw_data()))
        out.push_back(static_cast<double>(float_of_half(static_cast<std::uint16_t>(bits))));
      break;
    default:
      break;
  }
  if (out.size() != static_cast<std::size_t>(count)) return std::nullopt;
  return out;
}

// Reads what the graph does to its picture, node by node.
class Head {
 public:
  Head(const onnx::GraphProto& graph, const Constants& constants) : constants_(constants) {
    for (const auto& node : graph.node())
      if (node.op_type() != "Shape")
        for (const auto& in : node.input()) readers_[in].push_back(&node);
  }

  void read(const std::string& picture, ModelFacts& to) {
    std::string at = picture;
    for (int steps = 0; steps < kMaxHeadNodes; ++steps) {
      const auto found = readers_.find(at);
      if (found == readers_.end() || found->second.size() != 1 || !step(*found->second[0], at)) break;
      at = found->second[0]->output(0);
    }
    to.norm = norm_;
    const auto found = readers_.find(at);
    if (found == readers_.end()) return;
    for (const onnx::NodeProto* const node : found->second)
      if (node->op_type().find("Conv") != std::string::npos) to.stem = std::max(to.stem, side_of(*node));
  }

 private:
  // What the node does to `in`; false: something else than a normalisation.
  bool step(const onnx::NodeProto& node, const std::string& in) {
    const std::string& type = node.op_type();
    if (moves_only(type) || one_of(type, {"Resize", "Pad", "Clip"})) return node.output_size() > 0;
    if (type == "BatchNormalization" && node.input_size() == 5) return batch_norm(node);
    if (!one_of(type, {"Sub", "Add", "Mul", "Div"}) || node.input_size() != 2) return false;
    const bool first = node.input(0) == in;
    const auto v = values(node.input(first ? 1 : 0));
    if (!v || (!first && (type == "Sub" || type == "Div"))) return false;
    for (std::size_t c = 0; c < v->size(); ++c)
      if (type == "Div" && (*v)[c] == 0) return false;
    widen(v->size());
    if (v->size() != 1 && v->size() != norm_.scale.size()) return false;
    for (std::size_t c = 0; c < norm_.scale.size(); ++c) {
      const double k = (*v)[v->size() == 1 ? 0 : c];
      if (type == "Sub") norm_.shift[c] -= k;
      if (type == "Add") norm_.shift[c] += k;
      if (type == "Mul") norm_.scale[c] *= k, norm_.shift[c] *= k;
      if (type == "Div") norm_.scale[c] /= k, norm_.shift[c] /= k;
    }
    return true;
  }
  bool batch_norm(const onnx::NodeProto& node) {
    const auto gain = values(node.input(1)), bias = values(node.input(2)), mean = values(node.input(3)),
               variance = values(node.input(4));
    if (!gain || !bias || !mean || !variance) return false;
    double min = 1e-5;
    for (const auto& a : node.attribute())
      if (a.name() == "epsilon") min = static_cast<double>(a.f());
    widen(gain->size());
    if (bias->size() != gain->size() || mean->size() != gain->size() || variance->size() != gain->size() ||
        norm_.scale.size() != gain->size())
      return false;
    for (std::size_t c = 0; c < gain->size(); ++c) {
      const double k = (*gain)[c] / std::sqrt((*variance)[c] + min);
      norm_.scale[c] *= k, norm_.shift[c] = (norm_.shift[c] - (*mean)[c]) * k + (*bias)[c];
    }
    norm_.learned = true;
    return true;
  }
  // Room for one entry, or for one a channel.
  void widen(std::size_t channels) {
    if (norm_.none()) norm_.scale = {1}, norm_.shift = {0};
    if (norm_.scale.size() == 1 && channels > 1)
      norm_.scale.resize(channels, norm_.scale[0]), norm_.shift.resize(channels, norm_.shift[0]);
  }
  [[nodiscard]] std::optional<std::vector<double>> values(const std::string& name) const {
    const auto at = constants_.find(name);
    return at == constants_.end() ? std::nullopt : few_values(*at->second);
  }
  [[nodiscard]] std::int64_t side_of(const onnx::NodeProto& convolution) const {
    for (const auto& a : convolution.attribute())
      if (a.name() == "kernel_shape" && a.ints_size() > 0) return *std::max_element(a.ints().begin(), a.ints().end());
    const auto weights = convolution.input_size() > 1 ? constants_.find(convolution.input(1)) : constants_.end();
    if (weights == constants_.end() || weights->second->dims_size() != 4) return 1;
    return std::max(weights->second->dims(2), weights->second->dims(3));
  }

  const Constants& constants_;
  std::unordered_map<std::string, std::vector<const onnx::NodeProto*>> readers_;
  GraphNorm norm_;
};

}  // namespace

void read_graph(const onnx::GraphProto& graph, ModelFacts& f) {
  Makers makers;
  Constants constants;
  f.names = "\n";
  const auto name = [&](const std::string& text) {
    if (!text.empty()) f.names += text + "\n";
  };
  for (const auto& t : graph.initializer()) constants[t.name()] = &t, name(t.name());
  for (const auto& node : graph.node()) {
    ++f.operations[node.op_type()];
    name(node.name());
    for (const auto& out : node.output()) makers[out] = &node;
    if (node.op_type() != "Constant" || node.output_size() == 0) continue;
    for (const auto& a : node.attribute())
      if (a.name() == "value" && a.has_t()) constants[node.output(0)] = &a.t();
  }
  for (const ModelPort& out : f.outputs) f.tails.push_back(tail_of(out.name, makers));
  if (const ModelPort* const picture = f.picture()) Head(graph, constants).read(picture->name, f);
}

}  // namespace leat::exec
