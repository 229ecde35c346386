// Whose records are in whose view, and how long a view is kept.
#include "engine/daemon/clients/observer_views.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace leat::daemon {
namespace {

using shm::RecordKind;
constexpr std::int64_t kMs = 1'000'000;

template <class Condition>
bool in_time(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return condition();
}

class ObserverViewsTest : public ::testing::Test {
 protected:
  ObserverViewsTest() : all(shm::CountersWriter::create().value()), views(all, 4) {
    for (const auto kind : {RecordKind::daemon, RecordKind::total, RecordKind::module, RecordKind::partition})
      (void)all.begin(kind, 0, "everybody's");
    for (std::uint32_t user = 0; user < 4; ++user) (void)all.begin(RecordKind::user, user, "uid");
  }
  void client(std::uint32_t index, std::uint32_t user) {
    all.begin(RecordKind::client, index, "client").set(shm::ClientCounter::user, user);
  }
  void stream(std::uint32_t index, std::uint32_t client, const char* name) {
    all.begin(RecordKind::stream, index, name).set(shm::StreamCounter::client, client);
  }
  shm::CountersReader reader(std::uint32_t user, std::int64_t now) {
    auto given = views.given(user, now);
    EXPECT_TRUE(given.ok()) << given.error();
    return shm::CountersReader::map(std::move(given->fd), given->bytes).value();
  }
  shm::CountersWriter all;
  ObserverViews views;
};

TEST_F(ObserverViewsTest, AUserSeesTotalsWhatIsServedAndHisOwn) {
  client(0, 1), client(1, 2);
  stream(0, 0, "mine"), stream(1, 1, "other's"), stream(2, 9, "nobody's");
  const auto mine = reader(1, 0);
  for (const auto kind : {RecordKind::daemon, RecordKind::total, RecordKind::module, RecordKind::partition})
    EXPECT_EQ(mine.live(kind).size(), 1U) << name_of(kind);
  ASSERT_EQ(mine.live(RecordKind::user).size(), 1U);
  EXPECT_EQ(mine.live(RecordKind::user)[0].index, 1U);
  ASSERT_EQ(mine.live(RecordKind::client).size(), 1U);
  EXPECT_EQ(mine.live(RecordKind::client)[0].index, 0U);
  ASSERT_EQ(mine.live(RecordKind::stream).size(), 1U);
  EXPECT_EQ(mine.live(RecordKind::stream)[0].label, "mine");
  EXPECT_FALSE(mine.snapshot(RecordKind::stream, 1));
  EXPECT_EQ(reader(3, 0).live(RecordKind::stream).size(), 0U);
}

TEST_F(ObserverViewsTest, AreBroughtUpToDateTenTimesASecondAndAPlaceChangesHands) {
  client(0, 1), client(1, 2);
  stream(0, 0, "mine");
  const auto mine = reader(1, 0), other = reader(2, 0);
  shm::Record(all.at(RecordKind::stream, 0)).add(shm::StreamCounter::submitted, 3);
  all.end(RecordKind::stream, 0);
  stream(0, 1, "other's");
  EXPECT_EQ(views.next_due(), 100 * kMs);
  views.advance(99 * kMs);
  EXPECT_EQ(mine.live(RecordKind::stream).size(), 1U);
  for (int turn = 0; turn < 2; ++turn) views.advance(views.next_due());  // one a turn
  EXPECT_EQ(mine.live(RecordKind::stream).size(), 0U);
  EXPECT_EQ(mine.snapshot(RecordKind::stream, 0)->label, "mine");  // never what came after
  ASSERT_EQ(other.live(RecordKind::stream).size(), 1U);
  EXPECT_EQ(other.live(RecordKind::stream)[0].label, "other's");
}

TEST_F(ObserverViewsTest, OneAUserAndItGoesASecondAfterTheLast) {
  const auto first = reader(1, 0), second = reader(1, 0);
  views.ended(1, 10 * kMs);
  all.begin(RecordKind::module, 1, "new");
  views.advance(views.next_due());
  EXPECT_EQ(first.live(RecordKind::module).size(), 2U);
  EXPECT_EQ(second.live(RecordKind::module).size(), 2U);
  views.ended(1, 1000 * kMs);
  EXPECT_EQ(views.next_due(), 2000 * kMs);
  views.advance(2000 * kMs);
  EXPECT_EQ(views.next_due(), INT64_MAX);
  // It is emptied although it is still mapped, and then he may have another.
  EXPECT_TRUE(in_time([&] { return first.live(RecordKind::module).empty(); }));
  EXPECT_TRUE(in_time([&] { return views.given(1, 2001 * kMs).ok(); }));
}

}  // namespace
}  // namespace leat::daemon
