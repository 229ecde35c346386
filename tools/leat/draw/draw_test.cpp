// What a drawing is held to: labels clear of each other and within, the text that was given, colours at known pixels.
#include <gtest/gtest.h>

#include <limits>

#include "tools/leat/draw/canvas/labels.h"
#include "tools/leat/draw/canvas/ramp.h"
#include "tools/leat/draw/kinds/skeleton.h"
#include "tools/leat/draw/test_answers.h"
#include "tools/scene/text/rendered_text.h"

namespace leat::tools::draw::test {
namespace {

constexpr Colour kGrey{100, 100, 100};

// n boxes somewhere, alike on every machine.
Answer scattered(int n, Size in) {
  Answer a(LEAT_RESULT_DETECTIONS);
  a.names(0, {"person", "bicycle", "motorcycle", "lorry"});
  std::uint32_t state = 4;
  const auto next = [&] { return static_cast<float>((state = state * 1664525 + 1013904223) >> 8) / 16777216.0F; };
  for (int i = 0; i < n; ++i) {
    const float w = static_cast<float>(in.width), h = static_cast<float>(in.height);
    const float x = next() * w, y = next() * h;
    a.detect(x, y, std::min(w, x + w / 8 * next()), std::min(h, y + h / 6 * next()),
             static_cast<std::int32_t>(next() * 4), 0.5F);
  }
  return a;
}

TEST(Labels, StandWithinThePictureAndNeverOnOneAnother) {
  for (const Size size : {Size{1280, 720}, Size{640, 360}, Size{3840, 2160}, Size{64, 64}, Size{480, 1000}}) {
    const Answer a = scattered(60, size);
    Placed placed;
    const Picture drawing = draw_answer(Picture(size, kGrey), a.view(), {}, &placed);
    const Sheet sheet = sheet_of(size);
    EXPECT_EQ(drawing.size, sheet.size);
    EXPECT_EQ(placed.labels.size() + placed.left_out, 60u);
    if (size.width >= 640) {
      EXPECT_EQ(placed.left_out, 0u) << size.width;
    }
    EXPECT_GT(placed.labels.size(), 20u);
    for (std::size_t i = 0; i < placed.labels.size(); ++i) {
      const Rect& at = placed.labels[i].at;
      EXPECT_TRUE(inside(at, sheet.picture)) << i;
      EXPECT_EQ(shared_area(at, placed.banner), 0) << i;
      for (std::size_t j = 0; j < i; ++j) EXPECT_EQ(shared_area(at, placed.labels[j].at), 0) << i << " and " << j;
    }
  }
}

TEST(Labels, StandOnTheUpperEdgeWhereThereIsRoomAndMoveWhereThereIsNone) {
  const Rect picture{0, 0, 200, 100};
  const LabelWish wish{{50, 40, 90, 80}, 30, 10};
  EXPECT_EQ(place_labels(std::span(&wish, 1), picture, {}).at(0), (Rect{50, 30, 80, 40}));
  const LabelWish corner{{185, 0, 200, 20}, 30, 10};
  const auto moved = place_labels(std::span(&corner, 1), picture, {}).at(0);
  ASSERT_TRUE(moved.has_value());
  EXPECT_TRUE(inside(*moved, picture));
  const Rect all[] = {picture};
  EXPECT_FALSE(place_labels(std::span(&wish, 1), picture, all).at(0).has_value());
  const LabelWish wide{{50, 40, 90, 80}, 300, 10};
  EXPECT_FALSE(place_labels(std::span(&wide, 1), picture, {}).at(0).has_value());
}

// The text's ink on its label, cut out: how dark every pixel is.
struct Ink {
  std::size_t width = 0, height = 0;
  std::vector<double> dark;
};
Ink ink_in(std::size_t w, std::size_t h, const std::function<double(std::size_t, std::size_t)>& dark) {
  std::size_t x0 = w, y0 = h, x1 = 0, y1 = 0;
  for (std::size_t y = 0; y < h; ++y)
    for (std::size_t x = 0; x < w; ++x)
      if (dark(x, y) > 0.5)
        x0 = std::min(x0, x), y0 = std::min(y0, y), x1 = std::max(x1, x + 1), y1 = std::max(y1, y + 1);
  Ink out{x1 > x0 ? x1 - x0 : 0, y1 > y0 ? y1 - y0 : 0, {}};
  for (std::size_t y = 0; y < out.height; ++y)
    for (std::size_t x = 0; x < out.width; ++x) out.dark.push_back(dark(x0 + x, y0 + y));
  return out;
}
// Correlation of two inks after the second is stretched over the first.
double likeness(const Ink& a, const Ink& b) {
  double ab = 0, aa = 0, bb = 0, ma = 0, mb = 0;
  const auto at = [&](const Ink& i, std::size_t x, std::size_t y) {
    return i.dark[y * i.height / a.height * i.width + x * i.width / a.width];
  };
  const auto n = static_cast<double>(a.dark.size());
  for (std::size_t y = 0; y < a.height; ++y)
    for (std::size_t x = 0; x < a.width; ++x) ma += at(a, x, y) / n, mb += at(b, x, y) / n;
  for (std::size_t y = 0; y < a.height; ++y)
    for (std::size_t x = 0; x < a.width; ++x) {
      const double p = at(a, x, y) - ma, q = at(b, x, y) - mb;
      ab += p * q, aa += p * p, bb += q * q;
    }
  return ab / std::sqrt(aa * bb);
}

// Rendered independently, by FreeType alone: of alike texts the one that was given is what is seen.
TEST(Text, DrawnIsTheTextGiven) {
  if (!scene::TextPainter::has_font("Sans")) GTEST_SKIP() << "no DejaVu fonts";
  const std::vector<std::string> texts = {"bicycle Größe 7",  "bioycle Größe 7", "bicycle Grösse 7",
                                          "BICYCLE GRÖSSE 7", "bicycle Größe 1", "дом и Ελλάς"};
  const scene::TextPainter painter;
  for (const std::string& given : texts) {
    Answer a(LEAT_RESULT_DETECTIONS);
    a.names(0, {given});
    a.detect(200, 500, 1500, 900, 0, 0);
    Placed placed;
    const Picture drawing = draw_answer(Picture({1920, 1600}, kGrey), a.view(), {}, &placed);
    ASSERT_EQ(placed.labels.size(), 1u);
    EXPECT_EQ(placed.labels[0].text, given);
    const Rect& at = placed.labels[0].at;
    const double ground = luminance(colour_of_class(0)), ink = luminance(ink_on(colour_of_class(0)));
    const Ink seen = ink_in(static_cast<std::size_t>(at.width()) - 8, static_cast<std::size_t>(at.height()) - 2,
                            [&](std::size_t x, std::size_t y) {
                              const auto px = static_cast<std::size_t>(at.x0) + 4 + x,
                                         py = static_cast<std::size_t>(at.y0) + 1 + y;
                              return (luminance(colour_of(drawing.at(px, py))) - ground) / (ink - ground);
                            });
    ASSERT_GT(seen.width, 100u);
    std::string best;
    double max = -1;
    for (const std::string& text : texts) {
      const auto line =
          painter.line(text, {.pixels = static_cast<std::uint32_t>(std::lround(placed.font))}, 0, {255, 255, 255});
      const Ink other = ink_in(line.width, line.height, [&](std::size_t x, std::size_t y) {
        return 1 - line.rgb[(y * line.width + x) * 3] / 255.0;
      });
      if (const double like = likeness(seen, other); like > max) max = like, best = text;
    }
    EXPECT_EQ(best, given);
    EXPECT_GT(max, 0.5);  // FreeType's is hinted, and a little narrower or wider for that
  }
}

TEST(Text, OfManyScriptsHasLettersAndBrokenBytesDoNoHarm) {
  Picture picture({300, 60}, kGrey);
  Pen pen(picture);
  for (const char* text : {"Größe", "Ελληνικά", "кириллица", "עברית", "العربية"})
    EXPECT_TRUE(pen.has_letters_for(text)) << text;
  const std::string broken = "a\xff\xfe\xc3(\xe2\x82 end\nline\0x";
  EXPECT_GT(pen.measure(broken, 20).width, 20u);
  pen.text({5, 5}, broken, 20, kWhite);
  EXPECT_LE(pen.measure(std::string(5000, 'w'), 20, 100).width, 101u);
}

TEST(Boxes, HaveTheirClassesColourAndAreHollow) {
  Answer a(LEAT_RESULT_DETECTIONS);
  a.detect(100, 100, 500, 400, 3, 0.5F);
  const Picture drawing = draw_answer(Picture({640, 480}, kGrey), a.view());
  const std::uint32_t own = pixel_of(colour_of_class(3));
  EXPECT_EQ(drawing.at(100, 250), own);
  EXPECT_EQ(drawing.at(499, 250), own);
  EXPECT_EQ(drawing.at(300, 399), own);
  EXPECT_EQ(drawing.at(300, 250), pixel_of(kGrey));
  EXPECT_EQ(drawing.at(90, 250), pixel_of(kGrey));
}

TEST(Masks, AreAVeilInTheObjectsColour) {
  Answer a(LEAT_RESULT_DETECTIONS);
  a.detect(100, 100, 300, 300, 1, 0.5F), a.detect(400, 100, 600, 300, 2, 0.5F);
  a.masks({{100, 100, 300, 300}, {400, 100, 600, 300}});
  const Picture drawing = draw_answer(Picture({640, 480}, kGrey), a.view());
  EXPECT_EQ(drawing.at(200, 200), blend(pixel_of(kGrey), colour_of_class(1), 0.45));
  EXPECT_EQ(drawing.at(500, 200), blend(pixel_of(kGrey), colour_of_class(2), 0.45));
  EXPECT_EQ(drawing.at(112, 288), pixel_of(kGrey));  // in the box, outside of the ellipse
  EXPECT_EQ(drawing.at(350, 200), pixel_of(kGrey));
}

TEST(Maps, OfClassesColourEachCellAndLeaveTheGround) {
  std::vector<std::uint8_t> map(4 * 3);
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = static_cast<std::uint8_t>(i % 3);
  Answer a;
  a.names(0, {"background", "road", "sky"});
  a.part(LEAT_PART_map, "m", {3, 4}, map, LEAT_U8);
  const Picture drawing = draw_answer(Picture({640, 480}, kGrey), a.view());
  for (std::size_t y = 0; y < 2; ++y)  // the last row lies under the legend
    for (std::size_t x = 0; x < 4; ++x) {
      const int id = map[y * 4 + x];
      EXPECT_EQ(drawing.at(160 * x + 80, 160 * y + 80),
                id == 0 ? pixel_of(kGrey) : blend(pixel_of(kGrey), colour_of_class(id), 0.6))
          << x << ", " << y;
    }
}

TEST(Maps, OfValuesRunFromDarkToLightAndOutliersDoNotFlattenThem) {
  std::vector<float> map(100 * 10);
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = static_cast<float>(i % 100);
  map[40] = 1e9F, map[45] = std::numeric_limits<float>::quiet_NaN();
  Answer a;
  a.part(LEAT_PART_map, "depth", {10, 100}, map, LEAT_F32);
  const Picture drawing = draw_answer(Picture({1000, 480}, kGrey), a.view());
  EXPECT_EQ(drawing.at(2, 240), pixel_of(ramp(0)));
  EXPECT_EQ(drawing.at(997, 240), pixel_of(ramp(1)));
  double before = 0;
  for (std::size_t x = 50; x < 1000; x += 100) {
    const double l = luminance(colour_of(drawing.at(x, 240)));
    EXPECT_GT(l, before) << x;
    before = l;
  }
  EXPECT_EQ(drawing.at(455, 24), pixel_of({0, 0, 0}));  // no number
}

TEST(Maps, MattesKeepWhatIsTheirs) {
  std::vector<std::uint8_t> map(64 * 48, 0);
  for (std::size_t y = 0; y < 48; ++y)
    for (std::size_t x = 32; x < 64; ++x) map[y * 64 + x] = 255;
  Answer a;
  a.part(LEAT_PART_map, "alpha", {48, 64}, map, LEAT_U8);
  const Picture drawing = draw_answer(Picture({640, 480}, {200, 30, 30}), a.view());
  EXPECT_EQ(drawing.at(500, 240), pixel_of({200, 30, 30}));
  const Colour ground = colour_of(drawing.at(100, 240));
  EXPECT_EQ(ground.r == ground.g, false);  // a grey with a breath of blue: nothing of the red
  EXPECT_LT(std::abs(ground.r - ground.b), 12);
}

TEST(Points, OfCommonSkeletonsAreJoinedWithinTheirNumber) {
  for (const std::uint32_t n : {2U, 17U, 21U, 33U, 68U, 98U, 133U}) {
    const auto bones = skeleton_of(n);
    ASSERT_FALSE(bones.empty()) << n;
    for (const Bone& b : bones) EXPECT_TRUE(b.from < n && b.to < n && b.from != b.to) << n;
  }
  EXPECT_TRUE(skeleton_of(5).empty());
  Answer a;
  a.part(LEAT_PART_keypoints, "segments", {2, 2},
         std::vector<leat_keypoint>{{100, 200, 1}, {500, 200, 1}, {100, 300, 0}, {500, 300, 0}});
  const Picture drawing = draw_answer(Picture({640, 480}, kGrey), a.view());
  EXPECT_NE(drawing.at(300, 200), pixel_of(kGrey));
  EXPECT_EQ(drawing.at(300, 300), pixel_of(kGrey));  // of score 0: a row that was not filled
}

TEST(SmallPictures, AreEnlargedAndNothingCoversThem) {
  Answer a(LEAT_RESULT_CLASSES);
  a.names(0, {"tabby cat"});
  a.classify(0, 0.7F);
  for (const Size size : {Size{64, 64}, Size{300, 40}, Size{40, 300}, Size{239, 239}}) {
    const Picture drawing = draw_answer(Picture(size, kGrey), a.view());
    const Sheet sheet = sheet_of(size);
    EXPECT_TRUE(sheet.beside);
    EXPECT_EQ(drawing.size.width % 2 + drawing.size.height % 2, 0u);
    EXPECT_LE(drawing.size.width, 1920u);
    for (std::size_t y = 0; y < static_cast<std::size_t>(sheet.picture.y1); ++y)
      for (std::size_t x = 0; x < static_cast<std::size_t>(sheet.picture.x1); ++x)
        ASSERT_NEAR(colour_of(drawing.at(x, y)).g, kGrey.g, 1)
            << x << ", " << y << " of " << size.width << " x " << size.height;
    EXPECT_NE(std::count(drawing.pixels.begin(), drawing.pixels.end(), pixel_of(kWhite)), 0);
  }
  const Picture whole = draw_answer(Picture({1280, 720}, kGrey), a.view());
  EXPECT_EQ(whole.size, (Size{1280, 720}));
  EXPECT_EQ(draw_answer(Picture({1280, 720}, kGrey), a.view(), Size{480, 480}).size, (Size{480, 270}));
}

TEST(Colours, OfClassesAreStableReadAndFarApart) {
  for (int i = 0; i < 21; ++i) {
    EXPECT_EQ(colour_of_class(i), colour_of_class(i + 21));
    EXPECT_GE(contrast(colour_of_class(i), ink_on(colour_of_class(i))), 4.5) << i;  // WCAG's bar for text
    for (int j = 0; j < i; ++j) {
      const Colour a = colour_of_class(i), b = colour_of_class(j);
      EXPECT_GT(std::abs(a.r - b.r) + std::abs(a.g - b.g) + std::abs(a.b - b.b), 40) << i << " and " << j;
    }
  }
  EXPECT_EQ(colour_of_class(-5), colour_of_class(0));
  EXPECT_EQ(colour_of_class(9, "red"), colour_of_class(2, "red"));
}

TEST(Colours, OfValuesHaveEvenStepsOfLightness) {
  const auto lightness = [](double t) { return 116 * std::cbrt(luminance(ramp(t))) - 16; };  // CIE L*
  const double step = (lightness(1) - lightness(0)) / 16;
  EXPECT_GT(step, 4);
  for (int i = 0; i < 16; ++i) EXPECT_NEAR(lightness((i + 1) / 16.0) - lightness(i / 16.0), step, step * 0.35) << i;
  EXPECT_EQ(ramp(std::numeric_limits<double>::quiet_NaN()), ramp(0));
}

// Pictures are vectors of exactly their size: a write outside shows under the address sanitizer.
TEST(Hostile, NumbersAndPartsDrawNothingOutside) {
  const float wild[] = {
      -1e30F, -5, 0, 31.5F, 1e9F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
  Answer a(LEAT_RESULT_DETECTIONS);
  std::vector<leat_keypoint> points;
  std::vector<leat_oriented_box> turned;
  std::vector<Answer::Blob> blobs;
  std::vector<Answer::Line> lines;
  for (const float x : wild)
    for (const float y : wild) {
      a.detect(x, y, y, x, -1, x);
      points.push_back({x, y, 1});
      turned.push_back({.cx = x, .cy = y, .width = y, .height = x, .angle = x, .score = y, .class_id = 1 << 30});
      blobs.push_back({x, y, y, x});
      lines.push_back({x, y, y, x, "\xff\xf0 text", y});
    }
  a.part(LEAT_PART_keypoints, "p", {7, 7}, points);
  a.part(LEAT_PART_keypoints, "none", {7, 0}, points);
  a.part(LEAT_PART_oriented, "o", {49}, turned);
  a.masks(blobs);
  a.text(lines);
  a.part(LEAT_PART_map, "flat", {1, 1}, std::vector<float>{1}, LEAT_F32);
  a.part(LEAT_PART_map, "none", {2, 2}, std::vector<float>(4, wild[6]), LEAT_F32);
  a.part(LEAT_PART_map, "three", {3, 2, 2}, std::vector<std::uint8_t>(12, 7), LEAT_U8, LEAT_ITEM_EACH);
  a.part(LEAT_PART_embedding, "", {0}, std::vector<float>{}, LEAT_F32);
  a.head().detection_count = 4'000'000'000;  // more than there is room for
  for (const Size size : {Size{320, 240}, Size{32, 24}, Size{1, 1}, Size{2000, 3}}) {
    const Picture drawing = draw_answer(Picture(size, kGrey), a.view());
    EXPECT_EQ(drawing.size, sheet_of(size).size);
  }
  EXPECT_NE(draw_answer(Picture({}, kGrey), a.view()).size, Size{});
}

TEST(Pictures, OfEveryFormatAreTheSame) {
  std::vector<std::uint8_t> rgb(16 * 8 * 3), bgr(16 * 8 * 3), i420(16 * 8 * 3 / 2), nv12(16 * 8 * 3 / 2);
  const std::uint8_t y = 91, u = 129, v = 198;  // of (200, 30, 90), by BT.601 of limited range
  for (std::size_t i = 0; i < 16 * 8; ++i) {
    rgb[3 * i] = bgr[3 * i + 2] = 200, rgb[3 * i + 1] = bgr[3 * i + 1] = 30, rgb[3 * i + 2] = bgr[3 * i] = 90;
    i420[i] = nv12[i] = y;
  }
  for (std::size_t i = 0; i < 32; ++i) i420[128 + i] = nv12[128 + 2 * i] = u, i420[160 + i] = nv12[129 + 2 * i] = v;
  const auto picture = [](leat_format format, std::vector<std::uint8_t*> planes, std::vector<std::uint32_t> strides) {
    leat_frame f{};
    f.format = format, f.width = 16, f.height = 8, f.plane_count = static_cast<std::uint32_t>(planes.size());
    std::copy(planes.begin(), planes.end(), f.planes), std::copy(strides.begin(), strides.end(), f.strides);
    return picture_of(f);
  };
  const Picture a = picture(LEAT_FORMAT_rgb24, {rgb.data()}, {48});
  EXPECT_EQ(a.at(3, 3), pixel_of({200, 30, 90}));
  EXPECT_EQ(a.pixels, picture(LEAT_FORMAT_bgr24, {bgr.data()}, {48}).pixels);
  const Picture b = picture(LEAT_FORMAT_i420, {i420.data(), i420.data() + 128, i420.data() + 160}, {16, 8, 8});
  EXPECT_EQ(b.pixels, picture(LEAT_FORMAT_nv12, {nv12.data(), nv12.data() + 128}, {16, 16}).pixels);
  const Colour c = colour_of(b.at(5, 5));
  EXPECT_NEAR(c.r, 200, 8);
  EXPECT_NEAR(c.g, 30, 8);
  EXPECT_NEAR(c.b, 90, 8);
  std::vector<std::uint8_t> grey(16 * 8, 77);
  EXPECT_EQ(picture(LEAT_FORMAT_gray8, {grey.data()}, {16}).at(1, 1), pixel_of({77, 77, 77}));
  EXPECT_FALSE(picture(LEAT_FORMAT_tensors, {}, {}).pixels.empty());
  // There and back again through the planes of a video.
  std::vector<std::uint8_t> planes(16 * 8 * 3 / 2);
  to_i420(a, {planes.data(), planes.data() + 128, planes.data() + 160, 16, 8, 8});
  EXPECT_NEAR(planes[10], y, 3);
  EXPECT_NEAR(planes[130], u, 6);
  EXPECT_NEAR(planes[170], v, 6);
}

}  // namespace
}  // namespace leat::tools::draw::test
