// Pictures that may show an error of their stream: every one that differs from the sound stream's is said to.
#include "tools/leat/feed/source/damage.h"

#include <gtest/gtest.h>

#include "shm/test/loopback_daemon.h"
#include "tools/leat/feed/feeder.h"
#include "tools/leat/feed/own_picture.h"
#include "tools/leat/feed/source/jpeg_end.h"
#include "tools/leat/feed/test_media.h"

namespace leat::tools {
namespace {

using test::MediaFolder;

TEST(Damage, ReachesFromADamagedPictureToTheNextKeyPicture) {
  Damage damage;
  std::vector<std::uint64_t> packets;
  for (int i = 0; i < 12; ++i) packets.push_back(damage.packet(i % 5 == 0, i));
  EXPECT_FALSE(damage.reaches(packets[3], 3));
  damage.damaged(packets[7]);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(damage.reaches(packets[static_cast<std::size_t>(i)], i), i >= 7 && i < 10) << i;
  damage.damaged(packets[5]);
  EXPECT_TRUE(damage.reaches(packets[6], 6));
  damage.flush();
  EXPECT_FALSE(damage.reaches(packets[6], 6));
}

// SeenPicture before a key picture and decoded after it: it may refer to both sides.
TEST(Damage, ReachesLeadingPicturesOfTheNextKeyPicture) {
  Damage damage;
  (void)damage.packet(true, 0);
  const std::uint64_t broken = damage.packet(false, 1), key = damage.packet(true, 5), leading = damage.packet(false, 4),
                      after = damage.packet(false, 6);
  damage.damaged(broken);
  EXPECT_TRUE(damage.reaches(leading, 4));
  EXPECT_FALSE(damage.reaches(key, 5));
  EXPECT_FALSE(damage.reaches(after, 6));
}

TEST(Damage, IsKnownOnceWhatWasDecodedBeforeIsShown) {
  Damage damage;
  const std::uint64_t key = damage.packet(true, 0), later = damage.packet(false, 4), between = damage.packet(false, 2);
  EXPECT_EQ(damage.known_from(key), 0);
  EXPECT_EQ(damage.known_from(later), 4);
  EXPECT_EQ(damage.known_from(between), 4) << "it may refer to the picture of time 4";
  for (int i = 0; i < 1000; ++i) (void)damage.packet(i % 10 == 0, 5 + i);
  EXPECT_EQ(damage.known_from(key), Damage::kNoTime) << "forgotten";
}

struct SeenPicture {
  std::vector<std::uint8_t> pixels;
  bool damaged;
};
std::vector<SeenPicture> all_of(const std::string& path) {
  std::vector<SeenPicture> out;
  auto source = open_source(path, {});
  EXPECT_TRUE(source.ok()) << source.error();
  if (!source.ok()) return out;
  for (;;) {
    const auto time = (*source)->next();
    EXPECT_TRUE(time.ok()) << time.error();
    if (!time.ok() || !time->has_value()) return out;
    OwnPicture own((*source)->format());
    EXPECT_TRUE(*(*source)->write(own.frame));
    out.push_back({own.pixels, (*source)->damaged()});
  }
}

// Twelve bytes of the how manyth coded picture of an H.264 stream in MPEG-TS are flipped.
std::string flipped(std::string ts, std::size_t at) {
  for (std::size_t i = 0; i < 12; ++i) {
    const std::size_t byte = at + i;
    if (byte % 188 < 40) return flipped(std::move(ts), at + 40);  // a packet's head and what may be beside it
    ts[byte] = static_cast<char>(ts[byte] ^ 0x5A);
  }
  return ts;
}

constexpr int kRunPictures = 15, kHurtPictures = 60;

// With pictures that refer to later ones, and without.
TEST(Damage, EveryPictureThatDiffersIsMarkedAndNoneAfterTheNextKeyPicture) {
  const MediaFolder media;
  int cases = 0, silent = 0;
  for (const char* const references : {"-bf 0", "-bf 3"}) {
    const std::string path =
        media.ffmpeg("-f lavfi -i testsrc2=s=320x240:r=25 -frames:v " + std::to_string(kHurtPictures) +
                         " -c:v libx264 -threads 1 -preset medium -sc_threshold 0 -pix_fmt yuv420p -g " +
                         std::to_string(kRunPictures) + " " + references,
                     "sound.ts");
    const std::string ts = MediaFolder::content(path);
    const std::vector<SeenPicture> sound = all_of(path);
    ASSERT_EQ(sound.size(), static_cast<std::size_t>(kHurtPictures));
    for (const SeenPicture& s : sound) EXPECT_FALSE(s.damaged);
    for (std::size_t tenth = 1; tenth < 20; ++tenth) {
      const std::vector<SeenPicture> hurt = all_of(media.put("hurt.ts", flipped(ts, ts.size() * tenth / 20)));
      if (hurt.size() != sound.size()) continue;  // a picture was lost as a whole: places cannot be compared
      int differ = 0, marked = 0, unmarked = 0, runs = 0;
      for (std::size_t run = 0; run < sound.size(); run += kRunPictures) {
        int marks = 0;
        for (std::size_t i = run; i < run + kRunPictures; ++i) {
          const bool differs = hurt[i].pixels != sound[i].pixels;
          differ += differs ? 1 : 0;
          marks += hurt[i].damaged ? 1 : 0;
          unmarked += differs && !hurt[i].damaged ? 1 : 0;
        }
        marked += marks;
        runs += marks > 0 ? 1 : 0;
      }
      ++cases;
      if (marked == 0 && differ > 0) {
        ++silent;  // its decoder met bits that are another picture's as well, and says nothing
        continue;
      }
      EXPECT_EQ(unmarked, 0) << references << ", at " << tenth << "/20: " << differ << " differ, " << marked
                             << " marked";
      EXPECT_LE(runs, 1) << references << ", at " << tenth << "/20";
    }
  }
  std::printf("%d places, of which libavcodec saw nothing at %d\n", cases, silent);
  EXPECT_GE(cases, 20);
  EXPECT_LE(silent * 4, cases);
}

TEST(Damage, AJpegThatIsCutShortIsDamagedWhereverItIsCut) {
  const MediaFolder media;
  const std::string jpeg =
      MediaFolder::content(media.ffmpeg("-f lavfi -i testsrc2=s=320x240 -frames:v 1 -pix_fmt yuvj420p", "whole.jpg"));
  const auto whole = all_of(media.at("whole.jpg"));
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_FALSE(whole[0].damaged);
  const auto padded = all_of(media.put("padded.jpg", jpeg + std::string(500, '\0')));
  ASSERT_EQ(padded.size(), 1U);
  EXPECT_FALSE(padded[0].damaged) << "what follows the end marker is no part of it";
  for (int percent = 20; percent < 100; percent += 5) {
    const std::string cut = jpeg.substr(0, jpeg.size() * static_cast<std::size_t>(percent) / 100);
    for (const std::string& end : {std::string(), std::string("\xFF\xD9")}) {
      const auto shown = all_of(media.put("cut.jpg", cut + end));
      ASSERT_EQ(shown.size(), 1U) << percent;
      EXPECT_TRUE(shown[0].damaged) << percent << " %" << (end.empty() ? "" : ", with an end marker");
    }
  }
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

TEST(JpegEnd, AProgressiveOneLacksScansWithoutItsEndMarker) {
  const auto jpeg = [](char frame, const std::string& rest) {
    return std::string("\xFF\xD8\xFF\xE0\0\x04xx\xFF", 9) + frame + std::string("\0\x04xx\xFF\xDA\0\x04xx", 10) +
           "data" + std::string("\xFF\0more\xFF\xD0more", 12) + rest;
  };
  const std::string end = "\xFF\xD9";
  EXPECT_FALSE(lacks_scans(bytes_of(jpeg('\xC2', end))));
  EXPECT_TRUE(lacks_scans(bytes_of(jpeg('\xC2', ""))));
  EXPECT_FALSE(lacks_scans(bytes_of(jpeg('\xC0', ""))));
  EXPECT_FALSE(lacks_scans(bytes_of(jpeg('\xC2', end + "after it"))));
  EXPECT_TRUE(lacks_scans(bytes_of(jpeg('\xC2', std::string("\xFF\xC4\0\x05\xFF\xD9x\xFF", 8)))))
      << "an end marker within a segment is none";
  for (std::size_t n = 0; n < 40; ++n) (void)lacks_scans(bytes_of(jpeg('\xC2', "").substr(0, n)));
}

class FedDamage : public ::testing::Test {
 protected:
  MediaFolder media_;
  std::atomic<bool> stop_{false};
};

TEST_F(FedDamage, IsMarkedDroppedOrKeptAndCounted) {
  std::atomic<std::uint64_t> marked{0};
  shm::test::LoopbackDaemon::Options daemon_options;
  daemon_options.socket = media_.at("leat.sock");
  daemon_options.answer_now = [&](const shm::Taken& taken) {
    marked += taken.damaged ? 1 : 0;
    return true;
  };
  shm::test::LoopbackDaemon daemon(daemon_options);
  ASSERT_EQ(daemon.problem(), "");
  const std::string ts = MediaFolder::content(
      media_.ffmpeg("-f lavfi -i testsrc2=s=320x240:r=25 -frames:v 45 -c:v libx264 -threads 1 -bf 0 -sc_threshold 0 "
                    "-pix_fmt yuv420p -g 15",
                    "sound.ts"));
  std::string path;
  std::uint64_t damaged = 0;
  for (std::size_t place = 4; damaged == 0 && place < 16; ++place) {
    path = media_.put("hurt.ts", flipped(ts, ts.size() * place / 16));
    const auto pictures = all_of(path);
    if (pictures.size() != 45) continue;
    for (const SeenPicture& s : pictures) damaged += s.damaged ? 1 : 0;
  }
  ASSERT_GT(damaged, 0U);
  for (const DamagedPictures how : {DamagedPictures::mark, DamagedPictures::drop, DamagedPictures::keep}) {
    marked = 0;
    const std::string answers = media_.at("answers");
    std::filesystem::remove(answers);
    auto lines = LineWriter::open(answers, {.notice = lost_line});
    ASSERT_TRUE(lines.ok());
    Feeder feeder({.name = "cam",
                   .source = path,
                   .socket = daemon_options.socket,
                   .application = "echo",
                   .damaged = how,
                   .answers = lines->get()});
    ASSERT_TRUE(feeder.open().ok());
    const Status ran = feeder.run(::leat_now_ns(), stop_);
    ASSERT_TRUE(ran.ok()) << ran.error();
    (*lines)->finish(20'000'000'000);
    const NamedLedger figures = feeder.figures().front();
    EXPECT_EQ(figures.damaged, damaged);
    EXPECT_EQ(figures.ledger.skipped_count(Skip::damaged), how == DamagedPictures::drop ? damaged : 0);
    EXPECT_EQ(figures.ledger.submitted_count(), 45 - (how == DamagedPictures::drop ? damaged : 0));
    EXPECT_EQ(marked, how == DamagedPictures::mark ? damaged : 0);
    std::uint64_t said = 0;
    std::ifstream file(answers);
    for (std::string line; std::getline(file, line);) said += Json::parse(line).contains("damaged") ? 1 : 0;
    EXPECT_EQ(said, marked);
  }
  EXPECT_EQ(daemon.violations(), 0U);
}

}  // namespace
}  // namespace leat::tools
