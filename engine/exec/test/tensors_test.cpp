// Tensors in and out through a module: every type, layout and way a model can leave its rows open.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "engine/exec/module.h"
#include "engine/exec/picture/half.h"
#include "engine/exec/test/test_graph.h"
#include "engine/exec/test/test_slot.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::exec {
namespace {

using G = TestGraph;

// A frame of tensors, each at a multiple of 64 bytes.
struct Frame {
  std::vector<leat_tensor_shape> shapes;
  std::vector<std::uint8_t> bytes;
  template <class T>
  Frame& add(std::uint32_t dtype, std::vector<std::uint32_t> dims, const std::vector<T>& values) {
    leat_tensor_shape s{.dtype = dtype, .rank = static_cast<std::uint32_t>(dims.size()), .dims = {}};
    std::copy(dims.begin(), dims.end(), s.dims);
    shapes.push_back(s);
    const std::size_t at = bytes.size();
    bytes.resize(at + shm::round_up(values.size() * sizeof(T), 64));
    std::memcpy(bytes.data() + at, values.data(), values.size() * sizeof(T));
    return *this;
  }
  FrameView view() const {
    FrameView f;
    f.planes[0] = bytes.data();
    f.format = LEAT_FORMAT_tensors;
    f.bytes = bytes.size();
    f.tensors = shapes.data(), f.tensor_count = static_cast<std::uint32_t>(shapes.size());
    return f;
  }
};

class Tensors : public testing::Test {
 protected:
  Tensors() {
    char name[] = "/tmp/leat_tensors_XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~Tensors() override { std::filesystem::remove_all(folder_); }

  Result<std::unique_ptr<Module>> open(const G& graph, std::uint32_t batch = 4, const std::string& pre = "tensors",
                                       const std::string& post = "tensors") {
    const std::string path = folder_ + "/model.onnx";
    graph.save(path);
    return Module::open({.name = "m",
                         .model_path = path,
                         .preprocess = pre,
                         .postprocess = post,
                         .labels = {},
                         .batch_max = batch,
                         .cuts = {},
                         .emulated_ns = {},
                         .extra = {}});
  }
  // One item; the module's reason.
  Reason run(Module& module, const Frame& frame, Slot& slot) {
    Item item{.frame = frame.view(), .result = slot.result()};
    item.parts = parts_of(slot.result(), 0);
    ItemReport report;
    (void)module.run({&item, 1}, {&report, 1});
    copied_ = report.pixel_bytes_copied;
    return report.reason;
  }

  std::string folder_;
  std::uint64_t copied_ = 0;
};

TEST_F(Tensors, EveryTypeComesBackAsItWentIn) {
  G g;
  for (const auto& [name, type] : {std::pair{"f", G::f32}, {"h", G::f16}, {"b", G::u8}, {"l", G::i64}, {"i", G::i32}}) {
    g.input(name, type, {"n", 3});
    g.output(g.op("Identity", {name}, std::string(name) + "_out"), type, {"n", 3});
  }
  auto module = open(g);
  ASSERT_TRUE(module.ok()) << module.error();
  Frame frame;
  const std::vector<float> f = {1.5F, -2, 3e30F};
  const std::vector<std::uint16_t> h = {half_of_float(0.5F), half_of_float(-7), half_of_float(65504)};
  const std::vector<std::uint8_t> b = {0, 7, 255};
  const std::vector<std::int64_t> l = {-1, 1LL << 60, 5};
  const std::vector<std::int32_t> i = {-1, 1 << 30, 5};
  frame.add(LEAT_F32, {3}, f).add(LEAT_F16, {3}, h).add(LEAT_U8, {3}, b).add(LEAT_I64, {3}, l).add(LEAT_I32, {3}, i);
  Slot slot(**module);
  ASSERT_EQ(run(**module, frame, slot), Reason::none) << (*module)->error();
  EXPECT_EQ(slot.values<float>(0), f);
  EXPECT_EQ(slot.values<std::uint16_t>(1), h);
  EXPECT_EQ(slot.values<std::uint8_t>(2), b);
  EXPECT_EQ(slot.values<std::int64_t>(3), l);
  EXPECT_EQ(slot.values<std::int32_t>(4), i);
  EXPECT_STREQ(slot.part(3).name, "l_out");
  EXPECT_EQ(slot.part(1).dtype, LEAT_F16);
  EXPECT_EQ(copied_, 0u);
}

TEST_F(Tensors, RowsKnownOnlyAfterTheRun) {
  G g;  // the places that are not zero: [k, 2]
  g.input("x", G::f32, {"n", 8});
  g.output(g.op("Transpose", {g.op("NonZero", {"x"})}, "places"), G::i64, {"k", 2});
  auto module = open(g, 4, "tensors", "tensors max=5");
  ASSERT_TRUE(module.ok()) << module.error();
  Slot slot(**module);
  EXPECT_EQ(run(**module, Frame().add<float>(LEAT_F32, {8}, {0, 1, 0, 0, 2, 0, 0, 3}), slot), Reason::none);
  EXPECT_EQ(slot.values<std::int64_t>(0), (std::vector<std::int64_t>{0, 1, 0, 4, 0, 7}));
  EXPECT_EQ(slot.part(0).dims[0], 3u);
  // None at all is an answer too.
  EXPECT_EQ(run(**module, Frame().add<float>(LEAT_F32, {8}, std::vector<float>(8)), slot), Reason::none);
  EXPECT_EQ(slot.part(0).count, 0u);
  // More than the slot has room for fails that request alone, with its reason.
  EXPECT_EQ(run(**module, Frame().add<float>(LEAT_F32, {8}, std::vector<float>(8, 1)), slot), Reason::result_too_large);
  EXPECT_NE(std::string((*module)->error()).find("places"), std::string::npos);
  const std::vector<Frame> frames = {Frame().add<float>(LEAT_F32, {8}, std::vector<float>(8, 1)),
                                     Frame().add<float>(LEAT_F32, {8}, {1, 0, 0, 0, 0, 0, 0, 0})};
  Slot first(**module), second(**module);
  Item items[2] = {{.frame = frames[0].view(), .result = first.result()},
                   {.frame = frames[1].view(), .result = second.result()}};
  items[0].parts = parts_of(first.result(), 0), items[1].parts = parts_of(second.result(), 0);
  ItemReport reports[2];
  (void)(*module)->run(items, reports);
  EXPECT_EQ(reports[0].reason, Reason::result_too_large);
  EXPECT_EQ(reports[1].reason, Reason::none);
  EXPECT_EQ(second.values<std::int64_t>(0), (std::vector<std::int64_t>{0, 0}));
}

TEST_F(Tensors, ABatchFixedAtOneOrMoreIsFilledUp) {
  for (const std::int64_t batch : {1, 3}) {
    G g;
    g.input("x", G::f32, {batch, 2});
    g.output(g.op("Add", {"x", g.constant("", {1}, {1})}, "y"), G::f32, {batch, 2});
    auto module = open(g, 4);
    ASSERT_TRUE(module.ok()) << module.error();
    Slot slot(**module);
    EXPECT_EQ(run(**module, Frame().add<float>(LEAT_F32, {2}, {1, 2}), slot), Reason::none) << (*module)->error();
    EXPECT_EQ(slot.values<float>(0), (std::vector<float>{2, 3})) << batch;
  }
}

TEST_F(Tensors, AModelWithoutABatchTakesOnePicture) {
  G g;  // [3, h, w] in, [n, 4] out
  g.input("image", G::f32, {3, "height", "width"});
  const std::string sums = g.op("ReduceSum", {"image", g.integers("", {2}, {1, 2})}, "", {}, {{"keepdims", 0}});
  g.output(g.op("Unsqueeze", {sums, g.integers("", {1}, {0})}, "boxes"), G::f32, {"found", 3});
  auto refused = open(g, 4, "stretch");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().find("size=WxH"), std::string::npos) << refused.error();
  auto module = open(g, 4, "stretch size=4x2");
  ASSERT_TRUE(module.ok()) << module.error();
  std::vector<std::uint8_t> pixels(4 * 2 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(10 * (i % 3) + i);
  FrameView f;
  f.planes[0] = pixels.data(), f.strides[0] = 12, f.format = LEAT_FORMAT_rgb24, f.width = 4, f.height = 2, f.bytes = 24;
  Slot slot(**module);
  Item item{.frame = f, .result = slot.result()};
  item.parts = parts_of(slot.result(), 0);
  ItemReport report;
  ASSERT_TRUE((*module)->run({&item, 1}, {&report, 1})) << (*module)->error();
  const auto found = slot.values<float>(0);
  ASSERT_EQ(found.size(), 3u);
  for (std::size_t c = 0; c < 3; ++c) {
    float sum = 0;
    for (std::size_t p = 0; p < 8; ++p) sum += static_cast<float>(pixels[3 * p + c]) / 255;
    EXPECT_NEAR(found[c], sum, 1e-5F);
  }
}

TEST_F(Tensors, PicturesInEveryLayoutAndTypeAndFedInputs) {
  for (const bool nhwc : {false, true}) {
    for (const G::Type type : {G::f32, G::f16, G::u8, G::i32}) {
      G g;
      g.input("picture", type, nhwc ? std::vector<G::Dim>{"n", 2, 4, 3} : std::vector<G::Dim>{"n", 3, 2, 4});
      g.input("orig_target_sizes", G::i64, {"n", 2});
      g.input("pixel_mask", G::i64, {"n", 2, 4});
      g.output(g.op("Identity", {"picture"}, "p"), type,
               nhwc ? std::vector<G::Dim>{"n", 2, 4, 3} : std::vector<G::Dim>{"n", 3, 2, 4});
      g.output(g.op("Identity", {"orig_target_sizes"}, "s"), G::i64, {"n", 2});
      g.output(g.op("Identity", {"pixel_mask"}, "m"), G::i64, {"n", 2, 4});
      auto silent = open(g, 2, "stretch");
      ASSERT_FALSE(silent.ok());
      EXPECT_NE(silent.error().find("feed.orig_target_sizes="), std::string::npos) << silent.error();
      const bool whole = type == G::u8 || type == G::i32;
      auto module = open(g, 2,
                         std::string("stretch std=") + (whole ? "0.003921568627" : "1") +
                             " feed.orig_target_sizes=wh feed.pixel_mask=ones");
      ASSERT_TRUE(module.ok()) << module.error();
      std::vector<std::uint8_t> pixels(4 * 2 * 3);
      std::iota(pixels.begin(), pixels.end(), std::uint8_t{100});
      FrameView f;
      f.planes[0] = pixels.data(), f.strides[0] = 12, f.format = LEAT_FORMAT_rgb24, f.width = 4, f.height = 2,
      f.bytes = 24;
      Slot slot(**module);
      Item item{.frame = f, .result = slot.result()};
      item.parts = parts_of(slot.result(), 0);
      ItemReport report;
      ASSERT_TRUE((*module)->run({&item, 1}, {&report, 1})) << (*module)->error();
      EXPECT_EQ(slot.values<std::int64_t>(1), (std::vector<std::int64_t>{4, 2}));
      EXPECT_EQ(slot.values<std::int64_t>(2), std::vector<std::int64_t>(8, 1));
      for (std::size_t p = 0; p < 8; ++p) {
        for (std::size_t c = 0; c < 3; ++c) {
          const std::size_t at = nhwc ? 3 * p + c : 8 * c + p;
          const float want = static_cast<float>(pixels[3 * p + c]) / (whole ? 1.0F : 255.0F);
          const float got = type == G::f32   ? slot.values<float>(0)[at]
                            : type == G::f16 ? float_of_half(slot.values<std::uint16_t>(0)[at])
                            : type == G::u8  ? slot.values<std::uint8_t>(0)[at]
                                             : static_cast<float>(slot.values<std::int32_t>(0)[at]);
          EXPECT_NEAR(got, want, type == G::f16 ? 3e-4F : 1e-5F);
        }
      }
    }
  }
}

TEST_F(Tensors, WrongShapesAreThatFramesFault) {
  G g;
  g.input("x", G::f32, {"n", 2, 3});
  g.output(g.op("Identity", {"x"}, "y"), G::f32, {"n", 2, 3});
  auto module = open(g);
  ASSERT_TRUE(module.ok()) << module.error();
  Slot slot(**module);
  EXPECT_EQ(run(**module, Frame().add<float>(LEAT_F32, {2, 3}, std::vector<float>(6)), slot), Reason::none);
  EXPECT_EQ(run(**module, Frame().add<float>(LEAT_F32, {1, 2, 3}, std::vector<float>(6)), slot), Reason::none);
  for (const auto& bad : {Frame().add<float>(LEAT_F32, {3, 2}, std::vector<float>(6)),
                          Frame().add<std::int32_t>(LEAT_I32, {2, 3}, std::vector<std::int32_t>(6)),
                          Frame().add<float>(LEAT_F32, {6}, std::vector<float>(6)), Frame(),
                          Frame().add<float>(LEAT_F32, {2, 3}, std::vector<float>(6)).add<float>(LEAT_F32, {1}, {1})})
    EXPECT_EQ(run(**module, bad, slot), Reason::bad_frame);
  Frame cut = Frame().add<float>(LEAT_F32, {2, 3}, std::vector<float>(6));
  cut.bytes.resize(20);
  EXPECT_EQ(run(**module, cut, slot), Reason::bad_frame);
  auto names = open(g, 4, "tensors", "tensors names=z");
  ASSERT_FALSE(names.ok());
  EXPECT_NE(names.error().find("outputs are y"), std::string::npos) << names.error();
}

// Bytes hold no fractions: what is likely for floats would leave such a picture black.
TEST_F(Tensors, APictureOfBytesIsLikelyTakenAsItIs) {
  G g;
  g.input("images", G::u8, {1, 3, 32, 32});
  g.output(g.op("Identity", {g.constant("", {1, 10}, std::vector<float>(10))}, "scores"), G::f32, {1, 10});
  const auto asked = open(g, 1, "", "");
  ASSERT_FALSE(asked.ok());
  EXPECT_NE(asked.error().find("(preprocess = \"stretch rgb norm=raw\", for example)"), std::string::npos)
      << asked.error();
}

// A model of the published layout whose file says what it is: no word of configuration.
TEST_F(Tensors, AModelThatSaysWhatItIsNeedsNoWords) {
  G g;
  g.input("images", G::f32, {1, 3, 32, 32});
  std::vector<float> values(7 * 21);  // 16 + 4 + 1 cells
  const float column[] = {16, 12, 8, 6, 0.1F, 0.9F, 0.2F};
  for (std::size_t r = 0; r < 7; ++r) values[r * 21 + 3] = column[r];
  g.output(g.op("Identity", {g.constant("", {1, 7, 21}, values)}, "output0"), G::f32, {1, 7, 21});
  auto asked = open(g, 1, "", "");
  ASSERT_FALSE(asked.ok()) << "colours and range are in no file";
  EXPECT_NE(asked.error().find("likely preprocess = \"letterbox rgb norm=unit pad=114/255\""), std::string::npos)
      << asked.error();
  g.metadata("task", "detect");
  g.metadata("names", "{0: 'a', 1: 'b', 2: 'c'}");
  auto module = open(g, 1, "", "");
  ASSERT_TRUE(module.ok()) << module.error();
  std::vector<std::uint8_t> pixels(64 * 64 * 3);
  FrameView f;
  f.planes[0] = pixels.data(), f.strides[0] = 192, f.format = LEAT_FORMAT_rgb24, f.width = f.height = 64;
  f.bytes = pixels.size();
  leat_result result{};
  Item item{.frame = f, .result = &result};
  ItemReport report;
  ASSERT_TRUE((*module)->run({&item, 1}, {&report, 1})) << (*module)->error();
  ASSERT_EQ(result.detection_count, 1u);
  EXPECT_NEAR(result.detections[0].x0, 24, 1e-4F);
  EXPECT_NEAR(result.detections[0].y1, 30, 1e-4F);
  EXPECT_EQ(result.detections[0].class_id, 1);
}

// ONNX Runtime's own NaN and infinity: 0 / 0 and 1 / 0. A graph that ends in ArgMax hides them, which the docs say.
TEST_F(Tensors, WhatTheRuntimeCannotDivideIsNoAnswer) {
  const std::vector<std::pair<std::string, bool>> kinds = {
      {"classes", true}, {"classes act=none", true}, {"embedding unit", true}, {"tensors", false}};
  for (const auto& [post, fails] : kinds)
    for (const std::vector<float>& divisors : {std::vector<float>{1, 2, 4}, {1, 0, 4}}) {
      SCOPED_TRACE(post + (divisors[1] == 0 ? " by 0" : ""));
      G g;
      g.input("x", G::f32, {"n", 3});
      g.output(g.op("Div", {"x", g.constant("d", {1, 3}, divisors)}, "y"), G::f32, {"n", 3});
      auto module = open(g, 4, "tensors", post);
      ASSERT_TRUE(module.ok()) << module.error();
      Slot slot(**module);
      Item item{.result = slot.result()};
      const Frame frame = Frame().add<float>(LEAT_F32, {3}, {1, 0, 2});
      item.frame = frame.view(), item.parts = parts_of(slot.result(), 0);
      ItemReport report;
      ASSERT_TRUE((*module)->run({&item, 1}, {&report, 1})) << (*module)->error();
      const bool spoiled = divisors[1] == 0;
      EXPECT_EQ(report.not_finite, spoiled);
      EXPECT_EQ(report.reason, fails && spoiled ? Reason::not_finite : Reason::none);
      EXPECT_EQ(slot.result()->flags, spoiled ? LEAT_RESULT_NOT_FINITE : 0U);
      EXPECT_EQ((*module)->not_finite(), spoiled);
    }
}

TEST(Half, GoesThereAndBack) {
  for (std::uint32_t h = 0; h < 65536; ++h) {
    const float f = float_of_half(static_cast<std::uint16_t>(h));
    if (f == f) {
      EXPECT_EQ(half_of_float(f), h);
    }
  }
  EXPECT_EQ(half_of_float(65520.0F), 0x7c00);         // rounds to infinity
  EXPECT_EQ(half_of_float(1.0F + 0x1p-11F), 0x3c00);  // a tie goes to the even one
  EXPECT_EQ(half_of_float(1e-9F), 0);
}

}  // namespace
}  // namespace leat::exec
