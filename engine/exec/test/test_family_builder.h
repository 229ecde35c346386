// What the families' models are built with. For tests; not for anybody else.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/exec/test/test_families.h"

namespace leat::exec::families {

using G = TestGraph;
using Dims = std::vector<G::Dim>;

inline constexpr const char* kLabels = "ant\tbee\tcow";
// Hugging Face's, up to the size.
inline constexpr const char* kProcessor =
    R"({"do_normalize": true, "do_resize": true, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],)";

inline std::vector<float> zeros(std::size_t count, float value = 0) { return std::vector<float>(count, value); }
inline float f(double v) { return static_cast<float>(v); }

// A graph with its picture, and a zero that depends on every pixel, so that no output is a constant.
struct Builder {
  G g;
  std::string zero;
  bool batched = true;

  // head: what the graph does to its picture first; null: nothing.
  Builder(const std::string& input, G::Type type, const Dims& dims,
          const std::function<std::string(G&)>& head = nullptr) {
    g.input(input, type, dims);
    batched = dims.size() == 4;
    const std::string first = head ? head(g) : input;
    const std::string x = type == G::f32 ? first : g.cast(first, G::f32);
    const std::vector<std::int64_t> axes =
        batched ? std::vector<std::int64_t>{1, 2, 3} : std::vector<std::int64_t>{0, 1, 2};
    zero = g.op("Mul", {g.op("ReduceMean", {x}, "", {{"axes", axes}}, {{"keepdims", 0}}), g.constant("", {1}, {0})});
  }
  // A first convolution of this side, whose result nobody uses.
  void stem(const std::string& input, std::int64_t side) {
    g.op("Conv",
         {input, g.constant("", {1, 3, side, side}, std::vector<float>(static_cast<std::size_t>(3 * side * side)))}, "",
         {{"kernel_shape", {side, side}}, {"strides", {side, side}}});
  }
  // An operation that gives a family away, whose result nobody uses.
  void mark(const std::string& operation) { g.op(operation, {g.constant("", {1}, {0})}); }
  // An output of these values; dims[0] is the batch, but for a model without one.
  void put(const std::string& name, const Dims& dims, const std::vector<float>& values, bool softmax = false) {
    put(name, dims, values, softmax ? "Softmax" : "");
  }
  // The same behind a last operation.
  void put(const std::string& name, const Dims& dims, const std::vector<float>& values, const char* last) {
    g.output(value(name, dims, values, last), G::f32, dims);
  }
  void put_whole(const std::string& name, const Dims& dims, const std::vector<float>& values, G::Type type = G::i64) {
    g.output(g.cast(value("", dims, values), type, name), type, dims);
  }

 private:
  std::string value(const std::string& name, const Dims& dims, const std::vector<float>& values,
                    const std::string& last = "") {
    std::vector<std::int64_t> shape, spread(dims.size(), 1);
    std::int64_t known = 1;
    for (const G::Dim& d : dims) known *= d.name.empty() ? d.number : 1;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const bool open = !dims[i].name.empty();
      const bool batch = batched && i == 0 && dims[i].name != "k";
      shape.push_back(!open ? dims[i].number : batch ? 1 : static_cast<std::int64_t>(values.size()) / known);
    }
    std::string z = zero;
    if (batched && !dims.empty() && (!dims[0].name.empty() ? dims[0].name != "k" : true)) {
      spread[0] = -1;
      z = g.op("Reshape", {zero, g.integers("", {static_cast<std::int64_t>(spread.size())}, spread)});
    }
    const std::string sum = g.op("Add", {g.constant("", shape, values), z}, last.empty() ? name : "");
    std::vector<std::pair<std::string, std::int64_t>> numbers;
    if (last == "Concat") numbers.emplace_back("axis", 1);
    return last.empty() ? sum : g.op(last, {sum}, name, {}, numbers);
  }
};

inline Dims square(const char* batch = nullptr) { return {batch != nullptr ? G::Dim(batch) : G::Dim(1), 3, 64, 64}; }
inline Dims nhwc() { return {1, 64, 64, 3}; }

inline void ultralytics(G& g, const std::string& task, const std::string& names = "{0: 'ant', 1: \"bee\", 2: 'cow'}",
                        bool end2end = false) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"description", "Ultralytics model"},
                                                        {"stride", "32"},
                                                        {"task", task},
                                                        {"batch", "1"},
                                                        {"imgsz", "[64, 64]"},
                                                        {"names", names},
                                                        {"args", "{'batch': 1, 'nms': False, 'dynamic': False}"}})
    g.metadata(key, value);
  if (end2end) g.metadata("end2end", "True");
}

void add_yolo(std::vector<FamilyModel>& out);
void add_split(std::vector<FamilyModel>& out);
void add_faces(std::vector<FamilyModel>& out);
void add_priors(std::vector<FamilyModel>& out);
void add_traps(std::vector<FamilyModel>& out);  // what looks like something else
void add_known(std::vector<FamilyModel>& out);  // what is known by its structure

}  // namespace leat::exec::families
