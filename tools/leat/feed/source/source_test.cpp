#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "tools/base/text/fd.h"
#include "tools/leat/feed/source/picture_source.h"
#include "tools/leat/feed/truth.h"
#include "tools/leat/feed/video/annotator.h"

namespace leat::tools {
namespace {

using ::testing::HasSubstr;

// A slot in plain memory, with room after each row, so that a write past a row shows.
struct Slot {
  Slot(leat_format format, std::uint32_t width, std::uint32_t height, std::uint32_t padding) {
    const RawLayout layout = raw_layout(format, width, height);
    frame.format = format;
    frame.width = width;
    frame.height = height;
    frame.plane_count = layout.planes;
    std::uint64_t offset = 0;
    for (std::uint32_t p = 0; p < layout.planes; ++p) {
      frame.rows[p] = layout.rows[p];
      frame.row_bytes[p] = layout.row_bytes[p];
      frame.strides[p] = layout.row_bytes[p] + padding;
      offset += std::uint64_t{frame.strides[p]} * frame.rows[p];
    }
    memory.assign(offset, 0xEE);
    offset = 0;
    for (std::uint32_t p = 0; p < layout.planes; ++p) {
      frame.planes[p] = memory.data() + offset;
      offset += std::uint64_t{frame.strides[p]} * frame.rows[p];
    }
    frame.bytes = memory.size();
  }
  std::vector<std::uint8_t> tight() const {
    std::vector<std::uint8_t> bytes;
    for (std::uint32_t p = 0; p < frame.plane_count; ++p) {
      for (std::uint32_t row = 0; row < frame.rows[p]; ++row) {
        const std::uint8_t* from = frame.planes[p] + std::uint64_t{row} * frame.strides[p];
        bytes.insert(bytes.end(), from, from + frame.row_bytes[p]);
        for (std::uint32_t x = frame.row_bytes[p]; x < frame.strides[p]; ++x) EXPECT_EQ(from[x], 0xEE);
      }
    }
    return bytes;
  }
  leat_frame frame{};
  std::vector<std::uint8_t> memory;
};

std::vector<std::uint8_t> picture_bytes(std::size_t bytes, int seed) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::uint8_t>(i * 7 + static_cast<std::size_t>(seed) * 31);
  return data;
}

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (name + "." + std::to_string(::getpid()))).string();
}

TEST(RawFile, EveryFormatAndStrideArrivesUnchanged) {
  for (const char* name : {"nv12", "i420", "rgb24", "bgr24", "gray8"}) {
    for (const std::uint32_t padding : {0U, 5U}) {
      const leat_format format = format_of(name);
      const std::size_t bytes = raw_layout(format, 34, 18).bytes;
      const std::string path = temporary("raw");
      {
        std::ofstream file(path, std::ios::binary);
        for (int i = 0; i < 3; ++i) {
          const auto data = picture_bytes(bytes, i);
          file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(bytes));
        }
        file << "half a picture";
      }
      auto source = open_source(path, {.raw_format = name, .width = 34, .height = 18, .rate = 50});
      ASSERT_TRUE(source.ok()) << source.error();
      EXPECT_EQ((*source)->format().pictures, 3U);
      for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 3; ++i) {
          auto time = (*source)->next();
          ASSERT_TRUE(time.ok() && time->has_value());
          EXPECT_EQ(**time, i * 20'000'000);
          Slot slot(format, 34, 18, padding);
          auto written = (*source)->write(slot.frame);
          ASSERT_TRUE(written.ok() && *written);
          EXPECT_EQ(slot.tight(), picture_bytes(bytes, i)) << name;
        }
        EXPECT_FALSE((*source)->next()->has_value());
        EXPECT_TRUE((*source)->rewind().ok());
      }
      std::filesystem::remove(path);
    }
  }
}

TEST(RawFile, JumpsToThePictureThatIsDue) {
  const std::size_t bytes = raw_layout(LEAT_FORMAT_gray8, 8, 4).bytes;
  const std::string path = temporary("raw");
  {
    std::ofstream file(path, std::ios::binary);
    for (int i = 0; i < 10; ++i) file << std::string(bytes, static_cast<char>('a' + i));
  }
  auto source = open_source(path, {.raw_format = "gray8", .width = 8, .height = 4, .rate = 50});
  ASSERT_TRUE(source.ok()) << source.error();
  (void)(*source)->next();
  auto passed = (*source)->jump(95'000'000);
  ASSERT_TRUE(passed.ok());
  EXPECT_EQ(passed->pictures, 4U);
  EXPECT_EQ(passed->last_ns, 80'000'000);
  EXPECT_EQ(**(*source)->next(), 100'000'000);
  EXPECT_EQ((*source)->index(), 5U);
  Slot slot(LEAT_FORMAT_gray8, 8, 4, 0);
  ASSERT_TRUE(*(*source)->write(slot.frame));
  EXPECT_EQ(slot.frame.planes[0][0], 'f');
  EXPECT_EQ((*source)->jump(0)->pictures, 0U) << "never back";
  EXPECT_EQ((*source)->jump(10'000'000'000)->pictures, 4U);
  EXPECT_FALSE((*source)->next()->has_value());
  std::filesystem::remove(path);
}

TEST(RawFile, BadRequestsSayWhatToDo) {
  EXPECT_THAT(open_source("/nowhere/x.nv12", {.raw_format = "nv12", .width = 2, .height = 2}).error(),
              HasSubstr("No such file"));
  EXPECT_THAT(open_source("/dev/null", {.raw_format = "nv12", .width = 2, .height = 2}).error(),
              HasSubstr("smaller than one picture"));
  EXPECT_THAT(open_source("/dev/null", {.raw_format = "nv12"}).error(), HasSubstr("--size"));
  EXPECT_THAT(open_source("/dev/null", {.raw_format = "nv12", .width = 3, .height = 2}).error(), HasSubstr("even"));
  EXPECT_THAT(open_source("/nowhere/x.mp4", {}).error(), HasSubstr("no such file"));
  EXPECT_THAT(open_source("/tmp", {}).error(), HasSubstr("folder"));
}

// Writes `bytes` into a pipe from a thread of its own and gives its reading end.
struct Sender {
  explicit Sender(std::string bytes)
      : thread([this, text = std::move(bytes)] {
          std::size_t at = 0;
          while (at < text.size()) {
            const ssize_t n = ::write(ends[1], text.data() + at, std::min<std::size_t>(text.size() - at, 777));
            if (n <= 0) break;
            at += static_cast<std::size_t>(n);
          }
          ::close(ends[1]);
        }) {}
  ~Sender() {
    thread.join();
    ::close(ends[0]);
  }
  int ends[2] = {make(this), ends[1]};
  static int make(Sender* self) {
    EXPECT_EQ(::pipe(self->ends), 0);
    return self->ends[0];
  }
  std::thread thread;
};

TEST(Pipe, ReadsY4mAndRaw) {
  const auto picture = picture_bytes(32 * 16 * 3 / 2, 3);
  const std::string pixels(picture.begin(), picture.end());
  {
    Sender sender("YUV4MPEG2 W32 H16 F25:1 Ip A1:1 C420jpeg XYSCSS=420JPEG\nFRAME\n" + pixels + "FRAME Ip\n" + pixels);
    auto source = open_pipe(sender.ends[0], {});
    ASSERT_TRUE(source.ok()) << source.error();
    EXPECT_EQ((*source)->format().format, LEAT_FORMAT_i420);
    EXPECT_DOUBLE_EQ((*source)->format().rate, 25);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(**(*source)->next(), i * 40'000'000);
      Slot slot(LEAT_FORMAT_i420, 32, 16, 3);
      EXPECT_TRUE(*(*source)->write(slot.frame));
      EXPECT_EQ(slot.tight(), picture);
    }
    EXPECT_FALSE((*source)->next()->has_value());
  }
  {
    Sender sender(pixels + pixels + "cut");
    auto source = open_pipe(sender.ends[0], {.raw_format = "i420", .width = 32, .height = 16});
    ASSERT_TRUE(source.ok()) << source.error();
    Slot slot(LEAT_FORMAT_i420, 32, 16, 0);
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE((*source)->next()->has_value());
      EXPECT_TRUE(*(*source)->write(slot.frame));
      EXPECT_EQ(slot.tight(), picture);
    }
    EXPECT_TRUE((*source)->next()->has_value());
    EXPECT_FALSE(*(*source)->write(slot.frame));  // ended inside the picture
  }
}

TEST(Pipe, APictureThatNobodyWroteIsLeftOut) {
  const std::string one(32 * 16 * 3 / 2, 'a'), two(one.size(), 'b');
  for (const bool y4m : {false, true}) {
    Sender sender(y4m ? "YUV4MPEG2 W32 H16 F25:1\nFRAME\n" + one + "FRAME\n" + two : one + two);
    auto source = open_pipe(sender.ends[0],
                            y4m ? SourceOptions{} : SourceOptions{.raw_format = "i420", .width = 32, .height = 16});
    ASSERT_TRUE(source.ok()) << source.error();
    ASSERT_TRUE((*source)->next()->has_value());
    const auto second = (*source)->next();
    ASSERT_TRUE(second.ok()) << second.error();
    EXPECT_EQ((*source)->index(), 1U);
    Slot slot(LEAT_FORMAT_i420, 32, 16, 0);
    ASSERT_TRUE(*(*source)->write(slot.frame));
    EXPECT_EQ(slot.tight(), std::vector<std::uint8_t>(two.begin(), two.end()));
    EXPECT_FALSE((*source)->next()->has_value());
  }
}

TEST(Y4m, HeadsAreCheckedFieldByField) {
  EXPECT_EQ(parse_y4m_head("YUV4MPEG2 W64 H48 F30000:1001")->format, LEAT_FORMAT_i420);
  EXPECT_NEAR(parse_y4m_head("YUV4MPEG2 W64 H48 F30000:1001")->rate, 29.97, 0.001);
  EXPECT_EQ(parse_y4m_head("YUV4MPEG2 W64 H48 F30:1 Cmono")->format, LEAT_FORMAT_gray8);
  for (const char* place : {"420jpeg", "420mpeg2", "420paldv"})  // of H.264 ffmpeg writes the second
    EXPECT_EQ(parse_y4m_head("YUV4MPEG2 W64 H48 F30:1 C" + std::string(place))->format, LEAT_FORMAT_i420) << place;
  for (const char* bad :
       {"", "RIFF", "YUV4MPEG2", "YUV4MPEG2 W64", "YUV4MPEG2 W64 H-48", "YUV4MPEG2 Wx H48", "YUV4MPEG2 W64 H48 C444",
        "YUV4MPEG2 W64 H48 C420p10", "YUV4MPEG2 W63 H48 C420", "YUV4MPEG2 W99999999999 H48"}) {
    EXPECT_FALSE(parse_y4m_head(bad).ok()) << bad;
  }
}

// A grey whose luma is 40 + 20 i, as BT.601 of limited range has it: 16 + 219 / 255 of it.
draw::Colour grey_of(std::uint64_t i) {
  const auto v = static_cast<std::uint8_t>(std::lround((24.0 + 20.0 * static_cast<double>(i)) * 255 / 219));
  return {v, v, v};
}

TEST(Video, WhatTheAnnotatorWritesTheSourceReads) {
  const std::string path = temporary("video") + ".mp4";
  auto annotator = Annotator::open(path, {64, 48}, 20);
  ASSERT_TRUE(annotator.ok()) << annotator.error();
  for (const std::uint64_t index : {0U, 2U, 1U, 3U, 5U, 4U, 6U, 7U}) {
    ASSERT_TRUE((*annotator)->wants(0, 0));
    (*annotator)
        ->add(0, index,
              {.draw =
                   [index](auto) {
                     return draw::Picture({64, 48}, grey_of(index));
                   },
               .bytes = 64 * 48});
  }
  auto finished = (*annotator)->finish();
  ASSERT_TRUE(finished.ok()) << finished.error();
  EXPECT_EQ(*finished, 0U);
  auto source = open_source(path, {});
  ASSERT_TRUE(source.ok()) << source.error();
  EXPECT_EQ((*source)->format().format, LEAT_FORMAT_i420);
  EXPECT_NEAR((*source)->format().rate, 20, 0.01);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 8; ++i) {
      auto time = (*source)->next();
      ASSERT_TRUE(time.ok() && time->has_value()) << i;
      EXPECT_NEAR(static_cast<double>(**time), i * 50e6, 1e6);
      Slot slot(LEAT_FORMAT_i420, 64, 48, 16);
      ASSERT_TRUE(*(*source)->write(slot.frame));
      EXPECT_NEAR(slot.frame.planes[0][500], 40 + 20 * i, 4);
    }
    EXPECT_FALSE((*source)->next()->has_value());
    ASSERT_TRUE((*source)->rewind().ok());
  }
  std::filesystem::remove(path);
}

// A video with a key frame every eight pictures, and pictures between that no other refers to.
TEST(Video, LagsAreMadeUpByThinningOutAndByJumping) {
  const std::string path = temporary("gops") + ".mp4";
  constexpr int kInFile = 48, kKeyEvery = 8;
  const std::string command =
      "ffmpeg -v error -nostdin -y -f lavfi -i 'color=gray:s=64x48:r=20,geq=lum=40+4*N:cb=128:cr=128' -frames:v 48 "
      "-threads 1 -c:v libx264 -x264-params keyint=8:min-keyint=8:scenecut=0:bframes=1:b-adapt=0:b-pyramid=none "
      "-pix_fmt yuv420p " +
      path;
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto grey_of = [](PictureSource& source) {
    Slot slot(LEAT_FORMAT_i420, 64, 48, 0);
    EXPECT_TRUE(*source.write(slot.frame));
    return static_cast<double>(slot.frame.planes[0][500]);
  };
  auto source = open_source(path, {});
  ASSERT_TRUE(source.ok()) << source.error();
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE((*source)->next()->has_value());
    EXPECT_EQ((*source)->index(), 0U);
    const auto passed = (*source)->jump(900'000'000);  // picture 18; the key frame behind it is 24
    ASSERT_TRUE(passed.ok()) << passed.error();
    EXPECT_GE(passed->pictures, 21U);  // 23, or less what the decoder had taken in already
    const auto time = (*source)->next();
    ASSERT_TRUE(time.ok() && time->has_value());
    EXPECT_NEAR(static_cast<double>(**time), 3 * kKeyEvery * 50e6, 1e6);
    EXPECT_EQ((*source)->index(), static_cast<std::uint64_t>(3 * kKeyEvery));
    EXPECT_NEAR(grey_of(**source), 40 + 4 * 3 * kKeyEvery, 4);

    (*source)->thin_out(true);
    int got = 0;
    for (std::uint64_t before = 24;; before = (*source)->index(), ++got) {
      const auto next = (*source)->next();
      ASSERT_TRUE(next.ok());
      if (!next->has_value()) break;
      EXPECT_GT((*source)->index(), before) << "each in its place";
      EXPECT_NEAR(static_cast<double>(**next), static_cast<double>((*source)->index()) * 50e6, 1e6);
      EXPECT_NEAR(grey_of(**source), 40 + 4 * static_cast<double>((*source)->index()), 5);
    }
    EXPECT_LT(got, kInFile - 24 - 6) << "about every second picture is one that no other refers to";
    EXPECT_GT(got, 6);
    (*source)->thin_out(false);
    ASSERT_TRUE((*source)->rewind().ok());
  }
  std::filesystem::remove(path);
}

TEST(Video, KnowsWhereNoKeyFrameFollows) {
  const std::string path = temporary("two-gops") + ".mp4";
  const std::string command =
      "ffmpeg -v error -nostdin -y -f lavfi -i color=gray:s=64x48:r=20 -frames:v 48 -c:v libx264 -g 24 -keyint_min 24 "
      "-sc_threshold 0 -pix_fmt yuv420p " +
      path;
  ASSERT_EQ(std::system(command.c_str()), 0);
  auto source = open_source(path, {});
  ASSERT_TRUE(source.ok()) << source.error();
  ASSERT_TRUE((*source)->next()->has_value());
  EXPECT_FALSE((*source)->jump_ends(900'000'000)) << "picture 24 is one, at 1.2 s";
  EXPECT_TRUE((*source)->jump_ends(1'800'000'000));
  std::filesystem::remove(path);
}

// Whole heads and no pictures behind them, as of a download that broke off.
TEST(Video, WithoutAnyPictureItIsSaidToBeDamaged) {
  const std::string path = temporary("cut") + ".mp4";
  const std::string command =
      "ffmpeg -v error -nostdin -y -f lavfi -i testsrc=s=64x48:r=20 -frames:v 20 -c:v libx264 -pix_fmt yuv420p "
      "-movflags +faststart " +
      path;
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream whole(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  const std::size_t pictures = bytes.find("mdat");
  ASSERT_NE(pictures, std::string::npos);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, pictures + 4);
  auto source = open_source(path, {});
  ASSERT_TRUE(source.ok()) << source.error();
  const auto none = (*source)->next();
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error(), HasSubstr("ended before a picture of it could be decoded"));
  std::filesystem::remove(path);
}

// Out of an MP4, which keeps parameter sets apart and writes lengths: as a decoder takes them, in decoding order.
TEST(Bitstream, AccessUnitsComeWithTheirParameterSets) {
  const std::string path = temporary("units") + ".mp4";
  const std::string command =
      "ffmpeg -v error -nostdin -y -f lavfi -i 'color=gray:s=64x48:r=20,geq=lum=40+4*N:cb=128:cr=128' -frames:v 16 "
      "-threads 1 -c:v libx264 -x264-params keyint=8:min-keyint=8:scenecut=0:bframes=1:b-adapt=0 -pix_fmt yuv420p " +
      path;
  ASSERT_EQ(std::system(command.c_str()), 0);
  auto source = open_source(path, {.bitstream = true});
  ASSERT_TRUE(source.ok()) << source.error();
  EXPECT_EQ((*source)->format().codec, LEAT_CODEC_h264);
  EXPECT_EQ((*source)->format().format, LEAT_FORMAT_nv12);
  EXPECT_EQ((*source)->format().width, 64U);
  for (int round = 0; round < 2; ++round) {
    std::int64_t before = -1;
    for (int i = 0; i < 16; ++i) {
      const auto time = (*source)->next();
      ASSERT_TRUE(time.ok() && time->has_value()) << i;
      EXPECT_GT(**time, before) << "in decoding order";
      before = **time;
      std::vector<std::uint8_t> room(10000);
      leat_frame frame{};
      frame.plane_count = 1, frame.planes[0] = room.data(), frame.row_bytes[0] = 10000;
      ASSERT_TRUE(*(*source)->write(frame));
      std::set<unsigned> types;
      for (std::size_t at = 0; at + 3 < (*source)->unit_bytes(); ++at)
        if (room[at] == 0 && room[at + 1] == 0 && room[at + 2] == 1) types.insert(room[at + 3] & 31U);
      EXPECT_EQ(types.count(5), i % 8 == 0 ? 1U : 0U) << i;
      EXPECT_EQ(types.count(7) + types.count(8), i % 8 == 0 ? 2U : 0U) << i;
    }
    EXPECT_FALSE((*source)->next()->has_value());
    ASSERT_TRUE((*source)->rewind().ok());
  }
  leat_frame narrow{};
  narrow.row_bytes[0] = 4;
  ASSERT_TRUE((*source)->next().ok());
  EXPECT_THAT((*source)->write(narrow).error(), HasSubstr("--bitstream"));
  std::filesystem::remove(path);
}

// A camera that sends a JPEG ten times a second over HTTP, to one after the other; nothing says when one was taken.
class JpegCamera {
 public:
  explicit JpegCamera(std::string jpeg) : jpeg_(std::move(jpeg)), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&at), bytes), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port)) + "/";
    thread_ = std::thread([this] { run(); });
  }
  ~JpegCamera() {
    end_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  const std::string& url() const { return url_; }

 private:
  void run() {
    while (!end_) {
      const Fd peer(::accept(listener_.get(), nullptr, nullptr));
      const std::string head =
          "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n--frame\r\n";
      const std::string part = "Content-Type: image/jpeg\r\nContent-Length: " + std::to_string(jpeg_.size()) +
                               "\r\n\r\n" + jpeg_ + "\r\n--frame\r\n";
      for (std::string text = head + part; !end_ && peer; text = part) {
        if (::send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    }
  }
  const std::string jpeg_;
  Fd listener_;
  std::string url_;
  std::atomic<bool> end_{false};
  std::thread thread_;
};

// libavformat makes times up for it, 25 pictures a second, whatever comes.
TEST(Video, WithoutTimesOfItsOwnALivePictureIsOfWhenItCame) {
  const std::string path = temporary("camera") + ".jpg";
  ASSERT_EQ(std::system(("ffmpeg -v error -nostdin -y -f lavfi -i testsrc=s=64x48 -frames:v 1 " + path).c_str()), 0);
  std::ifstream file(path, std::ios::binary);
  const JpegCamera camera({std::istreambuf_iterator<char>(file), {}});
  for (const bool bitstream : {false, true}) {
    auto source = open_source(camera.url(), {.bitstream = bitstream});
    ASSERT_TRUE(source.ok()) << source.error();
    EXPECT_TRUE((*source)->format().live);
    std::int64_t first_ns = 0, after_first_ns = 0;
    for (int i = 0; i < 12; ++i) {
      const std::int64_t before_ns = ::leat_now_ns();
      const auto time = (*source)->next();
      ASSERT_TRUE(time.ok() && time->has_value()) << i;
      const std::int64_t after_ns = ::leat_now_ns();
      if (i == 0) first_ns = before_ns, after_first_ns = after_ns;
      EXPECT_GE(**time, before_ns - after_first_ns) << "picture " << i << (bitstream ? ", bitstream" : "");
      EXPECT_LE(**time, after_ns - first_ns) << "picture " << i << (bitstream ? ", bitstream" : "");
      EXPECT_EQ((*source)->index(), static_cast<std::uint64_t>(i));
    }
  }
  std::filesystem::remove(path);
}

TEST(Video, AFileThatIsNoVideoIsOneLine) {
  const std::string path = temporary("text");
  std::ofstream(path) << "this is no video\n";
  const auto source = open_source(path, {});
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(source.error(), HasSubstr(path));
  EXPECT_EQ(source.error().find('\n'), std::string::npos);
  std::filesystem::remove(path);
}

TEST(Truth, ReadsWhatTheSceneWritesAndNamesBadLines) {
  const std::string path = temporary("truth");
  scene::SceneOptions options{.seed = 5, .width = 320, .height = 240};
  scene::Scene street(options);
  std::vector<std::uint8_t> rgb(street.rgb_bytes());
  std::vector<scene::Object> objects = street.render(0, rgb.data(), 320 * 3);
  std::ofstream(path) << scene::truth_line(options, 0, objects) << "\n";
  auto truth = load_truth(path);
  ASSERT_TRUE(truth.ok()) << truth.error();
  EXPECT_EQ(truth->width, 320U);
  ASSERT_EQ(truth->pictures.size(), 1U);
  ASSERT_EQ(truth->pictures[0].size(), objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    EXPECT_EQ(truth->pictures[0][i].shape, objects[i].shape);
    EXPECT_EQ(truth->pictures[0][i].colour, objects[i].colour);
    EXPECT_NEAR(truth->pictures[0][i].x0, objects[i].x0, 0.1);
  }
  std::ofstream(path, std::ios::app) << "{\"width\": 3}\n";
  EXPECT_THAT(load_truth(path).error(), HasSubstr(path + ":2: "));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace leat::tools
