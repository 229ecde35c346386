#include "engine/exec/test/test_models.h"

#include <onnx/onnx_pb.h>

#include <cmath>
#include <fstream>
#include <random>

namespace leat::exec {

struct TestModel::State {
  onnx::ModelProto model;
  std::mt19937_64 random;
  int made = 0;

  std::string fresh(std::string_view type) { return std::string(type) + "_" + std::to_string(made++); }
  std::string weights(std::vector<std::int64_t> dims, float deviation) {
    onnx::TensorProto* t = model.mutable_graph()->add_initializer();
    t->set_name(fresh("w"));
    t->set_data_type(onnx::TensorProto_DataType_FLOAT);
    std::int64_t count = 1;
    for (const auto d : dims) t->add_dims(d), count *= d;
    std::normal_distribution<float> normal(0, deviation);
    for (std::int64_t i = 0; i < count; ++i) t->add_float_data(normal(random));
    return t->name();
  }
};

TestModel::TestModel(std::uint64_t seed, std::int64_t batch, std::int64_t channels, std::int64_t size)
    : state_(std::make_unique<State>()) {
  state_->random.seed(seed);
  state_->model.set_ir_version(7);
  auto* opset = state_->model.add_opset_import();
  opset->set_domain("");
  opset->set_version(13);
  auto* graph = state_->model.mutable_graph();
  graph->set_name("test");
  auto* input = graph->add_input();
  input->set_name("x");
  auto* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto_DataType_FLOAT);
  auto* first = type->mutable_shape()->add_dim();
  if (batch > 0)
    first->set_dim_value(batch);
  else
    first->set_dim_param("n");
  for (const auto d : {channels, size, size}) type->mutable_shape()->add_dim()->set_dim_value(d);
}
TestModel::~TestModel() = default;

std::string TestModel::op(std::string_view type, std::vector<std::string> in) {
  auto* node = state_->model.mutable_graph()->add_node();
  node->set_op_type(std::string(type));
  for (auto& name : in) node->add_input(std::move(name));
  node->add_output(state_->fresh(type));
  return node->output(0);
}

std::string TestModel::conv(const std::string& in, std::int64_t from, std::int64_t to, std::int64_t kernel,
                            std::int64_t stride) {
  const std::string w =
      state_->weights({to, from, kernel, kernel}, std::sqrt(2.0F / static_cast<float>(from * kernel * kernel)));
  const std::string b = state_->weights({to}, 0.1F);
  const std::string out = op("Conv", {in, w, b});
  auto* node = state_->model.mutable_graph()->mutable_node(state_->model.graph().node_size() - 1);
  const auto list = [node](const char* name, std::vector<std::int64_t> values) {
    auto* a = node->add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto_AttributeType_INTS);
    for (const auto v : values) a->add_ints(v);
  };
  list("strides", {stride, stride});
  list("pads", {kernel / 2, kernel / 2, kernel / 2, kernel / 2});
  return out;
}

std::string TestModel::constant(const std::vector<std::int64_t>& values) {
  const std::string out = op("Constant", {});
  auto* a = state_->model.mutable_graph()->mutable_node(state_->model.graph().node_size() - 1)->add_attribute();
  a->set_name("value");
  a->set_type(onnx::AttributeProto_AttributeType_TENSOR);
  a->mutable_t()->set_data_type(onnx::TensorProto_DataType_INT64);
  a->mutable_t()->add_dims(static_cast<std::int64_t>(values.size()));
  for (const auto v : values) a->mutable_t()->add_int64_data(v);
  return out;
}

void TestModel::output(const std::string& tensor) {
  auto* o = state_->model.mutable_graph()->add_output();
  o->set_name(tensor);
  o->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto_DataType_FLOAT);
}

std::string TestModel::bytes() const { return state_->model.SerializeAsString(); }

std::string chain_model(std::uint64_t seed, int pairs, std::int64_t batch, std::int64_t channels, std::int64_t size) {
  TestModel m(seed, batch, channels, size);
  std::string at = "x";
  for (int i = 0; i < pairs; ++i) at = m.relu(m.conv(at, channels, channels));
  m.output(at);
  return m.bytes();
}

std::string residual_model(std::uint64_t seed, int units, std::int64_t batch, std::int64_t channels,
                           std::int64_t size) {
  TestModel m(seed, batch, 3, size);
  std::string at = m.relu(m.conv("x", 3, channels));
  for (int i = 0; i < units; ++i) {
    const std::string inner = m.relu(m.conv(at, channels, channels));
    at = m.relu(m.op("Add", {m.conv(inner, channels, channels), at}));
  }
  at = m.op("GlobalAveragePool", {at});
  m.output(m.op("Reshape", {at, m.constant({-1, channels})}));
  return m.bytes();
}

std::string with_external_weights(const std::string& bytes, const std::string& folder) {
  onnx::ModelProto model;
  model.ParseFromString(bytes);
  std::ofstream file(folder + "/weights.bin", std::ios::binary);
  for (auto& t : *model.mutable_graph()->mutable_initializer()) {
    const auto entry = [&t](const char* key, const std::string& value) {
      auto* e = t.add_external_data();
      e->set_key(key);
      e->set_value(value);
    };
    const std::string raw(reinterpret_cast<const char*>(t.float_data().data()),
                          sizeof(float) * static_cast<std::size_t>(t.float_data_size()));
    entry("location", "weights.bin");
    entry("offset", std::to_string(file.tellp()));
    entry("length", std::to_string(raw.size()));
    t.clear_float_data();
    t.set_data_location(onnx::TensorProto_DataLocation_EXTERNAL);
    file << raw;
  }
  return model.SerializeAsString();
}

std::string branches_model(std::uint64_t seed, std::int64_t batch) {
  TestModel m(seed, batch, 3, 16);
  const std::string left = m.relu(m.conv("x", 3, 8)), right = m.relu(m.conv("x", 3, 8, 1));
  m.output(m.op("Add", {left, right}));
  return m.bytes();
}

}  // namespace leat::exec
