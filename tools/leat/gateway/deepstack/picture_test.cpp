// Pictures that other programs made (Pillow, libjpeg-turbo's cjpeg and jpegtran), whole, cut and damaged. The script
// tests/gateway/make_pictures.py makes them, with the pixels that Pillow reads beside each; where Pillow or
// libjpeg-turbo's programs are not installed, their files are missing and the rest is tried.
#include "tools/leat/gateway/deepstack/picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "tools/base/subprocess/process.h"
#include "tools/leat/gateway/deepstack/file_end.h"

namespace leat::gateway {
namespace {

using Bytes = std::vector<std::byte>;

Bytes read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class Pictures : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    char name[] = "/tmp/leat_pictures_XXXXXX";
    folder_ = ::mkdtemp(name);
    subprocess::Command command{.words = {LEAT_PYTHON3, LEAT_SOURCE_DIR "/tests/gateway/make_pictures.py", folder_}};
    auto process = subprocess::Process::start(command);
    if (process.ok()) (void)process->ended_by(subprocess::after(std::chrono::seconds(60)));
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      if (entry.path().extension() != ".rgb") files_[entry.path().filename()] = read(entry.path());
  }
  static void TearDownTestSuite() {
    files_.clear();
    std::filesystem::remove_all(folder_);
  }
  void SetUp() override {
    if (files_.empty()) GTEST_SKIP() << "neither Pillow (python3-pil) nor libjpeg-turbo-progs is installed";
  }

  static std::string folder_;
  static std::map<std::string, Bytes> files_;  // by name
};
std::string Pictures::folder_;
std::map<std::string, Bytes> Pictures::files_;

// What a slot holds, as RGB: i420 by JPEG's own formulas.
struct Slot {
  explicit Slot(const DecodedPicture& picture) : format(picture.format) {
    frame.format = format, frame.width = picture.shown_width(), frame.height = picture.shown_height();
    const std::size_t luma = std::size_t{frame.width} * frame.height;
    bytes.resize(3 * luma);
    const bool planes = format == LEAT_FORMAT_i420;
    frame.planes[0] = bytes.data(), frame.planes[1] = bytes.data() + luma,
    frame.planes[2] = bytes.data() + luma * 5 / 4;
    frame.strides[0] = planes ? frame.width : 3 * frame.width, frame.strides[1] = frame.strides[2] = frame.width / 2;
    picture.write(frame);
  }
  [[nodiscard]] std::array<int, 3> rgb(std::size_t x, std::size_t y) const {
    const std::uint8_t* const p = bytes.data();
    const std::size_t w = frame.width, luma = w * frame.height;
    if (format != LEAT_FORMAT_i420) return {p[3 * (y * w + x)], p[3 * (y * w + x) + 1], p[3 * (y * w + x) + 2]};
    const std::size_t chroma = luma + y / 2 * (w / 2) + x / 2;
    const double l = p[y * w + x], b = p[chroma] - 128.0, r = p[chroma + luma / 4] - 128.0;
    const auto cut = [](double v) { return static_cast<int>(std::lround(std::clamp(v, 0.0, 255.0))); };
    return {cut(l + 1.402 * r), cut(l - 0.344136 * b - 0.714136 * r), cut(l + 1.772 * b)};
  }
  std::uint32_t format;
  std::vector<std::uint8_t> bytes;
  leat_frame frame{};
};

std::string error_of(std::span<const std::byte> file) {
  const auto picture = decode_picture(file);
  return picture.ok() ? std::string() : picture.error();
}

TEST_F(Pictures, WholeOnesPassAndSoDoBytesBehindThem) {
  for (const auto& [name, bytes] : files_) {
    EXPECT_EQ(error_of(bytes), "") << name;
    Bytes longer = bytes;
    for (int i = 0; i < 1000; ++i) longer.push_back(static_cast<std::byte>(i * 37));
    EXPECT_EQ(error_of(longer), "") << name;
    longer = bytes;
    longer.insert(longer.end(), bytes.begin(), bytes.end());  // as phones put a second picture behind the first
    longer.resize(longer.size() - bytes.size() / 2);
    EXPECT_EQ(error_of(longer), "") << name;
  }
}

TEST_F(Pictures, EveryCutIsSeen) {
  for (const auto& [name, bytes] : files_) {
    std::vector<std::size_t> lengths;
    for (std::size_t twentieth = 1; twentieth < 20; ++twentieth) lengths.push_back(bytes.size() * twentieth / 20);
    for (std::size_t less = 1; less < 40; ++less) lengths.push_back(bytes.size() - less);
    for (const std::size_t length : lengths) {
      const std::string error = error_of(std::span(bytes).first(length));
      EXPECT_NE(error.find("is cut short"), std::string::npos) << name << " " << length << ": " << error;
    }
  }
}

// A sender that knows no better ends a cut file properly: the decoder runs out of data.
TEST_F(Pictures, AJpegWhoseMiddleIsMissingIsDamaged) {
  std::size_t tried = 0;
  for (const auto& [name, bytes] : files_) {
    if (!name.ends_with(".jpg") || name.find("progressive") != std::string::npos) continue;  // its scans may end sooner
    for (const std::size_t tenth : {5U, 6U, 7U, 8U, 9U}) {
      Bytes closed(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() * tenth / 10));
      if (closed.back() == std::byte{0xff}) closed.pop_back();
      closed.insert(closed.end(), {std::byte{0xff}, std::byte{0xd9}});
      EXPECT_NE(error_of(closed).find("damaged"), std::string::npos) << name << " " << tenth;
      ++tried;
    }
  }
  EXPECT_GT(tried, 0U);
}

// A PNG's checksums tell of every byte. Huffman codes of a baseline JPEG go on behind most damage, so that only part of
// it can be told.
TEST_F(Pictures, BytesThatWereChanged) {
  std::mt19937 random(20261129);
  for (const auto& [name, bytes] : files_) {
    std::size_t seen = 0;
    constexpr std::size_t kTries = 60;
    for (std::size_t i = 0; i < kTries; ++i) {
      Bytes damaged = bytes;
      const std::size_t at = bytes.size() / 2 + random() % (bytes.size() / 2 - 32);
      for (std::size_t k = 0; k < 12; ++k) damaged[at + k] ^= static_cast<std::byte>(1 + random() % 255);
      if (!error_of(damaged).empty()) ++seen;
    }
    std::printf("%-28s %2zu of %zu changes seen\n", name.c_str(), seen, kTries);
    if (name.ends_with(".png")) {
      EXPECT_EQ(seen, kTries) << name;
    }
  }
}

// What a model is shown against what Pillow reads. Where a picture keeps 4:2:0, chroma is of two by two pixels, so that
// the inside of flat patches is compared.
TEST_F(Pictures, ColoursArePillows) {
  std::size_t tried = 0;
  for (const auto& [name, bytes] : files_) {
    if (name.find("turn") != std::string::npos) continue;
    const auto picture = decode_picture(bytes);
    ASSERT_TRUE(picture.ok()) << name << ": " << picture.error();
    const Bytes wanted = read(folder_ + "/" + name + ".rgb");
    const std::size_t w = picture->shown_width(), h = picture->shown_height();
    ASSERT_EQ(wanted.size(), 3 * w * h) << name;
    const bool planes = picture->format == LEAT_FORMAT_i420;
    EXPECT_EQ(planes, name.ends_with(".jpg")
                          ? name.find("44") == std::string::npos && name.find("422") == std::string::npos &&
                                name.find("cmyk") == std::string::npos
                          : name.find("grey") != std::string::npos)
        << name;
    Slot slot(*picture);
    int worst = 0;
    for (std::size_t y = 0; y < h; ++y)
      for (std::size_t x = 0; x < w; ++x) {
        const bool inside = x % 48 >= 20 && x % 48 < 44 && y % 48 >= 20 && y % 48 < 44 && x >= 16 && y >= 16;
        if (planes && name.find("grey") == std::string::npos && !inside) continue;
        const auto shown = slot.rgb(x, y);
        for (std::size_t c = 0; c < 3; ++c)
          worst = std::max(worst, std::abs(shown[c] - std::to_integer<int>(wanted[3 * (y * w + x) + c])));
      }
    EXPECT_LE(worst, 2) << name;
    ++tried;
  }
  EXPECT_GT(tried, 4U);
}

// The eight turns of EXIF, in both formats, as Pillow makes them upright.
TEST_F(Pictures, AreTurnedAsExifSays) {
  std::size_t tried = 0;
  for (const auto& [name, bytes] : files_) {
    if (name.find("turn") == std::string::npos) continue;
    const auto picture = decode_picture(bytes);
    ASSERT_TRUE(picture.ok()) << name << ": " << picture.error();
    const Bytes wanted = read(folder_ + "/" + name + ".rgb");
    const std::size_t w = picture->shown_width(), h = picture->shown_height();
    ASSERT_EQ(wanted.size(), 3 * w * h) << name;
    Slot slot(*picture);
    for (const std::size_t y : {h / 4, 3 * h / 4})
      for (const std::size_t x : {w / 4, 3 * w / 4})
        for (std::size_t c = 0; c < 3; ++c)
          EXPECT_NEAR(slot.rgb(x, y)[c], std::to_integer<int>(wanted[3 * (y * w + x) + c]), 4) << name << x << " " << y;
    ++tried;
  }
  EXPECT_EQ(tried, 16U);
}

TEST(FileEnd, IsNotThatOfAThumbnailOrOfAScansData) {
  const auto bytes = [](std::initializer_list<int> values) {
    Bytes out;
    for (const int v : values) out.push_back(static_cast<std::byte>(v));
    return out;
  };
  EXPECT_TRUE(jpeg_has_its_end(bytes({0xff, 0xd8, 0xff, 0xd9})));
  EXPECT_FALSE(jpeg_has_its_end(bytes({0xff, 0xd8, 0xff, 0xe1, 0, 6, 0xff, 0xd8, 0xff, 0xd9})));
  EXPECT_TRUE(jpeg_has_its_end(bytes({0xff, 0xd8, 0xff, 0xe1, 0, 4, 0xff, 0xd9, 0xff, 0xff, 0xd9})));
  EXPECT_FALSE(jpeg_has_its_end(bytes({0xff, 0xd8, 0xff, 0xda, 0, 2, 1, 0xff, 0, 0xd9, 0xff, 0xd1})));
  EXPECT_TRUE(jpeg_has_its_end(bytes({0xff, 0xd8, 0xff, 0xda, 0, 2, 1, 0xff, 0, 0xd9, 0xff, 0xd1, 7, 0xff, 0xd9})));
  EXPECT_FALSE(jpeg_has_its_end(bytes({0xff, 0xd8, 0xff, 0xe1, 0, 1, 0xff, 0xd9})));
  EXPECT_FALSE(jpeg_has_its_end(bytes({0xff, 0xd8, 0xff, 0xe1, 0})));
  EXPECT_FALSE(jpeg_has_its_end({}));
  EXPECT_FALSE(png_has_its_end({}));
  Bytes huge(24, std::byte{0xff});  // a chunk of 4 GiB
  EXPECT_FALSE(png_has_its_end(huge));
}

}  // namespace
}  // namespace leat::gateway
