#include "tools/leat/feed/task_part.h"

#include <gtest/gtest.h>

#include "tools/leat/feed/follower.h"

namespace leat::tools {
namespace {

TEST(TaskPart, SaysWhatItIsOrWhatIsWrong) {
  const auto part = parse_task("640x360+320+20:2.5");
  ASSERT_TRUE(part.ok()) << part.error();
  EXPECT_EQ(part->name, "640x360+320+20");
  EXPECT_EQ(part->width, 640u);
  EXPECT_EQ(part->height, 360u);
  EXPECT_EQ(part->x, 320u);
  EXPECT_EQ(part->y, 20u);
  EXPECT_DOUBLE_EQ(part->weight, 2.5);
  EXPECT_TRUE(part->within({.width = 960, .height = 380}));
  EXPECT_FALSE(part->within({.width = 958, .height = 380}));
  const auto all = parse_task("all");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->of({.width = 64, .height = 48}).width, 64u);
  EXPECT_DOUBLE_EQ(all->weight, 1);
  const auto faces = parse_task("64x36+0+2@faces:3");
  ASSERT_TRUE(faces.ok()) << faces.error();
  EXPECT_EQ(faces->name, "64x36+0+2@faces");
  EXPECT_EQ(faces->application, "faces");
  EXPECT_EQ(faces->y, 2u);
  EXPECT_DOUBLE_EQ(faces->weight, 3);
  EXPECT_EQ(part->application, "");
  for (const char* text : {"", "all@", "all@:2", "640x360", "640x360+0", "641x360+0+0", "640x360+0+3", "0x360+0+0",
                           "640x360+0+0x", "640x360+0+0:", "all:0", "all:-1", "all:nan", "all:2x", "all:1e9", "part"})
    EXPECT_FALSE(parse_task(text).ok()) << text;
}

TEST(TaskPart, PixelsAreThoseOfItsPlaceInEveryPlane) {
  for (const leat_format format : {LEAT_FORMAT_nv12, LEAT_FORMAT_i420, LEAT_FORMAT_rgb24, LEAT_FORMAT_gray8}) {
    const PictureFormat shape{.format = format, .width = 32, .height = 16};
    TaskPart part{.x = 10, .y = 6, .width = 12, .height = 8};
    OwnPicture whole(shape), cut(part.of(shape));
    for (std::uint32_t p = 0; p < whole.frame.plane_count; ++p)
      for (std::uint32_t y = 0; y < whole.frame.rows[p]; ++y)
        for (std::uint32_t x = 0; x < whole.frame.row_bytes[p]; ++x)
          whole.frame.planes[p][y * whole.frame.strides[p] + x] = static_cast<std::uint8_t>(64 * p + 7 * y + x);
    copy_part(whole.frame, part, cut.frame);
    for (std::uint32_t p = 0; p < cut.frame.plane_count; ++p) {
      const std::uint32_t right = 10 * whole.frame.row_bytes[p] / 32, down = 6 * whole.frame.rows[p] / 16;
      for (std::uint32_t y = 0; y < cut.frame.rows[p]; ++y)
        for (std::uint32_t x = 0; x < cut.frame.row_bytes[p]; ++x)
          ASSERT_EQ(cut.frame.planes[p][y * cut.frame.strides[p] + x],
                    static_cast<std::uint8_t>(64 * p + 7 * (down + y) + right + x));
    }
  }
}

TEST(TaskPart, TruthIsWhatIsInIt) {
  const TaskPart part{.x = 100, .y = 50, .width = 200, .height = 100};
  Truth whole{.width = 400, .height = 200};
  whole.pictures.push_back({{.x0 = 120, .y0 = 60, .x1 = 140, .y1 = 80},   // inside
                            {.x0 = 0, .y0 = 60, .x1 = 20, .y1 = 80},      // outside
                            {.x0 = 94, .y0 = 60, .x1 = 114, .y1 = 80},    // more than half inside
                            {.x0 = 86, .y0 = 60, .x1 = 106, .y1 = 80}});  // less
  const Truth cut = truth_of(whole, part);
  ASSERT_EQ(cut.pictures.at(0).size(), 3u);
  EXPECT_EQ(cut.width, 200u);
  EXPECT_FLOAT_EQ(cut.pictures[0][0].x0, 20);
  EXPECT_FLOAT_EQ(cut.pictures[0][0].y1, 30);
  EXPECT_FLOAT_EQ(cut.pictures[0][1].x0, 0);
  EXPECT_FALSE(cut.pictures[0][1].ignore);
  EXPECT_TRUE(cut.pictures[0][2].ignore);
}

}  // namespace
}  // namespace leat::tools
