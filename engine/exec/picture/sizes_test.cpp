// Pictures of varying size, and crops that are turned: the rules by hand, and a model whose answer tells what it was
// given.
#include "engine/exec/picture/sizes.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "engine/exec/module.h"
#include "engine/exec/picture/preprocess.h"
#include "engine/exec/test/test_graph.h"
#include "leat/result_parts.h"

namespace leat::exec {
namespace {

SizeRule rule(const std::string& line) {
  const auto spec = parse_preprocess(line);
  EXPECT_TRUE(spec.ok()) << spec.error();
  return spec.ok() ? spec->sizes : SizeRule{};
}
std::string refusal(const std::string& line) {
  const auto spec = parse_preprocess(line);
  return spec.ok() ? "" : spec.error();
}
Size size(std::uint32_t w, std::uint32_t h) { return {w, h}; }

TEST(Sizes, LongestAsPublished) {
  const SizeRule r = rule("longest=960 multiple=32");
  EXPECT_EQ(r.size_of(640, 360), size(640, 352));    // 11.25 steps
  EXPECT_EQ(r.size_of(1920, 1080), size(960, 544));  // 540 / 32 = 16.9
  EXPECT_EQ(r.size_of(1080, 1920), size(544, 960));
  EXPECT_EQ(r.size_of(10, 4000), size(32, 960));
  EXPECT_EQ(r.size_of(0, 10), Size{});
  EXPECT_EQ(r.size_of(NAN, 10), Size{});
  const SizeRule detr = rule("letterbox shortest=800 longest=1333");
  EXPECT_EQ(detr.size_of(640, 480), size(1067, 800));
  EXPECT_EQ(detr.size_of(1920, 1080), size(1333, 750));
  EXPECT_EQ(detr.largest(), size(1333, 1333));
}

// The numbers of transformers' get_size_with_aspect_ratio(), worked out by hand.
TEST(Sizes, ShortestEdgeAsPublished) {
  const SizeRule r = rule("stretch edge=800 longest=1333");
  EXPECT_EQ(r.size_of(640, 480), size(1066, 800));  // 1066.67
  EXPECT_EQ(r.size_of(480, 640), size(800, 1066));
  EXPECT_EQ(r.size_of(1200, 1000), size(960, 800));  // made smaller, though no side is too long
  EXPECT_EQ(r.size_of(1920, 1080), size(1333, 750));
  EXPECT_EQ(r.size_of(500, 500), size(800, 800));
  EXPECT_EQ(r.size_of(4000, 10), size(1333, 3));
  EXPECT_EQ(r.largest(), size(1333, 1333));
  EXPECT_NE(refusal("stretch edge=800"), "");
  EXPECT_NE(refusal("stretch edge=800 shortest=800 longest=1333"), "");
}

TEST(Sizes, HeightWithWidths) {
  const SizeRule r = rule("height=48 widths=96,160,320,960");
  std::uint32_t content = 0;
  EXPECT_EQ(r.size_of(200, 100, &content), size(96, 48));
  EXPECT_EQ(content, 96u);
  EXPECT_EQ(r.size_of(201, 100, &content), size(160, 48));
  EXPECT_EQ(content, 97u);
  EXPECT_EQ(r.size_of(10000, 100, &content), size(960, 48));
  EXPECT_EQ(content, 960u);
  EXPECT_EQ(class_of(r.sizes(), size(160, 48)), 1u);
  const SizeRule any = rule("height=48 longest=1280 multiple=8");
  EXPECT_EQ(any.size_of(201, 100), size(104, 48));
  EXPECT_EQ(any.size_of(100000, 100), size(1280, 48));
}

TEST(Sizes, Refusals) {
  EXPECT_NE(refusal("height=48").find("widths="), std::string::npos);
  EXPECT_NE(refusal("multiple=32").find("longest="), std::string::npos);
  EXPECT_NE(refusal("height=48 widths=320,160").find("growing"), std::string::npos);
  EXPECT_NE(refusal("size=320x48 height=48 widths=320").find("size="), std::string::npos);
  EXPECT_NE(refusal("cover=0.875 longest=640").find("cover="), std::string::npos);
  EXPECT_NE(refusal("flip=0.9").find("quad"), std::string::npos);
  EXPECT_NE(refusal("flip").find("quad"), std::string::npos);
  EXPECT_NE(refusal("quad align=face5").find("either"), std::string::npos);
}

// A model of open size: per item [mean of channel 0, mean of channel 1, mean of channel 2, width].
class OpenModel : public testing::Test {
 protected:
  OpenModel() {
    char name[] = "/tmp/leat_sizes_XXXXXX";
    folder_ = ::mkdtemp(name);
    TestGraph g;
    g.input("x", TestGraph::f32, {"n", 3, "h", "w"});
    g.op("ReduceMean", {"x"}, "means", {{"axes", {2, 3}}}, {{"keepdims", 0}});
    const std::string ones = g.op("Sub", {"x", "x"});
    const std::string one = g.op("Add", {ones, g.constant("", {1}, {1})});
    const std::string across = g.op(
        "ReduceSum", {g.op("ReduceMean", {one}, "", {{"axes", {1, 2}}}, {{"keepdims", 0}}), g.integers("", {1}, {1})},
        "", {}, {{"keepdims", 1}});
    g.op("Concat", {"means", across}, "y", {}, {{"axis", 1}});
    g.output("y", TestGraph::f32, {"n", 4});
    g.save(path());
  }
  ~OpenModel() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/open.onnx"; }
  std::unique_ptr<Module> open(const std::string& preprocess, std::uint32_t batch) {
    auto module = Module::open({.name = "open",
                                .model_path = path(),
                                .preprocess = preprocess,
                                .postprocess = "embedding",
                                .batch_max = batch});
    EXPECT_TRUE(module.ok()) << module.error();
    return module.ok() ? std::move(*module) : nullptr;
  }
  std::string folder_;
};

struct Frame {
  std::uint32_t width, height;
  std::vector<std::uint8_t> bytes;
  Frame(std::uint32_t w, std::uint32_t h) : width(w), height(h), bytes(std::size_t{w} * h * 3) {}
  void set(std::uint32_t x, std::uint32_t y, std::uint8_t r, std::uint8_t g, std::uint8_t b) {
    std::uint8_t* const at = bytes.data() + (std::size_t{y} * width + x) * 3;
    at[0] = r, at[1] = g, at[2] = b;
  }
  FrameView view() const {
    FrameView f;
    f.planes[0] = bytes.data(), f.strides[0] = width * 3;
    f.format = LEAT_FORMAT_rgb24, f.width = width, f.height = height, f.bytes = bytes.size();
    return f;
  }
};

// Slots whose directory has oriented boxes and points of a detector (module 0) and this module's answer (module 1).
struct Slot {
  std::vector<std::byte> bytes;
  explicit Slot(const Module& module, std::uint32_t rows) {
    PartSpec turned{.kind = LEAT_PART_oriented, .rank = 1, .dims = {rows}, .bytes = rows * sizeof(leat_oriented_box)};
    PartSpec points{
        .kind = LEAT_PART_keypoints, .rank = 2, .dims = {rows, 5}, .bytes = rows * 5 * sizeof(leat_keypoint)};
    std::vector<leat_part> parts = {entry_of(turned, 0, false, 1), entry_of(points, 0, false, 1),
                                    entry_of(module.parts().at(0), 1, true, rows)};
    parts[0].bytes = turned.bytes, parts[1].bytes = points.bytes;
    std::uint64_t at = LEAT_PAYLOAD_OFFSET;
    for (leat_part& p : parts) p.offset = at, at += round_part(p.bytes);
    bytes.resize(at);
    std::memcpy(bytes.data() + LEAT_PARTS_OFFSET, parts.data(), parts.size() * sizeof(leat_part));
    result()->part_count = 3, result()->detection_count = rows, result()->kind = LEAT_RESULT_DETECTIONS;
  }
  leat_result* result() { return reinterpret_cast<leat_result*>(bytes.data()); }
  template <class T>
  T* part(std::uint32_t i) {
    leat_part_view view;
    EXPECT_TRUE(leat_part_at(result(), bytes.size(), i, &view));
    return const_cast<T*>(static_cast<const T*>(view.data));
  }
};

TEST_F(OpenModel, ItemsOfOneSizeRunTogetherAndEachGetsItsAnswer) {
  const auto module = open("height=8 widths=16,32 stretch quad pad=0", 4);
  ASSERT_NE(module, nullptr);
  Frame frame(64, 64);
  for (std::uint32_t y = 0; y < 64; ++y)
    for (std::uint32_t x = 0; x < 64; ++x) frame.set(x, y, 255, static_cast<std::uint8_t>(y < 32 ? 255 : 0), 0);
  Slot slot(*module, 4);
  const leat_oriented_box boxes[] = {{.cx = 16, .cy = 16, .width = 16, .height = 8},
                                     {.cx = 32, .cy = 48, .width = 28, .height = 8},
                                     {.cx = 48, .cy = 48, .width = 12, .height = 8},
                                     {.cx = 32, .cy = 16, .width = 32, .height = 8}};
  std::copy_n(boxes, 4, slot.part<leat_oriented_box>(0));
  std::vector<Item> items;
  for (std::int32_t i = 0; i < 4; ++i) {
    slot.result()->detections[i] = {.x0 = 1, .y0 = 1, .x1 = 2, .y1 = 2};
    items.push_back(
        {.frame = frame.view(), .result = slot.result(), .parts = parts_of(slot.result(), 1), .detection = i});
  }
  std::array<ItemReport, 4> reports;
  ASSERT_TRUE(module->run(items, reports)) << module->error();
  const float* const y = slot.part<float>(2);
  // Red is everywhere: its mean is the filled part of the width. Green is in the upper half of the frame.
  const float filled[] = {1, 28.0F / 32, 12.0F / 16, 1}, width[] = {16, 32, 16, 32}, green[] = {1, 0, 0, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(reports[i].reason, Reason::none) << i;
    EXPECT_NEAR(y[4 * i], filled[i], 1e-5) << i;
    EXPECT_NEAR(y[4 * i + 1], green[i] * filled[i], 1e-5) << i;
    EXPECT_NEAR(y[4 * i + 2], 0, 1e-5) << i;
    EXPECT_NEAR(y[4 * i + 3], width[i], 1e-4) << i;
  }
  // One without a sound rectangle fails alone.
  slot.part<leat_oriented_box>(0)[1].width = NAN;
  (void)module->run(items, reports);
  EXPECT_EQ(reports[0].reason, Reason::none);
  EXPECT_EQ(reports[1].reason, Reason::bad_frame);
  EXPECT_EQ(reports[3].reason, Reason::none);
}

TEST_F(OpenModel, WholeFramesOfSeveralSizesInOneBatch) {
  const auto module = open("longest=64 multiple=16", 4);
  ASSERT_NE(module, nullptr);
  const Frame wide(128, 64), tall(40, 80), small(30, 30);
  Slot slot(*module, 1);
  std::vector<Slot> slots(4, slot);
  const Frame* const frames[] = {&wide, &tall, &small, &wide};
  const float width[] = {64, 32, 32, 64};
  std::vector<Item> items;
  for (std::size_t i = 0; i < 4; ++i)
    items.push_back({.frame = frames[i]->view(), .result = slots[i].result(), .parts = parts_of(slots[i].result(), 1)});
  std::array<ItemReport, 4> reports;
  ASSERT_TRUE(module->run(items, reports)) << module->error();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(slots[i].part<float>(2)[3], width[i], 1e-4) << i;
}

// A picture with one red, one green, one blue and one white quarter of a turned rectangle: where they are in the crop.
TEST(Crops, QuadsAreMadeUprightAndTurnedWhereTall) {
  const auto spec = parse_preprocess("size=4x2 stretch quad flip");
  ASSERT_TRUE(spec.ok());
  for (const double degrees : {0.0, 17.0, 90.0 - 17.0, -40.0}) {
    const double angle = degrees * std::acos(-1.0) / 180, c = std::cos(angle), s = std::sin(angle);
    Frame frame(200, 200);
    for (std::uint32_t y = 0; y < 200; ++y)
      for (std::uint32_t x = 0; x < 200; ++x) {
        const double dx = x + .5 - 100, dy = y + .5 - 100, u = dx * c + dy * s, v = dy * c - dx * s;
        if (u < 0) frame.set(x, y, v < 0 ? 255 : 0, v < 0 ? 0 : 255, 0);
        if (u >= 0) frame.set(x, y, v < 0 ? 0 : 255, v < 0 ? 0 : 255, 255);
      }
    // 80 x 40 round the middle. Tall: the same rectangle named with width and height exchanged, its width leading a
    // quarter turn counter-clockwise.
    for (const bool tall : {false, true}) {
      for (const bool flipped : {false, true}) {
        std::vector<std::byte> bytes(LEAT_PAYLOAD_OFFSET + 64);
        auto* const result = reinterpret_cast<leat_result*>(bytes.data());
        leat_part part{.kind = LEAT_PART_oriented, .rank = 1, .dims = {1}, .offset = LEAT_PAYLOAD_OFFSET, .bytes = 32};
        std::memcpy(bytes.data() + LEAT_PARTS_OFFSET, &part, sizeof part);
        const leat_oriented_box box{.cx = 100,
                                    .cy = 100,
                                    .width = tall ? 40.0F : 80.0F,
                                    .height = tall ? 80.0F : 40.0F,
                                    .angle = static_cast<float>(tall ? angle - std::acos(0.0) : angle)};
        std::memcpy(bytes.data() + LEAT_PAYLOAD_OFFSET, &box, sizeof box);
        result->kind = LEAT_RESULT_DETECTIONS, result->detection_count = 1, result->part_count = 1;
        result->detections[0].label_count = 1;
        result->detections[0].labels[0] = {.class_id = 1, .score = flipped ? 0.91F : 0.89F};
        Region region;
        ASSERT_TRUE(region_of(result, 0, spec->cut, &region));
        EXPECT_NEAR(region.width, 80, 1e-3);
        auto opened = Preprocessor::open(*spec, 3, 4, 2);
        ASSERT_TRUE(opened.ok());
        float out[24];
        ASSERT_TRUE(opened->run(frame.view(), region, out));
        const auto colour = [&](int x, int y) {
          const int i = flipped ? 7 - (y * 4 + x) : y * 4 + x;
          return std::array{out[i], out[8 + i], out[16 + i]};
        };
        const std::array red{1.0F, 0.0F, 0.0F}, blue{0.0F, 0.0F, 1.0F}, green{0.0F, 1.0F, 0.0F},
            white{1.0F, 1.0F, 1.0F};
        EXPECT_EQ(colour(0, 0), red) << degrees << tall << flipped;
        EXPECT_EQ(colour(3, 0), blue) << degrees << tall << flipped;
        EXPECT_EQ(colour(0, 1), green) << degrees << tall << flipped;
        EXPECT_EQ(colour(3, 1), white) << degrees << tall << flipped;
      }
    }
  }
}

TEST(Crops, FacesAreAlignedToTheTemplate) {
  const auto spec = parse_preprocess("size=112x112 stretch align=face5");
  ASSERT_TRUE(spec.ok());
  // The template's left eye, turned, scaled and moved into the frame: a bright spot there must land at the left eye.
  const float c = 1.5F * std::cos(0.5F), s = 1.5F * std::sin(0.5F);
  const Point face[] = {
      {38.2946F, 51.6963F}, {73.5318F, 51.5014F}, {56.0252F, 71.7366F}, {41.5493F, 92.3655F}, {70.7299F, 92.2041F}};
  std::vector<std::byte> bytes(LEAT_PAYLOAD_OFFSET + 64);
  auto* const result = reinterpret_cast<leat_result*>(bytes.data());
  leat_part part{.kind = LEAT_PART_keypoints, .rank = 2, .dims = {1, 5}, .offset = LEAT_PAYLOAD_OFFSET, .bytes = 60};
  std::memcpy(bytes.data() + LEAT_PARTS_OFFSET, &part, sizeof part);
  auto* const points = reinterpret_cast<leat_keypoint*>(bytes.data() + LEAT_PAYLOAD_OFFSET);
  for (std::size_t i = 0; i < 5; ++i)
    points[i] = {c * face[i].x - s * face[i].y + 150, s * face[i].x + c * face[i].y + 20, 1};
  result->kind = LEAT_RESULT_DETECTIONS, result->detection_count = 1, result->part_count = 1;
  Frame frame(300, 300);
  const auto ex = static_cast<std::uint32_t>(points[0].x), ey = static_cast<std::uint32_t>(points[0].y);
  for (std::uint32_t y = ey - 2; y <= ey + 2; ++y)
    for (std::uint32_t x = ex - 2; x <= ex + 2; ++x) frame.set(x, y, 255, 255, 255);
  Region region;
  ASSERT_TRUE(region_of(result, 0, spec->cut, &region));
  auto opened = Preprocessor::open(*spec, 3, 112, 112);
  ASSERT_TRUE(opened.ok());
  std::vector<float> out(3 * 112 * 112);
  ASSERT_TRUE(opened->run(frame.view(), region, out.data()));
  double sum = 0, x_sum = 0, y_sum = 0;
  for (int i = 0; i < 112 * 112; ++i) sum += out[i], x_sum += out[i] * (i % 112 + .5), y_sum += out[i] * (i / 112 + .5);
  ASSERT_GT(sum, 0);
  EXPECT_NEAR(x_sum / sum, 38.2946, 0.5);
  EXPECT_NEAR(y_sum / sum, 51.6963, 0.5);
  result->part_count = 0;
  EXPECT_FALSE(region_of(result, 0, spec->cut, &region)) << "no points were found";
}

}  // namespace
}  // namespace leat::exec
