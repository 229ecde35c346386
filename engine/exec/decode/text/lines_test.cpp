// Text regions against rectangles drawn by the test: positions by hand where they are upright, to a cell where they are
// turned.
#include "engine/exec/decode/text/lines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "engine/exec/decode/postprocess.h"
#include "engine/exec/picture/preprocess.h"
#include "leat/result_parts.h"

namespace leat::exec {
namespace {

struct Map {
  std::int64_t width, height;
  std::vector<float> cells;
  Map(std::int64_t w, std::int64_t h) : width(w), height(h), cells(static_cast<std::size_t>(w * h)) {}
  void turned(double cx, double cy, double w, double h, double angle, float p) {
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) {
        const double dx = static_cast<double>(x) + .5 - cx, dy = static_cast<double>(y) + .5 - cy;
        if (std::abs(dx * std::cos(angle) + dy * std::sin(angle)) <= w / 2 &&
            std::abs(dy * std::cos(angle) - dx * std::sin(angle)) <= h / 2)
          cells[static_cast<std::size_t>(y * width + x)] = p;
      }
  }
};

struct Outcome {
  std::vector<std::byte> slot;
  const leat_result& head() const { return *reinterpret_cast<const leat_result*>(slot.data()); }
  std::vector<leat_oriented_box> boxes() const {
    leat_part_view view;
    if (!leat_find_part(&head(), slot.size(), LEAT_PART_oriented, "lines", &view)) return {};
    const auto* first = static_cast<const leat_oriented_box*>(view.data);
    return {first, first + view.count};
  }
};

Outcome find(const Map& map, const std::string& line = "lines", Placement placement = {}) {
  Outcome out;
  leat_tensor t{};
  t.data = const_cast<float*>(map.cells.data());
  t.bytes = map.cells.size() * sizeof(float);
  t.rank = 4;
  const std::int64_t shape[] = {1, 1, map.height, map.width};
  std::copy_n(shape, 4, t.shape);
  const auto spec = parse_postprocess(line);
  EXPECT_TRUE(spec.ok());
  auto opened = Postprocessor::open(*spec, {&t, 1}, {}, 0, static_cast<std::uint32_t>(map.width),
                                    static_cast<std::uint32_t>(map.height));
  EXPECT_TRUE(opened.ok()) << opened.error();
  const PartSpec need = opened->parts().at(0);
  leat_part part = entry_of(need, 0, false, 1);
  part.offset = LEAT_PAYLOAD_OFFSET;
  out.slot.resize(LEAT_PAYLOAD_OFFSET + round_part(need.bytes));
  auto* const head = reinterpret_cast<leat_result*>(out.slot.data());
  head->part_count = 1;
  std::memcpy(out.slot.data() + LEAT_PARTS_OFFSET, &part, sizeof part);
  FrameView frame;
  frame.width = frame.height = 400;
  (void)opened->run({&t, 1}, 0, placement, frame, -1, head, parts_of(head, 0));
  return out;
}

TEST(Lines, UprightRegionIsGrownByItsAreaOverItsPerimeter) {
  Map map(96, 64);
  map.turned(30, 25, 40, 10, 0, 0.8F);  // cells 10..49 x 20..29: centres 39 x 9 apart
  const Outcome found = find(map);
  ASSERT_EQ(found.boxes().size(), 1u);
  const leat_oriented_box b = found.boxes()[0];
  const float d = 39 * 9 * 1.5F / (2 * (39 + 9));  // 5.484375
  EXPECT_NEAR(b.cx, 30, 1e-4);
  EXPECT_NEAR(b.cy, 25, 1e-4);
  EXPECT_NEAR(b.width, 39 + 2 * d, 1e-4);
  EXPECT_NEAR(b.height, 9 + 2 * d, 1e-4);
  EXPECT_NEAR(b.angle, 0, 1e-5);
  EXPECT_NEAR(b.score, 0.8F, 1e-5);
  ASSERT_EQ(found.head().detection_count, 1u);
  EXPECT_NEAR(found.head().detections[0].x0, 30 - (39 + 2 * d) / 2, 1e-4);
  EXPECT_NEAR(found.head().detections[0].y1, 25 + (9 + 2 * d) / 2, 1e-4);
  EXPECT_EQ(find(map, "lines score=0.81").boxes().size(), 0u);
  EXPECT_EQ(find(map, "lines threshold=0.8").boxes().size(), 0u);  // above it, not at it
  EXPECT_NEAR(find(map, "lines grow=0").boxes().at(0).width, 39, 1e-4);
}

TEST(Lines, TurnedRegionsAreFoundToACell) {
  for (const double degrees : {17.0, -17.0, 40.0, 70.0, -60.0}) {
    const double angle = degrees * std::acos(-1.0) / 180;
    Map map(200, 200);
    map.turned(100, 90, 120, 24, angle, 0.9F);
    const Outcome found = find(map, "lines grow=0");
    ASSERT_EQ(found.boxes().size(), 1u) << degrees;
    const leat_oriented_box b = found.boxes()[0];
    EXPECT_NEAR(b.cx, 100, 0.5) << degrees;
    EXPECT_NEAR(b.cy, 90, 0.5) << degrees;
    EXPECT_NEAR(b.width, 119.5, 1.5) << degrees;
    EXPECT_NEAR(b.height, 23.5, 1.5) << degrees;
    EXPECT_NEAR(b.angle, angle, 0.015) << degrees;
    EXPECT_NEAR(b.score, 0.9F, 0.03) << degrees;
  }
}

TEST(Lines, CornersThatTouchJoinAndSmallOnesGo) {
  Map map(96, 64);
  map.turned(20, 20, 20, 8, 0, 0.9F);   // cells 10..29 x 16..23
  map.turned(40, 28, 20, 8, 0, 0.9F);   // cells 30..49 x 24..31: touches at a corner
  map.turned(70, 50, 2, 20, 0, 0.9F);   // two cells wide
  map.turned(80, 20, 10, 10, 0, 0.7F);  // a worse one
  const Outcome found = find(map, "lines score=0.4 grow=0");
  ASSERT_EQ(found.boxes().size(), 2u);
  EXPECT_NEAR(found.boxes()[0].score, 0.7F, 1e-5);  // the joined one's rectangle holds background
  EXPECT_GT(found.boxes()[1].width, 38);
}

TEST(Lines, AStretchedPictureGivesRectanglesOfTheFrame) {
  // The frame's 45-degree line of 100 x 20 seen at half its height.
  Map map(200, 100);
  const double angle = std::acos(-1.0) / 4;
  for (std::int64_t y = 0; y < 100; ++y)
    for (std::int64_t x = 0; x < 200; ++x) {
      const double dx = static_cast<double>(x) + .5 - 100, dy = 2 * (static_cast<double>(y) + .5) - 100;
      if (std::abs(dx * std::cos(angle) + dy * std::sin(angle)) <= 50 &&
          std::abs(dy * std::cos(angle) - dx * std::sin(angle)) <= 10)
        map.cells[static_cast<std::size_t>(y * 200 + x)] = 1;
    }
  Placement placement;
  placement.scale_y = 2;
  const auto boxes = find(map, "lines grow=0", placement).boxes();
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_NEAR(boxes[0].cx, 100, 1);
  EXPECT_NEAR(boxes[0].cy, 100, 1);
  EXPECT_NEAR(boxes[0].width, 99, 2);
  EXPECT_NEAR(boxes[0].height, 19, 2);
  EXPECT_NEAR(boxes[0].angle, angle, 0.03);
}

TEST(Lines, HostileMapsCostNoMoreThanTheirCells) {
  Map comb(256, 256);  // every second cell of a chessboard: one region of 32768 cells
  for (std::size_t i = 0; i < comb.cells.size(); ++i) comb.cells[i] = (i / 256 + i) % 2 == 0 ? 1.0F : 0.0F;
  EXPECT_EQ(find(comb, "lines score=0.4").boxes().size(), 1u);
  Map nothing(64, 64);
  std::fill(nothing.cells.begin(), nothing.cells.end(), NAN);
  EXPECT_EQ(find(nothing).boxes().size(), 0u);
  Map all(64, 64);
  std::fill(all.cells.begin(), all.cells.end(), INFINITY);
  EXPECT_EQ(find(all).boxes().size(), 0u);
  Map crowd(400, 400);  // more regions than there is room for
  for (std::size_t y = 0; y < 400; ++y)
    for (std::size_t x = 0; x < 400; ++x)
      if (x % 10 < 6 && y % 10 < 6) crowd.cells[y * 400 + x] = 0.9F;
  const Outcome found = find(crowd);
  EXPECT_EQ(found.head().detection_count, 100u);
  EXPECT_EQ(found.head().detections_left_out, 900u);
}

TEST(Lines, RefusesWhatIsNoMap) {
  const auto spec = parse_postprocess("lines");
  leat_tensor t{};
  t.rank = 2, t.shape[0] = 1, t.shape[1] = 10;
  const auto opened = Postprocessor::open(*spec, {&t, 1}, {}, 0, 64, 64);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().find("lines needs a map"), std::string::npos) << opened.error();
}

}  // namespace
}  // namespace leat::exec
