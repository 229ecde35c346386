// What decoders make, in slots: beside what ffmpeg makes of the same files.
#include "tools/leat/feed/source/decoded_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tools/leat/feed/own_picture.h"
#include "tools/leat/feed/test_media.h"

namespace leat::tools {
namespace {

using test::MediaFolder;
using ::testing::HasSubstr;

// Smooth parts, edges and fine detail, all in color.
const std::string kScene =
    "-f lavfi -t 0.02 -i mandelbrot=s=160x120:start_x=-0.745:start_y=0.1:start_scale=0.02 -frames:v 1 ";

struct Taken {
  PictureFormat format;
  std::vector<std::uint8_t> pixels;  // tight
};
Taken take(const std::string& path, const SourceOptions& options = {}) {
  auto source = open_source(path, options);
  EXPECT_TRUE(source.ok()) << source.error();
  if (!source.ok()) return {};
  const auto time = (*source)->next();
  EXPECT_TRUE(time.ok() && time->has_value()) << path;
  OwnPicture own((*source)->format());
  const auto written = (*source)->write(own.frame);
  EXPECT_TRUE(written.ok() && *written) << written.error();
  return {(*source)->format(), own.pixels};
}

struct Difference {
  int largest = 0;
  double mean = 0;
};
Difference between(const std::vector<std::uint8_t>& a, const std::string& b) {
  Difference d;
  EXPECT_EQ(a.size(), b.size());
  if (a.size() != b.size() || a.empty()) return {255, 255};
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int off = std::abs(static_cast<int>(a[i]) - static_cast<int>(static_cast<std::uint8_t>(b[i])));
    d.largest = std::max(d.largest, off);
    d.mean += off;
  }
  d.mean /= static_cast<double>(a.size());
  return d;
}

struct Case {
  const char *name, *words;  // the file's ending tells its kind; how ffmpeg is to make it
  leat_format format;
  const char* text;            // how it is coded
  const char *range, *matrix;  // as ffmpeg calls that; "": it needs neither
  int largest;                 // difference from what ffmpeg makes of it, of 255
};
constexpr Case kCases[] = {
    {"420.jpg", "-pix_fmt yuvj420p", LEAT_FORMAT_i420, "full range, BT.601 (JPEG)", "full", "bt601", 0},
    {"422.jpg", "-pix_fmt yuvj422p", LEAT_FORMAT_rgb24, "full range, BT.601 (JPEG)", "full", "bt601", 2},
    {"444.jpg", "-pix_fmt yuvj444p", LEAT_FORMAT_rgb24, "full range, BT.601 (JPEG)", "full", "bt601", 2},
    {"mjpeg.avi", "-c:v mjpeg -pix_fmt yuvj420p", LEAT_FORMAT_i420, "full range, BT.601 (JPEG)", "full", "bt601", 0},
    {"rgb.png", "-pix_fmt rgb24", LEAT_FORMAT_rgb24, "RGB", "", "", 0},
    {"rgba.png", "-pix_fmt rgba", LEAT_FORMAT_rgb24, "RGB", "", "", 0},
    {"rgb48.png", "-pix_fmt rgb48be", LEAT_FORMAT_rgb24, "RGB", "", "", 2},
    {"pal8.gif", "", LEAT_FORMAT_rgb24, "RGB", "", "", 0},
    {"pal8.png", "-vf split[a][b],[a]palettegen[p],[b][p]paletteuse -pix_fmt pal8", LEAT_FORMAT_rgb24, "RGB", "", "",
     0},
    {"gray.png", "-pix_fmt gray", LEAT_FORMAT_gray8, "full range (as stated)", "", "", 0},
    {"gray16.png", "-pix_fmt gray16be", LEAT_FORMAT_gray8, "full range (as stated)", "", "", 1},
    {"bgr.bmp", "-pix_fmt bgr24", LEAT_FORMAT_bgr24, "RGB", "", "", 0},
    {"plain.mp4", "-c:v libx264 -pix_fmt yuv420p", LEAT_FORMAT_i420, "limited range, BT.601 (default below 720 lines)",
     "limited", "bt601", 0},
    {"full709.mp4", "-c:v libx264 -pix_fmt yuv420p -color_range pc -colorspace bt709", LEAT_FORMAT_i420,
     "full range, BT.709 (as stated)", "full", "bt709", 0},
    {"limited601.mp4", "-c:v libx264 -pix_fmt yuv420p -color_range tv -colorspace smpte170m", LEAT_FORMAT_i420,
     "limited range, BT.601 (as stated)", "limited", "bt601", 0},
    {"full.mp4", "-c:v libx264 -pix_fmt yuv420p -color_range pc", LEAT_FORMAT_i420,
     "full range (as stated), BT.601 (default below 720 lines)", "full", "bt601", 0},
    {"2020.mp4", "-c:v libx264 -pix_fmt yuv420p10le -color_range tv -colorspace bt2020nc", LEAT_FORMAT_i420,
     "limited range, BT.2020 (as stated)", "limited", "bt2020", 1},
    {"444full709.mp4", "-c:v libx264 -pix_fmt yuv444p -color_range pc -colorspace bt709", LEAT_FORMAT_rgb24,
     "full range, BT.709 (as stated)", "full", "bt709", 2},
    {"422ten.mp4", "-c:v libx264 -pix_fmt yuv422p10le -color_range tv -colorspace bt709", LEAT_FORMAT_rgb24,
     "limited range, BT.709 (as stated)", "limited", "bt709", 2},
    {"rgb.mkv", "-c:v libx264rgb -pix_fmt rgb24", LEAT_FORMAT_rgb24, "RGB", "", "", 0},
    {"gray.mp4", "-c:v libx265 -x265-params log-level=none -vf scale=out_range=tv,format=gray -color_range tv",
     LEAT_FORMAT_gray8, "limited range (as stated)", "", "", 0},
    {"vp9.webm", "-c:v libvpx-vp9 -pix_fmt yuv420p -color_range pc -colorspace bt709", LEAT_FORMAT_i420,
     "full range, BT.709 (as stated)", "full", "bt709", 0},
    {"hevc.mp4", "-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p -color_range pc -colorspace bt709",
     LEAT_FORMAT_i420, "full range, BT.709 (as stated)", "full", "bt709", 0},
};

// As ffmpeg's input: JPEG stills are read by libjpeg's IDCT.
std::string as_read(const std::string& path) { return (path.ends_with(".jpg") ? "-idct int -i " : "-i ") + path; }

TEST(DecodedPicture, KeepsWhatFfmpegShows) {
  const MediaFolder media;
  for (const Case& c : kCases) {
    const std::string path = media.ffmpeg(kScene + c.words, c.name);
    const Taken taken = take(path);
    EXPECT_EQ(taken.format.format, c.format) << c.name;
    EXPECT_EQ(text_of(taken.format.coding, taken.format.height), c.text) << c.name;
    const std::string pixels = c.format == LEAT_FORMAT_i420    ? "yuv420p"
                               : c.format == LEAT_FORMAT_gray8 ? "gray"
                               : c.format == LEAT_FORMAT_bgr24 ? "bgr24"
                                                               : "rgb24";
    std::string scale = "scale=flags=bilinear+accurate_rnd+full_chroma_int+full_chroma_inp";
    if (*c.range != '\0') {
      scale += std::string(":in_range=") + c.range + ":in_color_matrix=" + c.matrix;
      if (c.format == LEAT_FORMAT_i420) scale += std::string(":out_range=") + c.range + ":out_color_matrix=" + c.matrix;
    }
    const std::string shown = MediaFolder::content(
        media.ffmpeg(as_read(path) + " -frames:v 1 -vf " + scale + ",format=" + pixels + " -f rawvideo", "shown"));
    const Difference off = between(taken.pixels, shown);
    EXPECT_LE(off.largest, c.largest) << c.name;
    EXPECT_LE(off.mean, .5) << c.name;
  }
}

TEST(DecodedPicture, ATallPictureThatSaysNothingIsBt709) {
  const MediaFolder media;
  const std::string path = media.ffmpeg(
      "-f lavfi -i testsrc2=s=64x720 -frames:v 1 -c:v libx264 -preset ultrafast -pix_fmt yuv420p", "tall.mp4");
  const PictureFormat format = take(path).format;
  EXPECT_EQ(format.coding.color, shm::Color{}) << "leatd's default rule holds";
  EXPECT_EQ(text_of(format.coding, format.height), "limited range, BT.709 (default for 720 lines and more)");
}

TEST(DecodedPicture, WhatTheOptionsSayOverridesTheSource) {
  const MediaFolder media;
  const std::string path = media.ffmpeg(kScene + "-pix_fmt yuvj422p", "422.jpg");
  const Taken said = take(path, {.color = {LEAT_COLOR_RANGE_limited, LEAT_COLOR_MATRIX_bt709}});
  EXPECT_EQ(text_of(said.format.coding, said.format.height), "limited range, BT.709 (as the options state)");
  const std::string shown = MediaFolder::content(media.ffmpeg(
      as_read(path) + " -vf scale=in_range=limited:in_color_matrix=bt709:flags=bilinear+accurate_rnd+full_chroma_int+"
                      "full_chroma_inp,format=rgb24 -f rawvideo",
      "shown"));
  EXPECT_LE(between(said.pixels, shown).largest, 2);
  const Taken half = take(path, {.color = {LEAT_COLOR_RANGE_limited, LEAT_COLOR_MATRIX_unspecified}});
  EXPECT_EQ(half.format.coding.color, (shm::Color{LEAT_COLOR_RANGE_limited, LEAT_COLOR_MATRIX_bt601}));
}

// The eight orientations of EXIF, of a JPEG whose chroma is whole: each pixel is where the orientation says.
TEST(DecodedPicture, TurnedPicturesKeepTheirChroma) {
  const MediaFolder media;
  for (const char* const pixels : {"yuvj444p", "yuvj422p"}) {
    const std::string plain = MediaFolder::content(media.ffmpeg(kScene + "-pix_fmt " + pixels, "plain.jpg"));
    const Taken stored = take(media.at("plain.jpg"));
    constexpr std::size_t bytes = 3;
    const int width = static_cast<int>(stored.format.width), height = static_cast<int>(stored.format.height);
    for (int orientation = 2; orientation <= 8; ++orientation) {
      std::string exif(
          "\xFF\xE1\x00\x22"
          "Exif\0\0MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0",
          36);
      exif[29] = static_cast<char>(orientation);
      const Taken shown = take(media.put("turned.jpg", plain.substr(0, 2) + exif + plain.substr(2)));
      EXPECT_EQ(shown.format.format, stored.format.format);
      EXPECT_EQ(shown.format.coding, stored.format.coding);
      ASSERT_EQ(static_cast<int>(shown.format.width), orientation >= 5 ? height : width);
      for (int q = 0; q < height; ++q)
        for (int p = 0; p < width; ++p) {
          const bool right_first = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
          const bool bottom_first = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
          const int x = right_first ? width - 1 - p : p, y = bottom_first ? height - 1 - q : q;
          const std::size_t at =
              orientation >= 5
                  ? static_cast<std::size_t>(x) * static_cast<std::size_t>(height) + static_cast<std::size_t>(y)
                  : static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x);
          const std::size_t from =
              static_cast<std::size_t>(q) * static_cast<std::size_t>(width) + static_cast<std::size_t>(p);
          ASSERT_TRUE(
              std::equal(&shown.pixels[at * bytes], &shown.pixels[at * bytes] + bytes, &stored.pixels[from * bytes]))
              << pixels << " orientation " << orientation << " at " << p << "," << q;
        }
    }
  }
}

// Conversions write the rows of their slot, and nothing beside them.
TEST(DecodedPicture, OddSizesStayWithinTheirRows) {
  const MediaFolder media;
  for (const char* const words : {"-pix_fmt yuvj444p", "-pix_fmt yuvj422p"}) {
    const std::string path = media.ffmpeg("-f lavfi -i testsrc=s=37x19 -frames:v 1 " + std::string(words), "odd.jpg");
    auto source = open_source(path, {});
    ASSERT_TRUE(source.ok()) << source.error();
    ASSERT_TRUE((*source)->next()->has_value());
    ASSERT_EQ((*source)->format().width, 37U);
    ASSERT_EQ((*source)->format().height, 19U);
    constexpr std::uint32_t kStride = 37 * 3 + 5;
    std::vector<std::uint8_t> memory(kStride * 19 + 64, 0xEE);
    leat_frame slot{};
    slot.format = LEAT_FORMAT_rgb24;
    slot.width = 37, slot.height = 19, slot.plane_count = 1;
    slot.planes[0] = memory.data(), slot.strides[0] = kStride, slot.rows[0] = 19, slot.row_bytes[0] = 37 * 3;
    ASSERT_TRUE(*(*source)->write(slot));
    for (std::size_t i = 0; i < memory.size(); ++i)
      ASSERT_TRUE((i < kStride * 19 && i % kStride < 37 * 3) || memory[i] == 0xEE) << i;
  }
}

TEST(Coding, OfV4l2IsWhatItsDocumentationSays) {
  // Values of linux/videodev2.h: colorspace, ycbcr_enc, quantization.
  constexpr std::uint8_t kNo = 0, kLimited = LEAT_COLOR_RANGE_limited, kFull = LEAT_COLOR_RANGE_full;
  constexpr struct {
    std::uint32_t colorspace, encoding, quantization;
    std::uint8_t range, matrix;
  } kRows[] = {
      {0, 0, 0, kNo, kNo},                             // the driver says nothing
      {1, 0, 0, kLimited, LEAT_COLOR_MATRIX_bt601},    // SMPTE 170M
      {3, 0, 0, kLimited, LEAT_COLOR_MATRIX_bt709},    // Rec. 709
      {7, 0, 0, kFull, LEAT_COLOR_MATRIX_bt601},       // JPEG
      {8, 0, 0, kLimited, LEAT_COLOR_MATRIX_bt601},    // sRGB, as most USB cameras say
      {8, 0, 1, kFull, LEAT_COLOR_MATRIX_bt601},       // the same, full range said
      {8, 2, 0, kLimited, LEAT_COLOR_MATRIX_bt709},    // and 709
      {10, 0, 0, kLimited, LEAT_COLOR_MATRIX_bt2020},  // BT.2020
      {3, 1, 1, kFull, LEAT_COLOR_MATRIX_bt601},       // what is said overrides what the colorspace stands for
      {3, 4, 2, kLimited, LEAT_COLOR_MATRIX_bt709},    // xvYCC 709
      {12, 0, 0, kLimited, LEAT_COLOR_MATRIX_bt709},   // DCI-P3
      {0, 0, 1, kFull, kNo},                           // a range alone
  };
  for (const auto& row : kRows)
    EXPECT_EQ(color_of_v4l2(row.colorspace, row.encoding, row.quantization), (shm::Color{row.range, row.matrix}))
        << row.colorspace << " " << row.encoding << " " << row.quantization;
}

TEST(Coding, OfY4mIsWhatItsHeadSays) {
  const auto range = [](const std::string& word) {
    return parse_y4m_head("YUV4MPEG2 W64 H48 F30:1 C420jpeg" + word)->coding.color.range;
  };
  EXPECT_EQ(range(" XCOLORRANGE=FULL"), LEAT_COLOR_RANGE_full);
  EXPECT_EQ(range(" XCOLORRANGE=LIMITED"), LEAT_COLOR_RANGE_limited);
  EXPECT_EQ(range(""), LEAT_COLOR_RANGE_unspecified);
  EXPECT_EQ(range(" XYSCSS=420JPEG"), LEAT_COLOR_RANGE_unspecified) << "where its chroma lies is no range";
  const MediaFolder media;
  const std::string y4m = MediaFolder::content(media.ffmpeg(kScene + "-pix_fmt yuvj420p", "full.y4m"));
  const auto head = parse_y4m_head(y4m.substr(0, y4m.find('\n')));
  ASSERT_TRUE(head.ok()) << head.error();
  EXPECT_EQ(text_of(head->coding, head->height), "full range (as stated), BT.601 (default below 720 lines)");
}

}  // namespace
}  // namespace leat::tools
