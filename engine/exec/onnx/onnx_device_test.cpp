// What ONNX Runtime is asked for where a session runs on a device, and what is read from what it says.
#include "engine/exec/onnx/onnx_device.h"

#include <gtest/gtest.h>
#include <onnxruntime_c_api.h>

#include <cstdlib>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/exec/onnx/libraries/onnx_status.h"
#include "engine/exec/test/test_graph.h"

namespace leat::exec {
namespace {

// What is asked of ONNX Runtime for a session on a device, as an interface of our own hears it.
struct Asked {
  std::map<std::string, std::string> cuda, tensorrt, session;
  void *cuda_stream = nullptr, *tensorrt_stream = nullptr;
  std::vector<std::string> providers;  // in their order
};
Asked& asked() {
  static Asked all;
  return all;
}
OrtApi hearing() {
  using Cuda = OrtCUDAProviderOptionsV2;
  using Trt = OrtTensorRTProviderOptionsV2;
  OrtApi api{};
  // As ONNX Runtime does: keys that a call does not name are back at their defaults.
  const auto keep = [](std::map<std::string, std::string>& to, const char* const* keys, const char* const* values,
                       std::size_t count) {
    to.clear();
    for (std::size_t i = 0; i < count; ++i) to[keys[i]] = values[i];
  };
  static const auto kKeep = keep;
  api.CreateCUDAProviderOptions = [](Cuda** out) noexcept -> OrtStatusPtr { return *out = nullptr, nullptr; };
  api.ReleaseCUDAProviderOptions = [](Cuda*) noexcept {};
  api.UpdateCUDAProviderOptions = [](Cuda*, const char* const* keys, const char* const* values,
                                     std::size_t count) noexcept -> OrtStatusPtr {
    return kKeep(asked().cuda, keys, values, count), nullptr;
  };
  api.UpdateCUDAProviderOptionsWithValue = [](Cuda*, const char*, void* value) noexcept -> OrtStatusPtr {
    return asked().cuda_stream = value, nullptr;
  };
  api.SessionOptionsAppendExecutionProvider_CUDA_V2 = [](OrtSessionOptions*, const Cuda*) noexcept -> OrtStatusPtr {
    return asked().providers.emplace_back("cuda"), nullptr;
  };
  api.CreateTensorRTProviderOptions = [](Trt** out) noexcept -> OrtStatusPtr { return *out = nullptr, nullptr; };
  api.ReleaseTensorRTProviderOptions = [](Trt*) noexcept {};
  api.UpdateTensorRTProviderOptions = [](Trt*, const char* const* keys, const char* const* values,
                                         std::size_t count) noexcept -> OrtStatusPtr {
    return kKeep(asked().tensorrt, keys, values, count), nullptr;
  };
  api.UpdateTensorRTProviderOptionsWithValue = [](Trt*, const char*, void* value) noexcept -> OrtStatusPtr {
    return asked().tensorrt_stream = value, nullptr;
  };
  api.SessionOptionsAppendExecutionProvider_TensorRT_V2 = [](OrtSessionOptions*, const Trt*) noexcept -> OrtStatusPtr {
    return asked().providers.emplace_back("tensorrt"), nullptr;
  };
  api.AddSessionConfigEntry = [](OrtSessionOptions*, const char* key, const char* value) noexcept -> OrtStatusPtr {
    return asked().session[key] = value, nullptr;
  };
  return api;
}

TEST(CudaProvider, IsExactUnlessAskedOtherwise) {
  const OrtApi api = hearing();
  int stream = 0;
  asked() = {};
  add_device_provider(api, nullptr, &stream, "", {.single = true}, false);
  EXPECT_EQ(asked().cuda.at("use_tf32"), "0");
  EXPECT_EQ(asked().cuda.at("prefer_nhwc"), "0");
  EXPECT_EQ(asked().cuda.at("enable_cuda_graph"), "0");
  EXPECT_EQ(asked().cuda.at("cudnn_conv_algo_search"), "HEURISTIC");
  EXPECT_EQ(asked().cuda_stream, &stream);
  EXPECT_TRUE(asked().session.empty()) << "arithmetic of shapes may run on the host";
  EXPECT_EQ(asked().providers, std::vector<std::string>{"cuda"});
  asked() = {};
  add_device_provider(api, nullptr, &stream, "tf32=1\nnhwc=1\nsearch=exhaustive\n", {.single = true}, true);
  EXPECT_EQ(asked().cuda.at("use_tf32"), "1");
  EXPECT_EQ(asked().cuda.at("prefer_nhwc"), "1");
  EXPECT_EQ(asked().cuda.at("enable_cuda_graph"), "1");
  EXPECT_EQ(asked().cuda.at("cudnn_conv_algo_search"), "EXHAUSTIVE");
  EXPECT_THROW(add_device_provider(api, nullptr, &stream, "tf32=yes\n", {}, false), std::runtime_error);
}

TEST(CudaProvider, ChannelsAreLastWhereAllIsFloat16) {
  const OrtApi api = hearing();
  int stream = 0;
  for (const auto& [extra, precision, last] : {std::tuple{"", Precision{.half = true}, "1"},
                                               {"nhwc=0\n", Precision{.half = true}, "0"},
                                               {"", Precision{.half = true, .single = true}, "0"}}) {
    asked() = {};
    add_device_provider(api, nullptr, &stream, extra, precision, false);
    EXPECT_EQ(asked().cuda.at("prefer_nhwc"), last) << extra;
  }
}

TEST(CudaProvider, TensorrtComesBeforeItOnTheSameStreamAndWritesNothing) {
  const OrtApi api = hearing();
  int stream = 0;
  asked() = {};
  add_device_provider(api, nullptr, &stream, "provider=tensorrt\n", {}, false);
  EXPECT_EQ(asked().providers, (std::vector<std::string>{"tensorrt", "cuda"}));
  EXPECT_EQ(asked().tensorrt_stream, &stream);
  EXPECT_EQ(asked().cuda_stream, &stream);
  EXPECT_EQ(asked().tensorrt.at("trt_engine_cache_enable"), "0");
  EXPECT_EQ(asked().tensorrt.at("trt_timing_cache_enable"), "0");
}

// In the form in which ONNX Runtime lists them.
TEST(CudaProvider, NodesLeftToTheHostAreNamed) {
  const auto left = [](std::initializer_list<const char*> lines) {
    Placements placements;
    for (const char* line : lines) placements.hear(line);
    return placements.left_behind();
  };
  EXPECT_EQ(left({"Node placements", " Node(s) placed on [CUDAExecutionProvider]. Number of nodes: 2",
                  "  Conv (/first)", "  Relu ()", " Node(s) placed on [CPUExecutionProvider]. Number of nodes: 2",
                  "  Resize (/up/Resize)", "  NonMaxSuppression (nms)", "SaveMLValueNameIndexMapping"}),
            "Resize (/up/Resize), NonMaxSuppression (nms)");
  EXPECT_EQ(left({" Node(s) placed on [CPUExecutionProvider]. Number of nodes: 7", "  A (1)", "  A (2)", "  A (3)",
                  "  A (4)", "  A (5)", "  A (6)", "  A (7)",
                  " Node(s) placed on [CUDAExecutionProvider]. Number of nodes: 1", "  B (1)"}),
            "A (1), A (2), A (3), A (4), A (5) and 2 more");
  EXPECT_EQ(left({" All nodes placed on [CPUExecutionProvider]. Number of nodes: 9"}), "some of its nodes");
  EXPECT_EQ(left({" Node(s) placed on [CPUExecutionProvider]. Number of nodes: 3", "  Shape (/Shape)",
                  "  NonZero (/NonZero)", "  Gather (/Gather)"}),
            "NonZero (/NonZero)");
}

TEST(CudaProvider, ArithmeticOfShapesOnTheHostCopiesNoData) {
  constexpr const char* kCopies = "2 Memcpy nodes are added to the graph main_graph for CUDAExecutionProvider.";
  constexpr const char* kOnHost = " Node(s) placed on [CPUExecutionProvider]. Number of nodes: 2";
  Placements placements, untold;
  for (const char* line : {kOnHost, "  Shape (/Shape)", "  Gather (/Gather)", "SaveMLValueNameIndexMapping"})
    placements.hear(line);
  EXPECT_FALSE(placements.copies_data());
  placements.hear(kCopies);  // a number that the device takes
  EXPECT_FALSE(placements.copies_data());
  for (const char* line : {kOnHost, "  NonZero (/NonZero)"}) placements.hear(line);
  EXPECT_TRUE(placements.copies_data());
  untold.hear(kCopies);
  EXPECT_TRUE(untold.copies_data());
}

// ONNX Runtime takes no plan with tensor cores without use_tf32, of float16 neither.
TEST(CudaProvider, AModelOfFloat16HasTensorCoresAndFloat32StaysExactBesideIt) {
  const OrtApi api = hearing();
  int stream = 0;
  ::unsetenv("NVIDIA_TF32_OVERRIDE");
  asked() = {};
  add_device_provider(api, nullptr, &stream, "", {.half = true}, false);
  EXPECT_EQ(asked().cuda.at("use_tf32"), "1");
  add_device_provider(api, nullptr, &stream, "tf32=1\n", {.half = true, .single = true}, false);
  EXPECT_EQ(asked().cuda.at("use_tf32"), "1");
  EXPECT_EQ(std::getenv("NVIDIA_TF32_OVERRIDE"), nullptr);
  add_device_provider(api, nullptr, &stream, "", {.half = true, .single = true}, false);
  EXPECT_EQ(asked().cuda.at("use_tf32"), "1");
  EXPECT_STREQ(std::getenv("NVIDIA_TF32_OVERRIDE"), "0");
  ::unsetenv("NVIDIA_TF32_OVERRIDE");
}

// Filters as their own type, filters that are made another one, as exporters write both.
TEST(CudaProvider, PrecisionIsReadOffTheGraph) {
  const auto read = [](bool input_is_half, bool cast, bool second_single) {
    TestGraph g;
    const std::string x = g.input("x", input_is_half ? TestGraph::f16 : TestGraph::f32, {"n", 3, 8, 8});
    const std::string w = g.constant("", {4, 3, 1, 1}, std::vector<float>(12, 0.5F));
    std::string y = g.op("Conv", {cast ? g.cast(x, TestGraph::f16) : x, cast ? g.cast(w, TestGraph::f16) : w});
    if (second_single)
      y = g.op("Conv", {g.cast(y, TestGraph::f32), g.constant("", {4, 4, 1, 1}, std::vector<float>(16, 0.5F))});
    g.output(y, TestGraph::f32, {"n", 4, 8, 8});
    return precision_in(g.bytes());
  };
  EXPECT_EQ(read(false, false, false), (Precision{.half = false, .single = true}));
  EXPECT_EQ(read(false, true, false), (Precision{.half = true, .single = false}));
  EXPECT_EQ(read(false, true, true), (Precision{.half = true, .single = true}));
  EXPECT_EQ(precision_in("no model"), Precision{});
}

// ---- what it says ----

TEST(PlainWords, OfAFailureOfCudaAreTheFailureAndTheCall) {
  const std::string signature =
      "/src/core/providers/cuda/cuda_call.cc:154 void onnxruntime::CudaCall(ERRTYPE, const char*, int) [with ERRTYPE = "
      "cudaError; bool THRW = true] ";
  EXPECT_EQ(
      plain_words(signature + signature +
                  "CUDA failure 800: operation not permitted ; GPU=-1 ; hostname=h ; file=/src/cuda_allocator.cc ; "
                  "line=98 ; expr=cudaFreeHost(p); "),
      "CUDA failure 800: operation not permitted (cudaFreeHost(p))");
  EXPECT_EQ(
      plain_words("Non-zero status code returned while running Conv node. Name:'/0/Conv' Status Message: " + signature +
                  "CUDNN failure 4000: CUDNN_STATUS_INTERNAL_ERROR ; GPU=0 ; hostname=h ; file=f ; line=2 ; expr=; "),
      "Non-zero status code returned while running Conv node. Name:'/0/Conv' Status Message: CUDNN failure 4000: "
      "CUDNN_STATUS_INTERNAL_ERROR");
}
TEST(PlainWords, OfAnythingElseAreItsFirstLine) {
  EXPECT_EQ(plain_words("Invalid rank for input: x\nStacktrace:"), "Invalid rank for input: x");
  EXPECT_EQ(plain_words("a failure of nothing"), "a failure of nothing");
  EXPECT_EQ(plain_words(""), "");
}

}  // namespace
}  // namespace leat::exec
