// Pre-processing against a slow reading of its definition (preprocess.h), for every format, odd sizes, strides and
// boxes.
#include "engine/exec/picture/preprocess.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "shm/src/segments/segment_layout.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kFormats[] = {LEAT_FORMAT_nv12, LEAT_FORMAT_i420, LEAT_FORMAT_rgb24, LEAT_FORMAT_bgr24,
                                      LEAT_FORMAT_gray8};
constexpr std::uint32_t kSeed = 20240611;

// A frame of noise whose slot ends with its last pixel, so that the address sanitizer sees a byte too many.
struct Picture {
  std::unique_ptr<std::uint8_t[]> bytes;
  FrameView view;
};
Picture noise(std::uint32_t format, std::uint32_t width, std::uint32_t height, std::uint32_t padding,
              std::mt19937& random) {
  Picture out;
  out.view.format = format, out.view.width = width, out.view.height = height;
  std::uint64_t at = 0, offsets[3] = {};
  const std::uint32_t planes = shm::plane_count(format);
  for (std::uint32_t p = 0; p < planes; ++p) {
    const auto shape = shm::plane_shape(format, p, width, height);
    out.view.strides[p] = shape.row_bytes + padding;
    offsets[p] = at;
    at += std::uint64_t{out.view.strides[p]} * (shape.rows - 1) + shape.row_bytes;
    if (p + 1 < planes) at += padding;
  }
  out.bytes = std::make_unique<std::uint8_t[]>(at);
  std::generate_n(out.bytes.get(), at, [&] { return static_cast<std::uint8_t>(random()); });
  for (std::uint32_t p = 0; p < planes; ++p) out.view.planes[p] = out.bytes.get() + offsets[p];
  out.view.bytes = at;
  return out;
}

// The value of one plane's component at a point, by definition.
double at_point(const FrameView& f, std::uint32_t plane, int step, int offset, double x, double y, int width,
                int height) {
  x = std::clamp(x, 0.0, width - 1.0), y = std::clamp(y, 0.0, height - 1.0);
  const int x0 = static_cast<int>(x), y0 = static_cast<int>(y), x1 = std::min(x0 + 1, width - 1),
            y1 = std::min(y0 + 1, height - 1);
  const auto pixel = [&](int px, int py) {
    return static_cast<double>(f.planes[plane][static_cast<std::size_t>(py) * f.strides[plane] +
                                               static_cast<std::size_t>(px * step + offset)]);
  };
  const double a = x - x0, b = y - y0;
  return (pixel(x0, y0) * (1 - a) + pixel(x1, y0) * a) * (1 - b) + (pixel(x0, y1) * (1 - a) + pixel(x1, y1) * a) * b;
}

void rgb_at(const FrameView& f, const PreprocessSpec& s, double x, double y, double rgb[3]) {
  const int w = static_cast<int>(f.width), h = static_cast<int>(f.height);
  if (f.format == LEAT_FORMAT_gray8) {
    const bool limited = f.color.range == LEAT_COLOR_RANGE_limited;
    rgb[0] = rgb[1] = rgb[2] = (at_point(f, 0, 1, 0, x, y, w, h) - (limited ? 16 : 0)) / (limited ? 219 : 255);
  } else if (f.format == LEAT_FORMAT_rgb24 || f.format == LEAT_FORMAT_bgr24) {
    for (int c = 0; c < 3; ++c) rgb[c] = at_point(f, 0, 3, f.format == LEAT_FORMAT_rgb24 ? c : 2 - c, x, y, w, h) / 255;
  } else {
    const bool semi = f.format == LEAT_FORMAT_nv12;
    const double cx = (x + 0.5) / 2 - 0.5, cy = (y + 0.5) / 2 - 0.5;
    double luma = at_point(f, 0, 1, 0, x, y, w, h);
    double u = at_point(f, 1, semi ? 2 : 1, 0, cx, cy, w / 2, h / 2) - 128,
           v = at_point(f, semi ? 1 : 2, semi ? 2 : 1, semi ? 1 : 0, cx, cy, w / 2, h / 2) - 128;
    const shm::Color color = shm::color_of(s.color, f.color, f.format, f.height);
    if (color.range == LEAT_COLOR_RANGE_limited)
      luma = (luma - 16) / 219, u /= 224, v /= 224;
    else
      luma /= 255, u /= 255, v /= 255;
    const std::array<std::array<double, 2>, 3> weights = {{{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}}};
    const auto [kr, kb] = weights.at(color.matrix - 1u);
    rgb[0] = luma + 2 * (1 - kr) * v;
    rgb[2] = luma + 2 * (1 - kb) * u;
    rgb[1] = (luma - kr * rgb[0] - kb * rgb[2]) / (1 - kr - kb);
  }
}

std::vector<float> by_definition(const FrameView& f, const PreprocessSpec& s, const Box* box, int width, int height) {
  const int channels = s.channels == Channels::gray ? 1 : 3;
  double x0 = 0, y0 = 0, x1 = f.width, y1 = f.height;
  if (box) {
    const double mx = s.crop * (box->x1 - box->x0), my = s.crop * (box->y1 - box->y0);
    x0 = std::clamp(box->x0 - mx, 0.0, f.width - 1.0), y0 = std::clamp(box->y0 - my, 0.0, f.height - 1.0);
    x1 = std::clamp(box->x1 + mx, x0 + 1, static_cast<double>(f.width)),
    y1 = std::clamp(box->y1 + my, y0 + 1, static_cast<double>(f.height));
  }
  int w = width, h = height, left = 0, top = 0;
  if (s.fit == Fit::letterbox) {
    const double scale = std::max((x1 - x0) / width, (y1 - y0) / height);
    w = std::clamp(static_cast<int>(std::lround((x1 - x0) / scale)), 1, width),
    h = std::clamp(static_cast<int>(std::lround((y1 - y0) / scale)), 1, height);
    left = (width - w) / 2, top = (height - h) / 2;
  }
  std::vector<float> out(static_cast<std::size_t>(channels) * width * height);
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        double value = s.pad;
        if (x >= left && x < left + w && y >= top && y < top + h) {
          double rgb[3];
          rgb_at(f, s, x0 + (x - left + 0.5) * (x1 - x0) / w - 0.5, y0 + (y - top + 0.5) * (y1 - y0) / h - 0.5, rgb);
          value = std::clamp(s.channels == Channels::gray ? 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]
                                                          : rgb[s.channels == Channels::bgr ? 2 - c : c],
                             0.0, 1.0);
        }
        out[(static_cast<std::size_t>(c) * height + y) * width + x] = static_cast<float>(
            (value - s.mean[static_cast<std::size_t>(c)]) / s.deviation[static_cast<std::size_t>(c)]);
      }
    }
  }
  return out;
}

void expect_same(const FrameView& frame, const PreprocessSpec& spec, const Box* box, std::uint32_t width,
                 std::uint32_t height) {
  const std::uint32_t channels = spec.channels == Channels::gray ? 1 : 3;
  auto opened = Preprocessor::open(spec, channels, width, height);
  ASSERT_TRUE(opened.ok()) << opened.error();
  const std::size_t size = std::size_t{channels} * width * height;
  std::vector<float> out(size, std::numeric_limits<float>::quiet_NaN());
  ASSERT_TRUE(opened->run(frame, box, out.data()));
  const auto wanted = by_definition(frame, spec, box, static_cast<int>(width), static_cast<int>(height));
  double worst = 0;
  for (std::size_t i = 0; i < size; ++i)
    worst = std::isnan(out[i]) ? 1e9 : std::max(worst, std::abs(static_cast<double>(out[i]) - wanted[i]));
  EXPECT_LT(worst, 2e-3) << "format " << frame.format << ", " << frame.width << "x" << frame.height << " to " << width
                         << "x" << height << (box ? ", box" : "");
}

TEST(Preprocess, EveryFormatSizeAndFitAgreesWithTheDefinition) {
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  constexpr std::uint32_t kSizes[][2] = {{1, 1}, {2, 2}, {3, 7}, {17, 5}, {64, 48}, {131, 67}, {320, 180}};
  constexpr std::uint32_t kInputs[][2] = {{1, 1}, {7, 5}, {8, 8}, {32, 32}, {41, 24}};
  for (const std::uint32_t format : kFormats) {
    for (const auto& size : kSizes) {
      const bool even = format == LEAT_FORMAT_nv12 || format == LEAT_FORMAT_i420;
      const std::uint32_t width = even ? (size[0] + 1) & ~1u : size[0], height = even ? (size[1] + 1) & ~1u : size[1];
      const Picture picture =
          noise(format, width, height, static_cast<std::uint32_t>(random() % 2 ? 0 : random() % 70), random);
      for (const auto& input : kInputs) {
        PreprocessSpec spec;
        spec.fit = random() % 2 ? Fit::letterbox : Fit::stretch;
        spec.channels = static_cast<Channels>(random() % 3);
        const auto any_color = [&] {
          return shm::Color{static_cast<std::uint8_t>(random() % 3), static_cast<std::uint8_t>(random() % 4)};
        };
        if (random() % 3 == 0) spec.color = any_color();
        spec.mean = {0.4f, 0.5f, 0.6f}, spec.deviation = {0.2f, 0.5f, 0.3f};
        FrameView view = picture.view;
        view.color = any_color();
        expect_same(view, spec, nullptr, input[0], input[1]);
      }
    }
  }
}

// (200, 30, 90), as swscale codes it in each range and matrix: one stream may change both from frame to frame.
TEST(Preprocess, TheColorOfEachFrameIsItsOwn) {
  struct Coded {
    shm::Color color;
    std::uint8_t y, u, v;
  };
  constexpr Coded kCoded[] = {{{LEAT_COLOR_RANGE_limited, LEAT_COLOR_MATRIX_bt601}, 91, 129, 198},
                              {{LEAT_COLOR_RANGE_full, LEAT_COLOR_MATRIX_bt601}, 88, 129, 208},
                              {{LEAT_COLOR_RANGE_limited, LEAT_COLOR_MATRIX_bt709}, 77, 137, 200},
                              {{LEAT_COLOR_RANGE_full, LEAT_COLOR_MATRIX_bt709}, 70, 139, 210},
                              {{}, 91, 129, 198}};
  auto opened = Preprocessor::open({.fit = Fit::stretch}, 3, 8, 8);
  ASSERT_TRUE(opened.ok()) << opened.error();
  for (int round = 0; round < 2; ++round) {
    for (const Coded& coded : kCoded) {
      std::vector<std::uint8_t> bytes(8 * 8, coded.y);
      for (int i = 0; i < 16; ++i) bytes.insert(bytes.end(), {coded.u, coded.v});
      FrameView view{.planes = {bytes.data(), bytes.data() + 64},
                     .strides = {8, 8},
                     .format = LEAT_FORMAT_nv12,
                     .width = 8,
                     .height = 8,
                     .color = coded.color,
                     .bytes = bytes.size()};
      std::vector<float> out(3 * 64);
      ASSERT_TRUE(opened->run(view, nullptr, out.data()));
      EXPECT_NEAR(out[0] * 255, 200, 2) << int{coded.color.range} << int{coded.color.matrix};
      EXPECT_NEAR(out[64] * 255, 30, 2);
      EXPECT_NEAR(out[128] * 255, 90, 2);
      leat_picture_job job{};
      ASSERT_TRUE(opened->job(view, nullptr, &job));  // what a device is told
      const float green = job.factors[1][0] * static_cast<float>(coded.y) +
                          job.factors[1][1] * static_cast<float>(coded.u) +
                          job.factors[1][2] * static_cast<float>(coded.v) + job.factors[1][3];
      EXPECT_NEAR(green * 255, 30, 2);
    }
  }
}

TEST(Preprocess, WhatAModuleSaysHoldsWhateverAFrameStates) {
  const FrameView nv12{.format = LEAT_FORMAT_nv12,
                       .width = 2,
                       .height = 2,
                       .color = {LEAT_COLOR_RANGE_limited, LEAT_COLOR_MATRIX_bt601}};
  const std::vector<std::uint8_t> bytes = {235, 235, 235, 235, 128, 128};
  FrameView view = nv12;
  view.planes[0] = bytes.data(), view.planes[1] = bytes.data() + 4, view.strides[0] = view.strides[1] = 2;
  view.bytes = bytes.size();
  for (const auto& [line, wanted] : {std::pair{"stretch", 1.0f}, std::pair{"stretch full", 235 / 255.0f}}) {
    auto opened = Preprocessor::open(*parse_preprocess(line), 3, 2, 2);
    ASSERT_TRUE(opened.ok()) << opened.error();
    std::vector<float> out(12);
    ASSERT_TRUE(opened->run(view, nullptr, out.data()));
    EXPECT_NEAR(out[0], wanted, 1e-4) << line;
  }
}

TEST(Preprocess, CropsAgreeWithTheDefinitionAlsoOutsideOfTheFrame) {
  std::mt19937 random(kSeed + 1);
  std::uniform_real_distribution<float> anywhere(-60, 260);
  for (const std::uint32_t format : kFormats) {
    const Picture picture = noise(format, 200, 120, 13, random);
    for (int i = 0; i < 40; ++i) {
      Box box{anywhere(random), anywhere(random), 0, 0};
      box.x1 = box.x0 + std::abs(anywhere(random)) * 0.5f, box.y1 = box.y0 + std::abs(anywhere(random)) * 0.5f;
      PreprocessSpec spec;
      spec.fit = i % 2 ? Fit::letterbox : Fit::stretch;
      spec.crop = i % 3 ? 0.1f : 0;
      expect_same(picture.view, spec, &box, 32, 32);
    }
  }
}

TEST(Preprocess, BoxesThatAreNoBoxesStayInsideTheFrame) {
  std::mt19937 random(kSeed + 2);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  const Box boxes[] = {
      {kNan, kNan, kNan, kNan}, {-kInf, -kInf, kInf, kInf}, {50, 50, 10, 10}, {1e30f, 1e30f, 2e30f, 2e30f},
      {-9, -9, -5, -5},         {kInf, 0, -kInf, 5},        {30, 30, 30, 30}};
  for (const std::uint32_t format : kFormats) {
    const Picture picture = noise(format, 64, 48, 0, random);
    for (const Box& box : boxes) {
      PreprocessSpec spec;
      spec.crop = 0.25f;
      auto opened = Preprocessor::open(spec, 3, 16, 16);
      std::vector<float> out(3 * 16 * 16, kNan);
      ASSERT_TRUE(opened->run(picture.view, &box, out.data()));
      EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](float v) { return v >= 0 && v <= 1; }));
      const Placement p = opened->placement(picture.view, &box);
      EXPECT_TRUE(std::isfinite(p.offset_x) && std::isfinite(p.offset_y) && p.scale_x > 0 && p.scale_y > 0);
    }
  }
}

TEST(Preprocess, AFrameWhosePlanesLeaveItsSlotIsRefusedAndNothingWritten) {
  std::mt19937 random(kSeed + 3);
  for (const std::uint32_t format : kFormats) {
    const Picture picture = noise(format, 64, 48, 4, random);
    auto opened = Preprocessor::open({}, 3, 16, 16);
    std::vector<float> out(3 * 16 * 16, 7);
    const auto refused = [&](auto change) {
      FrameView bad = picture.view;
      change(bad);
      return !opened->run(bad, nullptr, out.data()) &&
             std::all_of(out.begin(), out.end(), [](float v) { return v == 7; });
    };
    EXPECT_TRUE(refused([](FrameView& f) { f.bytes -= 1; }));
    EXPECT_TRUE(refused([](FrameView& f) { f.height += 2; }));
    EXPECT_TRUE(refused([](FrameView& f) { f.strides[0] = f.width - 1; }));
    EXPECT_TRUE(refused([](FrameView& f) { f.width = 0; }));
    EXPECT_TRUE(refused([](FrameView& f) { f.width = 1u << 31; }));
    EXPECT_TRUE(refused([](FrameView& f) { f.format = 99; }));
    EXPECT_TRUE(refused([](FrameView& f) { f.planes[0] = nullptr; }));
    EXPECT_EQ(problem_of(picture.view), "");
  }
}

TEST(Preprocess, FastAndPortableRowsAgree) {
  std::mt19937 random(kSeed + 4);
  constexpr Arrangement kArrangements[] = {Arrangement::semi_planar, Arrangement::planar, Arrangement::packed,
                                           Arrangement::packed, Arrangement::gray};
  for (std::size_t k = 0; k < std::size(kFormats); ++k) {
    const Picture picture = noise(kFormats[k], 320, 4, 32, random);
    PixelTaps full, half;
    full.reserve(77), half.reserve(77);
    full.lay(3, 4.1f, 77, 320, kArrangements[k] == Arrangement::packed ? 3 : 1);
    half.lay(1.5f, 2.05f, 77, 160, kArrangements[k] == Arrangement::semi_planar ? 2 : 1);
    Colour colour;
    for (int c = 0; c < 3; ++c) {
      for (float& f : colour.factors[c]) f = static_cast<float>(random() % 100) / 5000;
      colour.low[c] = 0.1f, colour.high[c] = 2;
    }
    std::vector<float> fast(3 * 77), slow(3 * 77);
    RowJob job{.weight = 0.3f,
               .chroma_weight = 0.7f,
               .end = picture.view.planes[0] + picture.view.bytes,
               .columns = &full,
               .chroma_columns = &half,
               .colour = &colour,
               .width = 77};
    for (std::uint32_t p = 0; p < shm::plane_count(kFormats[k]); ++p)
      job.first[p] = picture.view.planes[p], job.second[p] = picture.view.planes[p] + picture.view.strides[p];
    for (int c = 0; c < 3; ++c) job.out[c] = fast.data() + 77 * c;
    row_function(kArrangements[k])(job);
    for (int c = 0; c < 3; ++c) job.out[c] = slow.data() + 77 * c;
    portable_row_function(kArrangements[k])(job);
    for (std::size_t i = 0; i < fast.size(); ++i)
      EXPECT_NEAR(fast[i], slow[i], 1e-4) << "format " << kFormats[k] << " value " << i;
  }
}

TEST(Preprocess, PlacementMapsTheInputBackToTheFrame) {
  auto opened = Preprocessor::open({}, 3, 320, 192);
  const Placement p = opened->placement({.format = LEAT_FORMAT_nv12, .width = 1280, .height = 720}, nullptr);
  EXPECT_FLOAT_EQ(p.scale_x, 4);
  EXPECT_FLOAT_EQ(p.scale_y, 4);
  EXPECT_FLOAT_EQ(p.offset_x, 0);
  EXPECT_FLOAT_EQ(p.offset_y, -24);  // six rows of padding above
}

TEST(Preprocess, LineIsParsedAndFaultsAreNamed) {
  const auto spec = parse_preprocess("stretch bgr mean=0.1,0.2,0.3 std=0.5 crop=0.1 pad=0 bt709 full");
  ASSERT_TRUE(spec.ok()) << spec.error();
  EXPECT_EQ(spec->fit, Fit::stretch);
  EXPECT_EQ(spec->channels, Channels::bgr);
  EXPECT_EQ(spec->color, (shm::Color{LEAT_COLOR_RANGE_full, LEAT_COLOR_MATRIX_bt709}));
  EXPECT_EQ(parse_preprocess("stretch bt2020")->color.matrix, LEAT_COLOR_MATRIX_bt2020);
  EXPECT_EQ(parse_preprocess("stretch")->color, shm::Color{});
  EXPECT_FLOAT_EQ(spec->mean[2], 0.3f);
  EXPECT_FLOAT_EQ(spec->deviation[2], 0.5f);
  const auto error = [](std::string_view line) {
    const auto parsed = parse_preprocess(line);
    return parsed.ok() ? std::string() : parsed.error();
  };
  EXPECT_NE(error("strech").find("'strech' is not known"), std::string::npos);
  EXPECT_NE(error("std=0").find("std=0"), std::string::npos);
  EXPECT_NE(error("mean=1,2").find("write 1 or 3"), std::string::npos);
  EXPECT_NE(error("mean=1,2,3,4").find("mean=1,2,3,4"), std::string::npos);
  EXPECT_NE(error("mean=123.675,116.28,103.53").find("write mean=123.675/255"), std::string::npos);
  EXPECT_NE(error("mean=0.5 std=58.4").find("of pixels from 0 to 1"), std::string::npos);
  EXPECT_TRUE(parse_preprocess("mean=123.675/255,116.28/255,103.53/255 std=58.4/255").ok());
  EXPECT_NE(error("pad=nan").find("pad=nan"), std::string::npos);
  EXPECT_NE(error("letterbox letterbox").find("stands twice"), std::string::npos);
  const auto gray = Preprocessor::open({}, 1, 8, 8);
  ASSERT_FALSE(gray.ok());
  EXPECT_NE(gray.error().find("'gray'"), std::string::npos);
}

}  // namespace
}  // namespace leat::exec
