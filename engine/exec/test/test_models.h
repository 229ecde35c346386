// Small ONNX models for tests, made layer by layer with seeded random weights. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leat::exec {

class TestModel {
 public:
  // batch 0: open. Input "x" is [batch, channels, size, size].
  TestModel(std::uint64_t seed, std::int64_t batch, std::int64_t channels, std::int64_t size);
  ~TestModel();

  // Layers; each returns the name of what it makes.
  std::string conv(const std::string& in, std::int64_t from, std::int64_t to, std::int64_t kernel = 3,
                   std::int64_t stride = 1);
  std::string op(std::string_view type, std::vector<std::string> in);
  std::string constant(const std::vector<std::int64_t>& values);  // int64 vector, as a Constant node
  std::string relu(const std::string& in) { return op("Relu", {in}); }
  void output(const std::string& tensor);

  std::string bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// conv-relu, `pairs` times, channels to channels.
std::string chain_model(std::uint64_t seed, int pairs, std::int64_t batch = 0, std::int64_t channels = 8,
                        std::int64_t size = 16);
// conv-relu, then `units` residual units relu(x + conv(relu(conv(x)))), then global pooling and a flat answer.
std::string residual_model(std::uint64_t seed, int units, std::int64_t batch = 0, std::int64_t channels = 8,
                           std::int64_t size = 16);
// Two branches side by side from the input to the end: no cut point before they meet in the last layer.
std::string branches_model(std::uint64_t seed, std::int64_t batch = 0);

// The same model with its weights in FOLDER/weights.bin.
std::string with_external_weights(const std::string& bytes, const std::string& folder);

}  // namespace leat::exec
