// What files beside a model say of its pictures, each as its writer leaves it there.
#include "engine/exec/recognise/companion_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "engine/exec/test/test_family_builder.h"

namespace leat::exec {
namespace {

using families::Builder;
using G = TestGraph;

class SidecarFiles : public testing::Test {
 protected:
  SidecarFiles() {
    char name[] = "/tmp/leat_companion_files_XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~SidecarFiles() override { std::filesystem::remove_all(folder_); }

  // A model of an open size with this file beside it.
  CompanionFiles beside(const std::string& file, const std::string& text, bool detector = false) {
    Builder b("x", G::f32, {1, 3, "h", "w"});
    if (detector) b.g.input("scale_factor", G::f32, {1, 2});
    b.put("y", {1, 4}, families::zeros(4));
    b.g.save(folder_ + "/m.onnx");
    std::ofstream(folder_ + "/" + file) << text;
    const auto facts = read_facts(folder_ + "/m.onnx");
    EXPECT_TRUE(facts.ok());
    return read_companion_files(*facts);
  }
  std::string processor(const std::string& rest) {
    return beside("preprocessor_config.json", std::string(families::kProcessor) + rest + "}").preprocess;
  }
  std::string folder_;
};

TEST_F(SidecarFiles, HuggingFaceProcessors) {
  const std::string imagenet = " resize=antialias rgb norm=imagenet";
  EXPECT_EQ(processor(R"("size": {"height": 64, "width": 48})"), "stretch" + imagenet + " size=48x64");
  // ConvNeXt crops below 384 and not from there on.
  EXPECT_EQ(processor(R"("crop_pct": 0.875, "size": {"shortest_edge": 224})"),
            "cover=0.875" + imagenet + " size=224x224");
  EXPECT_EQ(processor(R"("crop_pct": 0.875, "size": {"shortest_edge": 384})"), "stretch" + imagenet + " size=384x384");
  EXPECT_EQ(processor(R"("do_flip_channel_order": true, "size": {"height": 64, "width": 64})"),
            "stretch resize=antialias bgr norm=imagenet size=64x64");
  // EfficientNet: deviations .229 .224 .225, squared.
  EXPECT_EQ(processor(R"("include_top": true, "size": {"height": 64, "width": 64})"),
            "stretch resize=antialias rgb mean=0.485,0.456,0.406 std=0.052441,0.050176,0.050625 size=64x64");
  // What no word stands for is not said.
  EXPECT_EQ(processor(R"("size_divisor": 32, "size": {"height": 64, "width": 64})"), "");
  EXPECT_EQ(
      processor(R"("do_pad": true, "pad_size": {"height": 80, "width": 80}, "size": {"height": 64, "width": 64})"), "");
  const CompanionFiles depth = beside(
      "preprocessor_config.json", std::string(families::kProcessor) +
                                      R"("keep_aspect_ratio": true, "ensure_multiple_of": 14, "size": {"height": 518,)"
                                      R"( "width": 518}})");
  EXPECT_EQ(depth.preprocess, "stretch" + imagenet);
  EXPECT_EQ(depth.size, " size=518x518");  // asked for
}

// How Pillow resizes, by number or, where the file does not say, as its class does by itself.
TEST_F(SidecarFiles, WhatAProcessorResizesBy) {
  const auto way = [&](const std::string& rest) {
    const std::string words = processor(rest + R"("size": {"height": 64, "width": 64})");
    return words.substr(0, words.find(" rgb"));
  };
  EXPECT_EQ(way(R"("resample": 0, )"), "stretch resize=nearest");
  EXPECT_EQ(way(R"("resample": 1, )"), "stretch resize=lanczos");
  EXPECT_EQ(way(R"("resample": 2, )"), "stretch resize=antialias");
  EXPECT_EQ(way(R"("resample": 3, )"), "stretch resize=cubic");
  EXPECT_EQ(way(R"("resample": 4, )"), "");  // no word stands for it
  EXPECT_EQ(way(R"("image_processor_type": "SiglipImageProcessor", )"), "stretch resize=cubic");
  EXPECT_EQ(way(R"("feature_extractor_type": "ViTFeatureExtractor", )"), "stretch resize=antialias");
  EXPECT_EQ(way(R"("image_processor_type": "EfficientNetImageProcessor", )"), "stretch resize=nearest");
  EXPECT_EQ(way(R"("image_processor_type": "CLIPImageProcessor", "resample": 2, )"), "stretch resize=antialias");
}

TEST_F(SidecarFiles, WhatTimmAndMmdeployResizeBy) {
  const auto timm = [&](const std::string& way) {
    return beside(
               "config.json",
               R"({"pretrained_cfg": {"crop_pct": 0.9, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5])" + way + "}}")
        .preprocess;
  };
  EXPECT_EQ(timm(""), "cover=0.9 resize=cubic rgb norm=half");
  EXPECT_EQ(timm(R"(, "interpolation": "bicubic")"), "cover=0.9 resize=cubic rgb norm=half");
  EXPECT_EQ(timm(R"(, "interpolation": "bilinear")"), "cover=0.9 resize=antialias rgb norm=half");
  std::filesystem::remove(folder_ + "/config.json");
  const auto mmdeploy = [&](const std::string& way) {
    return beside("pipeline.json", R"({"pipeline": {"tasks": [{"transforms": [{"type": "Resize", "size": [64, 64])" +
                                       way +
                                       R"(}, {"type": "Normalize", "mean": [0, 0, 0], "std": [255, 255, 255]}]}]}})")
        .preprocess;
  };
  EXPECT_EQ(mmdeploy(""), "stretch rgb norm=unit size=64x64");
  EXPECT_EQ(mmdeploy(R"(, "interpolation": "area")"), "stretch resize=area rgb norm=unit size=64x64");
  EXPECT_EQ(mmdeploy(R"(, "backend": "pillow", "interpolation": "bicubic")"),
            "stretch resize=cubic rgb norm=unit size=64x64");
}

TEST_F(SidecarFiles, PaddleDetection) {
  const std::string head =
      "mode: paddle\narch: DETR\nPreprocess:\n- interp: 2\n  keep_ratio: false\n  target_size:\n"
      "  - 480\n  - 640\n  type: Resize\n";
  const CompanionFiles plain =
      beside("inference.yml",
             head +
                 "- mean:\n  - 0.0\n  - 0.0\n  - 0.0\n  norm_type: none\n  std:\n  - 1.0\n  - 1.0\n"
                 "  - 1.0\n  type: NormalizeImage\nlabel_list:\n- table\n- 'a figure'\n",
             true);
  EXPECT_EQ(plain.preprocess, "stretch rgb norm=unit size=640x480 feed.scale_factor=ones");
  EXPECT_EQ(plain.names, (ClassNames{"table", "a figure"}));
  std::string area = head;
  area.replace(area.find("interp: 2"), 9, "interp: 3");
  EXPECT_EQ(beside("inference.yml", area + "- norm_type: none\n  type: NormalizeImage\n").preprocess,
            "stretch resize=area rgb norm=unit size=640x480");
  const CompanionFiles normalised =
      beside("inference.yml", head +
                                  "- is_scale: true\n  mean:\n  - 0.485\n  - 0.456\n  - 0.406\n  std:\n  - 0.229\n"
                                  "  - 0.224\n  - 0.225\n  type: NormalizeImage\n");
  EXPECT_EQ(normalised.preprocess, "stretch rgb norm=imagenet size=640x480");
}

TEST_F(SidecarFiles, PaddleClassification) {
  const std::string text =
      "PreProcess:\n  transform_ops:\n  - ResizeImage:\n      resize_short: 256\n  - CropImage:\n"
      "      size: 224\n  - NormalizeImage:\n      mean:\n      - 0.485\n      - 0.456\n      - 0.406\n"
      "      std:\n      - 0.229\n      - 0.224\n      - 0.225\nPostProcess:\n  Topk:\n    topk: 1\n"
      "    label_list:\n    - '0'\n    - '180'\n";
  const CompanionFiles found = beside("inference.yml", text);
  EXPECT_EQ(found.preprocess, "cover=0.875 rgb norm=imagenet size=224x224");
  EXPECT_EQ(found.names, (ClassNames{"0", "180"}));
}

}  // namespace
}  // namespace leat::exec
