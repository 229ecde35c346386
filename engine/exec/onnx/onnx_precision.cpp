#include "engine/exec/onnx/onnx_precision.h"

#include <onnx/onnx_pb.h>

#include <fstream>
#include <iterator>
#include <set>

#include "engine/exec/model_files/pinned_models.h"

namespace leat::exec {
namespace {

bool is_half(int type) { return type == onnx::TensorProto::FLOAT16 || type == onnx::TensorProto::BFLOAT16; }

}  // namespace

Precision precision_in(std::string_view bytes) {
  onnx::ModelProto model;
  Precision out;
  if (bytes.size() > INT32_MAX || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return out;
  std::set<std::string> singles;  // float32 filters and matrices
  for (const auto& w : model.graph().initializer()) {
    if (w.dims_size() < 2) continue;
    out.half = out.half || is_half(w.data_type());
    if (w.data_type() == onnx::TensorProto::FLOAT) singles.insert(w.name());
  }
  for (const auto& i : model.graph().input()) out.half = out.half || is_half(i.type().tensor_type().elem_type());
  for (const auto& node : model.graph().node()) {
    if (node.op_type() == "Cast") {
      for (const auto& a : node.attribute())
        out.half = out.half || (a.name() == "to" && is_half(static_cast<int>(a.i())));
      continue;
    }
    for (const auto& a : node.attribute()) {
      if (node.op_type() != "Constant" || a.name() != "value" || a.t().dims_size() < 2) continue;
      out.half = out.half || is_half(a.t().data_type());
      if (a.t().data_type() == onnx::TensorProto::FLOAT) singles.insert(node.output(0));
    }
    for (const std::string& in : node.input()) out.single = out.single || singles.contains(in);
  }
  return out;
}

Precision precision_of(const std::string& path) {
  std::ifstream file(pinned_path(path), std::ios::binary);
  return precision_in(std::string{std::istreambuf_iterator<char>(file), {}});
}

}  // namespace leat::exec
