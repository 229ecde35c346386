#include "engine/exec/test/test_graph.h"

#include <onnx/onnx_pb.h>

#include <fstream>

namespace leat::exec {
namespace {

int type_of(TestGraph::Type type) {
  switch (type) {
    case TestGraph::f32:
      return onnx::TensorProto_DataType_FLOAT;
    case TestGraph::f16:
      return onnx::TensorProto_DataType_FLOAT16;
    case TestGraph::u8:
      return onnx::TensorProto_DataType_UINT8;
    case TestGraph::i64:
      return onnx::TensorProto_DataType_INT64;
    case TestGraph::i32:
      return onnx::TensorProto_DataType_INT32;
  }
  return 0;
}

}  // namespace

struct TestGraph::State {
  onnx::ModelProto model;
  int made = 0;

  std::string name_or(const std::string& name) { return name.empty() ? "t" + std::to_string(made++) : name; }
  void describe(onnx::ValueInfoProto* to, const std::string& name, Type type, const std::vector<Dim>& dims) {
    to->set_name(name);
    auto* t = to->mutable_type()->mutable_tensor_type();
    t->set_elem_type(type_of(type));
    auto* shape = t->mutable_shape();
    for (const Dim& d : dims) {
      auto* dim = shape->add_dim();
      if (d.name.empty())
        dim->set_dim_value(d.number);
      else
        dim->set_dim_param(d.name);
    }
  }
  onnx::TensorProto* initializer(const std::string& name, Type type, const std::vector<std::int64_t>& dims) {
    auto* t = model.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(type_of(type));
    for (const auto d : dims) t->add_dims(d);
    return t;
  }
};

TestGraph::TestGraph() : state_(std::make_unique<State>()) {
  state_->model.set_ir_version(8);
  auto* opset = state_->model.add_opset_import();
  opset->set_domain("");
  opset->set_version(16);
  state_->model.mutable_graph()->set_name("test");
}
TestGraph::~TestGraph() = default;
TestGraph::TestGraph(TestGraph&&) noexcept = default;
TestGraph& TestGraph::operator=(TestGraph&&) noexcept = default;

std::string TestGraph::input(const std::string& name, Type type, const std::vector<Dim>& dims) {
  state_->describe(state_->model.mutable_graph()->add_input(), name, type, dims);
  return name;
}

std::string TestGraph::constant(const std::string& name, const std::vector<std::int64_t>& dims,
                                const std::vector<float>& values) {
  const std::string out = state_->name_or(name);
  auto* t = state_->initializer(out, f32, dims);
  for (const float v : values) t->add_float_data(v);
  return out;
}

std::string TestGraph::integers(const std::string& name, const std::vector<std::int64_t>& dims,
                                const std::vector<std::int64_t>& values, Type type) {
  const std::string out = state_->name_or(name);
  auto* t = state_->initializer(out, type, dims);
  for (const auto v : values) {
    if (type == i64)
      t->add_int64_data(v);
    else
      t->add_int32_data(static_cast<std::int32_t>(v));
  }
  return out;
}

std::string TestGraph::op(const std::string& type, const std::vector<std::string>& in, const std::string& out,
                          const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& lists,
                          const std::vector<std::pair<std::string, std::int64_t>>& numbers) {
  auto* node = state_->model.mutable_graph()->add_node();
  node->set_op_type(type);
  for (const auto& name : in) node->add_input(name);
  node->add_output(state_->name_or(out));
  for (const auto& [name, values] : lists) {
    auto* a = node->add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto_AttributeType_INTS);
    for (const auto v : values) a->add_ints(v);
  }
  for (const auto& [name, value] : numbers) {
    auto* a = node->add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto_AttributeType_INT);
    a->set_i(value);
  }
  return node->output(0);
}

std::string TestGraph::cast(const std::string& in, Type to, const std::string& out) {
  return op("Cast", {in}, out, {}, {{"to", type_of(to)}});
}

void TestGraph::output(const std::string& tensor, Type type, const std::vector<Dim>& dims) {
  state_->describe(state_->model.mutable_graph()->add_output(), tensor, type, dims);
}

void TestGraph::metadata(const std::string& key, const std::string& value) {
  auto* entry = state_->model.add_metadata_props();
  entry->set_key(key);
  entry->set_value(value);
}

std::string TestGraph::bytes() const { return state_->model.SerializeAsString(); }
void TestGraph::save(const std::string& path) const { std::ofstream(path, std::ios::binary) << bytes(); }

}  // namespace leat::exec
