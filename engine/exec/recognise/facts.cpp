#include "engine/exec/recognise/facts.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "engine/exec/model_files/pinned_models.h"
#include "engine/exec/recognise/graph.h"

namespace leat::exec {
namespace {

std::uint32_t dtype_of(int type) {
  switch (type) {
    case onnx::TensorProto_DataType_UINT8:
      return LEAT_U8;
    case onnx::TensorProto_DataType_INT32:
      return LEAT_I32;
    case onnx::TensorProto_DataType_INT64:
      return LEAT_I64;
    case onnx::TensorProto_DataType_FLOAT16:
      return LEAT_F16;
    default:
      return LEAT_F32;
  }
}

ModelPort port_of(const onnx::ValueInfoProto& value) {
  ModelPort out{.name = value.name(), .shape = {}, .dtype = dtype_of(value.type().tensor_type().elem_type())};
  for (const auto& dim : value.type().tensor_type().shape().dim())
    out.shape.push_back(dim.has_dim_value() && dim.dim_value() > 0 ? dim.dim_value() : -1);
  return out;
}

const ModelPort* named(const std::vector<ModelPort>& ports, std::string_view name) {
  const auto at = std::find_if(ports.begin(), ports.end(), [&](const ModelPort& p) { return p.name == name; });
  return at == ports.end() ? nullptr : &*at;
}

bool channels(std::int64_t n) { return n == 1 || n == 3 || n == 4; }

}  // namespace

std::string ModelPort::text() const {
  std::string out = name + " [";
  for (std::size_t d = 0; d < shape.size(); ++d)
    out += (d == 0 ? "" : ", ") + (shape[d] < 0 ? std::string("?") : std::to_string(shape[d]));
  return out + "]";
}

const ModelPort* ModelFacts::input(std::string_view name) const { return named(inputs, name); }
const ModelPort* ModelFacts::output(std::string_view name) const { return named(outputs, name); }
std::string ModelFacts::meta(const std::string& key) const {
  const auto at = metadata.find(key);
  return at == metadata.end() ? std::string() : at->second;
}
std::string ModelFacts::outputs_text() const {
  std::string out;
  for (const ModelPort& p : outputs) out += (out.empty() ? "" : ", ") + p.text();
  return out;
}

const ModelPort* ModelFacts::picture() const {
  for (const ModelPort& p : inputs) {
    if (p.rank() != 3 && p.rank() != 4) continue;
    const int first = static_cast<int>(p.rank()) - 3;
    if (channels(p.dim(first)) || channels(p.dim(-1)) || p.dim(first) < 0) return &p;
  }
  return nullptr;
}
bool ModelFacts::nhwc() const {
  const ModelPort* const p = picture();
  return p != nullptr && !channels(p->dim(static_cast<int>(p->rank()) - 3)) && channels(p->dim(-1));
}
std::int64_t ModelFacts::width() const {
  const ModelPort* const p = picture();
  return p == nullptr ? -1 : p->dim(nhwc() ? -2 : -1);
}
std::int64_t ModelFacts::height() const {
  const ModelPort* const p = picture();
  return p == nullptr ? -1 : p->dim(nhwc() ? -3 : -2);
}

const std::string& ModelFacts::last(std::size_t o) const {
  static const std::string kNone;
  return o < tails.size() ? tails[o].operation : kNone;
}

Result<ModelFacts> read_facts(const std::string& path) {
  std::ifstream file(pinned_path(path), std::ios::binary);
  onnx::ModelProto model;
  if (!file) return Error{path + ": cannot be read; correct the path, and check that this user may read it"};
  if (file.peek() == std::ifstream::traits_type::eof())
    return Error{path + ": is empty; copy or download the model again"};
  if (!model.ParseFromIstream(&file))
    return Error{path + ": is not an ONNX model; name an ONNX file, or copy or download it again"};
  if (model.graph().output_size() == 0)
    return Error{path + ": is an ONNX file without a graph; copy or download the model again"};
  ModelFacts f;
  f.path = path;
  f.producer = model.producer_name();
  for (const auto& entry : model.metadata_props()) f.metadata[entry.key()] = entry.value();
  const auto& graph = model.graph();
  std::set<std::string> constants;
  for (const auto& t : graph.initializer()) constants.insert(t.name());
  for (const auto& in : graph.input())
    if (!constants.contains(in.name())) f.inputs.push_back(port_of(in));
  for (const auto& out : graph.output()) f.outputs.push_back(port_of(out));
  read_graph(graph, f);
  return f;
}

}  // namespace leat::exec
