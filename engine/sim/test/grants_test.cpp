// Streams that wait for grants, through the core as it ships: in overload nothing is produced that is not used,
// everybody has his turn, and who does not use his holds nobody up.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

#include "engine/core/policy/policy_settings.h"
#include "engine/core/test/test_bench.h"
#include "engine/sim/simulator.h"

namespace leat::sim {
namespace {

using core::test::kMs;
using core::test::kUs;

constexpr TimeNs kPeriod = 33'333'333, kSecond = 1'000 * kMs, kLength = 4 * kSecond;

// A detector and a classifier of what it finds, on the same two partitions: some 1000 pictures a second.
core::Topology two_modules() {
  core::Topology t = core::test::chain(2, 1, 4, 200 * kUs, 1'200 * kUs, 100 * kMs);
  t.routes[1].stages[0].latency = core::test::affine(100 * kUs, 100 * kUs, 16);
  t.routes[1].batch = 16;
  for (core::RouteSpec& r : t.routes) r.stages[0].pool = {0, 1};
  t.modules[1].fan_out_cap = 4;
  t.modules[1].items_per_request = 3;
  return t;
}

struct Play {
  explicit Play(std::uint32_t cameras, bool waits) {
    s.topology = two_modules();
    EXPECT_TRUE(core::preset("leat", s.policy));
    s.limits.streams = 128;
    s.streams.clear();
    s.check_every = 64;
    s.noise_permille = 50;
    for (std::uint32_t c = 0; c < cameras; ++c) add(waits);
  }
  std::uint32_t add(bool waits) {
    s.streams.push_back({.depth = 4, .supersede = core::Supersede::latest, .waits_for_grants = waits});
    return static_cast<std::uint32_t>(s.streams.size() - 1);
  }
  Outcomes run() {
    std::vector<Arrival> all;
    for (std::uint32_t c = 0; c < s.streams.size(); ++c) {
      const TimeNs phase = phases_alike ? 0 : kPeriod * c / static_cast<TimeNs>(s.streams.size());
      for (TimeNs at = 1 + phase; at < kLength; at += kPeriod)
        all.push_back({.at_ns = at, .capture_ns = at, .stream = c});
    }
    std::ranges::stable_sort(all, {}, &Arrival::at_ns);
    s.arrivals = all;
    done.assign(s.streams.size(), 0);
    latency.clear();
    s.on_answer = [this](const AnswerEvent& e) {
      if (e.outcome != Outcome::completed) return;
      const Arrival& a = s.arrivals[e.arrival];
      ++done[a.stream];
      latency.push_back(e.at_ns - a.capture_ns);
    };
    Outcomes out = sim::run(s);
    EXPECT_TRUE(out.drained);
    std::ranges::sort(latency);
    return out;
  }
  Scenario s;
  bool phases_alike = false;
  std::vector<std::uint32_t> done;  // by stream
  std::vector<TimeNs> latency;      // of what was completed
};

std::uint64_t completed(const Outcomes& out) { return out.counters.total.of(Outcome::completed); }
std::uint64_t submitted(const Outcomes& out) { return out.counters.total.submitted; }

TEST(Grants, WithRoomForAllEveryPictureIsWantedAtOnce) {
  for (const bool alike : {false, true}) {
    Play with(20, true), without(20, false);
    with.phases_alike = without.phases_alike = alike;
    for (Producer& p : with.s.producers = std::vector<Producer>(20)) p.write_ns = 0;
    const Outcomes a = with.run(), b = without.run();
    EXPECT_EQ(a.left_out, 0u);
    EXPECT_EQ(a.counters.total.granted, 0u);
    EXPECT_EQ(completed(a), submitted(b));
    // Pictures that nothing replaces go by their deadlines, others the freshest first: the order differs, the work not.
    const auto mean = [](const Play& p) { return std::accumulate(p.latency.begin(), p.latency.end(), TimeNs{0}); };
    EXPECT_LE(mean(with) * 100, mean(without) * 105);
  }
}

TEST(Grants, InOverloadNothingIsProducedForNothing) {
  for (const std::uint32_t cameras : {48u, 64u, 96u}) {
    SCOPED_TRACE(cameras);
    Play with(cameras, true), without(cameras, false);
    const Outcomes a = with.run(), b = without.run();
    EXPECT_EQ(completed(a), submitted(a));
    EXPECT_GE(submitted(a) + a.left_out + cameras, a.requests);  // the rest is at hand at the end
    // Where a picture costs nothing there is little to gain; what it saves where it does is not simulated.
    EXPECT_GE(completed(a) * 100, completed(b) * 99);
    // A picture has just come when it is asked for. With the cameras in turn it is half a period old, on the mean,
    // before it even begins; here half of the answers are there by then.
    const auto ms = [](TimeNs ns) { return static_cast<double>(ns) / 1e6; };
    std::printf("%u cameras: p50 %.1f ms, p99 %.1f ms\n", cameras, ms(with.latency[with.latency.size() / 2]),
                ms(with.latency[with.latency.size() * 99 / 100]));
    EXPECT_LE(with.latency[with.latency.size() / 2], kPeriod / 2);
    const auto [least, most] = std::ranges::minmax(with.done);
    EXPECT_LE(most - least, most / 20 + 1);
  }
}

// Clients that look when a picture comes, and leave it out where it is not wanted then.
TEST(Grants, WhoLooksOnlyOnceLosesLittle) {
  Play with(48, true), without(48, false);
  with.s.producers.assign(48, {.looks_once = true});
  const Outcomes a = with.run(), b = without.run();
  EXPECT_GE(completed(a) * 100, completed(b) * 95);
  EXPECT_LE((submitted(a) - completed(a)) * 50, submitted(a));
}

// Takes its turns and submits nothing.
TEST(Grants, WhoDoesNotUseItsTurnsHoldsNobodyUp) {
  Play honest(48, true), with(48, true);
  const Outcomes a = honest.run();
  for (int i = 0; i < 8; ++i) with.add(true);
  with.s.producers.resize(with.s.streams.size());
  for (std::size_t i = 48; i < with.s.streams.size(); ++i) with.s.producers[i].stalls_from_ns = 0;
  const Outcomes b = with.run();
  EXPECT_GE(completed(b) * 100, completed(a) * 99);
}

// Streams that do not look compete as ever, and those that wait do not stand back behind them.
TEST(Grants, BesideStreamsThatDoNotLookEverybodyHasHisPart) {
  Play mixed(24, true), without(48, false);
  for (int i = 0; i < 24; ++i) mixed.add(false);
  const Outcomes a = mixed.run(), b = without.run();
  std::uint64_t waiting = 0, others = 0;
  for (std::size_t i = 0; i < 48; ++i) (i < 24 ? waiting : others) += mixed.done[i];
  EXPECT_GE((waiting + others) * 100, completed(b) * 97);
  EXPECT_GE(waiting * 100, others * 80);
  EXPECT_GE(others * 100, waiting * 80);
}

// A class goes before the ones below it, and what fits is wanted at once.
TEST(Grants, ClassesDecideWhoseTurnItIs) {
  Play p(48, true);
  for (std::size_t i = 0; i < 8; ++i) p.s.streams[i].priority = core::Priority::protected_;
  const Outcomes a = p.run();
  for (std::size_t i = 0; i < 8; ++i) EXPECT_GE(p.done[i], kLength / kPeriod - 1) << i;
  EXPECT_LE(a.counters.total.of(Reason::superseded), 1u);  // the one by which it is seen that there is no room
}

// Users share by weight: sixteen streams of one have what is theirs beside thirty-two of the other.
TEST(Grants, UsersHaveTheirShares) {
  Play with(48, true), without(48, false);
  for (Play* p : {&with, &without})
    for (std::size_t i = 0; i < 48; ++i) p->s.streams[i].user = i < 16 ? 1 : 2;
  const Outcomes a = with.run(), b = without.run();
  const auto first = [](const Play& p) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < 16; ++i) sum += p.done[i];
    return sum;
  };
  EXPECT_GE(completed(a) * 100, completed(b) * 99);
  EXPECT_GE(first(with) * 100, std::min<std::uint64_t>(first(without), 16 * kLength / kPeriod) * 95);
}

// Every stream has a picture until it is asked for one.
struct AlwaysOffers final : core::Offers {
  [[nodiscard]] std::optional<TimeNs> picture_ns(core::StreamId stream) const noexcept override {
    return used[stream] ? std::nullopt : std::optional<TimeNs>(1);
  }
  std::array<bool, 8> used{};
};

TEST(Grants, NobodyIsWokenForATurnThatWasUsed) {
  core::Policy leat;
  ASSERT_TRUE(core::preset("leat", leat));
  core::test::Bench b(core::test::chain(1, 1, 1, 100 * kUs, 0, 100 * kMs), leat);
  AlwaysOffers offers;
  b.core.watch_offers(offers);
  std::vector<core::StreamId> streams;
  for (int i = 0; i < 6; ++i) streams.push_back(b.open({.depth = 4, .waits_for_grants = true}));
  std::uint64_t token = 0;
  for (int twice = 0; twice < 2; ++twice)
    for (const core::StreamId s : streams) b.submit(s, ++token, 1, ++b.now);  // the first ones are replaced
  ASSERT_FALSE(b.core.schedule(streams[0]).open) << "so they take turns";
  std::vector<std::uint64_t> had(streams.size(), 0);
  std::uint64_t turns = 0;
  for (const TimeNs end = b.now + 3 * kMs; b.now < end; b.run_to(b.now + 50 * kUs)) {  // none expires meanwhile
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (b.core.schedule(streams[i]).granted == had[i]) continue;
      had[i] = b.core.schedule(streams[i]).granted;
      ++turns;
      offers.used[streams[i]] = true;
      b.submit(streams[i], ++token, 1, b.now);
    }
  }
  ASSERT_GT(turns, 0U);
  ASSERT_TRUE(b.core.idle());
  EXPECT_EQ(b.core.next_timer(), core::kNever);
}

// Partitions go and come back, clients are slow, another plan takes over: the books hold, and everything is answered.
TEST(Grants, SurvivesFaults) {
  Play p(48, true);
  p.s.check_every = 1;
  p.s.producers.resize(48);
  for (std::size_t i = 0; i < 48; ++i)
    p.s.producers[i] = {.write_ns = static_cast<TimeNs>(i) * 500 * kUs, .looks_once = i % 3 == 0};
  p.s.faults = {{500 * kMs, FaultKind::lose, 0, 0},     {900 * kMs, FaultKind::lose, 1, 0},
                {1200 * kMs, FaultKind::restore, 0, 0}, {1500 * kMs, FaultKind::slow, 0, 2500},
                {1800 * kMs, FaultKind::restore, 1, 0}, {2200 * kMs, FaultKind::slow, 0, 1000}};
  p.s.replacements.push_back({.at_ns = 2500 * kMs, .topology = two_modules()});
  const Outcomes a = p.run();
  EXPECT_GT(completed(a), 1000u);
  EXPECT_GT(*std::ranges::min_element(p.done), 10u);
}

}  // namespace
}  // namespace leat::sim
