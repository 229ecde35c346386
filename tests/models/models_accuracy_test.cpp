// The two models of `shapes` chained by hand, without a daemon: so that a fall in accuracy through the daemon
// (accuracy_test) can be told from a fall in the models. Raw frames, and frames that went through H.264.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "engine/exec/module.h"
#include "tests/models/shapes_frames.h"
#include "tools/scene/tracking/accuracy.h"

namespace leat::tests {
namespace {

class Chain {
 public:
  Chain() {
    auto detect = exec::Module::open({.name = "detect",
                                      .model_path = LEAT_MODELS "/detect.onnx",
                                      .preprocess = "letterbox mean=0.5 std=0.5",
                                      .postprocess = "boxes stride=8 score=0.2 iou=0.6"});
    auto classify = exec::Module::open({.name = "classify",
                                        .model_path = LEAT_MODELS "/classify.onnx",
                                        .preprocess = "stretch crop=0.1 mean=0.5 std=0.5",
                                        .postprocess = "classes",
                                        .batch_max = kCap});
    EXPECT_TRUE(detect.ok() && classify.ok())
        << (detect.ok() ? "" : detect.error()) << (classify.ok() ? "" : classify.error());
    if (detect.ok() && classify.ok()) detect_ = std::move(*detect), classify_ = std::move(*classify);
  }
  bool ready() const { return detect_ != nullptr; }
  void run(std::span<const std::uint8_t> nv12, leat_result* result) {
    exec::FrameView frame{.format = LEAT_FORMAT_nv12, .width = kWidth, .height = kHeight, .bytes = nv12.size()};
    frame.planes[0] = nv12.data(), frame.planes[1] = nv12.data() + std::size_t{kWidth} * kHeight;
    frame.strides[0] = frame.strides[1] = kWidth;
    exec::Item items[kCap];
    exec::ItemReport reports[kCap];
    items[0] = {.frame = frame, .result = result};
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(detect_->run({items, 1}, reports)) << detect_->error();
    const auto between = std::chrono::steady_clock::now();
    const std::uint32_t found = std::min(reports[0].fan_out, kCap);
    for (std::uint32_t i = 0; i < found; ++i)
      items[i] = {.frame = frame, .result = result, .detection = static_cast<std::int32_t>(i)};
    if (found > 0) {
      ASSERT_TRUE(classify_->run({items, found}, {reports, found})) << classify_->error();
    }
    detect_time_ += between - start, classify_time_ += std::chrono::steady_clock::now() - between;
  }
  void report(const char* what, const scene::Accuracy& a) const {
    const auto ms_each = [&](auto time) {
      return std::chrono::duration<double, std::milli>(time).count() / static_cast<double>(a.frames);
    };
    std::printf(
        "%s: %llu frames, %llu objects, map50 %.4f, detection_ap50 %.4f, classification %.4f; detect %.2f ms, classify "
        "%.2f ms a frame\n",
        what, static_cast<unsigned long long>(a.frames), static_cast<unsigned long long>(a.objects), a.map50,
        a.detection_ap50, a.classification, ms_each(detect_time_), ms_each(classify_time_));
  }

 private:
  static constexpr std::uint32_t kCap = 16;
  std::unique_ptr<exec::Module> detect_, classify_;
  std::chrono::steady_clock::duration detect_time_{}, classify_time_{};
};

void expect_good(const scene::Accuracy& a) {
  EXPECT_EQ(a.frames, kUnseenFrames);
  EXPECT_GE(a.map50, 0.90);
  EXPECT_GE(a.classification, 0.97);
}

TEST(Models, AreAccurateOnUnseenRawFrames) {
  Chain chain;
  ASSERT_TRUE(chain.ready());
  scene::AccuracyMeter meter;
  auto result = std::make_unique<leat_result>();
  for_unseen_frames(17, [&](std::span<const std::uint8_t> nv12, const std::vector<scene::Object>& truth) {
    chain.run(nv12, result.get());
    meter.add(truth, *result);
  });
  chain.report("raw", meter.accuracy());
  expect_good(meter.accuracy());
}

TEST(Models, AreAccurateOnUnseenFramesBehindH264) {
  if (std::system("ffmpeg -hide_banner -loglevel quiet -version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "ffmpeg is not installed";
  const auto file = std::filesystem::temp_directory_path() / ("leat-accuracy-" + std::to_string(::getpid()) + ".h264");
  const std::string size = std::to_string(kWidth) + "x" + std::to_string(kHeight);
  std::vector<std::vector<scene::Object>> truths;
  FILE* encoder =
      ::popen(("ffmpeg -loglevel error -y -f rawvideo -pix_fmt nv12 -s " + size +
               " -r 30 -i - -c:v libx264 -preset veryfast -crf 26 -pix_fmt yuv420p -f h264 " + file.string())
                  .c_str(),
              "w");
  ASSERT_NE(encoder, nullptr);
  for_unseen_frames(1, [&](std::span<const std::uint8_t> nv12, const std::vector<scene::Object>& truth) {
    std::fwrite(nv12.data(), 1, nv12.size(), encoder);
    truths.push_back(truth);
  });
  const int encoded = ::pclose(encoder);
  Chain chain;
  scene::AccuracyMeter meter;
  auto result = std::make_unique<leat_result>();
  std::vector<std::uint8_t> nv12(std::size_t{kWidth} * kHeight * 3 / 2);
  FILE* decoder =
      ::popen(("ffmpeg -loglevel error -f h264 -i " + file.string() + " -f rawvideo -pix_fmt nv12 -").c_str(), "r");
  for (const auto& truth : truths) {
    if (!chain.ready() || std::fread(nv12.data(), 1, nv12.size(), decoder) != nv12.size()) break;
    chain.run(nv12, result.get());
    meter.add(truth, *result);
  }
  ::pclose(decoder);
  std::filesystem::remove(file);
  ASSERT_EQ(encoded, 0) << "ffmpeg could not encode; is it built with libx264?";
  chain.report("H.264", meter.accuracy());
  expect_good(meter.accuracy());
}

}  // namespace
}  // namespace leat::tests
