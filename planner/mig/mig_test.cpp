// MIG layouts against an independent validator and an exhaustive search; changes against the instances in force.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "planner/mig/change.h"
#include "planner/mig/paris.h"
#include "planner/test/paris_workloads.h"

namespace leat::planner {
namespace {

// Written again, slice by slice, from the rules alone: an instance covers `memory` slices from its start; slices are
// not shared; compute slices add up; starts and counts as in the table.
bool valid(const MigGeometry& g, const std::vector<MigPlacement>& placements) {
  std::vector<int> owner(g.memory_slices, -1);
  unsigned compute = 0;
  std::map<std::string, unsigned> number;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const MigProfile& p = g.profiles.at(placements[i].profile);
    if (std::count(p.starts.begin(), p.starts.end(), placements[i].start) == 0) return false;
    for (unsigned s = placements[i].start; s < placements[i].start + p.memory; ++s) {
      if (s >= owner.size() || owner[s] != -1) return false;
      owner[s] = static_cast<int>(i);
    }
    compute += p.compute;
    if (++number[p.name] > p.max) return false;
  }
  return compute <= g.compute_slices;
}

std::uint32_t profile(const MigGeometry& g, const std::string& name) {
  for (std::uint32_t i = 0; i < g.profiles.size(); ++i)
    if (g.profiles[i].name == name) return i;
  ADD_FAILURE() << name;
  return 0;
}

TEST(MigGeometry, TablesAreSoundAndKnowTheRules) {
  for (const std::string& name : mig_table_names()) EXPECT_EQ(problem_of(*mig_table(name)), "") << name;
  EXPECT_EQ(mig_table("B300"), nullptr);
  const MigGeometry& a100 = *mig_table("A100-40");
  const std::uint32_t one = profile(a100, "1g.5gb"), three = profile(a100, "3g.20gb"), four = profile(a100, "4g.20gb");
  const auto problem = [&](std::vector<MigPlacement> p) { return problem_of(a100, p); };
  EXPECT_EQ(problem({{four, 0}, {three, 4}}), "");
  EXPECT_NE(problem({{three, 0}, {four, 4}}), "");  // a 4g starts at 0 only
  EXPECT_NE(problem({{three, 0}, {four, 0}}), "");  // first-fit of the 3g would block it
  EXPECT_EQ(problem({{three, 0}, {three, 4}}), "");
  EXPECT_NE(problem({{three, 0}, {three, 4}, {one, 0}}), "");
  EXPECT_NE(problem({{one, 7}}), "");  // the eighth memory slice starts nothing of one slice
  const std::uint32_t media = profile(a100, "1g.5gb+me");
  EXPECT_NE(problem({{media, 0}, {media, 1}}), "");
}

TEST(MigLayout, EveryMaximalLayoutIsValidAndTheUsualOnesAreThere) {
  for (const std::string& name : mig_table_names()) {
    const MigGeometry& g = *mig_table(name);
    const auto profiles = profiles_for(g, 0);
    for (const SizeCounts& counts : maximal_layouts(g, profiles)) {
      const auto ways = placements_of(g, profiles, counts);
      EXPECT_FALSE(ways.empty());
      for (const auto& placements : ways) {
        EXPECT_TRUE(valid(g, placements)) << name;
        EXPECT_EQ(problem_of(g, placements), "") << name;
      }
    }
  }
  const MigGeometry& a100 = *mig_table("A100-40");
  const auto layouts = maximal_layouts(a100, profiles_for(a100, 0));  // sizes 1, 2, 3, 4, 7
  for (const SizeCounts& usual : std::vector<SizeCounts>{{0, 0, 0, 0, 1},
                                                         {0, 0, 1, 1, 0},
                                                         {0, 0, 2, 0, 0},
                                                         {7, 0, 0, 0, 0},
                                                         {1, 3, 0, 0, 0},
                                                         {0, 2, 1, 0, 0},
                                                         {2, 1, 1, 0, 0},
                                                         {3, 0, 0, 1, 0}})
    EXPECT_EQ(std::count(layouts.begin(), layouts.end(), usual), 1) << ::testing::PrintToString(usual);
}

// The validator and problem_of() agree on every set of up to three random placements.
TEST(MigLayout, ValidatorsAgree) {
  std::uint64_t x = 12345;
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto draw = [&](std::uint64_t n) {
      return static_cast<std::uint32_t>((x = x * 6364136223846793005ull + 1442695040888963407ull) >> 33) % n;
    };
    const MigGeometry& g = *mig_table(mig_table_names()[draw(5)]);
    std::vector<MigPlacement> p;
    for (std::uint64_t n = 1 + draw(3); n > 0; --n)
      p.push_back({static_cast<std::uint32_t>(draw(g.profiles.size())), static_cast<std::uint32_t>(draw(8))});
    EXPECT_EQ(valid(g, p), problem_of(g, p).empty());
    good += valid(g, p);
  }
  EXPECT_GT(good, 1000);
}

TEST(MigLayout, SmallestProfileThatHoldsTheModel) {
  const MigGeometry& g = *mig_table("A100-40");
  EXPECT_EQ(g.profiles[profiles_for(g, 0)[0]].name, "1g.5gb");
  EXPECT_EQ(g.profiles[profiles_for(g, 8000)[0]].name, "1g.10gb");
  EXPECT_EQ(g.profiles[profiles_for(g, 15000)[0]].name, "3g.20gb");
  EXPECT_TRUE(profiles_for(g, 100000).empty());
}

// The cutting-plane search against solving every combination of layouts of up to three GPUs.
TEST(MigLayout, ExactSearchEqualsExhaustiveSearch) {
  for (std::uint32_t i = 0; i < 25; ++i) {
    ParisWorkload w = paris_workload(21, i);
    w.gpus = 1 + w.gpus % 3;
    const MigGeometry& g = *mig_table(w.geometry);
    const LayoutSpace space(g, profiles_for(g, 0), w.gpus);
    const SizeDemand d = size_demand(w.model, w.batch_share, space.compute_of_sizes(), w.sla_factor);
    double max = 0;
    std::set<SizeCounts> seen;
    const std::function<void(std::uint32_t, std::uint32_t, SizeCounts)> visit =
        [&](std::uint32_t gpu, std::uint32_t from, SizeCounts counts) {
          if (gpu == w.gpus) {
            if (seen.insert(counts).second)
              max = std::max(max, served_load(d, {counts.begin(), counts.end()}).rate_rps);
            return;
          }
          for (std::uint32_t l = from; l < space.layouts().size(); ++l) {
            SizeCounts next = counts;
            for (std::size_t k = 0; k < next.size(); ++k) next[k] += space.layouts()[l][k];
            visit(gpu + 1, l, next);
          }
        };
    visit(0, 0, SizeCounts(space.profiles().size()));
    EXPECT_EQ(seen.size(), space.size());
    const LayoutChoice best = space.best_layout(d);
    EXPECT_NEAR(best.served_rps, max, 1e-6 * max) << i;
    EXPECT_NEAR(best.bound_rps, max, 1e-6 * max) << i;
    EXPECT_EQ(best.layouts.size(), w.gpus);
  }
}

// ---- changes ----

void expect_sound(const MigHost& host, const MigChange& change) {
  for (std::size_t g = 0; g < host.gpus.size(); ++g) {
    std::vector<MigPlacement> after = change.gpus[g].created;
    for (const MigInstance& i : change.gpus[g].kept) after.push_back(i.placement);
    EXPECT_TRUE(valid(host.geometry, after));
    EXPECT_EQ(change.gpus[g].kept.size() + change.gpus[g].destroyed.size(), host.gpus[g].instances.size());
  }
}

TEST(MigChange, KeepsWhatTheWantedLayoutHasToo) {
  const MigGeometry& g = *mig_table("A100-40");
  MigHost host{g, {{0, "", true, {}}, {1, "", true, {}}}};
  const std::uint32_t one = profile(g, "1g.5gb"), two = profile(g, "2g.10gb"), three = profile(g, "3g.20gb"),
                      seven = profile(g, "7g.40gb");
  host.gpus[0].instances = {{{three, 0}, 1, "", "worker a"}, {{two, 4}, 3, "", ""}, {{one, 6}, 5, "", ""}};
  host.gpus[1].instances = {{{seven, 0}, 0, "", "worker b"}};
  const LayoutSpace space(g, profiles_for(g, 0), 2);
  const SizeDemand d = size_demand(analytic_models()[1], lognormal_batches(1, 1, 16), space.compute_of_sizes(), 2);
  const auto layout = [&](const SizeCounts& c) {
    return static_cast<std::uint32_t>(std::find(space.layouts().begin(), space.layouts().end(), c) -
                                      space.layouts().begin());
  };
  // A whole GPU and two halves, dealt in the wrong order.
  const MigChange change = change_to(space, host, {layout({0, 0, 0, 0, 1}), layout({0, 0, 2, 0, 0})}, d);
  expect_sound(host, change);
  EXPECT_FALSE(change.gpus[1].any());         // the whole GPU stays as it is
  ASSERT_EQ(change.gpus[0].kept.size(), 1u);  // the 3g stays, in use
  EXPECT_EQ(change.gpus[0].kept[0].used_by, "worker a");
  ASSERT_EQ(change.gpus[0].created.size(), 1u);
  EXPECT_EQ(change.gpus[0].created[0].start, 4u);
  const std::vector<std::string> commands = commands_for(host, change);
  ASSERT_EQ(commands.size(), 5u);
  EXPECT_EQ(commands[0], "nvidia-smi mig -i 0 -dci -gi 3");
  EXPECT_EQ(commands.back(), "nvidia-smi mig -i 0 -cgi 3g.20gb:4 -C");
}

TEST(MigChange, LeastChangeServesEnoughAndStopsNothingWhenThereIsNoNeed) {
  for (std::uint32_t i = 0; i < 25; ++i) {
    const ParisWorkload before = paris_workload(31, i);
    const MigGeometry& g = *mig_table(before.geometry);
    const LayoutSpace space(g, profiles_for(g, 0), before.gpus);
    const ParisWorkload now = paris_workload(32, i);
    const SizeDemand d = size_demand(now.model, now.batch_share, space.compute_of_sizes(), now.sla_factor);
    MigHost host{g, {}};
    for (std::uint32_t l : random_layout(space, i, d).layouts) {
      MigGpu gpu{static_cast<std::uint32_t>(host.gpus.size()), "", true, {}};
      const auto ways = placements_of(g, space.profiles(), space.layouts()[l]);
      for (const MigPlacement& p : ways[0]) gpu.instances.push_back({p, 1, "", p.start == 0 ? "someone" : ""});
      host.gpus.push_back(gpu);
    }
    const LayoutChoice best = space.best_layout(d);
    const MigChange full = change_to(space, host, best.layouts, d), min = min_change(space, host, best, 0.02, d);
    expect_sound(host, full);
    expect_sound(host, min);
    EXPECT_NEAR(full.served_rps, best.served_rps, 1e-6 * best.served_rps);
    EXPECT_GE(min.served_rps, 0.98 * best.served_rps * (1 - 1e-6));
    const auto stopped = [](const MigChange& c) {
      std::size_t n = 0;
      for (const GpuChange& gpu : c.gpus) n += gpu.destroyed.size();
      return n;
    };
    if (min.served_before_rps >= 0.98 * best.served_rps) {
      EXPECT_EQ(stopped(min), 0u);
    }
  }
}

TEST(MigHost, ReadsAndRefuses) {
  const auto good = parse_mig_host(R"({"schema": "leat-mig/1", "geometry": "A100-40", "gpus": [
    {"index": 0, "instances": [{"profile": "3g.20gb", "start": 4, "id": 2, "used_by": "worker"}]}]})",
                                   "h");
  ASSERT_TRUE(good) << good.error();
  EXPECT_EQ(good->gpus[0].instances[0].placement.start, 4u);
  EXPECT_FALSE(good->geometry.from_driver);
  for (
      const char* bad :
      {R"({"schema": "leat-mig/1", "geometry": "A9", "gpus": [{"index": 0}]})",
       R"({"schema": "leat-mig/1", "geometry": "A30", "gpus": []})",
       R"({"schema": "leat-mig/1", "geometry": "A30", "gpus": [{"index": 0, "instances": [{"profile": "4g.24gb", "start": 1}]}]})",
       R"({"schema": "leat-mig/1", "geometry": "A30", "gpus": [{"index": 0, "instances": [{"profile": "9g", "start": 0}]}]})",
       R"({"schema": "leat-mig/2", "geometry": "A30", "gpus": [{"index": 0}]})", R"([])", R"({)"}) {
    const auto refused = parse_mig_host(bad, "h");
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace leat::planner
