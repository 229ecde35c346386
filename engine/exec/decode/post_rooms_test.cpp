// Every answer of post/ against numbers worked out here from the layout's published description, and layouts that
// contradict the shapes.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "engine/exec/test/family_outputs.h"

namespace leat::exec {
namespace {

using namespace test;

void expect_box(const Outcome& o, std::uint32_t i, float cx, float cy, float w, float h, float score, int class_id) {
  ASSERT_TRUE(o.ok) << o.error;
  ASSERT_LT(i, o.head().detection_count) << o.text();
  const leat_detection& d = o.head().detections[i];
  EXPECT_NEAR(d.x0, kOffsetX + kScale * (cx - w / 2), 1e-4F);
  EXPECT_NEAR(d.y0, kOffsetY + kScale * (cy - h / 2), 1e-4F);
  EXPECT_NEAR(d.x1, kOffsetX + kScale * (cx + w / 2), 1e-4F);
  EXPECT_NEAR(d.y1, kOffsetY + kScale * (cy + h / 2), 1e-4F);
  EXPECT_NEAR(d.score, score, 1e-4F);
  EXPECT_EQ(d.class_id, class_id);
}

TEST(PostRooms, EveryFamilyOfDetectorsGivesItsBox) {
  for (const Family& f : families()) {
    SCOPED_TRACE(f.name);
    const Outcome o = answer(f.words, f.outputs);
    ASSERT_TRUE(o.ok) << o.error;
    EXPECT_EQ(o.head().detection_count, 1u) << o.text();
    const bool face = f.words.find("levels") != std::string::npos;
    expect_box(o, 0, 30, 26, 20, 12, 0.9F, face ? 0 : 1);
    if (!face) continue;
    const leat_part_view points = o.part(LEAT_PART_keypoints);
    ASSERT_EQ(points.dims[0], 1u);
    ASSERT_EQ(points.dims[1], 5u);
    leat_keypoint first;
    std::memcpy(&first, points.data, sizeof first);
    EXPECT_NEAR(first.x, kOffsetX + kScale * 24, 1e-4F);  // SCRFD: 32 - .5 * 16 - ... and YuNet: (1 + .5) * 16
    EXPECT_NEAR(first.y, kOffsetY + kScale * 20, 1e-4F);
  }
}

// None is misread: under every other family's words a family is refused, or what comes out is visibly not its box.
TEST(PostRooms, NoFamilyPassesForAnother) {
  const auto all = families();
  std::string table;
  for (const Family& f : all) {
    const std::string right = answer(f.words, f.outputs).text();
    int refused = 0, differ = 0, same = 0;
    for (const Family& other : all) {
      if (other.words == f.words) continue;
      const std::string read = answer(other.words, f.outputs).text();
      // Words that mean the same for this layout (an activation that changes nothing, a column order of [k, 4]) are
      // one family's own.
      if (read == "refused")
        ++refused;
      else if (read != right)
        ++differ;
      else
        ++same;
    }
    char line[160];
    std::snprintf(line, sizeof line, "%-20s %-48s refused by %2d, differs by %2d, same by %d\n", f.name,
                  f.words.c_str(), refused, differ, same);
    table += line;
    const bool split = f.words.find("split") != std::string::npos;
    EXPECT_LE(same, split || f.words.find("score=") != std::string::npos || f.name == std::string("SCRFD") ? 1 : 0)
        << f.name;
  }
  std::printf("%s", table.c_str());
}

TEST(PostRooms, PoseAndTurnedBoxes) {
  std::vector<float> pose((4 + 1 + 6) * kCells);
  const float column[] = {30, 26, 20, 12, 0.9F, 25, 24, 0.7F, 35, 28, 0.6F};
  for (std::size_t r = 0; r < 11; ++r) pose[r * kCells + 7] = column[r];
  const Outcome o = answer("boxes layout=yolo8 extra=points points=2", {{"output0", {1, 11, kCells}, pose}});
  expect_box(o, 0, 30, 26, 20, 12, 0.9F, 0);
  leat_keypoint q[2];
  ASSERT_EQ(o.part(LEAT_PART_keypoints).count, 2u);
  std::memcpy(q, o.part(LEAT_PART_keypoints).data, sizeof q);
  EXPECT_NEAR(q[1].x, kOffsetX + kScale * 35, 1e-4F);
  EXPECT_NEAR(q[1].y, kOffsetY + kScale * 28, 1e-4F);
  EXPECT_NEAR(q[1].score, 0.6F, 1e-6F);

  std::vector<float> obb(7 * kCells);  // 4 + 2 classes + angle
  const auto put = [&](std::size_t i, float cx, float score, float angle) {
    obb[i] = cx, obb[kCells + i] = 26, obb[2 * kCells + i] = 20, obb[3 * kCells + i] = 8, obb[5 * kCells + i] = score;
    obb[6 * kCells + i] = angle;
  };
  put(3, 30, 0.9F, 0.5F), put(4, 30.5F, 0.8F, 0.5F);  // the same again: suppressed
  put(5, 30, 0.7F, 0.5F + 1.5707963F);                // across it: stays
  const Outcome turned = answer("boxes layout=yolo8 extra=angle", {{"output0", {1, 7, kCells}, obb}});
  ASSERT_TRUE(turned.ok) << turned.error;
  ASSERT_EQ(turned.head().detection_count, 2u);
  leat_oriented_box box;
  ASSERT_EQ(turned.part(LEAT_PART_oriented).count, 2u);
  std::memcpy(&box, turned.part(LEAT_PART_oriented).data, sizeof box);
  EXPECT_NEAR(box.cx, kOffsetX + kScale * 30, 1e-4F);
  EXPECT_NEAR(box.width, 40, 1e-4F);
  EXPECT_NEAR(box.angle, 0.5F, 1e-6F);
  const leat_detection& around = turned.head().detections[0];
  EXPECT_NEAR(around.x1 - around.x0, kScale * (20 * std::cos(0.5F) + 8 * std::sin(0.5F)), 1e-3F);
}

TEST(PostRooms, PointsMapsTextAndVectors) {
  std::vector<float> heat(2 * 16 * 16);
  heat[5 * 16 + 3] = 0.8F, heat[5 * 16 + 4] = 0.2F;  // right of it is larger than left: a quarter to the right
  heat[256 + 9 * 16 + 2] = 0.5F;
  const auto points_of = [](const Outcome& o) {
    std::vector<leat_keypoint> q(o.part(LEAT_PART_keypoints).count);
    std::memcpy(q.data(), o.part(LEAT_PART_keypoints).data, q.size() * sizeof(leat_keypoint));
    return q;
  };
  auto q = points_of(answer("points heatmap", {{"h", {1, 2, 16, 16}, heat}}));
  ASSERT_EQ(q.size(), 2u);
  EXPECT_NEAR(q[0].x, kOffsetX + kScale * 3.25F * 4, 1e-4F);
  EXPECT_NEAR(q[0].y, kOffsetY + kScale * 5 * 4, 1e-4F);
  EXPECT_NEAR(q[1].score, 0.5F, 1e-6F);
  std::vector<float> sx(128), sy(128);
  sx[61] = 0.8F, sy[40] = 0.6F;
  q = points_of(answer("points simcc", {{"simcc_x", {1, 1, 128}, sx}, {"simcc_y", {1, 1, 128}, sy}}));
  ASSERT_EQ(q.size(), 1u);
  EXPECT_NEAR(q[0].x, kOffsetX + kScale * 30.5F, 1e-4F);
  EXPECT_NEAR(q[0].y, kOffsetY + kScale * 20, 1e-4F);
  EXPECT_NEAR(q[0].score, 0.7F, 1e-6F);
  q = points_of(answer("points yxs", {{"o", {1, 1, 2, 3}, {0.25F, 0.5F, 0.9F, 0, 1, 0.1F}}}));
  ASSERT_EQ(q.size(), 2u);
  EXPECT_NEAR(q[0].x, kOffsetX + kScale * 32, 1e-4F);
  EXPECT_NEAR(q[0].y, kOffsetY + kScale * 16, 1e-4F);

  // The frame covers x 4..64 (cut at 64) and y 0..62 of the picture: columns 1..16, rows 0..16 of 16 cells of 4.
  std::vector<float> classes(3 * 16 * 16);
  for (std::size_t i = 0; i < 256; ++i) classes[(i % 3) * 256 + i] = 1;
  const Outcome map = answer("map argmax", {{"logits", {1, 3, 16, 16}, classes}});
  const leat_part_view cells = map.part(LEAT_PART_map);
  ASSERT_EQ(cells.dims[0], 16u);
  ASSERT_EQ(cells.dims[1], 15u);
  for (std::size_t y = 0; y < 16; ++y)
    for (std::size_t x = 0; x < 15; ++x)
      ASSERT_EQ(static_cast<const std::uint8_t*>(cells.data)[y * 15 + x], (y * 16 + x + 1) % 3);
  std::vector<float> depth(256);
  for (std::size_t i = 0; i < 256; ++i) depth[i] = static_cast<float>(i) * 0.5F - 3;
  const Outcome matte = answer("map matte", {{"d", {1, 1, 16, 16}, depth}});
  EXPECT_EQ(static_cast<const std::uint8_t*>(matte.part(LEAT_PART_map).data)[14], 15);  // cell 15: 255 * 7.5 / 127.5
  const Outcome value = answer("map value", {{"d", {1, 16, 16}, depth}});
  float first = 0;
  std::memcpy(&first, value.part(LEAT_PART_map).data, sizeof first);
  EXPECT_EQ(first, depth[1]);

  char keys[] = "/tmp/leat_keys_XXXXXX";
  ASSERT_GE(::mkstemp(keys), 0);
  std::ofstream(keys) << "a\nb\n\xc3\xa9\n";
  // Steps: a a blank a e-acute space, of classes blank a b e-acute space.
  std::vector<float> steps(6 * 5, 0.01F);
  const std::size_t best[] = {1, 1, 0, 1, 3, 4};
  for (std::size_t s = 0; s < 6; ++s) steps[5 * s + best[s]] = 0.9F - 0.1F * static_cast<float>(s);
  const Outcome text = answer(std::string("text ctc keys=") + keys, {{"softmax", {1, 6, 5}, steps}});
  ASSERT_TRUE(text.ok) << text.error;
  const leat_part_view lines = text.part(LEAT_PART_text);
  leat_text line;
  const char* const bytes = leat_text_at(&lines, 0, &line);
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(std::string(bytes, line.length), "aa\xc3\xa9 ");
  EXPECT_NEAR(line.score, (0.9F + 0.6F + 0.5F + 0.4F) / 4, 1e-6F);
  EXPECT_FALSE(answer(std::string("text ctc keys=") + keys, {{"softmax", {1, 6, 9}, std::vector<float>(54)}}).ok);
  (void)::remove(keys);

  const Outcome vector = answer("embedding unit", {{"v", {1, 2}, {3, 4}}});
  float v[2];
  std::memcpy(v, vector.part(LEAT_PART_embedding).data, sizeof v);
  EXPECT_NEAR(v[0], 0.6F, 1e-6F);
  EXPECT_NEAR(v[1], 0.8F, 1e-6F);
}

TEST(PostRooms, WordsThatAreNotKnownAreAnsweredWithThoseThatAre) {
  for (const char* line : {"boxes layout=yolo9000", "boxes layout=query act=tanh", "points", "map", "text ctc",
                           "boxes columns=x0,y0", "boxes layout=yolo8 extra=wings"})
    EXPECT_FALSE(answer(line, yolo8()).ok) << line;
}

}  // namespace
}  // namespace leat::exec
