#include "tools/leat/bridge/detector_messages.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace leat::tools {
namespace {

std::string header_of(const std::string& shape, const std::string& dtype = "uint8") {
  return R"({"shape": [)" + shape + R"(], "dtype": ")" + dtype + R"(", "model_type": "yologeneric"})";
}

CropLayout layout_of(const std::string& shape, const std::string& dtype, std::size_t bytes) {
  auto message = read_message(header_of(shape, dtype), bytes);
  EXPECT_TRUE(message.ok()) << message.error();
  return message.ok() ? std::get<CropLayout>(*message) : CropLayout{};
}

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> out(values.size() * sizeof(float));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

TEST(DetectorMessages, TellWhatIsAsked) {
  const auto request = read_message(R"({"model_request": true, "model_name": "yolov9.onnx"})", 0);
  ASSERT_TRUE(request.ok()) << request.error();
  EXPECT_EQ(std::get<ModelRequest>(*request).model, "yolov9.onnx");
  const auto data = read_message(R"({"model_data": true, "model_name": "m"})", 1000);
  ASSERT_TRUE(data.ok()) << data.error();
  EXPECT_EQ(std::get<ModelData>(*data).model, "m");
  EXPECT_EQ(layout_of("1, 4, 6, 3", "uint8", 72), (CropLayout{.width = 6, .height = 4}));
  EXPECT_EQ(layout_of("1, 3, 4, 6", "float32", 288),
            (CropLayout{.width = 6, .height = 4, .planes = true, .floats = true}));
}

TEST(DetectorMessages, WhatIsNoMessageIsSaid) {
  const auto problem = [](const std::string& header, std::size_t bytes) {
    const auto message = read_message(header, bytes);
    EXPECT_FALSE(message.ok()) << header;
    return message.ok() ? std::string() : message.error();
  };
  EXPECT_NE(problem("", 0).find("not one of Frigate's"), std::string::npos);
  EXPECT_NE(problem("[1]", 0).find("not a JSON object"), std::string::npos);
  EXPECT_NE(problem("{}", 12).find("not one of Frigate's"), std::string::npos);
  EXPECT_NE(problem(R"({"shape": "x", "dtype": "uint8"})", 12).find("not one of Frigate's"), std::string::npos);
  EXPECT_NE(problem(R"({"shape": [-1, 2, 2, 3], "dtype": "uint8"})", 12).find("not one of Frigate's"),
            std::string::npos);
  EXPECT_NE(problem(header_of("1, 2, 2, 3", "float16"), 24).find("uint8 or float32"), std::string::npos);
  EXPECT_NE(problem(header_of("2, 2, 2, 3"), 24).find("[1, height, width, 3]"), std::string::npos);
  EXPECT_NE(problem(header_of("1, 2, 2, 4"), 16).find("[1, height, width, 3]"), std::string::npos);
  EXPECT_NE(problem(header_of("1, 4096, 4096, 3"), 50331648).find("sides are 1 to 2048"), std::string::npos);
  EXPECT_NE(problem(header_of("1, 0, 2, 3"), 0).find("sides are 1 to 2048"), std::string::npos);
  EXPECT_NE(problem(header_of("1, 2, 2, 3"), 11).find("12 bytes, but 11 came"), std::string::npos);
  EXPECT_NE(problem(std::string(5000, ' ') + "{}", 0).find("longer"), std::string::npos);
}

// The same picture in each layout and type makes the same pixels.
TEST(DetectorMessages, PixelsOfEveryLayoutAndType) {
  constexpr std::uint32_t kWidth = 3, kHeight = 2, kCount = kWidth * kHeight * 3;
  std::vector<std::uint8_t> pixels(kCount), planes(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) pixels[i] = static_cast<std::uint8_t>(i * 15);
  for (std::uint32_t i = 0; i < kCount; ++i) planes[i % 3 * (kCount / 3) + i / 3] = pixels[i];
  const auto written = [&](CropLayout layout, const std::vector<std::uint8_t>& values, float scale) {
    layout.width = kWidth, layout.height = kHeight;
    std::vector<float> floats;
    for (const std::uint8_t v : values) floats.push_back(static_cast<float>(v) * scale);
    const std::vector<std::byte> tensor =
        layout.floats ? bytes_of(floats)
                      : std::vector<std::byte>(reinterpret_cast<const std::byte*>(values.data()),
                                               reinterpret_cast<const std::byte*>(values.data()) + kCount);
    std::vector<std::uint8_t> rows(16 * kHeight, 7);  // the stride is wider than a row
    write_pixels(layout, tensor, layout.floats ? range_of(tensor) : FloatRange::byte, rows.data(), 16);
    EXPECT_EQ(rows[9], 7) << "behind the first row";
    std::vector<std::uint8_t> out(rows.begin(), rows.begin() + 9);
    out.insert(out.end(), rows.begin() + 16, rows.begin() + 25);
    return out;
  };
  EXPECT_EQ(written({.planes = false, .floats = false}, pixels, 1), pixels);
  EXPECT_EQ(written({.planes = true, .floats = false}, planes, 1), pixels);
  EXPECT_EQ(written({.planes = false, .floats = true}, pixels, 1), pixels);
  EXPECT_EQ(written({.planes = true, .floats = true}, planes, 1), pixels);
  EXPECT_EQ(written({.planes = false, .floats = true}, pixels, 1 / 255.F), pixels);
  EXPECT_EQ(written({.planes = true, .floats = true}, planes, 1 / 255.F), pixels);
}

TEST(DetectorMessages, FloatsThatAreNoPixelsAreBlackOrWhite) {
  const auto tensor = bytes_of({-1.F, std::numeric_limits<float>::quiet_NaN(), 1e30F});
  std::uint8_t out[3];
  write_pixels({.width = 1, .height = 1, .floats = true}, tensor, FloatRange::one, out, 3);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 0);
  EXPECT_EQ(out[2], 255);
}

TEST(DetectorMessages, TheTableIsBestFirstAndInParts) {
  leat_result result{};
  result.kind = LEAT_RESULT_DETECTIONS;
  result.frame_width = 200, result.frame_height = 100;
  result.detection_count = 25;  // five more than there are rows
  for (std::uint32_t i = 0; i < result.detection_count; ++i) {
    leat_detection& d = result.detections[i];
    d = {.x0 = 20,
         .y0 = 10,
         .x1 = 220,
         .y1 = 50,
         .score = 0.02F * static_cast<float>(i),
         .class_id = static_cast<int>(i)};
  }
  const DetectionTable table = table_of(result);
  for (std::size_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(table[row * kColumns], static_cast<float>(24 - row));
    EXPECT_FLOAT_EQ(table[row * kColumns + 1], 0.02F * static_cast<float>(24 - row));
  }
  EXPECT_FLOAT_EQ(table[2], 0.1F);
  EXPECT_FLOAT_EQ(table[3], 0.1F);
  EXPECT_FLOAT_EQ(table[4], 0.5F);
  EXPECT_FLOAT_EQ(table[5], 1.F) << "beyond the frame";
  result.detection_count = 1u << 30;  // a worker wrote it
  EXPECT_EQ(table_of(result)[1], 0.48F);
  result.kind = LEAT_RESULT_CLASSES;
  EXPECT_EQ(table_of(result), DetectionTable{});
}

}  // namespace
}  // namespace leat::tools
