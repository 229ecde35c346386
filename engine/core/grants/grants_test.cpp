// Turns and when they expire, against a list of them that is gone through; what decides whose turn it is has its tests
// in engine/sim/test/grants_test.cpp.
#include "engine/core/grants/grants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <vector>

namespace leat::core {
namespace {

constexpr TimeNs kMilli = 1'000'000;
constexpr StreamId kCompetes = 0;  // a stream that does not wait; by its requests there is room for all turns

struct PicturesOfSome final : Grants::Asked {
  explicit PicturesOfSome(std::size_t streams) : there(streams, 0) {}
  [[nodiscard]] std::uint8_t level_of(StreamId) const noexcept override { return 0; }
  [[nodiscard]] bool has_waiting(StreamId) const noexcept override { return false; }
  [[nodiscard]] std::optional<TimeNs> picture_ns(StreamId s) const noexcept override {
    return there[s] != 0 ? std::optional<TimeNs>(1) : std::nullopt;
  }
  [[nodiscard]] TimeNs worth_ns(StreamId s, TimeNs) const noexcept override { return s; }
  std::vector<char> there;
};

// A stream's turn as grants.h says it: how long it may take follows how long those before it took.
struct TurnTwin {
  bool granted = false, expired = false;
  TimeNs granted_ns = 0, expires_ns = kNever, lag_ns = kMilli;
  std::uint64_t turns = 0;
  void grant(TimeNs now) {
    granted = true, expired = false, granted_ns = now;
    expires_ns = now + std::clamp(4 * lag_ns, 4 * kMilli, 250 * kMilli);
  }
  void submit(TimeNs now) {
    const TimeNs lag = now - granted_ns;
    if (granted || expired)
      lag_ns = std::min(expired ? std::max(lag_ns, lag) : lag_ns + (lag - lag_ns) / 4, 500 * kMilli);
    granted = expired = false, expires_ns = kNever;
  }
  void expire() {
    granted = false, expired = true, expires_ns = kNever;
    lag_ns = std::min(2 * lag_ns, 500 * kMilli);
  }
};

class PlayedTurns {
 public:
  explicit PlayedTurns(std::uint32_t streams)
      : limits_{.streams = streams + 1}, grants_(made()), pictures_(streams + 1), twins_(streams + 1) {
    open(kCompetes);
    (void)grants_->accepted(now_, kCompetes, 0);
    for (StreamId s = 1; s <= streams; ++s) open(s);
  }
  void wait(TimeNs time) {
    now_ += time;
    for (TurnTwin& t : twins_)
      if (t.expires_ns <= now_) t.expire();
    grants_->decide(now_, pictures_);
    for (const StreamId s : grants_->changed())
      if (const std::uint64_t turns = grants_->told(s).granted; turns != twins_[s].turns) {
        twins_[s].turns = turns;
        twins_[s].grant(now_);
        ++granted_;
      }
    grants_->told_all();
  }
  void submit(StreamId s, Grants::End end) {
    grants_->submitted(now_, s, now_);
    twins_[s].submit(now_);
    grants_->answered(now_, s, grants_->accepted(now_, s, 0), end);
  }
  void come_anew(StreamId s) {
    grants_->close(s);
    open(s);
  }
  void has_picture(StreamId s, bool there) { pictures_.there[s] = there ? 1 : 0; }
  // Others go on from what was written of these.
  void move_house() {
    std::vector<std::byte> bytes(std::size_t{1} << 20);
    Snapshot out = Snapshot::writing(bytes);
    grants_->visit_state(out);
    auto other = made();
    Snapshot in = Snapshot::reading(std::span(bytes).first(bytes.size() - out.left()));
    other->visit_state(in);
    ASSERT_TRUE(out.ok() && in.ok() && in.left() == 0);
    grants_ = std::move(other);
  }
  [[nodiscard]] TimeNs next() const { return grants_->next_timer(); }
  [[nodiscard]] TimeNs next_of_twins() const { return std::ranges::min(twins_, {}, &TurnTwin::expires_ns).expires_ns; }
  [[nodiscard]] std::size_t out() const {
    return static_cast<std::size_t>(std::ranges::count_if(twins_, &TurnTwin::granted));
  }
  [[nodiscard]] std::uint64_t granted() const { return granted_; }
  [[nodiscard]] TimeNs now() const { return now_; }

 private:
  [[nodiscard]] std::unique_ptr<Grants> made() const { return std::make_unique<Grants>(limits_, 1); }
  void open(StreamId s) {
    twins_[s] = {};
    grants_->open(s, {.waits_for_grants = s != kCompetes}, 0, 100 * kMilli, 1);
  }

  Limits limits_;
  TimeNs now_ = kMilli;
  std::unique_ptr<Grants> grants_;
  PicturesOfSome pictures_;
  std::vector<TurnTwin> twins_;
  std::uint64_t granted_ = 0;
};

TEST(Grants, TurnsExpireInTheirOrder) {
  for (const std::uint32_t streams : {1u, 2u, 7u, 300u}) {
    std::mt19937 random(streams);
    PlayedTurns turns(streams);
    std::size_t most = 0;
    for (int step = 0; step < 20'000; ++step) {
      const auto s = static_cast<StreamId>(1 + random() % streams);
      switch (random() % 16) {
        case 0:
          turns.come_anew(s);
          break;
        case 1:
          turns.wait(static_cast<TimeNs>(random() % (20 * kMilli)));
          break;
        case 2:  // to where the next one ends, and not beyond
          if (turns.next() != kNever) turns.wait(std::max<TimeNs>(0, turns.next() - turns.now()));
          break;
        case 3:
          turns.submit(s, Grants::End::lost);  // there is no room: turns are taken again
          break;
        case 4:
          if (step % 8 != 0) break;
          ASSERT_NO_FATAL_FAILURE(turns.move_house());
          break;
        case 5:
        case 6:
        case 7:
          turns.has_picture(s, random() % 4 != 0);
          break;
        case 8:
        case 9:
          turns.submit(s, Grants::End::ran);
          break;
        default:
          turns.wait(static_cast<TimeNs>(random() % 100'000));
      }
      most = std::max(most, turns.out());
      ASSERT_EQ(turns.next(), turns.next_of_twins()) << "step " << step;
    }
    EXPECT_GT(turns.granted(), 100u) << streams;
    EXPECT_GE(most, std::min(streams, 100u)) << streams;
  }
}

}  // namespace
}  // namespace leat::core
