// Decoders behind the device's interface, over the stand-in libraries: every picture is libavcodec's, whatever the
// order and however few are asked for; what is lost costs the pictures up to the next key picture and no others.
#include <algorithm>
#include <cstring>
#include <random>

#include "cuda/decode/access_unit.h"
#include "cuda/decode/test_streams.h"
#include "cuda/device/own_process.h"
#include "leat/frame_format.h"

namespace leat {
namespace {

using cuda::kind_of;
using cuda::UnitKind;
using test::coded_stream;
using test::CodedStream;
using test::damaged;
using test::shown_again;
using test::StreamSpec;

constexpr std::uint32_t kPlaces = 6;

// What the device reads at a place, as tight i420, or rgb24; empty: there is no picture.
std::vector<std::uint8_t> picture_at(exec::Device& device, exec::Decoder& decoder, std::uint32_t place,
                                     std::uint32_t width, std::uint32_t height) {
  leat_decoded at{};
  if (!decoder.picture(place, &at)) return {};
  std::vector<std::uint8_t> raw(at.bytes), out;
  if (!device.copy(raw.data(), at.planes[0], at.bytes) || !device.wait()) return {};
  const std::uint32_t row = at.format == LEAT_FORMAT_rgb24 ? width * 3 : width;
  for (std::uint32_t y = 0; y < height; ++y)
    out.insert(out.end(), &raw[std::size_t{y} * at.strides[0]], &raw[std::size_t{y} * at.strides[0]] + row);
  if (at.format != LEAT_FORMAT_nv12) return out;
  const std::uint8_t* const chroma = raw.data() + (at.planes[1] - at.planes[0]);
  for (std::uint32_t c = 0; c < 2; ++c)
    for (std::uint32_t y = 0; y < height / 2; ++y)
      for (std::uint32_t x = 0; x < width / 2; ++x) out.push_back(chroma[std::size_t{y} * at.strides[1] + 2 * x + c]);
  return out;
}

// Over the decoders' libraries too, which are found by their names from then on.
template <class Act>
int with_decoders(Act act) {
  return in_own_process(act, [](fake::Host&) {
    for (const char* library : {LEAT_FAKE_NVCUVID, LEAT_FAKE_NVJPEG})
      if (::dlopen(library, RTLD_NOW | RTLD_GLOBAL) == nullptr) ::_exit(2);
  });
}

leat_access_unit unit_of(const std::vector<std::uint8_t>& bytes, std::uint32_t place, bool gap = false) {
  return {bytes.data(), bytes.size(), place, gap ? 1u : 0u};
}

// Access unit i goes to place i % kPlaces; its picture is asked for when `behind` more have come, if `wanted` says so.
bool plays(exec::Device& device, std::uint32_t codec, const CodedStream& s, std::uint32_t behind,
           bool (*wanted)(std::size_t)) {
  auto decoder = device.decoder({codec, s.width, s.height, kPlaces});
  if (!decoder.ok()) std::fprintf(stderr, "%s\n", decoder.error().c_str());
  NEED(decoder.ok());
  for (std::size_t i = 0; i < s.units.size() + behind; ++i) {
    if (i < s.units.size()) {
      const bool good = (*decoder)->decode(unit_of(s.units[i], static_cast<std::uint32_t>(i % kPlaces)));
      if (!good) std::fprintf(stderr, "access unit %zu: %s\n", i, device.error());
      NEED(good);
    }
    if (i < behind || !wanted(i - behind)) continue;
    const auto place = static_cast<std::uint32_t>((i - behind) % kPlaces);
    const bool same = picture_at(device, **decoder, place, s.width, s.height) == s.i420[i - behind];
    if (!same) std::fprintf(stderr, "picture %zu is another\n", i - behind);
    NEED(same);
  }
  return true;
}

class Codec : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Codec, EveryPictureIsItsAccessUnits) {
  for (const int reordered : {0, 2}) {
    if (reordered != 0 && GetParam() != LEAT_CODEC_h264 && GetParam() != LEAT_CODEC_hevc) continue;
    const CodedStream s = coded_stream({.codec = GetParam(), .reordered = reordered});
    if (s.units.empty()) GTEST_SKIP() << "libavcodec has no encoder for it";
    ASSERT_EQ(s.units.size(), 24U);
    EXPECT_EQ(with_decoders([&](fake::Host& host, exec::Device& device) {
                host.state().longest_delay_us = 300;
                for (const std::uint32_t behind : {0U, 2U, kPlaces - 1})
                  NEED(plays(device, GetParam(), s, behind, [](std::size_t) { return true; }));
                NEED(plays(device, GetParam(), s, 3, [](std::size_t i) { return i % 5 == 4; }));
                return true;
              }),
              0)
        << "reordered " << reordered;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Codec,
                         testing::Values(LEAT_CODEC_h264, LEAT_CODEC_hevc, LEAT_CODEC_av1, LEAT_CODEC_jpeg));

// What the bitstream states goes with each picture, and follows a change in mid-stream.
TEST_P(Codec, ColorIsTheBitstreams) {
  if (GetParam() == LEAT_CODEC_jpeg) GTEST_SKIP() << "nvJPEG makes RGB";
  struct Stated {
    bool full;
    int h273;
    std::uint32_t range, matrix;
  };
  constexpr Stated kStated[] = {{false, 2, LEAT_COLOR_RANGE_limited, LEAT_COLOR_MATRIX_unspecified},
                                {true, 6, LEAT_COLOR_RANGE_full, LEAT_COLOR_MATRIX_bt601},
                                {false, 1, LEAT_COLOR_RANGE_limited, LEAT_COLOR_MATRIX_bt709},
                                {true, 9, LEAT_COLOR_RANGE_full, LEAT_COLOR_MATRIX_bt2020}};
  std::vector<CodedStream> streams;
  for (const Stated& stated : kStated)
    streams.push_back(coded_stream({.codec = GetParam(),
                                    .pictures = 3,
                                    .seed = static_cast<std::uint32_t>(streams.size() + 1),
                                    .full_range = stated.full,
                                    .matrix = stated.h273}));
  if (streams.front().units.empty()) GTEST_SKIP() << "libavcodec has no encoder for it";
  EXPECT_EQ(with_decoders([&](fake::Host&, exec::Device& device) {
              auto decoder = device.decoder({GetParam(), streams[0].width, streams[0].height, kPlaces});
              NEED(decoder.ok());
              for (std::size_t s = 0; s < streams.size(); ++s)
                for (std::size_t i = 0; i < streams[s].units.size(); ++i) {
                  NEED((*decoder)->decode(unit_of(streams[s].units[i], 0, i == 0)));
                  leat_decoded at{};
                  NEED((*decoder)->picture(0, &at));
                  if (at.color_range != kStated[s].range || at.color_matrix != kStated[s].matrix)
                    std::fprintf(stderr, "stream %zu, picture %zu: range %u, matrix %u\n", s, i, at.color_range,
                                 at.color_matrix);
                  NEED(at.color_range == kStated[s].range && at.color_matrix == kStated[s].matrix);
                }
              return true;
            }),
            0);
}

TEST(Decoder, ALostAccessUnitCostsThePicturesUpToTheNextKeyPicture) {
  const CodedStream s = coded_stream({.codec = LEAT_CODEC_h264});
  if (s.units.empty()) GTEST_SKIP() << "libavcodec has no encoder for H.264";
  EXPECT_EQ(with_decoders([&](fake::Host&, exec::Device& device) {
              auto decoder = device.decoder({LEAT_CODEC_h264, s.width, s.height, kPlaces});
              NEED(decoder.ok());
              for (std::size_t i = 2; i < s.units.size(); ++i) {  // it is joined in its middle
                if (i == 10) continue;                            // and loses one
                const auto place = static_cast<std::uint32_t>(i % kPlaces);
                const bool good = (*decoder)->decode(unit_of(s.units[i], place, i == 11));
                const bool there = !picture_at(device, **decoder, place, s.width, s.height).empty();
                NEED(good == there);
                NEED(there == (i == 8 || i == 9 || i >= 16));
                if (there) NEED(picture_at(device, **decoder, place, s.width, s.height) == s.i420[i]);
              }
              return true;
            }),
            0);
}

TEST(Decoder, OtherSizesThanTheStreamsAreRefusedInOneLine) {
  const CodedStream s = coded_stream({.codec = LEAT_CODEC_h264, .pictures = 1});
  const CodedStream jpeg = coded_stream({.codec = LEAT_CODEC_jpeg, .pictures = 1});
  if (s.units.empty() || jpeg.units.empty()) GTEST_SKIP() << "libavcodec lacks an encoder";
  EXPECT_EQ(
      with_decoders([&](fake::Host&, exec::Device& device) {
        for (const auto& [codec, unit] : {std::pair(LEAT_CODEC_h264, s.units[0]), {LEAT_CODEC_jpeg, jpeg.units[0]}}) {
          auto decoder = device.decoder({static_cast<std::uint32_t>(codec), 640, 360, kPlaces});
          NEED(decoder.ok());
          NEED(!(*decoder)->decode(unit_of(unit, 0)));
          const std::string line = device.error();
          NEED(line.find("320x192") != std::string::npos && line.find("640x360") != std::string::npos);
        }
        return true;
      }),
      0);
}

// A second stream beside each is whole all the while.
bool survives(exec::Device& device, std::uint32_t codec, const CodedStream& s, std::uint32_t rounds) {
  auto hurt = device.decoder({codec, s.width, s.height, kPlaces}),
       whole = device.decoder({codec, s.width, s.height, kPlaces});
  NEED(hurt.ok() && whole.ok());
  std::mt19937 random(7);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const std::size_t i = round % s.units.size();
    const auto place = static_cast<std::uint32_t>(i % kPlaces);
    const auto bytes = round % 3 == 0 ? damaged(s.units[i], round) : s.units[i];
    (void)(*hurt)->decode(unit_of(bytes, place, random() % 16 == 0));
    if (random() % 2 == 0)
      (void)picture_at(device, **hurt, static_cast<std::uint32_t>(random() % kPlaces), s.width, s.height);
    NEED((*whole)->decode(unit_of(s.units[i], place)));
    if (round % 7 == 0) NEED(picture_at(device, **whole, place, s.width, s.height) == s.i420[i]);
  }
  return !device.lost();
}

// LEAT_DAMAGED: how many; the suite takes few.
TEST_P(Codec, DamageHarmsNoOtherStream) {
  const CodedStream s = coded_stream({.codec = GetParam(), .width = 128, .height = 64});
  if (s.units.empty()) GTEST_SKIP() << "libavcodec has no encoder for it";
  const char* const many = std::getenv("LEAT_DAMAGED");
  const auto rounds = static_cast<std::uint32_t>(many != nullptr ? std::atoi(many) : 120);
  EXPECT_EQ(with_decoders([&](fake::Host&, exec::Device& device) { return survives(device, GetParam(), s, rounds); }),
            0);
}

// Nobody asks for it, and nothing is mapped that would tell; what comes behind it refers to it.
TEST(Decoder, DamageIsKnownBeforeItsSurfaceIsUsedAgain) {
  const CodedStream s = coded_stream({.codec = LEAT_CODEC_h264, .pictures = 9});
  if (s.units.empty()) GTEST_SKIP() << "libavcodec has no encoder for H.264";
  EXPECT_EQ(with_decoders([&](fake::Host&, exec::Device& device) {
              int known = 0;
              for (std::uint32_t seed = 1; seed <= 40; ++seed) {
                const auto hurt = damaged(s.units[1], seed);
                const auto begins = [&](exec::Decoder& d) {
                  return d.decode(unit_of(s.units[0], 0)) && d.decode(unit_of(hurt, 0));
                };
                auto asked = device.decoder({LEAT_CODEC_h264, s.width, s.height, 1});
                NEED(asked.ok());
                if (!begins(**asked) || !picture_at(device, **asked, 0, s.width, s.height).empty()) continue;
                ++known;
                auto decoder = device.decoder({LEAT_CODEC_h264, s.width, s.height, 1});
                NEED(decoder.ok() && begins(**decoder));
                for (std::size_t i = 2; i < 8; ++i) NEED(!(*decoder)->decode(unit_of(s.units[i], 0)));
                NEED((*decoder)->decode(unit_of(s.units[8], 0)));
                NEED(picture_at(device, **decoder, 0, s.width, s.height) == s.i420[8]);
              }
              NEED(known > 0);
              return true;
            }),
            0);
}

// One surface for two places: both have the picture, also when the surface holds another.
TEST(Decoder, APictureThatIsShownAgainIsThatOfBothPlaces) {
  const CodedStream s = coded_stream({.codec = LEAT_CODEC_av1, .pictures = 4});
  if (s.units.empty()) GTEST_SKIP() << "libavcodec has no encoder for AV1";
  EXPECT_EQ(with_decoders([&](fake::Host&, exec::Device& device) {
              int again = 0;
              for (unsigned slot = 0; slot < 8; ++slot) {
                const auto unit = shown_again(slot);
                const auto begins = [&](exec::Decoder& d) {
                  for (const std::uint32_t i : {0U, 1U, 2U})
                    if (!d.decode(unit_of(s.units[i], i))) return false;
                  return d.decode(unit_of(unit, 3));
                };
                const auto is = [&](exec::Decoder& d, std::uint32_t place, std::size_t picture) {
                  return picture_at(device, d, place, s.width, s.height) == s.i420[picture];
                };
                auto first = device.decoder({LEAT_CODEC_av1, s.width, s.height, kPlaces});
                NEED(first.ok());
                if (!begins(**first) || !is(**first, 3, 2)) continue;  // another picture lies there, or none
                ++again;
                auto decoder = device.decoder({LEAT_CODEC_av1, s.width, s.height, kPlaces});
                NEED(decoder.ok() && begins(**decoder) && (*decoder)->decode(unit_of(s.units[3], 4)));
                NEED(is(**decoder, 2, 2) && is(**decoder, 3, 2) && is(**decoder, 4, 3));
              }
              NEED(again > 0);
              return true;
            }),
            0);
}

TEST(AccessUnit, SaysWhetherDecodingCanBeginThere) {
  for (const std::uint32_t codec : {LEAT_CODEC_h264, LEAT_CODEC_hevc, LEAT_CODEC_av1, LEAT_CODEC_jpeg}) {
    const CodedStream s = coded_stream({.codec = codec, .width = 64, .height = 64, .pictures = 10});
    for (std::size_t i = 0; i < s.units.size(); ++i) {
      const UnitKind kind = kind_of(codec, s.units[i]);
      EXPECT_EQ(kind == UnitKind::key || kind == UnitKind::clean_key, s.key[i]) << codec << " " << i;
      EXPECT_NE(kind, UnitKind::none);
    }
  }
}

TEST(AccessUnit, ReadsNothingBeyondWhatItIsGiven) {
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::uint8_t> bytes(random() % 12);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random() % 4 == 0 ? random() : random() % 2);
    for (std::uint32_t codec = 0; codec < 6; ++codec) (void)kind_of(codec, bytes);
  }
  EXPECT_EQ(kind_of(LEAT_CODEC_h264, {}), UnitKind::none);
}

TEST(KeyPictures, OfAPictureThatIsNotCleanWhatLeadsIsLeftOut) {
  cuda::KeyPictures keys;
  EXPECT_FALSE(keys.decodable(UnitKind::other, false)) << "nothing begins there";
  EXPECT_TRUE(keys.decodable(UnitKind::key, false));
  EXPECT_FALSE(keys.decodable(UnitKind::leading, false)) << "it refers to what was not decoded";
  EXPECT_TRUE(keys.decodable(UnitKind::other, false));
  EXPECT_TRUE(keys.decodable(UnitKind::key, false));
  EXPECT_TRUE(keys.decodable(UnitKind::leading, false)) << "all before it is there";
  EXPECT_FALSE(keys.decodable(UnitKind::other, true));
  EXPECT_FALSE(keys.decodable(UnitKind::leading, false));
  EXPECT_TRUE(keys.decodable(UnitKind::clean_key, true)) << "a gap before a key picture costs nothing";
  EXPECT_EQ(keys.runs(), 2U);
}

}  // namespace
}  // namespace leat
