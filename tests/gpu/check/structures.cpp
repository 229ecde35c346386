#include "tests/gpu/check/structures.h"

#include <cmath>
#include <fstream>
#include <random>
#include <stdexcept>

#include "engine/exec/test/test_graph.h"
#include "tools/base/json/json.h"

namespace leat::check {
namespace {

constexpr int kClasses = 1000;

class Net {
 public:
  Net(std::string name, std::uint32_t seed) : random_(seed) { s_.name = std::move(name); }

  // gain: of the variance; less than 1 where a branch is added, so that sums do not grow.
  int conv(int in, int out, int kernel, int stride, const char* act, int groups = 1, float gain = 1) {
    Layer l{.op = "conv", .act = act, .in = {in}, .out = out, .kernel = kernel, .stride = stride, .pad = kernel / 2};
    l.groups = groups;
    return weighted(std::move(l), gain);
  }
  int dense(int in, int out) { return weighted({.op = "dense", .act = "", .in = {in}, .out = out}, 1); }
  int norm(int in) {
    Layer l{.op = "norm", .act = "relu", .in = {in}, .out = channels(in)};
    l.channels_in = l.out;
    for (int c = 0; c < l.out; ++c) {
      l.weight.push_back(0.7F + 0.01F * static_cast<float>(c % 7));
      l.bias.push_back(0.01F * static_cast<float>(c % 5 - 2));
    }
    return add_layer(std::move(l));
  }
  int pool(const char* op, int in, int kernel, int stride, int pad) {
    return add_layer(
        {.op = op, .act = "", .in = {in}, .out = channels(in), .kernel = kernel, .stride = stride, .pad = pad});
  }
  int global(int in) { return add_layer({.op = "global", .act = "", .in = {in}, .out = channels(in)}); }
  int sum(int a, int b, const char* act) {
    return add_layer({.op = "add", .act = act, .in = {a, b}, .out = channels(a)});
  }
  int concat(std::vector<int> in) {
    int all = 0;
    for (const int i : in) all += channels(i);
    return add_layer({.op = "concat", .act = "", .in = std::move(in), .out = all});
  }
  [[nodiscard]] int channels(int layer) const { return layer < 0 ? 3 : s_.layers[static_cast<std::size_t>(layer)].out; }
  void cut(int layer) { s_.cut = layer; }
  Structure take() { return std::move(s_); }

 private:
  int add_layer(Layer l) {
    s_.layers.push_back(std::move(l));
    return static_cast<int>(s_.layers.size()) - 1;
  }
  int weighted(Layer l, float gain) {
    l.channels_in = channels(l.in[0]);
    const int fan_in = l.channels_in / l.groups * l.kernel * l.kernel;
    std::normal_distribution<float> normal(
        0, std::sqrt((l.act.empty() ? 1.0F : 2.0F) * gain / static_cast<float>(fan_in)));
    l.weight.resize(static_cast<std::size_t>(l.out) * static_cast<std::size_t>(fan_in));
    for (float& w : l.weight) w = normal(random_);
    l.bias.resize(static_cast<std::size_t>(l.out));
    for (float& b : l.bias) b = 0.01F * normal(random_);
    return add_layer(std::move(l));
  }

  Structure s_;
  std::mt19937 random_;
};

Structure resnet(const std::string& name, std::uint32_t seed, const std::vector<int>& blocks, bool bottleneck) {
  Net n(name, seed);
  int x = n.pool("max", n.conv(-1, 64, 7, 2, "relu"), 3, 2, 1);
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const int width = 64 << stage, out = bottleneck ? 4 * width : width;
    for (int b = 0; b < blocks[stage]; ++b) {
      const int stride = stage != 0 && b == 0 ? 2 : 1;
      const int skip = n.channels(x) == out && stride == 1 ? x : n.conv(x, out, 1, stride, "");
      int y = bottleneck ? n.conv(x, width, 1, 1, "relu") : n.conv(x, width, 3, stride, "relu");
      if (bottleneck) y = n.conv(y, width, 3, stride, "relu");
      y = n.conv(y, out, bottleneck ? 1 : 3, 1, "", 1, 0.3F);
      x = n.sum(y, skip, "relu");
    }
    if (stage == 1) n.cut(x);
  }
  (void)n.dense(n.global(x), kClasses);
  return n.take();
}

Structure mobilenetv2(std::uint32_t seed) {
  Net n("mobilenetv2", seed);
  int x = n.conv(-1, 32, 3, 2, "relu6");
  constexpr int kTable[][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  for (const auto& [expand, out, count, first_stride] : kTable) {
    for (int b = 0; b < count; ++b) {
      const int stride = b == 0 ? first_stride : 1, in = n.channels(x), wide = in * expand;
      int y = expand == 1 ? x : n.conv(x, wide, 1, 1, "relu6");
      y = n.conv(y, wide, 3, stride, "relu6", wide);
      y = n.conv(y, out, 1, 1, "", 1, stride == 1 && in == out ? 0.3F : 1);
      x = stride == 1 && in == out ? n.sum(y, x, "") : y;
    }
    if (out == 64) n.cut(x);
  }
  (void)n.dense(n.global(n.conv(x, 1280, 1, 1, "relu6")), kClasses);
  return n.take();
}

Structure squeezenet(std::uint32_t seed) {
  Net n("squeezenet", seed);
  const auto fire = [&](int x, int squeeze, int expand) {
    const int s = n.conv(x, squeeze, 1, 1, "relu");
    return n.concat({n.conv(s, expand, 1, 1, "relu"), n.conv(s, expand, 3, 1, "relu")});
  };
  int x = n.pool("max", n.conv(-1, 64, 3, 2, "relu"), 3, 2, 0);
  x = n.pool("max", fire(fire(x, 16, 64), 16, 64), 3, 2, 0);
  x = n.pool("max", fire(fire(x, 32, 128), 32, 128), 3, 2, 0);
  n.cut(x);
  for (const int squeeze : {48, 48, 64, 64}) x = fire(x, squeeze, 4 * squeeze);
  (void)n.global(n.conv(x, kClasses, 1, 1, "relu"));
  return n.take();
}

Structure densenet121(std::uint32_t seed) {
  constexpr int kGrowth = 32;
  Net n("densenet121", seed);
  int x = n.pool("max", n.conv(-1, 64, 7, 2, "relu"), 3, 2, 1);
  constexpr int kBlocks[] = {6, 12, 24, 16};
  for (int stage = 0; stage < 4; ++stage) {
    std::vector<int> parts = {x};
    for (int b = 0; b < kBlocks[stage]; ++b) {
      const int all = parts.size() == 1 ? parts[0] : n.concat(parts);
      parts.push_back(n.conv(n.conv(n.norm(all), 4 * kGrowth, 1, 1, "relu"), kGrowth, 3, 1, ""));
    }
    x = n.norm(n.concat(parts));
    if (stage == 3) break;
    x = n.pool("mean", n.conv(x, n.channels(x) / 2, 1, 1, ""), 2, 2, 0);
    if (stage == 1) n.cut(x);
  }
  (void)n.dense(n.global(x), kClasses);
  return n.take();
}

// The weights of a layer as the network's type.
std::string constant(exec::TestGraph& g, const std::vector<std::int64_t>& dims, const std::vector<float>& values,
                     bool half) {
  const std::string c = g.constant("", dims, values);
  return half ? g.cast(c, exec::TestGraph::f16) : c;
}

std::string activated(exec::TestGraph& g, const std::string& x, const std::string& act, bool half) {
  if (act == "relu") return g.op("Relu", {x});
  if (act == "relu6") return g.op("Clip", {x, constant(g, {}, {0}, half), constant(g, {}, {6}, half)});
  return x;
}

std::string node_of(exec::TestGraph& g, const Layer& l, const std::vector<std::string>& in, bool half) {
  using Lists = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;
  const std::int64_t k = l.kernel, s = l.stride, p = l.pad, out = l.out;
  const Lists window = {{"kernel_shape", {k, k}}, {"strides", {s, s}}, {"pads", {p, p, p, p}}};
  if (l.op == "conv")
    return g.op(
        "Conv",
        {in[0], constant(g, {out, l.channels_in / l.groups, k, k}, l.weight, half), constant(g, {out}, l.bias, half)},
        "", window, {{"group", l.groups}});
  if (l.op == "max") return g.op("MaxPool", {in[0]}, "", window);
  if (l.op == "mean") return g.op("AveragePool", {in[0]}, "", window);
  if (l.op == "add") return g.op("Add", in);
  if (l.op == "concat") return g.op("Concat", in, "", {}, {{"axis", 1}});
  if (l.op == "global") return g.op("Flatten", {g.op("GlobalAveragePool", in)}, "", {}, {{"axis", 1}});
  if (l.op == "dense")
    return g.op("Gemm", {in[0], constant(g, {out, l.channels_in}, l.weight, half), constant(g, {out}, l.bias, half)},
                "", {}, {{"transB", 1}});
  if (l.op == "norm") {
    const std::string scaled = g.op("Mul", {in[0], constant(g, {1, out, 1, 1}, l.weight, half)});
    return g.op("Add", {scaled, constant(g, {1, out, 1, 1}, l.bias, half)});
  }
  throw std::runtime_error("no layer '" + l.op + "'");
}

}  // namespace

std::vector<std::string> structure_names() {
  return {"resnet18", "resnet50", "mobilenetv2", "squeezenet", "densenet121"};
}

Structure structure(const std::string& name, std::uint32_t seed) {
  if (name == "resnet18") return resnet(name, seed, {2, 2, 2, 2}, false);
  if (name == "resnet50") return resnet(name, seed, {3, 4, 6, 3}, true);
  if (name == "mobilenetv2") return mobilenetv2(seed);
  if (name == "squeezenet") return squeezenet(seed);
  if (name == "densenet121") return densenet121(seed);
  std::string all;
  for (const std::string& n : structure_names()) all += (all.empty() ? "" : ", ") + n;
  throw std::runtime_error("there is no structure '" + name + "', only " + all);
}

std::string write_structure(const Structure& s, const std::string& folder, bool half) {
  exec::TestGraph g;
  const std::string picture = g.input("picture", exec::TestGraph::f32, {"n", 3, kPicture, kPicture});
  const std::string first = half ? g.cast(picture, exec::TestGraph::f16) : picture;
  std::vector<std::string> made;
  Json layers = Json::array();
  std::ofstream weights(folder + "/" + s.name + ".bin", std::ios::binary);
  for (const Layer& l : s.layers) {
    std::vector<std::string> in;
    for (const int i : l.in) in.push_back(i < 0 ? first : made[static_cast<std::size_t>(i)]);
    made.push_back(activated(g, node_of(g, l, in, half), l.act, half));
    layers.push_back({{"op", l.op},
                      {"act", l.act},
                      {"in", l.in},
                      {"out", l.out},
                      {"kernel", l.kernel},
                      {"stride", l.stride},
                      {"pad", l.pad},
                      {"groups", l.groups},
                      {"channels_in", l.channels_in},
                      {"weights", l.weight.size()},
                      {"biases", l.bias.size()}});
    for (const auto* const list : {&l.weight, &l.bias})
      weights.write(reinterpret_cast<const char*>(list->data()),
                    static_cast<std::streamsize>(list->size() * sizeof(float)));
  }
  const std::string last = half ? g.cast(made.back(), exec::TestGraph::f32) : made.back();
  g.output(last, exec::TestGraph::f32, {"n", s.layers.back().out});
  g.save(folder + "/" + s.name + ".onnx");
  const std::string cut = made[static_cast<std::size_t>(s.cut)];
  std::ofstream(folder + "/" + s.name + ".json")
      << Json{{"name", s.name}, {"picture", kPicture}, {"cut", cut}, {"layers", layers}}.dump(1) << "\n";
  if (!weights) throw std::runtime_error(folder + ": the weights cannot be written");
  return cut;
}

}  // namespace leat::check
