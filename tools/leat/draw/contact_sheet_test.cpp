// A contact sheet: every kind of answer drawn once, on pictures that differ (plain, dark, light, small, large,
// crowded), as docs/pictures/drawings.jpg shows it. Written to build/drawings.
#include <gtest/gtest.h>

#include <filesystem>

#include "tools/leat/draw/kinds/kinds.h"
#include "tools/leat/draw/test_answers.h"
#include "tools/leat/try/picture_file.h"

namespace leat::tools::draw::test {
namespace {

struct Sample {
  std::string title;
  Picture drawing;
};

constexpr std::uint32_t kW = 640, kH = 360;
constexpr Size kTile{480, 270};

Answer boxes() {
  std::vector<scene::Object> objects;
  (void)street(kW, kH, 30, &objects);
  Answer a(LEAT_RESULT_DETECTIONS);
  a.names(1, {"circle", "square", "triangle", "star", "cross"});
  a.names(2, {"red", "green", "blue", "yellow", "magenta", "cyan"});
  for (const auto& o : objects) {
    if (o.ignore) continue;
    auto& d = a.detect(o.x0, o.y0, o.x1, o.y1, 0, 0.98F);
    Answer::label(d, 0, o.shape, 0.9F), Answer::label(d, 1, o.colour, 0.9F);
  }
  return a;
}

Answer crowd(std::uint32_t w, std::uint32_t h) {
  Answer a(LEAT_RESULT_DETECTIONS);
  a.names(0, {"person", "bicycle", "car", "motorcycle", "aeroplane", "bus", "train", "lorry"});
  std::uint32_t state = 9;
  const auto next = [&] { return static_cast<float>((state = state * 1664525 + 1013904223) >> 8) / 16777216.0F; };
  for (int i = 0; i < 60; ++i) {
    const float x = next() * static_cast<float>(w) * 0.9F, y = next() * static_cast<float>(h) * 0.85F;
    const float s = static_cast<float>(h) * (0.05F + 0.12F * next());
    a.detect(x, y, x + s, y + s * 1.4F, static_cast<std::int32_t>(next() * 8), 0.3F + 0.7F * next());
  }
  return a;
}

Answer masks() {
  Answer a(LEAT_RESULT_DETECTIONS);
  a.names(0, {"person", "dog"});
  a.detect(60, 60, 240, 330, 0, 0.93F), a.detect(200, 90, 360, 330, 0, 0.88F), a.detect(400, 180, 590, 320, 1, 0.71F);
  a.masks({{60, 60, 240, 330}, {200, 90, 360, 330}, {400, 180, 590, 320}});
  return a;
}

std::vector<leat_keypoint> man(float x, float y, float s) {
  const float p[17][2] = {{0, 0},        {.05F, -.05F}, {-.05F, -.05F}, {.12F, 0},   {-.12F, 0},   {.25F, .3F},
                          {-.25F, .3F},  {.45F, .6F},   {-.42F, .62F},  {.6F, .35F}, {-.5F, .95F}, {.18F, 1.1F},
                          {-.18F, 1.1F}, {.25F, 1.65F}, {-.2F, 1.65F},  {.3F, 2.2F}, {-.3F, 2.2F}};
  std::vector<leat_keypoint> out;
  for (const auto& q : p) out.push_back({x + q[0] * s, y + q[1] * s, 0.9F});
  return out;
}

Answer pose() {
  Answer a(LEAT_RESULT_DETECTIONS);
  a.names(0, {"person"});
  a.detect(90, 40, 290, 345, 0, 0.95F), a.detect(350, 90, 510, 330, 0, 0.81F);
  auto points = man(190, 75, 115);
  const auto other = man(430, 115, 92);
  points.insert(points.end(), other.begin(), other.end());
  a.part(LEAT_PART_keypoints, "points", {2, 17}, points);
  return a;
}

Answer hand() {
  std::vector<leat_keypoint> points{{320, 320, 1}};
  for (int finger = 0; finger < 5; ++finger)
    for (int joint = 1; joint <= 4; ++joint) {
      const double angle = (-155 + 32 * finger) * std::acos(-1.0) / 180, d = 55 + joint * (finger == 0 ? 32 : 46);
      points.push_back(
          {static_cast<float>(320 + d * std::cos(angle)), static_cast<float>(320 + d * std::sin(angle)), 1});
    }
  Answer a;
  a.part(LEAT_PART_keypoints, "points", {1, 21}, points);
  return a;
}

Answer landmarks() {
  std::vector<leat_keypoint> points;
  const auto arc = [&](int n, double cx, double cy, double rx, double ry, double from, double to) {
    for (int i = 0; i < n; ++i) {
      const double t = (from + (to - from) * i / std::max(1, n - 1)) * std::acos(-1.0) / 180;
      points.push_back({static_cast<float>(cx + rx * std::cos(t)), static_cast<float>(cy + ry * std::sin(t)), 1});
    }
  };
  arc(17, 320, 165, 120, 160, 170, 10);
  arc(5, 265, 115, 38, 16, 200, 340), arc(5, 375, 115, 38, 16, 200, 340);
  for (int i = 0; i < 4; ++i) points.push_back({320, 135.0F + 20.0F * static_cast<float>(i), 1});
  arc(5, 320, 205, 28, 10, 170, 10);
  arc(6, 270, 140, 24, 11, 180, 480), arc(6, 370, 140, 24, 11, 180, 480);
  arc(12, 320, 260, 52, 24, 180, 510), arc(8, 320, 260, 34, 9, 180, 495);
  Answer a;
  a.part(LEAT_PART_keypoints, "points", {1, 68}, points);
  return a;
}

Answer segments() {
  std::vector<leat_keypoint> points;
  for (int i = 0; i < 7; ++i) {
    const float x = 60 + 85.0F * static_cast<float>(i);
    points.insert(points.end(), {{x, 60, .9F}, {x + 25, 300, .9F}});
  }
  points.insert(points.end(), {{50, 80, .9F}, {600, 55, .9F}, {60, 310, .9F}, {610, 280, .9F}});
  Answer a;
  a.part(LEAT_PART_keypoints, "segments", {static_cast<std::uint32_t>(points.size() / 2), 2}, points);
  return a;
}

Answer turned() {
  Answer a(LEAT_RESULT_DETECTIONS);
  a.names(0, {"ship", "harbour"});
  std::vector<leat_oriented_box> rows;
  const float pi = std::acos(-1.0F);
  for (int i = 0; i < 5; ++i)
    rows.push_back({.cx = 100 + 110.0F * static_cast<float>(i),
                    .cy = 160 + 30.0F * static_cast<float>(i % 3),
                    .width = 120,
                    .height = 40,
                    .angle = pi / 7 * static_cast<float>(i),
                    .score = 0.9F,
                    .class_id = i == 2});
  for (const auto& r : rows) a.detect(r.cx - 60, r.cy - 60, r.cx + 60, r.cy + 60, r.class_id, r.score);
  a.part(LEAT_PART_oriented, "angle", {5}, rows);
  return a;
}

// What stands on the page in each box, so that one sees what was read.
Picture page(const Answer& read) {
  Picture out({kW, kH}, {250, 250, 246});
  Pen pen(out);
  for (const leat_part_view& part : parts_of(read.view()))
    for (std::uint32_t i = 0; part.kind == LEAT_PART_text && i < part.count; ++i) {
      leat_text line;
      const char* const text = leat_text_at(&part, i, &line);
      pen.text({static_cast<double>(line.quad[0]) + 6, static_cast<double>(line.quad[1]) + 5},
               std::string_view(text, line.length), 19, kInk);
    }
  return out;
}

Answer reading() {
  Answer a(LEAT_RESULT_DETECTIONS);
  a.names(1, {"0 degrees", "180 degrees"});
  std::vector<Answer::Line> lines = {{40, 60, 300, 95, "Mixed Case, lower and UPPER"},
                                     {40, 130, 330, 165, "Größe 42 für 3,50 €"},
                                     {350, 60, 600, 95, "Съешь ещё этих булок"},
                                     {350, 130, 600, 165, "שלום עולם"},
                                     {40, 210, 300, 245, "مرحبا بالعالم"},
                                     {350, 210, 600, 245, "Ξεσκεπάζω"}};
  Picture none({1, 1});
  const std::string signs = "日本語の看板";
  if (Pen(none).has_letters_for(signs)) lines.push_back({40, 290, 300, 325, signs});
  for (const auto& l : lines) Answer::label(a.detect(l.x0, l.y0, l.x1, l.y1, 0, 0.9F), 0, 0, 0.99F);
  a.text(lines, LEAT_ITEM_EACH);
  return a;
}

Answer classes() {
  Answer a(LEAT_RESULT_CLASSES);
  a.names(0, {"tabby cat", "tiger cat", "Egyptian cat", "lynx", "plastic bag"});
  const float scores[] = {0.71F, 0.18F, 0.06F, 0.02F, 0.01F};
  for (int i = 0; i < 5; ++i) a.classify(i, scores[i]);
  return a;
}

Answer several_heads() {
  Answer a;
  a.names(0, {"driver", "cyclist"}), a.names(1, {"no helmet", "helmet"}), a.names(2, {"moving", "standing"});
  a.part(LEAT_PART_classes, "classes", {3, 1}, std::vector<leat_class>{{1, 0.64F}, {1, 0.97F}, {0, 0.55F}});
  return a;
}

Answer segmentation() {
  Answer a;
  a.names(0, {"road", "sidewalk", "building", "vegetation", "sky", "person", "car"});
  std::vector<std::uint8_t> map(std::size_t{160} * 90);
  for (std::uint32_t y = 0; y < 90; ++y)
    for (std::uint32_t x = 0; x < 160; ++x) {
      const bool building = (x < 60 && y > 20) || (x > 110 && y > 30);
      std::uint8_t id = y > 62 ? 0 : y > 55 ? 1 : building ? 2 : y > 42 ? 3 : 4;
      if (std::hypot(x - 80.0, (y - 62.0) * 1.6) < 15) id = 6;
      if (x > 30 && x < 36 && y > 46 && y < 66) id = 5;
      map[y * 160 + x] = id;
    }
  a.part(LEAT_PART_map, "classes", {90, 160}, map, LEAT_U8);
  return a;
}

// How far a place is inside of the portrait below, in heights of the picture.
double inside_portrait(double x, double y) {
  return std::max(0.23 - std::hypot(x, (y - 0.36) * 0.85), 0.38 - std::hypot(x, (y - 0.95) * 0.8));
}

Answer matte() {
  Answer a;
  std::vector<std::uint8_t> map(std::size_t{160} * 90);
  for (std::uint32_t y = 0; y < 90; ++y)
    for (std::uint32_t x = 0; x < 160; ++x)
      map[y * 160 + x] = static_cast<std::uint8_t>(
          std::clamp(inside_portrait((x - 79.5) / 90, (y + 0.5) / 90) * 9000 + 128, 0.0, 255.0));
  a.part(LEAT_PART_map, "alpha", {90, 160}, map, LEAT_U8);
  return a;
}

Answer depth() {
  Answer a;
  std::vector<float> map(std::size_t{160} * 90);
  for (std::uint32_t y = 0; y < 90; ++y)
    for (std::uint32_t x = 0; x < 160; ++x) {
      double v = y > 40 ? (y - 40) / 8.0 : 0.2;
      if (std::hypot(x - 110.0, y - 45.0) < 20) v = 5;
      if (std::hypot(x - 45.0, (y - 55.0) * 0.8) < 14) v = 3;
      map[y * 160 + x] = static_cast<float>(v);
    }
  map[7] = 900, map[8] = NAN;
  a.part(LEAT_PART_map, "depth", {90, 160}, map, LEAT_F32);
  return a;
}

Answer vector_of_numbers() {
  Answer a;
  std::vector<float> v(512);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::sin(static_cast<float>(i * i % 97));
  a.part(LEAT_PART_embedding, "embedding", {512}, v, LEAT_F32);
  a.part(LEAT_PART_tensor, "output0", {84, 100}, std::vector<float>(8400), LEAT_F32);
  return a;
}

// The middle of a portrait: plain, with a round face.
Picture portrait(std::uint32_t w, std::uint32_t h, Colour ground, Colour skin) {
  Picture p({w, h}, ground);
  for (std::uint32_t y = 0; y < h; ++y)
    for (std::uint32_t x = 0; x < w; ++x) {
      const double fy = static_cast<double>(y) / h;
      if (inside_portrait((x - w / 2.0) / h, fy) > 0) p.at(x, y) = blend(pixel_of(skin), {0, 0, 0}, 0.25 * fy);
    }
  return p;
}

std::vector<Sample> samples() {
  const Picture road = street(kW, kH, 30, nullptr);
  const Picture dark({kW, kH}, {14, 16, 20}), light({kW, kH}, {244, 244, 240});
  const Picture face = portrait(kW, kH, {120, 136, 150}, {214, 170, 140});
  const Picture small = resized(road, {64, 64}), huge = resized(road, {3840, 2160});
  std::vector<Sample> out;
  const auto add = [&](const char* title, const Picture& on, const Answer& answer) {
    const bool as_it_is = on.size != Size{kW, kH};
    out.push_back({title, draw_answer(on, answer.view(), as_it_is ? std::nullopt : std::optional(kTile))});
  };
  add("detections and their labels", road, boxes());
  add("60 detections", road, crowd(kW, kH));
  add("turned boxes", light, turned());
  add("masks", road, masks());
  add("poses", dark, pose());
  add("a hand", face, hand());
  add("landmarks of a face", face, landmarks());
  add("line segments", light, segments());
  add("lines of text, and their direction", page(reading()), reading());
  add("classes", face, classes());
  add("several heads in one answer", face, several_heads());
  add("a map of classes", road, segmentation());
  add("a matte", face, matte());
  add("depth", road, depth());
  add("embedding and tensor", dark, vector_of_numbers());
  {
    Answer a(LEAT_RESULT_DETECTIONS);
    a.names(0, {"traffic light"});
    a.detect(8, 6, 30, 60, 0, 0.87F);
    add("a small picture, 64 x 64", small, a);
  }
  add("classes of a small picture", small, classes());
  {
    AnswerView dropped;
    dropped.outcome = Outcome::dropped, dropped.reason = Reason::unreachable, dropped.milliseconds = 3;
    out.push_back({"no answer", draw_answer(road, dropped, kTile)});
  }
  add("nothing found", light, Answer(LEAT_RESULT_DETECTIONS));
  add("60 detections, 3840 x 2160", huge, crowd(3840, 2160));
  {
    const Answer a = boxes();
    AnswerView late = a.view();
    late.outcome = Outcome::late, late.title = "3 gate.mp4";
    out.push_back({"a tile of a grid, late", draw_answer(road, late, kTile)});
  }
  return out;
}

Picture contact_sheet(const std::vector<Sample>& all) {
  constexpr std::uint32_t kColumns = 3, kTileW = kTile.width, kTileH = kTile.height, kTitle = 26, kGap = 10;
  const auto rows = static_cast<std::uint32_t>((all.size() + kColumns - 1) / kColumns);
  Picture out({kColumns * (kTileW + kGap) + kGap, rows * (kTileH + kTitle + kGap) + kGap}, {250, 250, 248});
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const std::uint32_t x = kGap + i % kColumns * (kTileW + kGap), y = kGap + i / kColumns * (kTileH + kTitle + kGap);
    paste(out, resized(all[i].drawing, tile_of(all[i].drawing.size, {kTileW, kTileH}).size), x, y + kTitle);
  }
  Pen pen(out);
  for (std::uint32_t i = 0; i < all.size(); ++i)
    pen.text({static_cast<double>(kGap + i % kColumns * (kTileW + kGap)),
              static_cast<double>(kGap + i / kColumns * (kTileH + kTitle + kGap) + 4)},
             all[i].title, 13, kInk, kTileW);
  return out;
}

TEST(ContactSheet, OfEveryKindOfAnswer) {
  const auto all = samples();
  const std::filesystem::path folder = std::filesystem::path(LEAT_BUILD_DIR) / "drawings";
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < all.size(); ++i)
    ASSERT_TRUE(write_picture((folder / (std::to_string(i) + ".png")).string(), all[i].drawing).ok());
  const Picture sheet = contact_sheet(all);
  const std::string path = (folder / "contact_sheet.png").string();
  ASSERT_TRUE(write_picture(path, sheet).ok());
  ASSERT_TRUE(write_picture((folder / "contact_sheet.jpg").string(), sheet).ok());  // docs/pictures/drawings.jpg
  EXPECT_GT(std::filesystem::file_size(path), 20'000u);
  // The same again: nothing of it depends on time, addresses or order of threads.
  const auto again = samples();
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i].drawing.pixels, again[i].drawing.pixels) << all[i].title;
}

}  // namespace
}  // namespace leat::tools::draw::test
