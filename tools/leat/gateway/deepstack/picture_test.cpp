// Pictures that other programs made (Pillow, libjpeg-turbo's cjpeg and jpegtran), whole, cut and damaged. The script
// tests/gateway/make_pictures.py makes them, with the pixels that Pillow reads beside each; where Pillow or
// libjpeg-turbo's programs are not installed, their files are missing and the rest is tried.
#include "tools/leat/gateway/deepstack/picture.h"

#include <gtest/gtest.h>

#include <algorithm>
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
