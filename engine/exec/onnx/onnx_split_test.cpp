// Cut points of small graphs whose answer is known by hand, and blocks that, run behind each other, equal the whole.
#include "engine/exec/onnx/onnx_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "engine/exec/module.h"
#include "engine/exec/registry.h"
#include "engine/exec/test/test_models.h"

namespace leat::exec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names(const OnnxGraph& g, bool fusing = true) {
  std::vector<std::string> out;
  for (const auto& c : g.cuts()) {
    if (fusing || !c.fuses) out.push_back(c.tensor);
  }
  return out;
}

OnnxGraph parsed(const std::string& bytes) {
  auto g = OnnxGraph::parse(bytes, "test.onnx");
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : g.error());
  return std::move(*g);
}

TEST(CutPoints, AChainCanBeCutBehindEveryLayerButTheLast) {
  TestModel m(1, 0, 3, 16);
  const std::string a = m.conv("x", 3, 4), b = m.relu(a), c = m.conv(b, 4, 8, 3, 2), d = m.relu(c);
  m.output(d);
  const OnnxGraph g = parsed(m.bytes());
  EXPECT_THAT(names(g), ElementsAre(a, b, c));
  EXPECT_THAT(names(g, false), ElementsAre(b)) << "between a convolution and its Relu costs the fusion of the two";
  EXPECT_EQ(g.layers(), 4u);
  EXPECT_THAT(g.cuts()[2].shape, ElementsAre(8, 8, 8));
  EXPECT_EQ(g.cuts()[2].item_bytes, 8u * 8 * 8 * 4);
  EXPECT_EQ(g.cuts()[2].layers_before, 3u);
  EXPECT_EQ(g.fixed_batch(), 0);
  EXPECT_THAT(g.input_shape(), ElementsAre(3, 16, 16));
}

TEST(CutPoints, NoneInsideAResidualUnit) {
  TestModel m(2, 0, 8, 16);
  const std::string head = m.relu(m.conv("x", 8, 8));
  const std::string inner = m.conv(m.relu(m.conv(head, 8, 8)), 8, 8), sum = m.op("Add", {inner, head}),
                    tail = m.relu(sum);
  m.output(m.op("GlobalAveragePool", {tail}));
  const OnnxGraph g = parsed(m.bytes());
  EXPECT_THAT(names(g), ElementsAre("Conv_2", head, sum, tail));
  EXPECT_THAT(names(g, false), ElementsAre(head, tail));
}

TEST(CutPoints, NoneWhereTwoBranchesRunSideBySide) {
  const OnnxGraph g = parsed(branches_model(3));
  EXPECT_TRUE(g.cuts().empty());
  EXPECT_EQ(g.layers(), 5u);
}

TEST(CutPoints, ConstantsAreNoActivationsAndDeadLayersDoNotCount) {
  TestModel m(4, 0, 3, 8);
  const std::string a = m.relu(m.conv("x", 3, 4)), shape = m.constant({-1, 256});
  (void)m.relu(a);  // nobody reads it
  const std::string flat = m.op("Reshape", {a, shape});
  m.output(m.op("Sigmoid", {flat}));
  const OnnxGraph g = parsed(m.bytes());
  EXPECT_THAT(names(g), ElementsAre("Conv_2", a, flat));
  EXPECT_EQ(g.layers(), 4u);
  EXPECT_THAT(g.cuts()[2].shape, ElementsAre(256));
}

TEST(CutPoints, AnOutputHalfWayCrossesEveryLaterPlace) {
  TestModel m(5, 0, 3, 8);
  const std::string a = m.relu(m.conv("x", 3, 4)), b = m.relu(m.conv(a, 4, 4)), c = m.relu(m.conv(b, 4, 4));
  m.output(c);
  m.output(a);
  const OnnxGraph g = parsed(m.bytes());
  EXPECT_THAT(names(g), ElementsAre("Conv_2")) << "behind its Relu the first output would have to cross as well";
}

TEST(CutPoints, ATensorWhoseFirstDimensionIsNotTheBatchIsNone) {
  TestModel m(6, 0, 4, 4);
  const std::string a = m.relu(m.conv("x", 4, 4)), rows = m.op("Reshape", {a, m.constant({-1, 16})});  // 4 rows an item
  m.output(m.op("Sigmoid", {rows}));
  EXPECT_THAT(names(parsed(m.bytes())), ElementsAre("Conv_2", a));
}

TEST(CutPoints, AFixedBatchIsKept) {
  const OnnxGraph g = parsed(chain_model(7, 3, 2));
  EXPECT_EQ(g.fixed_batch(), 2);
  EXPECT_EQ(g.cuts().size(), 5u);
  EXPECT_EQ(g.cuts()[0].item_bytes, 8u * 16 * 16 * 4);
}

TEST(CutPoints, GarbageIsOneLine) {
  for (const std::string& bytes :
       {std::string(), std::string("this is no model"), std::string(1000, '\xff'), chain_model(1, 2).substr(0, 500)}) {
    const auto g = OnnxGraph::parse(bytes, "junk.onnx");
    ASSERT_FALSE(g.ok());
    EXPECT_THAT(g.error(), HasSubstr("junk.onnx: "));
    EXPECT_EQ(g.error().find('\n'), std::string::npos);
  }
  EXPECT_FALSE(OnnxGraph::read("/no/such/file.onnx").ok());
  EXPECT_FALSE(OnnxGraph::read("/tmp").ok());
}

// Bytes changed, dropped or doubled anywhere: refused in one line or read, never a crash, and whatever is read can be
// cut.
TEST(CutPoints, DamagedModelsAreRefusedOrRead) {
  const std::string whole = residual_model(31, 2, 0, 4, 8);
  std::size_t refused = 0, read = 0;
  for (std::uint32_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::string bytes = whole;
    for (std::uint32_t i = 0; i < 1 + seed % 4; ++i) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1 + random() % 8);
          break;
        default:
          bytes.insert(at, bytes.substr(at, 1 + random() % 64));
      }
    }
    const auto g = OnnxGraph::parse(bytes, "damaged.onnx");
    if (!g.ok()) {
      ++refused;
      EXPECT_THAT(g.error(), HasSubstr("damaged.onnx: "));
      EXPECT_EQ(g.error().find('\n'), std::string::npos);
      continue;
    }
    ++read;
    const auto all = names(*g);
    for (std::uint32_t b = 0; b <= all.size(); ++b) (void)g->block(all, b, b + 1);
    (void)g->memory_bytes({}, 0, 1, 8);
  }
  EXPECT_GT(refused, 20u);
  EXPECT_GT(read, 20u);
}

TEST(Blocks, CutsThatAreNotTheModelsAreRefused) {
  const OnnxGraph g = parsed(chain_model(8, 3));
  const auto all = names(g);
  const std::vector<std::string> unknown{"nobody"}, backwards{all[2], all[1]}, twice{all[1], all[1]}, good{all[1]};
  for (const auto& bad : {unknown, backwards, twice}) EXPECT_FALSE(g.block(bad, 0, 1).ok());
  EXPECT_FALSE(g.block(good, 1, 1).ok());
  EXPECT_FALSE(g.block(good, 0, 3).ok());
  EXPECT_TRUE(g.block(good, 1, 2).ok());
}

TEST(Blocks, MemoryHoldsEachWeightOnceAndTheLargestActivations) {
  const OnnxGraph g = parsed(chain_model(9, 2, 0, 4, 8));
  const std::uint64_t layer = (4 * 4 * 9 + 4) * 4, activation = 4 * 8 * 8 * 4;
  EXPECT_EQ(*g.memory_bytes({}, 0, 1, 1), 2 * layer + 2 * activation);
  EXPECT_EQ(*g.memory_bytes({}, 0, 1, 8), 2 * layer + 16 * activation);
  const std::vector<std::string> cut{g.cuts()[1].tensor};
  EXPECT_EQ(*g.memory_bytes(cut, 0, 1, 1), layer + 2 * activation);
  EXPECT_EQ(*g.memory_bytes(cut, 1, 2, 1), layer + 2 * activation);
}

TEST(Blocks, NamesOfCutsSurviveTheExecutorsLine) {
  const std::vector<std::string> odd{"/trunk/a=b", "with blank", "c"};
  EXPECT_EQ(parse_cuts(join_cuts(odd)), odd);
  EXPECT_TRUE(parse_cuts("").empty());
}

// ---- run ----
class BlocksRun : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "leat-split-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& bytes) {
    const std::string path = folder_ + "/m.onnx";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // Outputs of block range [first, end) on `inputs`, through the executor's C ABI.
  using Tensors = std::vector<std::vector<float>>;
  Tensors run(const std::string& path, const std::vector<std::string>& cuts, std::uint32_t first, std::uint32_t end,
              std::uint32_t batch, Tensors inputs) {
    const std::string extra = "cuts=" + join_cuts(cuts) + "\n";
    const leat_session_options options{path.c_str(), first, end, batch, 1, extra.c_str()};
    leat_session* session = nullptr;
    char error[512] = "";
    const leat_executor* onnx = onnx_executor();
    EXPECT_EQ(onnx->open(&options, &session, error, sizeof error), 0) << error;
    if (session == nullptr) return {};
    leat_tensor in[16], out[16];
    std::uint32_t in_count = 16, out_count = 16;
    EXPECT_EQ(onnx->describe(session, batch, in, &in_count, out, &out_count, error, sizeof error), 0) << error;
    EXPECT_EQ(in_count, inputs.size());
    Tensors outputs(out_count);
    for (std::uint32_t i = 0; i < in_count; ++i) {
      EXPECT_EQ(in[i].bytes, inputs[i].size() * 4);
      in[i].data = inputs[i].data();
    }
    for (std::uint32_t i = 0; i < out_count; ++i) outputs[i].resize(out[i].bytes / 4), out[i].data = outputs[i].data();
    EXPECT_EQ(onnx->run(session, batch, in, in_count, out, out_count, error, sizeof error), 0) << error;
    onnx->close(session);
    return outputs;
  }
  static double difference(const Tensors& a, const Tensors& b) {  // largest, relative to the largest value
    EXPECT_EQ(a.size(), b.size());
    double max = 0, scale = 1e-30;
    for (std::size_t t = 0; t < a.size(); ++t) {
      EXPECT_EQ(a[t].size(), b[t].size());
      for (std::size_t i = 0; i < a[t].size(); ++i)
        max = std::max<double>(max, std::abs(a[t][i] - b[t][i])), scale = std::max<double>(scale, std::abs(b[t][i]));
    }
    EXPECT_GT(scale, 1e-6) << "an answer of zeros compares nothing";
    return max / scale;
  }
  void expect_chain_equals_whole(const std::string& path, std::uint32_t batch, std::uint64_t seed) {
    auto g = OnnxGraph::read(path);
    ASSERT_TRUE(g.ok()) << g.error();
    const auto cuts = names(*g);
    ASSERT_GE(cuts.size(), 2u);
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    leat_session* session = nullptr;
    const leat_session_options options{path.c_str(), 0, UINT32_MAX, batch, 1, nullptr};
    ASSERT_EQ(onnx_executor()->open(&options, &session, nullptr, 0), 0);
    leat_tensor in[16], out[16];
    std::uint32_t in_count = 16, out_count = 16;
    ASSERT_EQ(onnx_executor()->describe(session, batch, in, &in_count, out, &out_count, nullptr, 0), 0);
    onnx_executor()->close(session);
    Tensors x(1);
    for (std::uint64_t i = 0; i < in[0].bytes / 4; ++i) x[0].push_back(normal(random));
    const Tensors whole = run(path, cuts, 0, UINT32_MAX, batch, x);
    Tensors all = x;
    for (std::uint32_t b = 0; b <= cuts.size(); ++b) all = run(path, cuts, b, b + 1, batch, all);
    EXPECT_LT(difference(all, whole), 1e-5) << path << ", every layer a block, seed " << seed;
    const Tensors half = run(path, cuts, 0, 2, batch, x);
    EXPECT_LT(difference(run(path, cuts, 2, UINT32_MAX, batch, half), whole), 1e-5)
        << path << ", two ranges, seed " << seed;
  }
  // Every `stride`th cut in half precision: how far the answer is from the whole model's.
  double half_difference(const std::string& path, std::size_t stride, std::uint64_t seed) {
    const auto g = OnnxGraph::read(path);
    EXPECT_TRUE(g.ok());
    std::vector<std::string> cuts;
    for (std::size_t i = stride - 1; i < g->cuts().size(); i += stride) cuts.push_back(half_cut(g->cuts()[i].tensor));
    EXPECT_FALSE(cuts.empty());
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    std::size_t count = 1;
    for (const auto n : g->input_shape()) count *= static_cast<std::size_t>(n);
    Tensors x(1);
    for (std::size_t i = 0; i < count; ++i) x[0].push_back(normal(random));
    const Tensors whole = run(path, {}, 0, UINT32_MAX, 1, x);
    Tensors all = x;
    for (std::uint32_t b = 0; b <= cuts.size(); ++b) {
      all = run(path, cuts, b, b + 1, 1, all);
      if (b == cuts.size()) break;
      const OnnxCut& cut = *std::ranges::find(g->cuts(), tensor_of_cut(cuts[b]), &OnnxCut::tensor);
      EXPECT_TRUE(cut.single);
      EXPECT_EQ(all[0].size() * sizeof(float), cut.item_bytes / 2) << cuts[b];  // two of them in each float
    }
    return difference(all, whole);
  }
  std::string folder_;
};

TEST_F(BlocksRun, InHalfPrecisionHandOverHalfTheBytesAndAnswerNearlyTheSame) {
  for (const char* model : {"/detect.onnx", "/classify.onnx"}) {
    for (const std::size_t stride : {1U, 4U}) {
      const double difference = half_difference(std::string(LEAT_MODELS) + model, stride, 17);
      std::printf("%s, every %zuth cut: %.2g of the largest value\n", model, stride, difference);
      EXPECT_GT(difference, 0) << "nothing was rounded";
      EXPECT_LT(difference, 1e-2);
    }
  }
}

TEST(Blocks, ACutInHalfPrecisionIsTheTensorsOwn) {
  EXPECT_EQ(tensor_of_cut(half_cut("a:0")), "a:0");
  EXPECT_EQ(tensor_of_cut("a:0"), "a:0");
  EXPECT_TRUE(is_half_cut(half_cut("a")));
  EXPECT_FALSE(is_half_cut("a"));
}

TEST_F(BlocksRun, OfTheCommittedModelsEqualTheWhole) {
  for (const char* model : {"/detect.onnx", "/classify.onnx"}) {
    for (const std::uint32_t batch : {1u, 3u})
      expect_chain_equals_whole(std::string(LEAT_MODELS) + model, batch, 17 + batch);
  }
}

TEST_F(BlocksRun, OfGeneratedModelsWithResidualsEqualTheWhole) {
  for (const std::uint64_t seed : {101u, 102u, 103u}) {
    expect_chain_equals_whole(file(residual_model(seed, 3)), 2, seed);
    expect_chain_equals_whole(file(chain_model(seed, 4)), 3, seed);
    expect_chain_equals_whole(file(chain_model(seed, 2, 1)), 2, seed);  // batch fixed at 1: row by row
  }
}

TEST_F(BlocksRun, OfAModelWithItsWeightsInAnotherFileEqualTheWhole) {
  const std::string path = file(with_external_weights(residual_model(104, 3), folder_));
  EXPECT_TRUE(OnnxGraph::read(path)->external_weights());
  expect_chain_equals_whole(path, 2, 104);
}

TEST_F(BlocksRun, RandomWeightsAreSeededAndKeepTheModelsShape) {
  auto a = OnnxGraph::read(LEAT_MODELS "/detect.onnx"), b = OnnxGraph::read(LEAT_MODELS "/detect.onnx");
  ASSERT_TRUE(a.ok() && b.ok());
  const std::string before = *a->serialize();
  a->randomize_weights(5), b->randomize_weights(5);
  EXPECT_EQ(*a->serialize(), *b->serialize());
  EXPECT_NE(*a->serialize(), before);
  expect_chain_equals_whole(file(*a->serialize()), 2, 5);
}

// As two workers would: features leave the first stage and enter the last, boxes come out as from the whole model.
TEST_F(BlocksRun, StagesOfAModuleFindTheSameObjects) {
  const std::string model = LEAT_MODELS "/detect.onnx";
  const auto g = OnnxGraph::read(model);
  ASSERT_TRUE(g.ok());
  ModuleSpec spec{.name = "detect",
                  .model_path = model,
                  .preprocess = "letterbox mean=0.5 std=0.5",
                  .postprocess = "boxes stride=8 score=0.01",
                  .labels = {"object"},
                  .batch_max = 2};
  auto whole = Module::open(spec);
  spec.cuts = {g->cuts()[3].tensor, g->cuts()[7].tensor};
  ModuleSpec head = spec, tail = spec;
  head.end_block = 2, head.last_stage = false;
  tail.first_block = 2, tail.end_block = 3, tail.first_stage = false, tail.picture_width = 320,
  tail.picture_height = 192;
  auto first = Module::open(head), last = Module::open(tail);
  ASSERT_TRUE(whole.ok() && first.ok() && last.ok())
      << (first.ok() ? "" : first.error()) << (last.ok() ? "" : last.error());
  ASSERT_EQ((*first)->feature_bytes_out(), g->cuts()[7].item_bytes);
  ASSERT_EQ((*last)->feature_bytes_in(), g->cuts()[7].item_bytes);

  std::vector<std::uint8_t> pixels(320 * 192);
  std::mt19937 random(3);
  for (auto& p : pixels) p = static_cast<std::uint8_t>(random());
  FrameView frame{.format = LEAT_FORMAT_gray8, .width = 320, .height = 192, .bytes = pixels.size()};
  frame.planes[0] = pixels.data();
  frame.strides[0] = 320;
  leat_result expected{}, found{};
  const Item to_expected{.frame = frame, .result = &expected}, to_found{.frame = frame, .result = &found};
  ItemReport report;
  std::vector<std::byte> features((*first)->feature_bytes_out());
  ASSERT_TRUE((*whole)->run({&to_expected, 1}, {&report, 1}));
  ASSERT_TRUE((*first)->run({&to_found, 1}, {&report, 1}, nullptr, features.data()));
  ASSERT_TRUE((*last)->run({&to_found, 1}, {&report, 1}, features.data(), nullptr));
  ASSERT_GT(expected.detection_count, 0u);
  ASSERT_EQ(found.detection_count, expected.detection_count);
  for (std::uint32_t i = 0; i < found.detection_count; ++i) {
    EXPECT_NEAR(found.detections[i].x0, expected.detections[i].x0, 0.01);
    EXPECT_NEAR(found.detections[i].score, expected.detections[i].score, 1e-4);
  }
}

TEST_F(BlocksRun, ARangeWithoutCutsIsRefusedInOneLine) {
  const leat_session_options options{LEAT_MODELS "/detect.onnx", 0, 1, 1, 1, nullptr};
  leat_session* session = nullptr;
  char error[512] = "";
  EXPECT_NE(onnx_executor()->open(&options, &session, error, sizeof error), 0);
  EXPECT_THAT(error, HasSubstr("detect.onnx: a range of its blocks needs"));
  const leat_session_options wrong{LEAT_MODELS "/detect.onnx", 0, 1, 1, 1, "cuts=nobody\n"};
  EXPECT_NE(onnx_executor()->open(&wrong, &session, error, sizeof error), 0);
  EXPECT_THAT(error, HasSubstr("detect.onnx: cannot be cut at 'nobody'"));
}

}  // namespace
}  // namespace leat::exec
