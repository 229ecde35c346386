// Records copied from the whole into a view: what a reader sees there, and what is left when the view is emptied.
#include "shm/src/counters/counters_view.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace leat::shm {
namespace {

std::uint64_t bytes_held(const Fd& fd) {
  struct stat info {};
  EXPECT_EQ(fstat(fd.get(), &info), 0);
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}

struct WholeAndView {
  WholeAndView() : all(CountersWriter::create().value()), view(CountersView::create().value()) {}
  CountersReader reader() const { return CountersReader::map(view.share().value(), view.bytes()).value(); }
  CountersWriter all;
  CountersView view;
};

TEST(CountersView, ShowsWhatWasCopiedAndNothingElse) {
  WholeAndView b;
  Record mine = b.all.begin(RecordKind::stream, 7, "mine");
  Record other = b.all.begin(RecordKind::stream, 8, "other");
  mine.add(StreamCounter::submitted, 5);
  mine.cause(3, 2);
  mine.observe(Which::second, 1'000'000);
  other.add(StreamCounter::submitted, 9);
  b.view.copy(b.all, RecordKind::stream, 7);
  const CountersReader reader = b.reader();
  const auto seen = reader.snapshot(RecordKind::stream, 7);
  ASSERT_TRUE(seen && seen->live && seen->together);
  EXPECT_EQ(seen->label, "mine");
  EXPECT_EQ(seen->value(StreamCounter::submitted), 5U);
  EXPECT_EQ(seen->causes[3], 2U);
  EXPECT_EQ(seen->observations(Which::second), 1U);
  EXPECT_FALSE(seen->value(StreamCounter::depth));
  EXPECT_EQ(seen->epoch, b.all.at(RecordKind::stream, 7)->epoch);
  EXPECT_FALSE(reader.snapshot(RecordKind::stream, 8));
  EXPECT_EQ(reader.live(RecordKind::stream).size(), 1U);
  std::array<Event, 4> events;
  std::uint64_t next = 0;
  EXPECT_EQ(reader.events(0, events, &next), 0U);
}

TEST(CountersView, WhatIsBeingWrittenIsNotCopiedInHalf) {
  WholeAndView b;
  Record mine = b.all.begin(RecordKind::total, 0, "total");
  mine.set(StreamCounter::depth, 1);
  b.view.copy(b.all, RecordKind::total, 0);
  {
    const Record::Update together(mine);
    mine.set(StreamCounter::depth, 2);
    b.view.copy(b.all, RecordKind::total, 0);
    EXPECT_EQ(b.reader().snapshot(RecordKind::total, 0)->value(StreamCounter::depth), 1U);
  }
  b.view.copy(b.all, RecordKind::total, 0);
  EXPECT_EQ(b.reader().snapshot(RecordKind::total, 0)->value(StreamCounter::depth), 2U);
}

TEST(CountersView, WhatEndsStaysReadableAndIsLiveNoMore) {
  WholeAndView b;
  Record mine = b.all.begin(RecordKind::stream, 7, "mine");
  b.view.copy(b.all, RecordKind::stream, 7);
  EXPECT_EQ(b.view.epoch_of_live(RecordKind::stream, 7), b.all.at(RecordKind::stream, 7)->epoch);
  mine.add(StreamCounter::submitted, 5);
  b.all.end(RecordKind::stream, 7);
  b.view.copy(b.all, RecordKind::stream, 7);
  b.view.end(RecordKind::stream, 7);
  const auto seen = b.reader().snapshot(RecordKind::stream, 7);
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->live);
  EXPECT_EQ(seen->value(StreamCounter::submitted), 5U);
  EXPECT_EQ(b.view.epoch_of_live(RecordKind::stream, 7), 0U);
  b.view.end(RecordKind::client, 3);  // was never there
  EXPECT_FALSE(b.reader().snapshot(RecordKind::client, 3));
}

TEST(CountersView, HoldsMemoryForItsRecordsOnlyAndNoneOnceEmptied) {
  WholeAndView b;
  const Fd kept = b.view.share().value();  // as somebody who does not let go of it
  (void)b.all.begin(RecordKind::user, 100, "uid 1");
  b.view.copy(b.all, RecordKind::user, 100);
  EXPECT_GT(bytes_held(kept), 0U);
  EXPECT_LT(bytes_held(kept), std::uint64_t{64} << 10);
  b.view.empty();
  EXPECT_EQ(bytes_held(kept), 0U);
}

}  // namespace
}  // namespace leat::shm
