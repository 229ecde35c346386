// Tasks of one client that take turns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/core/streams/test_world.h"

namespace leat::core::streams {
namespace {

constexpr TimeNs kSecond = 1'000'000'000, kPeriod = 16'666'667;

// The mean weighted loss of a frame with these slots, from `from` on.
double loss(const std::vector<World::Slot>& slots, const std::map<std::uint32_t, double>& slope, TimeNs from,
            const StrideCurve& curve) {
  double sum = 0, frames = 0;
  for (const auto& [id, r] : slope) {
    TimeNs source = INT64_MIN, serves = 0;
    for (const World::Slot& s : slots) {
      if (s.id != id) continue;
      for (TimeNs at = std::max(from, serves); source != INT64_MIN && at < s.end; at += kPeriod, ++frames)
        sum += r * curve.at(static_cast<std::uint32_t>((at - source) / kPeriod));
      source = s.start, serves = s.end;
    }
  }
  return sum / frames;
}

// The slots as the program alone hands them out, knowing the slopes.
std::vector<World::Slot> by_program(std::vector<World::Slot> slots, const std::map<std::uint32_t, double>& slope,
                                    std::uint32_t apart, const StrideCurve& curve) {
  GroupPlanner program(curve);
  std::vector<GroupTask> tasks;
  std::vector<std::uint32_t> ids;
  for (const auto& [id, r] : slope) tasks.push_back({.slope = r, .latency = apart}), ids.push_back(id);
  std::vector<TimeNs> asked(ids.size(), slots.front().start);
  for (World::Slot& slot : slots) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      tasks[i].age = static_cast<std::uint32_t>((slot.start - asked[i]) / kPeriod);
    const std::uint32_t next = program.next(tasks, std::min(kGroupHorizon, 6 * apart));
    slot.id = ids[next];
    asked[next] = slot.start;
  }
  return slots;
}

double times(const std::vector<World::Slot>& slots, std::uint32_t id) {
  return static_cast<double>(std::count_if(slots.begin(), slots.end(), [&](const auto& s) { return s.id == id; }));
}

TEST(Groups, TasksTakeTurnsByWhatTheyLoseAndOneAtATime) {
  World w(2, {});
  w.add(0.004, {.sla_drop = 0.06});
  const std::uint32_t slow = w.add(0.002, {.sla_drop = 0.06, .group = 7});
  const std::uint32_t quick = w.add(0.02, {.sla_drop = 0.06, .group = 7});
  w.add(0.004, {.sla_drop = 0.06});
  w.run(25 * kSecond);
  std::vector<World::Slot> slots;
  for (const World::Slot& s : w.slots) {
    if (s.start < 8 * kSecond || (s.id != slow && s.id != quick)) continue;
    if (!slots.empty() && slots.back().start == s.start) continue;  // of a probe
    slots.push_back(s);
  }
  std::sort(slots.begin(), slots.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  for (std::size_t i = 1; i < slots.size(); ++i) EXPECT_GE(slots[i].start, slots[i - 1].end);
  const double apart =
      static_cast<double>(slots.back().start - slots.front().start) / kPeriod / static_cast<double>(slots.size() - 1);
  // The same slots by the program alone, and one after the other.
  const std::map<std::uint32_t, double> slopes = {{slow, 0.002}, {quick, 0.02}};
  const auto program = by_program(slots, slopes, static_cast<std::uint32_t>(std::lround(apart)), w.c.curve());
  std::vector<World::Slot> turns = slots;
  for (std::size_t i = 0; i < turns.size(); ++i) turns[i].id = i % 2 == 0 ? slow : quick;
  const auto lost = [&](const auto& s) { return loss(s, slopes, 9 * kSecond, w.c.curve()); };
  const double share = times(slots, quick) / times(slots, slow), meant = times(program, quick) / times(program, slow);
  std::printf("every %.1f frames, turns %.2f to 1, by the program %.2f to 1; loss %.4f, %.4f, in turns %.4f\n", apart,
              share, meant, lost(slots), lost(program), lost(turns));
  EXPECT_GT(meant, 1.4);
  EXPECT_NEAR(share / meant, 1, 0.15);
  EXPECT_LT(lost(slots), 1.02 * lost(program));
  EXPECT_LT(lost(slots), 0.9 * lost(turns));
  EXPECT_LT(lost(slots), 0.06);
  EXPECT_EQ(w.c.view(slow).standing, Standing::admitted);
  EXPECT_EQ(w.c.view(slow).evictions + w.c.view(0).evictions, 0u);
}

TEST(Groups, WhatALocalAlgorithmDoesWellIsSeldomAskedFor) {
  World w(1, {});
  const std::uint32_t alone = w.add(0.01, {.sla_drop = 0.06, .group = 1});
  const std::uint32_t helped = w.add(0.01, {.sla_drop = 0.06, .group = 1, .local = 0.01});
  w.run(15 * kSecond);
  std::map<std::uint32_t, int> asked;
  for (const World::Slot& s : w.slots)
    if (s.start > 5 * kSecond) ++asked[s.id];
  EXPECT_GT(asked[helped], 5);  // an answer is renewed at the latest when it is a second old
  EXPECT_GT(asked[alone], 2 * asked[helped]);
}

TEST(Groups, AreBoundedAndGoWithTheirLastTask) {
  CoordinatorSettings settings;
  settings.streams = 8;
  World w(1, settings);
  std::vector<std::uint32_t> tasks;
  for (std::uint32_t i = 0; i < kGroupTasks; ++i) tasks.push_back(w.add(0.004, {.group = 3}));
  EXPECT_EQ(w.add(0.004, {.group = 3}), kNone);  // four are enough
  const std::uint32_t other = w.add(0.004, {.group = 4});
  EXPECT_NE(other, kNone);
  EXPECT_NE(w.add(0.004, {}), kNone);  // the last place
  EXPECT_EQ(w.add(0.004, {.group = 4}), kNone);
  w.run(3 * kSecond);
  EXPECT_EQ(w.c.admitted_streams(), 3u);
  w.c.close(w.now, tasks[0]);
  w.c.close(w.now, tasks[2]);
  w.run(5 * kSecond);
  EXPECT_EQ(w.c.view(tasks[1]).standing, Standing::admitted);
  EXPECT_EQ(w.c.view(tasks[0]).standing, Standing::none);
  w.c.close(w.now, tasks[1]);
  w.c.close(w.now, tasks[3]);
  w.c.close(w.now, other);
  w.run(6 * kSecond);
  EXPECT_EQ(w.c.admitted_streams(), 1u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_NE(w.add(0.004, {.group = 9}), kNone) << i;  // and all places are free
  EXPECT_NE(w.add(0.004, {.group = 10}), kNone);
}

TEST(Groups, ALiarSpendsItsOwnGroupsShare) {
  World w(1, {});
  for (int i = 0; i < 6; ++i) w.add(0.004, {.sla_drop = 0.06});
  const std::uint32_t honest = w.add(0.004, {.sla_drop = 0.06, .max_share = 0.1, .group = 5});
  w.lying = w.add(0.004, {.sla_drop = 0.06, .max_share = 0.1, .group = 5});
  w.run(15 * kSecond);
  for (std::uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(w.c.view(i).standing, Standing::admitted) << i;
    EXPECT_EQ(w.c.view(i).evictions, 0u) << i;
    EXPECT_LE(w.c.view(i).measured_drop, 0.06) << i;
  }
  EXPECT_LE(w.c.view(honest).setting.load, 0.2 + 1e-9);
}

TEST(Groups, OneThatStopsIsPlannedNoMoreUntilOneOfItsTasksSpeaks) {
  World w(1, {});
  const std::uint32_t a = w.add(0.004, {.group = 1}), b = w.add(0.004, {.group = 1});
  w.run(3 * kSecond);
  EXPECT_EQ(w.c.view(a).standing, Standing::admitted);
  for (int i = 0; i < 15; ++i) w.c.tick(w.now += 200'000'000);  // no answers
  EXPECT_EQ(w.c.view(a).standing, Standing::silent);
  EXPECT_EQ(w.c.view(b).standing, Standing::silent);
  w.c.spoke(w.now, b);
  EXPECT_EQ(w.c.view(a).standing, Standing::waiting);
  w.c.tick(w.now += 200'000'000);
  EXPECT_EQ(w.c.view(a).standing, Standing::admitted);
}

}  // namespace
}  // namespace leat::core::streams
