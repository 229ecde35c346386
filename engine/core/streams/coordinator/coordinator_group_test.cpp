// Tasks of one client that take turns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <random>

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

// Of a task whose content is calm and hard by turns, beside a steady one: how much larger its share of slots is while
// it is hard than while it is calm. certain: its client says what it expects.
double follows(bool certain) {
  World w(1, {});
  const std::uint32_t steady = w.add(0.01, {.sla_drop = 0.15, .group = 1});
  const std::uint32_t moody = w.add(0.01, {.sla_drop = 0.15, .group = 1});
  if (certain) w.expects[moody] = 1;
  std::array<double, 2> own{}, all{};
  for (std::size_t half = 0; half < 40; ++half) {
    w.slopes[moody] = half % 2 == 0 ? 0.002 : 0.03;
    const auto before = static_cast<std::ptrdiff_t>(w.slots.size());
    w.run(w.now + kSecond);
    if (half < 10) continue;
    const std::vector<World::Slot> slots(w.slots.begin() + before, w.slots.end());
    own[half % 2] += times(slots, moody), all[half % 2] += times(slots, moody) + times(slots, steady);
  }
  return own[1] / all[1] - own[0] / all[0];
}

TEST(Groups, ATaskThatExpectsToLoseMoreHasMoreTurns) {
  const double by_age = follows(false), certain = follows(true);
  std::printf("of its group's slots, while it is hard: by age %.3f more, certain %.3f\n", by_age, certain);
  EXPECT_GT(certain, by_age + 0.02);
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

// ---- several modules ----

TEST(Modules, ShareAPartitionsTimeInBatchesOfOneEach) {
  World w(std::vector<BatchTimes>{{profile(6, 1.5)}, {profile(12, 3)}}, {});
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 24; ++i) ids.push_back(w.add(0.004, {.sla_drop = 0.06, .module = i % 2}));
  w.run(12 * kSecond);
  std::sort(w.slots.begin(), w.slots.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  for (std::size_t i = 1; i < w.slots.size(); ++i) {
    if (w.slots[i].start == w.slots[i - 1].start)
      EXPECT_EQ(w.slots[i].id % 2, w.slots[i - 1].id % 2);
    else
      EXPECT_GE(w.slots[i].start, w.slots[i - 1].end);
  }
  for (const std::uint32_t id : ids) {
    EXPECT_EQ(w.c.view(id).standing, Standing::admitted) << id;
    EXPECT_GT(w.c.view(id).measured_drop, 0) << id;
    EXPECT_LE(w.c.view(id).measured_drop, 0.06) << id;
  }
}

TEST(Modules, RunWhereTheyAreServedAndOneThatIsNowhereUpCostsNobody) {
  const std::vector<TimeNs> here = profile(6, 1.5);
  World w(std::vector<BatchTimes>{{here, here}, {{}, here}, {here, {}}}, {});
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 12; ++i) ids.push_back(w.add(0.004, {.sla_drop = 0.06, .module = i % 3}));
  EXPECT_EQ(w.add(0.004, {.module = 3}), kNone);
  w.run(6 * kSecond);
  w.c.partition(1, false);
  w.run(12 * kSecond);
  std::map<std::uint32_t, int> late;
  for (const World::Slot& s : w.slots) {
    EXPECT_TRUE(s.id % 3 == 0 || s.partition == (s.id % 3 == 1 ? 1u : 0u)) << s.id;
    if (s.start > 7 * kSecond) ++late[s.id % 3];
  }
  EXPECT_EQ(late[1], 0);
  EXPECT_GT(late[0], 20);
  EXPECT_GT(late[2], 20);
  for (const std::uint32_t id : ids) EXPECT_EQ(w.c.view(id).evictions, 0u) << id;
  w.c.partition(1, true);
  for (const std::uint32_t id : ids) w.c.spoke(w.now, id);
  w.run(15 * kSecond);
  for (const std::uint32_t id : ids) EXPECT_EQ(w.c.view(id).standing, Standing::admitted) << id;
}

// Two models on one camera: a quick one whose answers age fast, a slow one whose answers keep.
TEST(Modules, TheTasksOfAGroupDivideItsSlaSoThatItCostsTheLeast) {
  const std::vector<BatchTimes> times = {{profile(4, 1)}, {profile(40, 10)}};
  const auto run = [&](bool grouped) {
    auto w = std::make_unique<World>(times, CoordinatorSettings{});
    const std::uint64_t group = grouped ? 5 : 0;
    const std::uint32_t quick = w->add(0.006, {.sla_drop = 0.06, .module = 0, .group = group});
    const std::uint32_t slow = w->add(0.002, {.sla_drop = 0.06, .module = 1, .group = group});
    w->run(20 * kSecond);
    EXPECT_EQ(w->c.view(quick).standing, Standing::admitted);
    EXPECT_EQ(w->c.view(slow).standing, Standing::admitted);
    EXPECT_LE((w->c.view(quick).measured_drop + w->c.view(slow).measured_drop) / 2, 0.06);
    return w->c.view(quick).setting.load + w->c.view(slow).setting.load;
  };
  const double together = run(true), apart = run(false);
  std::printf("load %.4f as a group, %.4f apart\n", together, apart);
  EXPECT_LT(together, apart);
}

TEST(Modules, TheTasksOfAGroupComeAndGoTogether) {
  // There is room for about one group.
  World w(std::vector<BatchTimes>{{profile(10, 5)}, {profile(20, 10)}}, {});
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 16; ++i)
    ids.push_back(w.add(0.012, {.sla_drop = 0.04, .module = i % 2, .group = 1 + i / 2}));
  std::uint32_t together = 0;
  for (int tick = 0; tick < 60; ++tick) {
    w.run(w.now + 200'000'000);
    for (std::size_t i = 0; i < ids.size(); i += 2) {
      EXPECT_EQ(w.c.view(ids[i]).standing, w.c.view(ids[i + 1]).standing) << i;
      together += w.c.view(ids[i]).standing == Standing::admitted ? 1 : 0;
    }
  }
  EXPECT_GT(together, 30u);
  EXPECT_LT(w.c.admitted_streams(), 16u);
  for (const std::uint32_t id : ids) w.c.close(w.now, id);
  EXPECT_EQ(w.c.admitted_streams(), 0u);
}

TEST(SlaShares, AreWhatEnumerationFinds) {
  std::mt19937 random(7);
  const auto draw = [&](double min, double max) {
    return std::exp(std::uniform_real_distribution(std::log(min), std::log(max))(random));
  };
  for (int round = 0; round < 200; ++round) {
    std::array<SlaPart, 2> parts;
    for (SlaPart& p : parts)
      p = {.weight = draw(0.2, 5), .slope = draw(0.001, 0.05), .cost = draw(0.1, 10), .local = draw(0.01, 1)};
    const double budget = 0.06 * (parts[0].weight + parts[1].weight);
    const auto cost = [&](std::size_t i, double drop) {
      return drop >= parts[i].local ? 0 : parts[i].cost * parts[i].slope / (2 * drop);
    };
    // What it loses: its drop, or where that is allowed no more than its local algorithm's.
    const auto got = share_sla(parts, budget);
    double spent = 0;
    for (std::size_t i = 0; i < 2; ++i) spent += parts[i].weight * std::min(got[i], parts[i].local);
    EXPECT_LE(spent, budget * (1 + 1e-9)) << round;
    double min = std::numeric_limits<double>::infinity();
    for (int n = 1; n < 2000; ++n) {
      const double first = budget * n / 2000 / parts[0].weight;
      const double rest = (budget - parts[0].weight * std::min(first, parts[0].local)) / parts[1].weight;
      min = std::min(min, cost(0, first) + cost(1, rest));
    }
    EXPECT_LE(cost(0, got[0]) + cost(1, got[1]), min + 1e-9) << round;
  }
}

}  // namespace
}  // namespace leat::core::streams
