// Sources whose pictures change their size or pixel format in mid-stream, fed to the smallest daemon: its answers bear
// the size that each frame had, and the checksum of its pixels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>

#include "shm/test/loopback_daemon.h"
#include "tools/leat/feed/cameras/camera.h"
#include "tools/leat/feed/test_media.h"

namespace leat::tools {
namespace {

using test::MediaFolder;
using test::PieceServer;
using ::testing::HasSubstr;

class FormatChanges : public ::testing::Test {
 protected:
  struct Line {
    std::uint64_t picture;
    std::vector<std::uint32_t> size;
    std::string checksum;
  };
  void SetUp() override {
    shm::test::LoopbackDaemon::Options options;
    options.socket = media_.at("leat.sock");
    daemon_ = std::make_unique<shm::test::LoopbackDaemon>(options);
    ASSERT_EQ(daemon_->problem(), "");
  }
  FeederOptions options(const std::string& source) {
    FeederOptions o{.name = "cam", .source = source, .socket = media_.at("leat.sock"), .application = "echo"};
    o.slo_ns = 20'000'000'000;
    o.source_options.say = [this](const std::string& line) { said_.push_back(line); };
    return o;
  }
  // Every picture of a file; the answers in their order.
  std::vector<Line> feed(FeederOptions o) {
    const std::string path = media_.at("answers");
    std::filesystem::remove(path);
    auto lines = LineWriter::open(path, {.notice = lost_line});
    EXPECT_TRUE(lines.ok());
    o.answers = lines->get();
    Feeder feeder(o);
    const Status opened = feeder.open();
    EXPECT_TRUE(opened.ok()) << opened.error();
    if (!opened.ok()) return {};
    const Status ran = feeder.run(::leat_now_ns(), stop_);
    EXPECT_TRUE(ran.ok()) << ran.error();
    (*lines)->finish(20'000'000'000);
    figures_ = feeder.figures().front();
    return read(path);
  }
  static std::vector<Line> read(const std::string& path) {
    std::vector<Line> out;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const Json json = Json::parse(line);
      EXPECT_EQ(json["outcome"], "completed") << line;
      out.push_back({json["picture"].get<std::uint64_t>(), json["size"].get<std::vector<std::uint32_t>>(),
                     json["checksum"].get<std::string>()});
    }
    return out;
  }
  std::string part(const std::string& size, const std::string& words, const std::string& name) const {
    return media_.ffmpeg("-f lavfi -i testsrc2=s=" + size + ":r=25:d=1 -c:v libx264 -preset ultrafast -g 12 " + words,
                         name);
  }
  // Both parts in one file, and each alone.
  void expect_parts(const std::string& joined, const std::string& first, const std::string& second) {
    const auto one = feed(options(first)), two = feed(options(second));
    ASSERT_FALSE(one.empty());
    ASSERT_FALSE(two.empty());
    said_.clear();
    const auto all = feed(options(joined));
    ASSERT_EQ(all.size(), one.size() + two.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Line& alone = i < one.size() ? one[i] : two[i - one.size()];
      EXPECT_EQ(all[i].picture, i);
      EXPECT_EQ(all[i].size, alone.size) << i;
      EXPECT_EQ(all[i].checksum, alone.checksum) << i;
    }
    EXPECT_EQ(figures_.format_changes, 1U);
    EXPECT_EQ(figures_.ledger.submitted_count(), all.size());
    EXPECT_EQ(figures_.ledger.count(Outcome::completed), all.size());
    EXPECT_EQ(figures_.ledger.in_flight() + figures_.ledger.unanswered_count(), 0U);
    ASSERT_EQ(said_.size(), 1U);
    EXPECT_THAT(said_[0], HasSubstr("stream cam: its pictures changed from "));
    EXPECT_EQ(daemon_->violations(), 0U);
  }
  std::string joined(const std::string& first, const std::string& second, const std::string& name) const {
    return media_.put(name, MediaFolder::content(first) + MediaFolder::content(second));
  }

  MediaFolder media_;
  std::unique_ptr<shm::test::LoopbackDaemon> daemon_;
  std::atomic<bool> stop_{false};
  std::vector<std::string> said_;
  NamedLedger figures_;
};

TEST_F(FormatChanges, AFileThatGrowsOrShrinksGoesOnAtItsNewSize) {
  const std::string small = part("160x120", "-pix_fmt yuv420p", "small.ts"),
                    large = part("320x180", "-pix_fmt yuv420p -output_ts_offset 1", "large.ts");
  expect_parts(joined(small, large, "grows.ts"), small, large);
  EXPECT_THAT(said_[0], HasSubstr("from 160x120 i420 to 320x180 i420"));
  expect_parts(joined(large, small, "shrinks.ts"), large, small);
}

TEST_F(FormatChanges, SoDoesOneThatChangesItsPixelFormatAloneOrWithItsSize) {
  const std::string halved = part("160x120", "-pix_fmt yuv420p", "halved.ts"),
                    whole = part("160x120", "-pix_fmt yuv444p -output_ts_offset 1", "whole.ts"),
                    wide = part("320x180", "-pix_fmt yuv422p -output_ts_offset 1", "wide.ts");
  expect_parts(joined(halved, whole, "format.ts"), halved, whole);
  EXPECT_THAT(said_[0], HasSubstr("from 160x120 i420 to 160x120 rgb24"));
  expect_parts(joined(halved, wide, "both.ts"), halved, wide);
}

// Nobody decodes them here: the size is read from parameter sets and headers, from the key picture on.
TEST_F(FormatChanges, AccessUnitsHaveTheSizeThatTheirHeadersSay) {
  struct Kind {
    const char *codec, *container;
  };
  for (const Kind& kind : {Kind{"libx264", "ts"}, {"libx265 -x265-params log-level=none", "ts"}, {"mjpeg", "mjpeg"}}) {
    const auto made = [&](const std::string& size, const std::string& name) {
      return media_.ffmpeg("-f lavfi -i testsrc2=s=" + size + ":r=25:d=1 -pix_fmt yuvj420p -g 12 -c:v " + kind.codec,
                           name + "." + kind.container);
    };
    const std::string small = made("162x118", "s"), large = made("320x180", "l");
    auto source = open_source(joined(small, large, std::string("units.") + kind.container), {.bitstream = true});
    ASSERT_TRUE(source.ok()) << source.error();
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> units;
    for (auto time = (*source)->next(); time.ok() && *time; time = (*source)->next())
      ++units[{(*source)->format().width, (*source)->format().height}];
    EXPECT_EQ(units, (std::map<std::pair<std::uint32_t, std::uint32_t>, int>{{{162, 118}, 25}, {{320, 180}, 25}}))
        << kind.codec;
  }
}

// The matrix of a quarter turn, in the head of an MP4.
std::string turned(std::string mp4) {
  const auto head = mp4.find("tkhd");
  EXPECT_NE(head, std::string::npos);
  const std::size_t matrix = head + 4 + (mp4[head + 4] == 1 ? 52 : 40);
  const std::string quarter("\0\0\0\0\0\1\0\0\0\0\0\0\xFF\xFF\0\0\0\0\0\0", 20);
  return mp4.replace(matrix, quarter.size(), quarter);
}

TEST_F(FormatChanges, SoDoesOneThatIsShownTurned) {
  const std::string small = part("160x120", "-pix_fmt yuv420p", "small.ts"),
                    large = part("320x180", "-pix_fmt yuv420p -output_ts_offset 1", "large.ts"),
                    both = joined(small, large, "both.ts");
  std::vector<std::string> files;
  for (const std::string& path : {both, small, large})
    files.push_back(media_.put(
        "turned" + std::to_string(files.size()) + ".mp4",
        turned(MediaFolder::content(media_.ffmpeg("-i " + path + " -c copy -bsf:v h264_mp4toannexb", "plain.mp4")))));
  expect_parts(files[0], files[1], files[2]);
  EXPECT_THAT(said_[0], HasSubstr("from 120x160 i420 to 180x320 i420"));
}

// A feeder that is given a truth of one size has none of the other.
TEST_F(FormatChanges, AGroundTruthOfTheFirstSizeEndsIt) {
  const std::string small = part("160x120", "-pix_fmt yuv420p", "small.ts"),
                    large = part("320x180", "-pix_fmt yuv420p -output_ts_offset 1", "large.ts");
  Truth truth{.width = 160, .height = 120, .pictures = {}};
  FeederOptions o = options(joined(small, large, "grows.ts"));
  o.truth = &truth;
  Feeder feeder(o);
  ASSERT_TRUE(feeder.open().ok());
  const Status ran = feeder.run(::leat_now_ns(), stop_);
  ASSERT_FALSE(ran.ok());
  EXPECT_THAT(ran.error(), HasSubstr("the ground truth is of 160x120 pictures"));
}

// What is drawn goes on in the size that the video began with.
TEST_F(FormatChanges, WhatIsDrawnKeepsTheFirstSize) {
  const std::string small = part("160x120", "-pix_fmt yuv420p", "small.ts"),
                    large = part("320x180", "-pix_fmt yuv420p -output_ts_offset 1", "large.ts");
  FeederOptions o = options(joined(small, large, "grows.ts"));
  o.annotate = media_.at("drawn.mp4");
  const std::size_t pictures = feed(o).size();
  auto drawn = open_source(o.annotate, {});
  ASSERT_TRUE(drawn.ok()) << drawn.error();
  const draw::Size sheet = draw::sheet_of({160, 120}).size;
  std::size_t seen = 0;
  for (; (*drawn)->next()->has_value(); ++seen) {
    EXPECT_EQ((*drawn)->format().width, sheet.width);
    EXPECT_EQ((*drawn)->format().height, sheet.height);
  }
  EXPECT_GT(seen, pictures / 2) << "what finds no room to wait is left out";
}

class LiveFormatChanges : public FormatChanges {
 protected:
  // Feeds a live source until pictures of the second part have been answered. Each answer is that of a picture of its
  // part.
  void expect_goes_on(const std::string& url, const std::vector<Line>& first, const std::vector<Line>& second) {
    const std::string path = media_.at("answers");
    std::filesystem::remove(path);
    auto lines = LineWriter::open(path, {.notice = lost_line});
    ASSERT_TRUE(lines.ok());
    FeederOptions o = options(url);
    o.answers = lines->get();
    o.stays = true;
    said_.clear();
    Camera camera(o, true, [](const std::string&) {});
    camera.start(::leat_now_ns());
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto completed = [&] { return camera.figures().front().ledger.count(Outcome::completed); };
    for (std::uint64_t changed = 0; changed == 0 || completed() < changed + 5;) {
      if (changed == 0 && camera.feeder().format_changes() > 0) changed = completed();
      ASSERT_LT(std::chrono::steady_clock::now(), until)
          << completed() << " completed: " << camera.report(::leat_now_ns()).last_error;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const CameraReport report = camera.report(::leat_now_ns());
    camera.stop();
    camera.join();
    (*lines)->finish(20'000'000'000);
    std::map<std::vector<std::uint32_t>, std::set<std::string>> known, seen;
    for (const auto* part : {&first, &second})
      for (const Line& line : *part) known[line.size].insert(line.checksum);
    for (const Line& line : read(path)) {
      EXPECT_EQ(known[line.size].count(line.checksum), 1U) << "picture " << line.picture;
      seen[line.size].insert(line.checksum);
    }
    EXPECT_EQ(seen.size(), 2U) << "both sizes";
    EXPECT_EQ(report.format_changes, 1U);
    EXPECT_EQ(report.breaks, 0U);
    EXPECT_EQ(said_.size(), 1U);
    EXPECT_EQ(daemon_->violations(), 0U);
  }
};

TEST_F(LiveFormatChanges, AStreamOverTcpGoesOnAtItsNewSize) {
  const std::string small = part("160x120", "-pix_fmt yuv420p -muxdelay 0", "small.ts"),
                    large = part("320x180", "-pix_fmt yuv420p -muxdelay 0 -output_ts_offset 1", "large.ts");
  const auto first = feed(options(small)), second = feed(options(large));
  const PieceServer server("tcp", {MediaFolder::content(small) + MediaFolder::content(large)},
                           std::chrono::milliseconds(0));
  expect_goes_on(server.url(), first, second);
}

TEST_F(LiveFormatChanges, SoDoJpegsOverHttp) {
  std::vector<std::string> pieces;
  std::vector<Line> parts[2];
  for (const std::size_t i : {0U, 1U}) {
    const std::string path = media_.ffmpeg(
        std::string("-f lavfi -i testsrc2=s=") + (i == 0 ? "160x120" : "320x180") + " -frames:v 1 -pix_fmt yuvj420p",
        "still.jpg");
    parts[i] = feed(options(media_.ffmpeg("-i " + path + " -c copy", "still.avi")));  // stills have another IDCT
    ASSERT_EQ(parts[i].size(), 1U);
    const std::string jpeg = MediaFolder::content(path);
    for (int n = 0; n < 20; ++n) {
      pieces.push_back("Content-Type: image/jpeg\r\nContent-Length: " + std::to_string(jpeg.size()) + "\r\n\r\n" +
                       jpeg + "\r\n--frame\r\n");
      if (n > 0) parts[i].push_back(parts[i].front());
    }
  }
  pieces.front() =
      "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n--frame\r\n" + pieces.front();
  const PieceServer server("http", pieces, std::chrono::milliseconds(40));
  expect_goes_on(server.url() + "/", parts[0], parts[1]);
}

}  // namespace
}  // namespace leat::tools
