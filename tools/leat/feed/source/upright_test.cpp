#include "tools/leat/feed/source/upright.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tools/leat/feed/source/picture_source.h"
#include "tools/leat/feed/video/video_file.h"
#include "tools/leat/try/picture_file.h"

namespace leat::tools {
namespace {

constexpr std::int32_t kOne = 1 << 16;

// EXIF's eight orientations, each as the matrix that shows a stored picture upright: of a stored point (p, q), measured
// from the middle, the shown point is (a p + c q, b p + d q).
struct Orientation {
  int exif;
  std::int32_t a, b, c, d;
  Turn turn;
};
constexpr Orientation kOrientations[] = {{1, 1, 0, 0, 1, {false, 0}},     {2, -1, 0, 0, 1, {true, 0}},
                                         {3, -1, 0, 0, -1, {false, 180}}, {4, 1, 0, 0, -1, {true, 180}},
                                         {5, 0, 1, 1, 0, {true, 270}},    {6, 0, 1, -1, 0, {false, 90}},
                                         {7, 0, -1, -1, 0, {true, 90}},   {8, 0, -1, 1, 0, {false, 270}}};

TEST(Upright, EightMatricesAreEightTurns) {
  for (const Orientation& o : kOrientations) {
    const std::int32_t matrix[9] = {o.a * kOne, o.b * kOne, 0, o.c * kOne, o.d * kOne, 0, 5 * kOne, 7 * kOne, 1 << 30};
    EXPECT_EQ(turn_of(matrix), o.turn) << o.exif;
  }
}

// A slot of i420 in plain memory.
struct Shown {
  Shown(std::uint32_t width, std::uint32_t height) : memory(raw_layout(LEAT_FORMAT_i420, width, height).bytes) {
    const RawLayout layout = raw_layout(LEAT_FORMAT_i420, width, height);
    frame.format = LEAT_FORMAT_i420;
    frame.width = width;
    frame.height = height;
    frame.plane_count = layout.planes;
    std::uint8_t* at = memory.data();
    for (std::uint32_t p = 0; p < layout.planes; ++p) {
      frame.planes[p] = at;
      frame.rows[p] = layout.rows[p];
      frame.row_bytes[p] = frame.strides[p] = layout.row_bytes[p];
      at += std::size_t{layout.rows[p]} * layout.row_bytes[p];
    }
  }
  [[nodiscard]] int luma(int x, int y) const { return frame.planes[0][y * static_cast<int>(frame.strides[0]) + x]; }
  std::vector<std::uint8_t> memory;
  leat_frame frame{};
};

// Where a stored pixel is shown, by the matrix and nothing else.
struct Place {
  int x, y;
};
Place shown_at(const Orientation& o, int p, int q, int width, int height) {
  const int across = 2 * p - (width - 1), down = 2 * q - (height - 1);  // from the middle, doubled
  const int shown_width = o.a != 0 ? width : height, shown_height = o.a != 0 ? height : width;
  return {(o.a * across + o.c * down + shown_width - 1) / 2, (o.b * across + o.d * down + shown_height - 1) / 2};
}

TEST(Upright, EveryPixelComesWhereTheMatrixSays) {
  constexpr int kAcross = 12, kDown = 8;
  std::vector<std::uint8_t> y(kAcross * kDown), u(kAcross * kDown / 4), v(kAcross * kDown / 4);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::uint8_t>(i);
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] = static_cast<std::uint8_t>(100 + i), v[i] = static_cast<std::uint8_t>(200 + i);
  for (const Orientation& o : kOrientations) {
    const bool swapped = o.turn.swaps_sides();
    const Shown slot(swapped ? kDown : kAcross, swapped ? kAcross : kDown);
    Upright(o.turn).write({.planes = {y.data(), u.data(), v.data()}, .strides = {kAcross, kAcross / 2, kAcross / 2}},
                          slot.frame);
    for (int q = 0; q < kDown; ++q)
      for (int p = 0; p < kAcross; ++p) {
        const Place at = shown_at(o, p, q, kAcross, kDown);
        ASSERT_EQ(slot.luma(at.x, at.y), y[static_cast<std::size_t>(q * kAcross + p)])
            << o.exif << " " << p << "," << q;
      }
    for (int plane = 1; plane <= 2; ++plane)
      for (int q = 0; q < kDown / 2; ++q)
        for (int p = 0; p < kAcross / 2; ++p) {
          const Place at = shown_at(o, p, q, kAcross / 2, kDown / 2);
          const int found = slot.frame.planes[plane][at.y * static_cast<int>(slot.frame.strides[plane]) + at.x];
          ASSERT_EQ(found, (plane == 1 ? u : v)[static_cast<std::size_t>(q * kAcross / 2 + p)]) << o.exif;
        }
  }
}

std::string temporary_with(const std::string& ending) {
  return (std::filesystem::temp_directory_path() / ("leat-upright-" + std::to_string(::getpid()) + ending)).string();
}
std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// Bright in the stored picture's upper left quarter.
constexpr int kStoredWidth = 96, kStoredHeight = 64;
draw::Picture marked() {
  draw::Picture picture({kStoredWidth, kStoredHeight}, {28, 28, 28});
  draw::paste(picture, draw::Picture({kStoredWidth / 2, kStoredHeight / 2}, {238, 238, 238}), 0, 0);
  return picture;
}

// The source shows the bright quarter where the orientation says, or where it was stored.
void expect_marked(const std::string& path, const Orientation& o, bool as_stored) {
  auto source = open_source(path, {.as_stored = as_stored});
  ASSERT_TRUE(source.ok()) << source.error();
  const Orientation& seen = as_stored ? kOrientations[0] : o;
  const bool swapped = seen.turn.swaps_sides();
  ASSERT_EQ((*source)->format().width, static_cast<std::uint32_t>(swapped ? kStoredHeight : kStoredWidth)) << o.exif;
  ASSERT_EQ((*source)->format().height, static_cast<std::uint32_t>(swapped ? kStoredWidth : kStoredHeight)) << o.exif;
  for (int round = 0; round < 2; ++round) {  // what was looked at beforehand is not lost, nor shown twice
    const auto time = (*source)->next();
    ASSERT_TRUE(time.ok() && time->has_value()) << o.exif;
    const Shown slot((*source)->format().width, (*source)->format().height);
    ASSERT_TRUE(*(*source)->write(slot.frame));
    for (const int p : {kStoredWidth / 8, kStoredWidth * 7 / 8})
      for (const int q : {kStoredHeight / 8, kStoredHeight * 7 / 8}) {
        const Place at = shown_at(seen, p, q, kStoredWidth, kStoredHeight);
        const bool bright = p < kStoredWidth / 2 && q < kStoredHeight / 2;
        EXPECT_EQ(slot.luma(at.x, at.y) > 128, bright) << "orientation " << o.exif << " at " << at.x << "," << at.y;
      }
    EXPECT_FALSE((*source)->next()->has_value());
    ASSERT_TRUE((*source)->rewind().ok());
  }
}

TEST(Upright, PicturesAreTurnedAsExifSays) {
  const std::string path = temporary_with(".jpg");
  ASSERT_TRUE(write_picture(path, marked()).ok());
  const std::string plain = content_of(path);
  for (const Orientation& o : kOrientations) {
    // Behind the start of the file: a segment APP1 whose first directory has one entry, 0x0112, a short.
    std::string exif(
        "\xFF\xE1\x00\x22"
        "Exif\0\0MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0",
        36);
    exif[29] = static_cast<char>(o.exif);
    put(path, plain.substr(0, 2) + exif + plain.substr(2));
    expect_marked(path, o, false);
    expect_marked(path, o, true);
  }
  std::filesystem::remove(path);
}

TEST(Upright, VideosAreTurnedAsTheirMatrixSays) {
  const std::string path = temporary_with(".mp4");
  VideoFile video;
  ASSERT_TRUE(video.open(path, {kStoredWidth, kStoredHeight}, 10).ok());
  ASSERT_TRUE(video.write(0, marked()).ok());
  ASSERT_TRUE(video.finish().ok());
  const std::string plain = content_of(path);
  const auto head = plain.find("tkhd");
  ASSERT_NE(head, std::string::npos);
  const std::size_t matrix = head + 4 + (plain[head + 4] == 1 ? 52 : 40);
  for (const Orientation& o : kOrientations) {
    std::string turned = plain;
    const std::int32_t cells[4] = {o.a, o.b, o.c, o.d};
    for (int i = 0; i < 4; ++i) {
      const auto value = static_cast<std::uint32_t>(cells[i] * kOne);
      const std::size_t at = matrix + 4 * static_cast<std::size_t>(i < 2 ? i : i + 1);
      for (int byte = 0; byte < 4; ++byte)
        turned[at + static_cast<std::size_t>(byte)] = static_cast<char>(value >> (24 - 8 * byte));
    }
    put(path, turned);
    expect_marked(path, o, false);
    expect_marked(path, o, true);
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace leat::tools
