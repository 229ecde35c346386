// ONNX graphs for tests, node by node, with any inputs, types, names and metadata: enough to write down a small model
// of any published layout whose outputs are known. Any thread; values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leat::exec {

class TestGraph {
 public:
  // A dimension: a number, or a name (open).
  struct Dim {
    Dim(std::int64_t n) : number(n) {}
    Dim(int n) : number(n) {}
    Dim(const char* n) : name(n) {}
    std::int64_t number = 0;
    std::string name;
  };
  enum Type : std::uint8_t { f32, f16, u8, i64, i32 };

  TestGraph();
  ~TestGraph();
  TestGraph(TestGraph&&) noexcept;
  TestGraph& operator=(TestGraph&&) noexcept;

  std::string input(const std::string& name, Type type, const std::vector<Dim>& dims);
  // A value of its own; name empty: made up. Integers for i64 and i32.
  std::string constant(const std::string& name, const std::vector<std::int64_t>& dims,
                       const std::vector<float>& values);
  std::string integers(const std::string& name, const std::vector<std::int64_t>& dims,
                       const std::vector<std::int64_t>& values, Type type = i64);
  // One node; attributes of integers. Returns its first output's name: `out`, or one made up.
  std::string op(const std::string& type, const std::vector<std::string>& in, const std::string& out = "",
                 const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& lists = {},
                 const std::vector<std::pair<std::string, std::int64_t>>& numbers = {});
  // Casts to a type.
  std::string cast(const std::string& in, Type to, const std::string& out = "");
  void output(const std::string& tensor, Type type, const std::vector<Dim>& dims);
  void metadata(const std::string& key, const std::string& value);

  [[nodiscard]] std::string bytes() const;
  void save(const std::string& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leat::exec
