// Annotated videos: what is copied, drawn, put side by side and left out.
#include "tools/leat/feed/video/annotator.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>

#include "tools/leat/feed/source/picture_source.h"

namespace leat::tools {
namespace {

std::string video(const char* name) {
  return (std::filesystem::temp_directory_path() / ("leat-annotated-" + std::to_string(::getpid()) + name + ".mp4"))
      .string();
}
Shot plain(draw::Colour colour, std::size_t bytes = 1) {
  return {[colour](std::optional<draw::Size> tile) {
            return draw::Picture(tile.value_or(draw::Size{64, 48}), colour);
          },
          bytes};
}

TEST(Annotator, WantsNoMorePicturesASecondThanItWasTold) {
  const std::string path = video("rate");
  auto annotator = Annotator::open(path, {64, 48}, 120, 30);
  ASSERT_TRUE(annotator.ok()) << annotator.error();
  std::uint64_t wanted = 0;
  for (std::uint64_t i = 0; i < 120; ++i) {  // a second at 120/s, and no more than the queue takes
    if (!(*annotator)->wants(0, static_cast<std::int64_t>(i) * 8'333'333)) continue;
    ++wanted;
    (*annotator)->add(0, i, plain({}));
  }
  EXPECT_GE(wanted, 28u);
  EXPECT_LE(wanted, 31u);
  const auto left_out = (*annotator)->finish();
  ASSERT_TRUE(left_out.ok()) << left_out.error();
  std::filesystem::remove(path);
}

// While one picture is being drawn, however long that takes, the others wait, are refused and are counted: nobody is
// held up.
TEST(Annotator, RefusesWhatItHasNoRoomFor) {
  const std::string path = video("room");
  auto annotator = Annotator::open(path, {64, 48}, 30);
  ASSERT_TRUE(annotator.ok()) << annotator.error();
  std::promise<void> begun, go;
  ASSERT_TRUE((*annotator)->wants(0, 0));
  (*annotator)
      ->add(0, 0,
            {[&](auto) {
               begun.set_value();
               go.get_future().wait();
               return draw::Picture({64, 48});
             },
             1});
  begun.get_future().wait();
  std::uint64_t taken = 0, refused = 0;
  for (std::uint64_t i = 1; i < 200; ++i) {
    if ((*annotator)->wants(0, 0)) {
      (*annotator)->add(0, i, plain({}));
      ++taken;
    } else {
      ++refused;
    }
  }
  EXPECT_LT(taken, 100u);
  EXPECT_GT(refused, 100u);
  go.set_value();
  const auto left_out = (*annotator)->finish();
  ASSERT_TRUE(left_out.ok()) << left_out.error();
  EXPECT_EQ(*left_out, refused);
  std::filesystem::remove(path);
}

TEST(Annotator, HoldsNoMoreMemoryThanItIsAllowed) {
  const std::string path = video("memory");
  auto annotator = Annotator::open(path, {64, 48}, 30);
  ASSERT_TRUE(annotator.ok()) << annotator.error();
  std::promise<void> begun, go;
  ASSERT_TRUE((*annotator)->wants(0, 0));
  (*annotator)
      ->add(0, 0,
            {[&](auto) {
               begun.set_value();
               go.get_future().wait();
               return draw::Picture({64, 48});
             },
             200 << 20});
  begun.get_future().wait();
  EXPECT_TRUE((*annotator)->wants(0, 0));
  (*annotator)->add(0, 1, plain({}, 100 << 20));
  EXPECT_FALSE((*annotator)->wants(0, 0));
  go.set_value();
  ASSERT_TRUE((*annotator)->finish().ok());
  std::filesystem::remove(path);
}

// Five streams, three by two: each in its own tile, and nothing is wanted of a stream whose last picture waits.
TEST(Annotator, PutsStreamsSideBySide) {
  const std::string path = video("grid");
  auto grid = Annotator::open_grid(path, 5);
  ASSERT_TRUE(grid.ok()) << grid.error();
  const std::uint8_t greys[] = {30, 80, 130, 180, 230};
  for (std::uint32_t stream = 0; stream < 5; ++stream) {
    ASSERT_TRUE((*grid)->wants(stream, 0));
    (*grid)->add(stream, 0, plain({greys[stream], greys[stream], greys[stream]}));
  }
  EXPECT_FALSE((*grid)->wants(5, 0));
  ASSERT_TRUE((*grid)->finish().ok());
  auto source = open_source(path, {});
  ASSERT_TRUE(source.ok()) << source.error();
  const PictureFormat& format = (*source)->format();
  EXPECT_EQ(format.width, 1920u);
  EXPECT_EQ(format.height, 1080u);
  std::vector<std::uint8_t> luma;
  for (;;) {
    const auto time = (*source)->next();
    ASSERT_TRUE(time.ok());
    if (!time->has_value()) break;
    const RawLayout layout = raw_layout(format.format, format.width, format.height);
    std::vector<std::uint8_t> pixels(layout.bytes);
    leat_frame frame{};
    frame.format = format.format, frame.width = format.width, frame.height = format.height;
    frame.plane_count = layout.planes;
    std::uint64_t at = 0;
    for (std::uint32_t p = 0; p < layout.planes; ++p) {
      frame.planes[p] = pixels.data() + at, frame.strides[p] = frame.row_bytes[p] = layout.row_bytes[p];
      frame.rows[p] = layout.rows[p];
      at += std::uint64_t{layout.row_bytes[p]} * layout.rows[p];
    }
    ASSERT_TRUE(*(*source)->write(frame));
    luma = pixels;
  }
  ASSERT_FALSE(luma.empty());
  for (std::uint32_t stream = 0; stream < 5; ++stream) {
    const std::size_t x = stream % 3 * 640 + 320, y = stream / 3 * 540 + 270;
    EXPECT_NEAR(luma[y * 1920 + x], 16 + greys[stream] * 219 / 255, 6) << stream;
  }
  EXPECT_LT(luma[810 * 1920 + 1600], 40);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace leat::tools
