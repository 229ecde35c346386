#include <gtest/gtest.h>
#include <time.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "engine/exec/checksum.h"
#include "engine/exec/module.h"
#include "engine/exec/onnx/libraries/onnx_library.h"
#include "engine/exec/test/executor_conformance.h"

namespace leat::exec {
namespace {

std::string broken_file() {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("leat-broken-" + std::to_string(::getpid()) + ".onnx")).string();
  std::ofstream(path) << "this is no model, and no profile either";
  return path;
}

INSTANTIATE_TEST_SUITE_P(
    BuiltIn, ExecutorConformance,
    testing::Values(ConformanceCase{"emulated", "", "", true, broken_file()},
                    ConformanceCase{"emulated", "", "latency_ns=100000,150000", true, broken_file()},
                    ConformanceCase{"onnx", LEAT_MODELS "/classify.onnx", "", false, broken_file()},
                    ConformanceCase{"onnx", LEAT_MODELS "/detect.onnx", "optimization=basic", false, broken_file()}),
    [](const auto& which) { return which.param.executor + std::to_string(which.index); });

std::int64_t now_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

FrameView gray_frame(std::vector<std::uint8_t>& bytes, std::uint32_t width, std::uint32_t height) {
  bytes.resize(std::size_t{width} * height);
  FrameView f{.format = LEAT_FORMAT_gray8, .width = width, .height = height, .bytes = bytes.size()};
  f.planes[0] = bytes.data();
  f.strides[0] = width;
  return f;
}

TEST(Checksum, SeesEveryByteAndTheLength) {
  std::vector<std::uint8_t> data(203);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i * 7);
  const std::uint64_t whole = checksum(data.data(), data.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] ^= 1;
    EXPECT_NE(checksum(data.data(), data.size()), whole) << i;
    data[i] ^= 1;
  }
  data.push_back(0);
  EXPECT_NE(checksum(data.data(), data.size()), whole);
  EXPECT_EQ(checksum(data.data(), data.size() - 1), whole);
}

TEST(Emulated, TakesTheProfilesTimeAsleep) {
  ModuleSpec spec{.name = "m", .executor = "emulated", .batch_max = 3, .emulated_ns = {10'000'000, 14'000'000}};
  auto module = Module::open(spec);
  ASSERT_TRUE(module.ok()) << module.error();
  std::vector<std::uint8_t> bytes;
  leat_result results[3] = {};
  const FrameView frame = gray_frame(bytes, 16, 8);
  const Item items[] = {{.frame = frame, .result = &results[0]},
                        {.frame = frame, .result = &results[1]},
                        {.frame = frame, .result = &results[2]}};
  ItemReport reports[3];
  const std::int64_t expected[] = {10'000'000, 14'000'000, 21'000'000};  // beyond the list in proportion to the last
  for (std::size_t n = 1; n <= 3; ++n) {
    const std::int64_t wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
    ASSERT_TRUE((*module)->run({items, n}, reports));
    const std::int64_t took = now_ns(CLOCK_MONOTONIC) - wall;
    EXPECT_GE(took, expected[n - 1]);
    EXPECT_LT(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu, took / 2) << "it waits, and does not spin";
  }
}

TEST(Emulated, AnswersTheChecksumOfTheFramesBytes) {
  auto module = Module::open({.name = "m", .executor = "emulated", .batch_max = 2});
  ASSERT_TRUE(module.ok()) << module.error();
  std::vector<std::uint8_t> bytes[2];
  leat_result results[2] = {};
  const FrameView a = gray_frame(bytes[0], 33, 5), b = gray_frame(bytes[1], 7, 9);
  bytes[0][100] = 1;
  const Item items[] = {{.frame = a, .result = &results[0]}, {.frame = b, .result = &results[1]}};
  ItemReport reports[2];
  ASSERT_TRUE((*module)->run(items, reports));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(reports[i].reason, Reason::none);
    EXPECT_EQ(results[i].kind, LEAT_RESULT_CHECKSUM);
    EXPECT_EQ(results[i].checksum, checksum(bytes[i].data(), bytes[i].size()));
    EXPECT_EQ(results[i].frame_width, i == 0 ? 33u : 7u);
  }
}

TEST(Emulated, StagesOfAProfileChainAndProveTheHandOver) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("leat-profile-" + std::to_string(::getpid()) + ".json")).string();
  {
    std::ofstream file(path);
    file
        << R"({"schema":"leat-profile/1","model":"m","blocks":2,"boundary_bytes":[1000],"rows":[{"class":"a","share":1,"batch":1,)"
           R"("blocks":[{"p50_ns":1000,"p99_ns":1000,"samples":1},{"p50_ns":2000,"p99_ns":2000,"samples":1}]},)"
           R"({"class":"a","batch":3,"blocks":[{"p50_ns":1000,"samples":1},{"p50_ns":40000000,"samples":1}]}]})";
  }
  ModuleSpec first{.name = "m", .executor = "emulated", .model_path = path, .end_block = 1, .last_stage = false};
  ModuleSpec second{.name = "m",
                    .executor = "emulated",
                    .model_path = path,
                    .batch_max = 2,
                    .first_block = 1,
                    .end_block = 2,
                    .first_stage = false};
  auto a = Module::open(first), b = Module::open(second);
  std::filesystem::remove(path);
  ASSERT_TRUE(a.ok()) << a.error();
  ASSERT_TRUE(b.ok()) << b.error();
  ASSERT_EQ((*a)->feature_bytes_out(), 1000u);
  ASSERT_EQ((*b)->feature_bytes_in(), 1000u);
  std::vector<std::uint8_t> bytes, expected(1000);
  std::vector<std::byte> features(1000);
  leat_result result{};
  const Item item{.frame = gray_frame(bytes, 10, 10), .result = &result};
  ItemReport report;
  ASSERT_TRUE((*a)->run({&item, 1}, {&report, 1}, nullptr, features.data()));
  ASSERT_TRUE((*b)->run({&item, 1}, {&report, 1}, features.data(), nullptr));
  fill_from(checksum(bytes.data(), bytes.size()), expected.data(), expected.size());
  EXPECT_EQ(result.checksum, checksum(expected.data(), expected.size()));
  const Item two[] = {item, item};  // a batch that the profile leaves out takes what lies between its neighbours
  ItemReport reports[2];
  std::vector<std::byte> both(2000);
  const std::int64_t start = now_ns(CLOCK_MONOTONIC);
  ASSERT_TRUE((*b)->run(two, reports, both.data(), nullptr));
  EXPECT_GE(now_ns(CLOCK_MONOTONIC) - start, 20'000'000);
  EXPECT_FALSE((*b)->run({&item, 1}, {&report, 1}));  // a later stage without features
  EXPECT_EQ(report.reason, Reason::model_error);
  EXPECT_NE((*b)->error(), "");
}

TEST(Emulated, AStageWithoutAProfileIsToldItsBytes) {
  ModuleSpec middle{.name = "m",
                    .executor = "emulated",
                    .batch_max = 2,
                    .first_block = 1,
                    .end_block = 2,
                    .first_stage = false,
                    .last_stage = false,
                    .emulated_ns = {1000},
                    .emulated_in = 100,
                    .emulated_out = 70};
  auto m = Module::open(middle);
  ASSERT_TRUE(m.ok()) << m.error();
  EXPECT_EQ((*m)->feature_bytes_in(), 100u);
  EXPECT_EQ((*m)->feature_bytes_out(), 70u);
  std::vector<std::byte> in(200), out(140), expected(70);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i);
  leat_result result{};
  const Item items[] = {{.result = &result}, {.result = &result}};
  ItemReport reports[2];
  ASSERT_TRUE((*m)->run(items, reports, in.data(), out.data()));
  for (std::size_t row = 0; row < 2; ++row) {
    fill_from(checksum(in.data() + row * 100, 100), expected.data(), expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out.begin() + static_cast<std::ptrdiff_t>(row * 70)))
        << row;
  }
  middle.emulated_in = 0;
  EXPECT_FALSE(Module::open(middle).ok());
}

ModuleSpec detect_spec() {
  return {.name = "detect",
          .model_path = LEAT_MODELS "/detect.onnx",
          .preprocess = "letterbox mean=0.5 std=0.5",
          .postprocess = "boxes stride=8",
          .labels = {"object"},
          .batch_max = 4};
}

TEST(OnnxModule, ABadFrameFailsAloneAndTheOthersAreServed) {
  auto module = Module::open(detect_spec());
  ASSERT_TRUE(module.ok()) << module.error();
  std::vector<std::uint8_t> bytes;
  const FrameView frame = gray_frame(bytes, 320, 180);
  FrameView bad = frame;
  bad.bytes -= 1;
  leat_result results[3] = {};
  const Item items[] = {{.frame = frame, .result = &results[0]},
                        {.frame = bad, .result = &results[1]},
                        {.frame = frame, .result = &results[2]}};
  ItemReport reports[3];
  ASSERT_TRUE((*module)->run(items, reports));
  EXPECT_EQ(reports[0].reason, Reason::none);
  EXPECT_EQ(reports[1].reason, Reason::bad_frame);
  EXPECT_EQ(reports[2].reason, Reason::none);
  EXPECT_EQ(results[0].kind, LEAT_RESULT_DETECTIONS);
  EXPECT_EQ(results[1].kind, LEAT_RESULT_NONE);
}

TEST(OnnxModule, ADetectionThatIsNotThereIsABadFrame) {
  ModuleSpec spec{.name = "classify",
                  .model_path = LEAT_MODELS "/classify.onnx",
                  .preprocess = "stretch",
                  .postprocess = "classes",
                  .batch_max = 4};
  auto module = Module::open(spec);
  ASSERT_TRUE(module.ok()) << module.error();
  std::vector<std::uint8_t> bytes;
  leat_result result{};
  result.detection_count = 1;
  result.detections[0].x1 = result.detections[0].y1 = 10;
  Item items[] = {{.frame = gray_frame(bytes, 64, 64), .result = &result, .detection = 0},
                  {.frame = gray_frame(bytes, 64, 64), .result = &result, .detection = 1},
                  {.frame = gray_frame(bytes, 64, 64), .detection = 0}};
  ItemReport reports[3];
  ASSERT_TRUE((*module)->run(items, reports));
  EXPECT_EQ(reports[0].reason, Reason::none);
  EXPECT_EQ(reports[1].reason, Reason::bad_frame);
  EXPECT_EQ(reports[2].reason, Reason::bad_frame);
  EXPECT_EQ(result.detections[0].label_count, 2u);
}

TEST(Module, BatchesThatDoNotFitAreRefused) {
  auto module = Module::open({.name = "m", .executor = "emulated", .batch_max = 2});
  ASSERT_TRUE(module.ok());
  std::vector<std::uint8_t> bytes;
  Item items[] = {{.frame = gray_frame(bytes, 8, 8), .rows = 3}};
  ItemReport reports[1];
  EXPECT_FALSE((*module)->run(items, reports));
  EXPECT_EQ(reports[0].reason, Reason::model_error);
  EXPECT_FALSE((*module)->run({items, 0}, reports));
  items[0].rows = 2;
  EXPECT_TRUE((*module)->run(items, reports));
}

TEST(Module, OnlyRepeatedRowsAreCopies) {
  ModuleSpec spec = detect_spec();
  spec.batch_max = 3;
  auto module = Module::open(spec);
  ASSERT_TRUE(module.ok()) << module.error();
  std::vector<std::uint8_t> bytes;
  Item items[] = {{.frame = gray_frame(bytes, 64, 64)}};
  ItemReport reports[1];
  ASSERT_TRUE((*module)->run(items, reports));
  EXPECT_EQ(reports[0].pixel_bytes_copied, 0u);
  items[0].rows = 3;
  ASSERT_TRUE((*module)->run(items, reports));
  EXPECT_GT(reports[0].pixel_bytes_copied, 0u);
  EXPECT_EQ(reports[0].pixel_bytes_copied % (2 * sizeof(float)), 0u);
}

TEST(Module, FaultsOfASpecAreOneLineThatSaysWhatToDo) {
  const auto error = [](ModuleSpec spec) {
    const auto opened = Module::open(spec);
    return opened.ok() ? std::string("opened") : opened.error();
  };
  ModuleSpec spec = detect_spec();
  spec.model_path = "/nowhere/detect.onnx";
  EXPECT_NE(error(spec).find("/nowhere/detect.onnx: cannot be read"), std::string::npos) << error(spec);
  spec = detect_spec();
  spec.postprocess = "classes";
  EXPECT_NE(error(spec).find("[5, 24, 40]"), std::string::npos) << error(spec);
  spec = detect_spec();
  spec.preprocess = "gray";
  EXPECT_NE(error(spec).find("3 channels"), std::string::npos) << error(spec);
  spec = detect_spec();
  spec.preprocess = "raw";
  EXPECT_NE(error(spec).find("'raw' suits"), std::string::npos) << error(spec);
  spec = detect_spec();
  spec.labels = {"a\tb"};
  EXPECT_NE(error(spec).find("labels"), std::string::npos) << error(spec);
  spec = detect_spec();
  spec.executor = "fpga";
  EXPECT_NE(error(spec).find("executor 'fpga' cannot be loaded"), std::string::npos) << error(spec);
  spec = detect_spec();
  spec.batch_max = 65;
  EXPECT_NE(error(spec).find("1..64"), std::string::npos) << error(spec);
  spec = detect_spec();
  spec.extra = {{"optimization", "more"}};
  EXPECT_NE(error(spec).find("optimization=more"), std::string::npos) << error(spec);
  spec.executor = "emulated";
  spec.model_path = "", spec.preprocess = "", spec.postprocess = "", spec.labels = {};
  spec.extra = {{"latency_ns", "1,x"}};
  EXPECT_NE(error(spec).find("latency_ns=1,x"), std::string::npos) << error(spec);
}

TEST(OnnxLibrary, TriesTheNamedRootFirstAndTheLoaderLast) {
  ::setenv("ONNXRUNTIME_ROOT", "/opt/named", 1);
  const auto candidates = onnx_library_candidates();
  ::unsetenv("ONNXRUNTIME_ROOT");
  ASSERT_GE(candidates.size(), 3u);
  EXPECT_EQ(candidates.front(), "/opt/named/lib/libonnxruntime.so.1");
  EXPECT_EQ(candidates.back(), "libonnxruntime.so.1");
}

}  // namespace
}  // namespace leat::exec
