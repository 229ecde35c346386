#include "engine/daemon/deployment/capacity/task_sizes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "leat/result_parts.h"

namespace leat::daemon {
namespace {

constexpr const char* kWords = "letterbox height=48 widths=96,320,640,960 quad";

planner::Latency ms(double p50) {
  return {.p50_ns = static_cast<std::int64_t>(p50 * 1e6), .p99_ns = static_cast<std::int64_t>(p50 * 1.1e6)};
}
MeasuredSizes measured(std::vector<double> by_size, std::size_t batch) {
  MeasuredSizes out;
  for (const double m : by_size) out.by_size.push_back(ms(m));
  for (std::size_t b = 1; b <= batch; ++b) out.rows.push_back(ms(by_size.back() * static_cast<double>(b)));
  return out;
}

TEST(TaskSizesOfAModule, UnitsAreShareOfTheLargestsTime) {
  const MeasuredSizes fast = measured({4, 10, 20, 32}, 4), slow = measured({10, 24, 45, 64}, 4);
  const MeasuredSizes both[] = {fast, slow};
  const ModuleSizes sizes = divide_sizes(kWords, true, both);
  EXPECT_EQ(sizes.units, (std::vector<std::uint32_t>{1, 3, 6, 8})) << "the most of both, in eighths";
  const auto table = sizes.table(fast);
  ASSERT_EQ(table.size(), 32U);
  EXPECT_EQ(table[0].p50_ns, 4'000'000);
  EXPECT_EQ(table[1].p50_ns, 7'000'000) << "half way from one unit to three";
  EXPECT_EQ(table[2].p50_ns, 10'000'000);
  EXPECT_EQ(table[5].p50_ns, 20'000'000);
  EXPECT_EQ(table[7].p50_ns, 32'000'000);
  EXPECT_EQ(table[31].p50_ns, 128'000'000);
  for (std::size_t u = 1; u < table.size(); ++u) EXPECT_GE(table[u].p50_ns, table[u - 1].p50_ns);
  const MeasuredSizes alone[] = {measured({4, 10, 20, 32}, 33)};
  EXPECT_TRUE(divide_sizes(kWords, true, alone).units.empty()) << "no room for parts of 33 pictures";
  const MeasuredSizes many[] = {measured({4, 10, 20, 32}, 20)};
  EXPECT_EQ(divide_sizes(kWords, true, many).each(), 3U) << "at most 64 tasks in a batch";
}

// Wider than the widest: as many units as its pieces, each of which overlaps the one before by 96 pixels.
TEST(TaskSizesOfAModule, APictureInPiecesTakesWhatTheyTake) {
  const MeasuredSizes one[] = {measured({4, 10, 20, 32}, 8)};  // of widths 96, 320, 640, 960: 1, 2, 5, 8 units
  const auto units = [&](const ModuleSizes& sizes, std::uint32_t width) {
    return sizes.units_of(width, 48, nullptr, 0, 0);
  };
  const ModuleSizes squeezed = divide_sizes(kWords, false, one),
                    split = divide_sizes(std::string(kWords) + " wide=split", false, one);
  for (const std::uint32_t width : {96U, 300U, 960U}) EXPECT_EQ(units(split, width), units(squeezed, width)) << width;
  EXPECT_EQ(units(squeezed, 1824), 8U);
  EXPECT_EQ(units(split, 961), 8U + 2) << "a second piece of 97";
  EXPECT_EQ(units(split, 1824), 8U + 8);
  EXPECT_EQ(units(split, 1825), 8U + 8 + 2);
  EXPECT_EQ(units(split, 960 + 7 * 864), 8U * 8);
  EXPECT_EQ(units(split, 16000), 8U * 8) << "squeezed into eight";
  EXPECT_EQ(units(divide_sizes(std::string(kWords) + " wide=start", false, one), 1824), 8U);
  // Where sizes are not divided each piece is a picture.
  for (const auto& [words, known] : {std::pair{std::string(kWords), std::span<const MeasuredSizes>()},
                                     {std::string("height=48 widths=960"), std::span<const MeasuredSizes>(one)}}) {
    const ModuleSizes whole = divide_sizes(words + " wide=split", false, known);
    EXPECT_EQ(whole.each(), 1U);
    EXPECT_EQ(whole.mean_units(), 1);
    EXPECT_EQ(whole.table(one[0]).size(), 8U);
    EXPECT_EQ(units(whole, 500), 1U);
    EXPECT_EQ(units(whole, 961), 2U);
    EXPECT_EQ(units(whole, 1825), 3U);
  }
}

// A worker may claim what it likes within the message's bounds: never below one unit, never more than a whole, and a
// larger picture takes no less.
TEST(TaskSizesOfAModule, ClaimsAreBounded) {
  const MeasuredSizes absurd[] = {measured({3'600'000, .000001, 50, 10}, 2)};
  EXPECT_EQ(divide_sizes(kWords, true, absurd).units, (std::vector<std::uint32_t>{8, 8, 8, 8}));
  const MeasuredSizes few[] = {measured({4, 10, 20, 32}, 4), measured({10, 32}, 4)};
  EXPECT_TRUE(divide_sizes(kWords, true, few).units.empty()) << "another number of classes than the words have";
  const MeasuredSizes none[] = {{}};
  EXPECT_TRUE(divide_sizes(kWords, true, none).units.empty());
  EXPECT_TRUE(divide_sizes("letterbox size=64x64", true, few).units.empty());
  EXPECT_TRUE(divide_sizes("no such word", true, few).units.empty());
  EXPECT_EQ(ModuleSizes{}.table(few[0]).size(), 4U);
}

// What a worker wrote into the slot is read, whatever it is.
TEST(TaskSizesOfAModule, SlotsAreNotTrusted) {
  const MeasuredSizes one[] = {measured({4, 10, 20, 32}, 4)};
  const ModuleSizes sizes = divide_sizes(kWords, true, one);
  alignas(64) std::array<std::byte, 16384> memory{};
  auto* const result = new (memory.data()) leat_result{};
  const auto units = [&](std::uint32_t item) { return sizes.units_of(1280, 720, result, memory.size(), item); };
  result->kind = LEAT_RESULT_DETECTIONS;
  result->detection_count = 2;
  result->detections[0] = {.x0 = 10, .y0 = 10, .x1 = 60, .y1 = 58};
  result->detections[1] = {.x0 = 10, .y0 = 10, .x1 = 1000, .y1 = 58};
  EXPECT_EQ(units(0), 1U);
  EXPECT_EQ(units(1), 8U);
  EXPECT_EQ(units(2), 1U) << "there is none";
  EXPECT_EQ(units(UINT32_MAX), 1U);
  result->detection_count = UINT32_MAX;
  EXPECT_GE(units(LEAT_MAX_DETECTIONS), 1U);
  const float nan = std::numeric_limits<float>::quiet_NaN(), huge = std::numeric_limits<float>::max();
  result->detections[0] = {.x0 = nan, .y0 = 10, .x1 = 60, .y1 = 58};
  EXPECT_EQ(units(0), 1U);
  result->detections[0] = {.x0 = -huge, .y0 = -huge, .x1 = huge, .y1 = huge};
  EXPECT_LE(units(0), 8U);
  // A directory that points past the slot, or says more rows than it has.
  result->part_count = LEAT_MAX_PARTS;
  leat_part part{};
  part.kind = LEAT_PART_oriented, part.item = LEAT_ITEM_EACH;
  for (const auto& [rank, rows, offset, bytes] : {std::array<std::uint64_t, 4>{0, 1'000'000, LEAT_PAYLOAD_OFFSET, 64},
                                                  {1, 1'000'000, LEAT_PAYLOAD_OFFSET, 64},
                                                  {1, 1'000'000, 1 << 20, 1 << 30},
                                                  {1, UINT32_MAX, LEAT_PAYLOAD_OFFSET, UINT32_MAX},
                                                  {4, UINT32_MAX, LEAT_PAYLOAD_OFFSET, 64}}) {
    part.rank = static_cast<std::uint8_t>(rank), part.offset = offset, part.bytes = bytes;
    for (std::uint32_t& d : part.dims) d = static_cast<std::uint32_t>(rows);
    std::memcpy(memory.data() + LEAT_PARTS_OFFSET, &part, sizeof part);
    for (const std::uint32_t item : {0U, 1U, 98U, 99U}) EXPECT_LE(units(item), 8U);
  }
}

}  // namespace
}  // namespace leat::daemon
