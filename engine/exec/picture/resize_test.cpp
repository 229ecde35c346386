// Resizing against what Pillow and OpenCV made of a photograph, of a JPEG of it and of a made picture
// (expected/generate.py), and by what must hold for any picture.
#include "engine/exec/picture/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>

#include "engine/exec/picture/preprocess.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::exec {
namespace {

constexpr const char* kWays[] = {"antialias", "cubic", "area", "lanczos", "nearest"};
constexpr std::uint32_t kFormats[] = {LEAT_FORMAT_nv12, LEAT_FORMAT_i420, LEAT_FORMAT_rgb24, LEAT_FORMAT_bgr24,
                                      LEAT_FORMAT_gray8};

// A frame whose slot ends with its last pixel, so that the address sanitizer sees a byte too many.
struct Picture {
  std::unique_ptr<std::uint8_t[]> bytes;
  FrameView view;
};
Picture picture_of(std::uint32_t format, std::uint32_t width, std::uint32_t height) {
  Picture out;
  out.view.format = format, out.view.width = width, out.view.height = height;
  std::uint64_t at[LEAT_MAX_PLANES] = {};
  for (std::uint32_t p = 0; p < shm::plane_count(format); ++p) {
    const auto shape = shm::plane_shape(format, p, width, height);
    out.view.strides[p] = shape.row_bytes;
    at[p] = out.view.bytes;
    out.view.bytes += std::uint64_t{shape.row_bytes} * shape.rows;
  }
  out.bytes = std::make_unique<std::uint8_t[]>(out.view.bytes);
  for (std::uint32_t p = 0; p < shm::plane_count(format); ++p) out.view.planes[p] = out.bytes.get() + at[p];
  return out;
}
Picture noise(std::uint32_t format, std::uint32_t width, std::uint32_t height, std::mt19937& random) {
  Picture out = picture_of(format, width, height);
  std::generate_n(out.bytes.get(), out.view.bytes, [&] { return static_cast<std::uint8_t>(random()); });
  return out;
}

std::vector<float> resized(const FrameView& frame, const std::string& line, const Box* box, std::uint32_t width,
                           std::uint32_t height) {
  const auto spec = parse_preprocess(line);
  EXPECT_TRUE(spec.ok()) << spec.error();
  const std::uint32_t channels = spec->channels == Channels::gray ? 1 : 3;
  auto opened = Preprocessor::open(*spec, channels, width, height);
  EXPECT_TRUE(opened.ok()) << opened.error();
  std::vector<float> out(std::size_t{channels} * width * height, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(opened->run(frame, box, out.data()));
  return out;
}

struct Case {
  std::string source, way;
  Box box;
  std::uint32_t width = 0, height = 0;
  std::size_t at = 0;
};
struct Expected {
  std::string pixels;
  std::map<std::string, Case> sources;  // way: the pixel format
  std::vector<Case> cases;
};
const Expected& expected() {
  static const Expected kAll = [] {
    Expected out;
    std::ifstream pixels(LEAT_EXPECTED "/pixels.bin", std::ios::binary), lines(LEAT_EXPECTED "/cases.txt");
    out.pixels.assign(std::istreambuf_iterator<char>(pixels), {});
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      Case c;
      words >> c.source >> c.way;
      if (c.way == "source") {
        words >> c.way >> c.width >> c.height >> c.at;
        out.sources[c.source] = c;
      } else {
        words >> c.box.x0 >> c.box.y0 >> c.box.x1 >> c.box.y1 >> c.width >> c.height >> c.at;
        out.cases.push_back(c);
      }
      EXPECT_TRUE(words) << line;
    }
    return out;
  }();
  return kAll;
}

Picture source_of(const Case& source, std::uint32_t format) {
  Picture out = picture_of(format, source.width, source.height);
  const auto* const from = reinterpret_cast<const std::uint8_t*>(expected().pixels.data()) + source.at;
  const std::size_t count = std::size_t{source.width} * source.height, quarter = count / 4;
  for (std::size_t i = 0; i < count; ++i) {
    if (format == LEAT_FORMAT_gray8) out.bytes[i] = from[3 * i + 1];  // green
    for (std::size_t c = 0; c < 3; ++c) {
      if (format == LEAT_FORMAT_rgb24) out.bytes[3 * i + c] = from[3 * i + c];
      if (format == LEAT_FORMAT_bgr24) out.bytes[3 * i + 2 - c] = from[3 * i + c];
    }
  }
  if (format == LEAT_FORMAT_i420 || format == LEAT_FORMAT_nv12) std::memcpy(out.bytes.get(), from, count + 2 * quarter);
  for (std::size_t i = 0; format == LEAT_FORMAT_nv12 && i < quarter; ++i)
    out.bytes[count + 2 * i] = from[count + i], out.bytes[count + 2 * i + 1] = from[count + quarter + i];
  return out;
}

// Differences of 255 from a case's pixels. channel: of the expected picture where one channel is given; else all.
std::vector<double> differences(const Case& c, const std::vector<float>& got, std::size_t channel) {
  const std::size_t count = std::size_t{c.width} * c.height;
  std::vector<double> out;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t component = got.size() == count ? channel : i / count;
    const auto wanted = static_cast<std::uint8_t>(expected().pixels[c.at + 3 * (i % count) + component]);
    out.push_back(std::isnan(got[i]) ? 1e9 : std::abs(static_cast<double>(got[i]) * 255 - wanted));
  }
  std::ranges::sort(out);
  return out;
}

// Half of one of 255 is their last rounding, the rest that of the bytes between their passes.
TEST(Resize, EqualToPillowAndOpenCv) {
  std::size_t compared = 0;
  for (const Case& c : expected().cases) {
    const Case& source = expected().sources.at(c.source);
    if (source.way != "rgb24") continue;
    for (const std::uint32_t format : {LEAT_FORMAT_rgb24, LEAT_FORMAT_bgr24, LEAT_FORMAT_gray8}) {
      const Picture picture = source_of(source, format);
      const std::string line = format == LEAT_FORMAT_gray8 ? "stretch gray resize=" : "stretch resize=";
      const auto all = differences(c, resized(picture.view, line + c.way, &c.box, c.width, c.height), 1);
      EXPECT_LT(all.back(), 1.3) << c.source << " " << c.way << " to " << c.width << "x" << c.height << ", box "
                                 << c.box.x0 << ", format " << format;
      ++compared;
    }
  }
  EXPECT_GE(compared, 100U);
}

// A JPEG's planes as ffmpeg decodes them, beside Pillow's RGB of the same file: both round for themselves, and Pillow
// clips colours outside of RGB before it resizes.
TEST(Resize, PlanesOfAJpegAreEqualToItsRgbResized) {
  std::size_t compared = 0;
  for (const Case& c : expected().cases) {
    const Case& source = expected().sources.at(c.source);
    if (source.way != "i420" || c.way == "linear") continue;
    for (const std::uint32_t format : {LEAT_FORMAT_i420, LEAT_FORMAT_nv12}) {
      const Picture picture = source_of(source, format);
      const auto all =
          differences(c, resized(picture.view, "stretch full bt601 resize=" + c.way, &c.box, c.width, c.height), 0);
      const double mean = std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
      EXPECT_LT(mean, 0.6) << c.way << " to " << c.width;
      EXPECT_LT(all[all.size() * 97 / 100], 2) << c.way << " to " << c.width;
      ++compared;
    }
  }
  EXPECT_GE(compared, 16U);
}

// Colours well within RGB: converted first or last is the same.
TEST(Resize, PlanesAreEqualToTheirRgbResized) {
  std::mt19937 random(7);
  for (const char* const way : kWays) {
    for (const std::uint32_t format : {LEAT_FORMAT_i420, LEAT_FORMAT_nv12}) {
      Picture yuv = picture_of(format, 46, 38), rgb = picture_of(LEAT_FORMAT_rgb24, 46, 38);
      for (std::size_t i = 0; i < yuv.view.bytes; ++i)
        yuv.bytes[i] = static_cast<std::uint8_t>(i < 46 * 38 ? 90 + random() % 60 : 112 + random() % 32);
      const auto full = resized(yuv.view, "stretch full bt601", nullptr, 46, 38);  // each pixel as it is
      for (std::size_t i = 0; i < 46 * 38 * 3; ++i)
        rgb.bytes[i] = static_cast<std::uint8_t>(std::lround(full[i % 3 * 46 * 38 + i / 3] * 255));
      for (const auto& [width, height] : {std::pair{13U, 11U}, {70U, 61U}, {80U, 7U}, {1U, 1U}}) {
        const auto last = resized(yuv.view, std::string("stretch full bt601 resize=") + way, nullptr, width, height),
                   first = resized(rgb.view, std::string("stretch resize=") + way, nullptr, width, height);
        for (std::size_t i = 0; i < last.size(); ++i)
          ASSERT_NEAR(last[i] * 255, first[i] * 255, 1.5) << way << " to " << width << ", format " << format;
      }
    }
  }
}

// The place in the model's input does not change what is shown there.
TEST(Resize, LetterboxCoverAndLinesShowTheSame) {
  std::mt19937 random(8);
  for (const char* const way : kWays) {
    for (const std::uint32_t format : kFormats) {
      const Picture picture = noise(format, 96, 72, random);
      const std::string resize = std::string(" pad=0.25 resize=") + way;
      const auto box = resized(picture.view, "letterbox" + resize, nullptr, 32, 32),
                 inside = resized(picture.view, "stretch" + resize, nullptr, 32, 24),
                 cover = resized(picture.view, "cover=0.5" + resize, nullptr, 15, 15),
                 line = resized(picture.view, "height=24 widths=40" + resize, nullptr, 40, 24);
      const Box middle{30, 18, 66, 54};
      const auto square = resized(picture.view, "stretch" + resize, &middle, 15, 15);
      for (std::size_t i = 0; i < line.size(); ++i) {
        const std::size_t row = i / 40, x = i % 40;
        ASSERT_EQ(line[i], x < 32 ? inside[row * 32 + x] : 0.25f) << way;
      }
      for (std::size_t i = 0; i < box.size(); ++i) {
        const std::size_t c = i / (32 * 32), y = i / 32 % 32, x = i % 32;
        ASSERT_EQ(box[i], y < 4 || y >= 28 ? 0.25f : inside[(c * 24 + y - 4) * 32 + x]) << way;
      }
      for (std::size_t i = 0; i < cover.size(); ++i) ASSERT_NEAR(cover[i], square[i], 1e-4) << way;
    }
  }
}

// Weights add up to one, whatever they are rounded to.
TEST(Resize, AFlatPictureStaysFlat) {
  for (const char* const way : kWays) {
    for (const std::uint32_t format : kFormats) {
      for (const auto& [w, h] : {std::pair{2U, 2U}, {30U, 16U}, {1026U, 4U}, {16384U, 2U}, {2U, 4096U}}) {
        Picture picture = picture_of(format, w, h);
        std::fill_n(picture.bytes.get(), picture.view.bytes, std::uint8_t{128});
        for (const auto& [width, height] : {std::pair{1U, 1U}, {3U, 40U}, {33U, 7U}})
          for (const char* const channels : {" rgb", " gray"})
            for (const float v :
                 resized(picture.view, std::string("stretch full resize=") + way + channels, nullptr, width, height))
              ASSERT_NEAR(v * 255, 128, 0.02) << way << " format " << format << " " << w << "x" << h;
      }
    }
  }
}

TEST(Resize, BoxesOfAnyKindStayInsideTheFrame) {
  std::mt19937 random(9);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  for (const char* const way : kWays) {
    for (const std::uint32_t format : kFormats) {
      const Picture picture = noise(format, 64, 48, random);
      for (const Box& box : {Box{kNan, kNan, kNan, kNan},
                             {-kInf, -kInf, kInf, kInf},
                             {63.9f, 47.9f, 90, 90},
                             {50, 50, 10, 10},
                             {0.1f, 47, 63.9f, 47.5f},
                             {30, 30, 30, 30}})
        for (const char* const fit : {"stretch", "letterbox", "cover=0.3"})
          for (const float v : resized(picture.view, std::string(fit) + " crop=0.1 resize=" + way, &box, 19, 23))
            ASSERT_TRUE(v >= 0 && v <= 1) << way;
    }
  }
}

// One object shows frames of several sizes and formats in turns, as a module does.
TEST(Resize, WhatWasLaidForOneFrameIsNotUsedForAnother) {
  std::mt19937 random(10);
  for (const char* const way : kWays) {
    auto opened = Preprocessor::open(*parse_preprocess(std::string("letterbox resize=") + way), 3, 31, 17);
    for (int round = 0; round < 2; ++round)
      for (const std::uint32_t format : kFormats)
        for (const auto& [w, h] : {std::pair{64U, 48U}, {20U, 90U}}) {
          const Picture picture = noise(format, w, h, random);
          std::vector<float> out(3 * 31 * 17);
          ASSERT_TRUE(opened->run(picture.view, nullptr, out.data()));
          ASSERT_EQ(out, resized(picture.view, std::string("letterbox resize=") + way, nullptr, 31, 17)) << way;
        }
  }
}

TEST(Resize, FastAndPortablePassesAgree) {
  std::mt19937 random(11);
  for (const std::uint32_t resize : {LEAT_RESIZE_antialias, LEAT_RESIZE_cubic, LEAT_RESIZE_area, LEAT_RESIZE_lanczos}) {
    for (const auto& [source, width] : {std::pair{61U, 17U}, {61U, 8U}, {61U, 7U}, {20U, 77U}, {900U, 9U}}) {
      for (std::uint32_t components = 1; components <= 3; ++components) {
        ColumnWeights columns;
        columns.reserve(width, resize);
        columns.lay({0, static_cast<float>(source), width, source, resize, source < width}, width, false,
                    kGroups[components - 1]);
        const std::size_t bytes = std::size_t{source} * components;
        std::vector<std::uint8_t> rows(bytes * 5);
        for (auto& b : rows) b = static_cast<std::uint8_t>(random());
        constexpr std::int16_t kWeights[] = {2000, 5000, 384, 6000, 3000, 0};
        for (const std::uint32_t count : {1U, 4U, 5U}) {
          std::vector<std::int16_t> combined[2];
          std::vector<float> across[2];
          for (const bool fast : {false, true}) {
            const Passes& p = fast ? passes() : portable_passes();
            combined[fast].resize(bytes + 3 * kSpare), across[fast].resize(std::size_t{3} * width);
            p.combine({rows.data(), bytes, count, kWeights, columns.begin * components, columns.end * components,
                       combined[fast].data()});
            AcrossJob job{.row = combined[fast].data(), .columns = &columns, .width = width};
            for (std::uint32_t c = 0; c < components; ++c) job.out[c] = across[fast].data() + std::size_t{c} * width;
            p.across[components - 1](job);
          }
          ASSERT_EQ(combined[0], combined[1]) << components << " components, rows " << count;
          ASSERT_EQ(across[0], across[1]) << components << " components, rows " << count;
        }
      }
    }
  }
}

TEST(Resize, TheWordIsParsedAndRefusedWhereNothingIsResized) {
  EXPECT_EQ(parse_preprocess("letterbox")->resize, LEAT_RESIZE_linear);
  EXPECT_EQ(parse_preprocess("stretch resize=area")->resize, LEAT_RESIZE_area);
  EXPECT_EQ(parse_preprocess("cover=0.9 resize=lanczos")->resize, LEAT_RESIZE_lanczos);
  EXPECT_TRUE(parse_preprocess("stretch quad resize=linear").ok());
  for (const auto& [line, said] : {std::pair{"resize=bicubic", "resize=bicubic"},
                                   {"raw resize=area", "raw and tensors"},
                                   {"tensors resize=linear", "raw and tensors"},
                                   {"stretch quad resize=cubic", "quad and align="},
                                   {"stretch align=face5 resize=antialias", "quad and align="}}) {
    const auto spec = parse_preprocess(line);
    ASSERT_FALSE(spec.ok()) << line;
    EXPECT_NE(spec.error().find(said), std::string::npos) << spec.error();
  }
}

}  // namespace
}  // namespace leat::exec
