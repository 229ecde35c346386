// A stand-in of ONNX Runtime's CUDA provider (cuda/fake/libonnxruntime.cpp) on the stand-in driver, and models for it.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "cuda/fake/onnx_provider.h"
#include "cuda/fake/state.h"
#include "engine/exec/test/test_graph.h"

namespace leat {

// Before this process opens its device.
inline void with_provider(fake::Host& host) {
  ::setenv("ONNXRUNTIME_ROOT", LEAT_FAKE_ONNXRUNTIME, 1);
  ::setenv("LEAT_REAL_ONNXRUNTIME", LEAT_REAL_ONNXRUNTIME, 1);
  ::setenv("LEAT_CUDA_LIBRARIES", LEAT_FAKE_ONNXRUNTIME "/lib", 1);
  host.state().has_provider = 1;
}
inline fake::ProviderState& provider() {
  void* const library = ::dlopen(LEAT_FAKE_ONNXRUNTIME "/lib/libonnxruntime.so.1", RTLD_NOW);
  return *reinterpret_cast<fake::ProviderState* (*)()>(::dlsym(library, "leat_stand_in_provider_state"))();
}

// number: one of the host's that the device takes.
enum class Net : std::uint8_t { plain, half, shapes, number, copies };

// Convolutions and a classifier; `shapes`: flattened as exporters write it, by what Shape says; `copies`: with a node
// that the device does not have.
struct Model {
  explicit Model(Net net) : path(std::filesystem::temp_directory_path() / ("leat-net-" + std::to_string(::getpid()))) {
    constexpr int kSide = 64, kChannels = 4, kClasses = 5;
    exec::TestGraph g;
    const auto values = [](std::size_t count) {
      std::vector<float> out(count);
      for (std::size_t i = 0; i < count; ++i) out[i] = 0.1F * static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
      return out;
    };
    const bool half = net == Net::half;
    const auto typed = [&](const std::string& x) { return half ? g.cast(x, exec::TestGraph::f16) : x; };
    std::string x = typed(g.input("picture", exec::TestGraph::f32, {"n", 3, kSide, kSide}));
    x = g.op("Relu", {g.op("Conv", {x, typed(g.constant("", {kChannels, 3, 3, 3}, values(108)))}, "",
                           {{"strides", {4, 4}}, {"pads", {1, 1, 1, 1}}})});
    x = g.op("GlobalAveragePool", {x});
    if (net == Net::shapes) {
      const std::string n = g.op("Gather", {g.op("Shape", {x}), g.integers("", {1}, {0})});
      x = g.op("Reshape", {x, g.op("Concat", {n, g.integers("", {1}, {-1})}, "", {}, {{"axis", 0}})});
    } else {
      x = g.op("Flatten", {x}, "", {}, {{"axis", 1}});
    }
    x = g.op("MatMul", {x, typed(g.constant("", {kChannels, kClasses}, values(20)))});
    if (half) x = g.cast(x, exec::TestGraph::f32);
    if (net == Net::number)
      x = g.op("Add", {x, g.op("Mul", {g.cast(g.op("Size", {x}), exec::TestGraph::f32), g.constant("", {}, {0})})});
    if (net == Net::copies) {
      const std::string count =
          g.op("ReduceMax", {g.cast(g.op("NonZero", {x}), exec::TestGraph::f32)}, "", {}, {{"keepdims", 0}});
      x = g.op("Add", {x, g.op("Mul", {count, g.constant("", {}, {0})})});
    }
    g.output(x, exec::TestGraph::f32, {"n", kClasses});
    g.save(path);
  }
  ~Model() { std::filesystem::remove(path); }
  std::string path;
};

}  // namespace leat
