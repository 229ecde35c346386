// Frames of sources whose clocks step, wrap, drift and fail, on ways that jitter, burst and get longer. The law: from
// two seconds after any step on, every frame is judged by its real age, and a file's frames are due at its pace.
#include "tools/leat/feed/source_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace leat::tools::source_clock_test {
namespace {

constexpr std::int64_t kMs = 1'000'000, kSecond = 1'000 * kMs, kWrap = (std::int64_t{1} << 33) * 100'000 / 9;
constexpr std::int64_t kSloNs = 100 * kMs, kLawNs = 2 * kSecond;

// A frame as it really was, and what is seen of it.
struct Frame {
  std::int64_t taken_ns = 0, at_ns = 0;  // captured; here
  std::int64_t time_ns = 0;              // as its source says
  bool step = false, unsettled = false;  // the first after a step; within two seconds after it
};

struct Sequence {
  std::string name;
  double rate = 25, own_rate = 0;  // own_rate: as the source states it; 0: the true one, < 0: it does not
  double seconds = 12, by_s = 0;   // by_s: its one step
  // When a frame that should be taken at t really is; what the source's clock says of it, and how long the frame takes
  // to come, in ns.
  std::function<std::int64_t(std::int64_t t)> real = [](std::int64_t t) { return t; };
  std::function<std::int64_t(std::int64_t t, int frame)> stamp = [](std::int64_t t, int) { return t; };
  std::function<std::int64_t(std::int64_t t, int frame)> way = [](std::int64_t, int) { return 20 * kMs; };
  std::vector<double> steps_s;     // when what is known of the source ends to be true
  int min_said = 0, max_said = 0;  // steps that are reported
  std::int64_t tolerance_ns = 15 * kMs;
};

std::vector<Frame> frames_of(const Sequence& s) {
  std::vector<Frame> out;
  const auto count = static_cast<int>(s.rate * s.seconds);
  std::int64_t before_ns = INT64_MIN;
  for (int i = 0; i < count; ++i) {
    Frame f;
    const std::int64_t t = std::llround(i * 1e9 / s.rate);
    f.taken_ns = s.real(t);
    f.time_ns = s.stamp(t, i);
    before_ns = f.at_ns = std::max(before_ns, f.taken_ns + s.way(t, i));  // none overtakes another
    for (const double at : s.steps_s) {
      const double since = static_cast<double>(t) / 1e9 - at;
      f.step = f.step || std::abs(since) < .5 / s.rate;
      f.unsettled = f.unsettled || (since > -.5 / s.rate && since < static_cast<double>(kLawNs) / 1e9);
    }
    out.push_back(f);
  }
  return out;
}

SourceClock::Options options_of(const Sequence& s, bool live) {
  return {.live = live, .own_rate = s.own_rate < 0 ? 0 : s.own_rate > 0 ? s.own_rate : s.rate};
}

struct Seen {
  int said = 0, wrong = 0, unsettled_wrong = 0;
  std::int64_t worst_ns = 0;
};

// Real ages are counted from the quickest way there has been since the last step: nobody can know more.
Seen walk_live(const Sequence& s) {
  SourceClock clock(options_of(s, true));
  const std::vector<Frame> frames = frames_of(s);
  Seen seen;
  std::int64_t before_ns = 0, quickest_ns = INT64_MAX;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const Frame& f = frames[i];
    FrameArrival arrival;
    arrival.read(before_ns + kMs / 10, std::max(f.at_ns, before_ns + kMs / 10));
    arrival.at_ns = f.at_ns;
    before_ns = f.at_ns;
    const std::int64_t taken_ns = clock.due(f.time_ns, i, arrival);
    EXPECT_LE(taken_ns, f.at_ns) << s.name << ": frame " << i << " before it was taken";
    seen.said += clock.take_step() ? 1 : 0;
    quickest_ns = std::min(f.step ? INT64_MAX : quickest_ns, f.at_ns - f.taken_ns);
    const std::int64_t age_ns = f.at_ns - taken_ns, real_ns = f.at_ns - f.taken_ns - quickest_ns;
    const bool sure = std::abs(real_ns - kSloNs) > s.tolerance_ns;
    const bool wrong = sure && (age_ns <= kSloNs) != (real_ns <= kSloNs);
    if (f.unsettled) {
      seen.unsettled_wrong += wrong ? 1 : 0;
      continue;
    }
    seen.wrong += wrong ? 1 : 0;
    seen.worst_ns = std::max(seen.worst_ns, std::abs(age_ns - real_ns));
  }
  return seen;
}

Seen walk_file(const Sequence& s, std::int64_t max_wait_ns) {
  SourceClock clock(options_of(s, false));
  const std::vector<Frame> frames = frames_of(s);
  Seen seen;
  std::int64_t due_ns = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::int64_t next_ns = clock.due(frames[i].time_ns, i);
    seen.said += clock.take_step() ? 1 : 0;
    EXPECT_GE(next_ns, due_ns) << s.name << ": frame " << i;
    if (i > 0) seen.worst_ns = std::max(seen.worst_ns, next_ns - due_ns);
    if (i > 0 && next_ns - due_ns > max_wait_ns) ++seen.wrong;
    due_ns = next_ns;
  }
  return seen;
}

std::vector<Sequence> steps() {
  std::vector<Sequence> out;
  for (const double rate : {1.0, 5.0, 12.5, 25.0, 59.94, 240.0}) {
    for (const double by :
         {-5000.0, -60.0, -5.0, -1.0, -.5, -.3, -.15, -.05, .05, .15, .3, .5, 1.0, 5.0, 60.0, 5000.0}) {
      Sequence s;
      s.rate = rate;
      s.name = std::to_string(rate) + "/s, a step by " + std::to_string(by) + " s";
      s.by_s = by;
      s.steps_s = {5};
      s.stamp = [by](std::int64_t t, int) { return t + (t >= 5 * kSecond ? std::llround(by * 1e9) : 0); };
      const bool seen_by_times = by < -1 / rate || by > 10, arrives_later = by <= -.1;
      s.min_said = seen_by_times || arrives_later ? 1 : 0;
      s.max_said = s.min_said;
      out.push_back(s);
    }
  }
  return out;
}

TEST(SourceClock, AStepOfALiveSourceCostsTwoSecondsAtMost) {
  const auto table = steps();
  ASSERT_GE(table.size(), 60U);
  for (const Sequence& s : table) {
    const Seen seen = walk_live(s);
    EXPECT_EQ(seen.wrong, 0) << s.name;
    EXPECT_LE(seen.unsettled_wrong, std::max(1.0, std::ceil(s.rate * .85))) << s.name;
    EXPECT_LE(seen.worst_ns, s.tolerance_ns) << s.name;
    EXPECT_GE(seen.said, s.min_said) << s.name;
    EXPECT_LE(seen.said, s.max_said) << s.name;
  }
}

// A step that times alone show costs nothing.
TEST(SourceClock, TimesThatGoBackAreSeenAtOnce) {
  for (const Sequence& s : steps()) {
    if (s.by_s >= -1 / s.rate) continue;
    EXPECT_EQ(walk_live(s).unsettled_wrong, 0) << s.name;
  }
}

TEST(SourceClock, AFileGoesOnOneIntervalAfterAStepAndWaitsForNoGapOverTenSeconds) {
  for (const Sequence& s : steps()) {
    const double by = s.by_s;
    const auto interval_ns = std::llround(1e9 / s.rate);
    const std::int64_t gap_ns = by > 0 && by < 10 ? std::llround(by * 1e9) : 0;
    const Seen seen = walk_file(s, interval_ns + gap_ns + kMs);
    EXPECT_EQ(seen.wrong, 0) << s.name << ": " << seen.worst_ns;
    EXPECT_EQ(seen.said, by < -1 / s.rate || by > 10 ? 1 : 0) << s.name;
  }
}

std::int64_t noise(int frame, int seed, std::int64_t max_ns) {
  std::mt19937 random(static_cast<unsigned>(frame * 7919 + seed));
  return static_cast<std::int64_t>(random() % static_cast<unsigned>(max_ns));
}

std::vector<Sequence> others() {
  std::vector<Sequence> out;
  const auto add = [&](Sequence s) { out.push_back(std::move(s)); };
  for (const double rate : {1.0, 7.5, 25.0, 240.0}) {
    const std::string at = " at " + std::to_string(rate) + "/s";
    Sequence s;
    s.rate = rate;
    s.name = "nothing odd" + at;
    add(s);
    s.name = "33 bits wrap" + at;
    s.stamp = [](std::int64_t t, int) { return (t + kWrap - 4 * kSecond) % kWrap; };
    add(s);
    s.name = "no times" + at;
    s.stamp = [](std::int64_t, int) { return kNoTime; };
    add(s);
    s.name = "every third has a time" + at;
    s.stamp = [](std::int64_t t, int i) { return i % 3 == 0 ? t : kNoTime; };
    add(s);
    s.name = "no times, no rate" + at;
    s.own_rate = -1;
    s.stamp = [](std::int64_t, int) { return kNoTime; };
    add(s);
    s.name = "the same time always, no rate" + at;
    s.stamp = [](std::int64_t, int) { return 3 * kSecond; };
    s.steps_s = {0};
    s.max_said = 1;
    add(s);
    for (const double ppm : {-1000.0, -200.0, 200.0, 1000.0}) {
      Sequence d;
      d.rate = rate;
      d.seconds = 60;
      d.name = "drift of " + std::to_string(ppm) + " ppm" + at;
      d.stamp = [ppm](std::int64_t t, int) { return t + std::llround(static_cast<double>(t) * ppm / 1e6); };
      add(d);
    }
    Sequence j;
    j.rate = rate;
    j.name = "jitter of 40 ms" + at;
    j.way = [](std::int64_t, int i) { return 20 * kMs + noise(i, 1, 40 * kMs); };
    j.tolerance_ns = 45 * kMs;
    add(j);
    Sequence b;
    b.rate = rate;
    b.name = "three seconds come at once at the beginning" + at;
    b.way = [](std::int64_t t, int i) { return std::max<std::int64_t>(20 * kMs, 3 * kSecond + i * kMs / 10 - t); };
    b.steps_s = {0, 1, 2};
    add(b);
  }
  Sequence s;
  s.name = "each time twice";
  s.stamp = [](std::int64_t, int i) { return std::int64_t{i / 2} * 80 * kMs; };
  s.tolerance_ns = 45 * kMs;
  add(s);
  s = {};
  s.name = "3:2 pulldown";
  s.rate = 24;
  s.stamp = [](std::int64_t, int i) { return std::int64_t{i} * 1000 / 24 * kMs + (i % 2 == 1 ? 8 * kMs : 0); };
  s.tolerance_ns = 20 * kMs;
  add(s);
  s = {};
  s.name = "ahead by 5000 s and back";
  s.stamp = [](std::int64_t t, int) { return t + (t >= 4 * kSecond && t < 8 * kSecond ? 5000 * kSecond : 0); };
  s.min_said = s.max_said = 2;
  add(s);
  s.name = "back by .3 s each second";
  s.stamp = [](std::int64_t t, int) { return t - t / kSecond * 300 * kMs; };
  s.min_said = s.max_said = 11;
  add(s);
  s.name = "begins again every 3 s";
  s.stamp = [](std::int64_t t, int) { return t % (3 * kSecond); };
  s.min_said = s.max_said = 3;
  add(s);
  for (const std::int64_t pause_s : {2, 9, 60, 5000}) {
    s = {};
    s.real = [=](std::int64_t t) { return t + (t >= 5 * kSecond ? pause_s * kSecond : 0); };
    s.name = "a camera pauses for " + std::to_string(pause_s) + " s, and its clock goes on";
    s.stamp = [real = s.real](std::int64_t t, int) { return real(t); };
    add(s);
    s.name = "a camera pauses for " + std::to_string(pause_s) + " s, and its clock too";
    s.stamp = [](std::int64_t t, int) { return t; };
    s.steps_s = {5};
    s.min_said = s.max_said = 1;
    add(s);
  }
  s = {};
  s.name = "the way gets longer by .4 s";
  s.way = [](std::int64_t t, int) { return t >= 5 * kSecond ? 420 * kMs : 20 * kMs; };
  s.steps_s = {5};
  s.min_said = s.max_said = 1;
  add(s);
  s.name = "the network stands still for 3 s and then delivers what it has";
  s.way = [](std::int64_t t, int i) {
    return t >= 5 * kSecond && t < 8 * kSecond ? 8 * kSecond + (i - 125) * kMs / 2 - t : 20 * kMs;
  };
  s.steps_s = {};
  s.min_said = s.max_said = 0;
  add(s);
  s.name = "a backlog of 3 s that drains by a fifth";
  s.seconds = 30;
  s.way = [](std::int64_t t, int) {
    return t < 5 * kSecond ? 20 * kMs : std::max<std::int64_t>(20 * kMs, 3 * kSecond - (t - 5 * kSecond) / 5);
  };
  add(s);
  s.name = "segments of 4 s, each at once";
  s.way = [](std::int64_t t, int i) { return 4 * kSecond - t % (4 * kSecond) + (i % 100) * kMs / 2; };
  s.steps_s = {0, 2};
  add(s);
  return out;
}

TEST(SourceClock, ALiveSourcesFramesAreJudgedByTheirRealAge) {
  for (const Sequence& s : others()) {
    const Seen seen = walk_live(s);
    EXPECT_EQ(seen.wrong, 0) << s.name;
    EXPECT_LE(seen.worst_ns, s.tolerance_ns) << s.name;
    EXPECT_GE(seen.said, s.min_said) << s.name;
    EXPECT_LE(seen.said, s.max_said) << s.name;
  }
}

// In decoding order: I0 P3 B1 B2 P6 B4 B5.
TEST(SourceClock, FramesOutOfOrderAreNoStep) {
  for (const double own_rate : {25.0, 0.0}) {
    for (const bool live : {false, true}) {
      SourceClock clock({.live = live, .own_rate = own_rate});
      std::vector<int> places = {0};
      for (int gop = 0; gop < 20; ++gop)
        for (const int place : {3, 1, 2}) places.push_back(gop * 3 + place);
      std::int64_t due_ns = 0, before_ns = 0;
      for (std::size_t i = 0; i < places.size(); ++i) {
        const std::int64_t at_ns = (static_cast<std::int64_t>(i) * 40 + 200) * kMs;
        due_ns = clock.due(places[i] * 40 * kMs, i, {at_ns, 40 * kMs});
        EXPECT_FALSE(clock.take_step()) << i;
        // A file's are due in the order in which they come, a live source's each when it was captured: a frame that
        // others refer to is there 120 ms after that.
        if (live && i > 0) {
          EXPECT_EQ(due_ns / kMs, places[i] * 40 + 120) << i;
        } else {
          EXPECT_GE(due_ns, before_ns) << i;
        }
        before_ns = due_ns;
      }
      if (!live) {
        EXPECT_EQ(due_ns, 60 * 40 * kMs);
      }
    }
  }
}

TEST(SourceClock, FollowsAFileAndGoesOnWhenItBeginsAgain) {
  SourceClock clock;
  std::vector<std::int64_t> due;
  for (int round = 0; round < 3; ++round) {
    for (const std::int64_t i : {0, 1, 2, 3}) due.push_back(clock.due(i * 40 * kMs, static_cast<std::uint64_t>(i)));
    EXPECT_EQ(clock.next_due(), due.back() + 40 * kMs);
    clock.again();
  }
  for (std::size_t i = 0; i < due.size(); ++i) EXPECT_EQ(due[i], static_cast<std::int64_t>(i) * 40 * kMs);
  EXPECT_FALSE(clock.take_step());
  SourceClock fixed({.rate = 100});
  EXPECT_EQ(fixed.due(0, 0), 0);
  EXPECT_EQ(fixed.due(999'999'999, 1), 10 * kMs);
  EXPECT_EQ(fixed.due(0, 2), 20 * kMs);
  EXPECT_FALSE(fixed.take_step()) << "whose times have no part in it";
  fixed.again();
  EXPECT_EQ(fixed.due(0, 0), 30 * kMs);
}

// What is passed over takes its time all the same, in the middle and at the end of the source.
TEST(SourceClock, FramesPassedOverKeepTheirPlaces) {
  for (const double rate : {0.0, 50.0}) {
    const std::int64_t period = rate > 0 ? 20 * kMs : 40 * kMs;
    SourceClock clock({.rate = rate});
    EXPECT_EQ(clock.due(0, 0), 0);
    EXPECT_EQ(clock.due(40 * kMs, 1), period);
    EXPECT_EQ(clock.source_time(10 * period), 10 * 40 * kMs) << "frame 10, in the source's own time";
    clock.passed(9 * 40 * kMs, 9);
    EXPECT_EQ(clock.next_due(), 10 * period);
    EXPECT_EQ(clock.due(10 * 40 * kMs, 10), 10 * period);
    clock.passed(19 * 40 * kMs, 19);
    clock.again();
    EXPECT_EQ(clock.due(0, 0), 20 * period);
    EXPECT_EQ(clock.source_time(23 * period), 3 * 40 * kMs);
  }
}

// Fifteen seconds passed over at once are no gap; in the source's own time after a step and a wrap.
TEST(SourceClock, ALongWayPassedOverIsNoStep) {
  SourceClock clock({.own_rate = 25});
  for (std::uint64_t i = 0; i < 25; ++i) (void)clock.due(kWrap - kSecond + static_cast<std::int64_t>(i) * 40 * kMs, i);
  (void)clock.due(0, 25);
  EXPECT_EQ(clock.source_time(3 * kSecond), 2 * kSecond) << "the wrapped clock's";
  clock.passed(15 * kSecond, 400);
  EXPECT_FALSE(clock.take_step());
  EXPECT_EQ(clock.next_due(), 16 * kSecond + 40 * kMs);
  EXPECT_EQ(clock.due(3 * kSecond, 401), 16 * kSecond + 40 * kMs);
  const auto step = clock.take_step();
  ASSERT_TRUE(step);
  EXPECT_EQ(step->kind, SourceClock::StepKind::back);
  EXPECT_EQ(text_of(*step), "its times stepped back by 12.04 s: frames go on one interval after the last one");
  EXPECT_EQ(clock.source_time(17 * kSecond + 40 * kMs), 4 * kSecond);
}

// Where a source paused, and where frames were passed over, there are no frames to come.
TEST(SourceClock, ATimeBackIntoAGapIsAStep) {
  SourceClock clock({.own_rate = 25});
  (void)clock.due(0, 0);
  (void)clock.due(40 * kMs, 1);
  EXPECT_EQ(clock.due(4 * kSecond, 2), 4 * kSecond) << "it is waited out";
  for (std::uint64_t i = 3; i < 20; ++i)
    EXPECT_EQ(clock.due(2 * kSecond + static_cast<std::int64_t>(i) * 40 * kMs, i) - 4 * kSecond,
              static_cast<std::int64_t>(i - 2) * 40 * kMs);
  EXPECT_TRUE(clock.take_step());
  const std::int64_t next_ns = clock.next_due();
  clock.passed(2 * kSecond + 29 * 40 * kMs, 29);
  EXPECT_EQ(clock.due(2 * kSecond + 25 * 40 * kMs, 30), next_ns + 10 * 40 * kMs);
  EXPECT_TRUE(clock.take_step());
}

// A feeder that is too slow never waits, nor does it where what it reads has piled up: its delay is real.
TEST(SourceClock, WhoNeverWaitsIsAsLateAsItSeems) {
  SourceClock clock({.live = true, .own_rate = 25});
  (void)clock.due(0, 0, {20 * kMs, kMs});
  for (std::uint64_t i = 1; i < 500; ++i) {
    const auto time_ns = static_cast<std::int64_t>(i) * 40 * kMs;
    EXPECT_EQ(clock.due(time_ns, i, {time_ns + 520 * kMs, 0}), time_ns + 20 * kMs) << i;
  }
  EXPECT_FALSE(clock.take_step());
}

// Steps, pauses, losses and delays as they may come, at any rate.
TEST(SourceClock, RandomSequencesKeepTheLaw) {
  const char* const asked = std::getenv("LEAT_CLOCK_SEEDS");
  const unsigned seeds = asked != nullptr ? static_cast<unsigned>(std::strtoul(asked, nullptr, 10)) : 15;
  const auto first = static_cast<unsigned>(std::chrono::system_clock::now().time_since_epoch().count() / kSecond);
  for (unsigned seed = first; seed < first + seeds; ++seed) {
    std::mt19937 random(seed);
    const auto any = [&](double from, double to) { return std::uniform_real_distribution<>(from, to)(random); };
    struct Change {
      double at_s, by_s, pause_s;
    };
    std::vector<Change> changes;
    Sequence s;
    s.name = "seed " + std::to_string(seed);
    s.rate = std::exp(any(0, std::log(240)));
    s.seconds = 40;
    for (double at = any(3, 6); at < 36; at += any(3, 12)) {
      const double by = std::exp(any(std::log(.02), std::log(9000))) * (random() % 2 == 0 ? -1 : 1);
      changes.push_back({at, random() % 4 == 0 ? 0 : by, random() % 4 == 0 ? any(0, 30) : 0});
      s.steps_s.push_back(at);
    }
    const double ppm = any(-1000, 1000);
    const std::int64_t jitter_ns = std::llround(any(0, 20e6)) + 1;
    s.tolerance_ns = 15 * kMs + jitter_ns;
    s.max_said = 1000;
    const auto sum = [changes](std::int64_t t, bool clock) {
      double sum_s = 0;
      for (const Change& c : changes)
        if (static_cast<double>(t) / 1e9 >= c.at_s) sum_s += c.pause_s + (clock ? c.by_s : 0);
      return std::llround(sum_s * 1e9);
    };
    s.real = [=](std::int64_t t) { return t + sum(t, false); };
    s.stamp = [=, real = s.real](std::int64_t t, int) {
      return sum(t, true) + t + std::llround(static_cast<double>(real(t)) * ppm / 1e6);
    };
    s.way = [=](std::int64_t, int i) { return 20 * kMs + noise(i, static_cast<int>(seed % 1000), jitter_ns); };
    const Seen seen = walk_live(s);
    EXPECT_EQ(seen.wrong, 0) << s.name << " at " << s.rate << "/s, jitter " << jitter_ns / kMs << " ms";
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace leat::tools::source_clock_test
