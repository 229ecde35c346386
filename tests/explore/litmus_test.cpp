// The explorer itself, held to the small programs ("litmus tests") whose outcomes under C++'s memory model are known:
// what it permits must be found, what it forbids must never be.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <string>

#include "shm/src/rings/fences.h"
#include "tests/explore/explorer.h"

namespace leat::explore {
namespace {

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

// Two words, and what the actors' loads returned.
struct Small {
  std::uint64_t x = 0, y = 0, z = 0;
  std::array<int, 4> r{};
};
Small small;

void put(std::uint64_t& word, std::uint64_t value, std::memory_order order = memory_order_relaxed) {
  shm::atomic_ref(word).store(value, order);
}
int get(std::uint64_t& word, std::memory_order order = memory_order_relaxed) {
  return static_cast<int>(shm::atomic_ref(word).load(order));
}
bool add(std::uint64_t& word, std::memory_order order) {
  std::uint64_t was = 0;
  while (!shm::atomic_ref(word).compare_exchange_strong(was, was + 1, order, memory_order_relaxed)) {
  }
  return true;
}

// Every outcome there is, as the loads' values one behind the other; then the newest of x and y.
std::set<std::string> outcomes(std::vector<std::function<void()>> actors, bool last = false) {
  std::set<std::string> seen;
  const auto note = [&] {
    std::string one;
    for (const int value : small.r) one += static_cast<char>('0' + value);
    if (last) one += std::to_string(small.x) + std::to_string(small.y);
    seen.insert(one);
  };
  const Outcome all =
      explore({.name = "litmus", .set_up = [] { small = {}; }, .actors = std::move(actors), .check = note});
  EXPECT_TRUE(all.complete);
  EXPECT_EQ(all.failure, "");
  return seen;
}

TEST(Litmus, StoreBuffering) {
  const auto run = [](bool fences) {
    return outcomes({[=] {
                       put(small.x, 1, memory_order_release), fences ? shm::full_fence() : void(),
                           small.r[0] = get(small.y, memory_order_acquire);
                     },
                     [=] {
                       put(small.y, 1, memory_order_release), fences ? shm::full_fence() : void(),
                           small.r[1] = get(small.x, memory_order_acquire);
                     }});
  };
  EXPECT_EQ(run(false), (std::set<std::string>{"0000", "0100", "1000", "1100"}));
  EXPECT_EQ(run(true), (std::set<std::string>{"0100", "1000", "1100"}));
}

TEST(Litmus, MessagePassing) {
  const auto run = [](std::memory_order store, std::memory_order load) {
    return outcomes({[=] { put(small.x, 1), put(small.y, 1, store); },
                     [=] { small.r[0] = get(small.y, load), small.r[1] = get(small.x); }});
  };
  EXPECT_FALSE(run(memory_order_release, memory_order_acquire).contains("1000"));
  for (const auto& [store, load] : {std::pair{memory_order_relaxed, memory_order_acquire},
                                    {memory_order_release, memory_order_relaxed},
                                    {memory_order_relaxed, memory_order_relaxed}})
    EXPECT_EQ(run(store, load), (std::set<std::string>{"0000", "0100", "1000", "1100"}));
}

TEST(Litmus, MessagePassingByFences) {
  const auto run = [](bool release, bool acquire) {
    return outcomes(
        {[=] { put(small.x, 1), release ? shm::release_fence() : void(), put(small.y, 1); },
         [=] { small.r[0] = get(small.y), acquire ? shm::acquire_fence() : void(), small.r[1] = get(small.x); }});
  };
  EXPECT_FALSE(run(true, true).contains("1000"));
  EXPECT_TRUE(run(false, true).contains("1000"));
  EXPECT_TRUE(run(true, false).contains("1000"));
}

TEST(Litmus, LoadBufferingIsNotShown) {  // C++ permits 11 here; the memory's header says that it is not modelled
  const auto seen = outcomes(
      {[] { small.r[0] = get(small.x), put(small.y, 1); }, [] { small.r[1] = get(small.y), put(small.x, 1); }});
  EXPECT_EQ(seen, (std::set<std::string>{"0000", "0100", "1000"}));
}

TEST(Litmus, ReadsOfOneWordAreCoherent) {
  const auto seen = outcomes(
      {[] { put(small.x, 1), put(small.x, 2); }, [] { small.r[0] = get(small.x), small.r[1] = get(small.x); }});
  EXPECT_EQ(seen, (std::set<std::string>{"0000", "0100", "0200", "1100", "1200", "2200"}));
  // Two writers: two readers never see their stores in different orders, whoever reads.
  const auto both = outcomes({[] { put(small.x, 1); }, [] { put(small.x, 2); },
                              [] { small.r[0] = get(small.x), small.r[1] = get(small.x); },
                              [] { small.r[2] = get(small.x), small.r[3] = get(small.x); }});
  EXPECT_TRUE(both.contains("1212"));
  EXPECT_TRUE(both.contains("2121"));
  EXPECT_FALSE(both.contains("1221"));
  EXPECT_FALSE(both.contains("2112"));
}

TEST(Litmus, TwoPlusTwoWrites) {
  const auto run = [](std::memory_order order, bool fences) {
    return outcomes({[=] { put(small.x, 1, order), fences ? shm::full_fence() : void(), put(small.y, 2, order); },
                     [=] { put(small.y, 1, order), fences ? shm::full_fence() : void(), put(small.x, 2, order); }},
                    true);
  };
  EXPECT_TRUE(run(memory_order_relaxed, false).contains("000011"));
  EXPECT_TRUE(run(memory_order_release, false).contains("000011"));  // not on any machine with caches, but in C++
  EXPECT_FALSE(run(memory_order_relaxed, true).contains("000011"));
}

TEST(Litmus, IndependentReadsOfIndependentWrites) {
  const auto run = [](std::memory_order order, bool fences) {
    return outcomes({[] { put(small.x, 1, memory_order_release); }, [] { put(small.y, 1, memory_order_release); },
                     [=] {
                       small.r[0] = get(small.x, order), fences ? shm::full_fence() : void(),
                       small.r[1] = get(small.y, order);
                     },
                     [=] {
                       small.r[2] = get(small.y, order), fences ? shm::full_fence() : void(),
                       small.r[3] = get(small.x, order);
                     }});
  };
  EXPECT_TRUE(run(memory_order_acquire, false).contains("1010"));
  EXPECT_FALSE(run(memory_order_relaxed, true).contains("1010"));
}

TEST(Litmus, WriteToReadCausality) {
  const auto run = [](std::memory_order middle) {
    return outcomes({[] { put(small.x, 1); }, [=] { small.r[0] = get(small.x), put(small.y, 1, middle); },
                     [] { small.r[1] = get(small.y, memory_order_acquire), small.r[2] = get(small.x); }});
  };
  EXPECT_FALSE(run(memory_order_release).contains("1100"));
  EXPECT_TRUE(run(memory_order_relaxed).contains("1100"));
}

TEST(Litmus, StoresAndAFencedLoad) {  // "R": only both fences forbid it
  const auto run = [](bool first, bool second) {
    const auto seen =
        outcomes({[=] { put(small.x, 1), first ? shm::full_fence() : void(), put(small.y, 1); },
                  [=] { put(small.y, 2), second ? shm::full_fence() : void(), small.r[0] = get(small.x); }},
                 true);
    return seen.contains("000012");
  };
  EXPECT_FALSE(run(true, true));
  EXPECT_TRUE(run(true, false));
  EXPECT_TRUE(run(false, true));
}

TEST(Litmus, ReadModifyWritesAreWhole) {
  const auto seen = outcomes({[] { add(small.x, memory_order_relaxed); }, [] { add(small.x, memory_order_relaxed); },
                              [] { add(small.x, memory_order_relaxed); }},
                             true);
  EXPECT_EQ(seen, (std::set<std::string>{"000030"}));
}

TEST(Litmus, ReadModifyWritesContinueAReleaseSequence) {
  const auto run = [](bool plain_store) {
    return outcomes({[] { put(small.x, 1), put(small.y, 1, memory_order_release); },
                     [=] {
                       if (plain_store) {
                         if (get(small.y) == 1) put(small.y, 2);
                       } else {
                         std::uint64_t one = 1;
                         (void)shm::atomic_ref(small.y).compare_exchange_strong(one, 2, memory_order_relaxed,
                                                                                memory_order_relaxed);
                       }
                     },
                     [] { small.r[0] = get(small.y, memory_order_acquire), small.r[1] = get(small.x); }});
  };
  EXPECT_FALSE(run(false).contains("2000"));
  EXPECT_TRUE(run(true).contains("2000"));
}

// Dekker's entry: both inside at once only without the fences.
TEST(Litmus, DekkersPattern) {
  const auto run = [](bool fences) {
    return outcomes({[=] {
                       put(small.x, 1);
                       if (fences) shm::full_fence();
                       if (get(small.y) == 0) small.r[0] = 1;
                     },
                     [=] {
                       put(small.y, 1);
                       if (fences) shm::full_fence();
                       if (get(small.x) == 0) small.r[1] = 1;
                     }})
        .contains("1100");
  };
  EXPECT_TRUE(run(false));
  EXPECT_FALSE(run(true));
}

Outcome hand_over(std::memory_order store, std::memory_order load) {
  static std::uint64_t body;
  return explore({.name = "hand over",
                  .set_up = [] { small = {}, body = 0; },
                  .actors = {[=] {
                               const std::uint64_t seven = 7;
                               shm::copy_in(&body, &seven, sizeof seven);
                               put(small.x, 1, store);
                             },
                             [=] {
                               std::uint64_t copy = 7;
                               if (get(small.x, load) == 1) shm::copy_once(copy, &body);
                               require(copy == 7, "an old body");
                             }}});
}

TEST(Explorer, FindsDataRaces) {
  EXPECT_EQ(hand_over(memory_order_release, memory_order_acquire).failure, "");
  EXPECT_EQ(hand_over(memory_order_relaxed, memory_order_acquire).failure, "a data race");
  EXPECT_EQ(hand_over(memory_order_release, memory_order_relaxed).failure, "a data race");
  EXPECT_FALSE(hand_over(memory_order_release, memory_order_relaxed).trace.empty());
}

TEST(Explorer, FindsWhoIsNeverRungFor) {
  const auto run = [](bool look_again) {
    return explore({.name = "nap",
                    .set_up = [] { small = {}; },
                    .actors = {[] {
                                 put(small.x, 1);
                                 shm::full_fence();
                                 if (get(small.y) == 1) ring(0);
                               },
                               [=] {
                                 put(small.y, 1);
                                 shm::full_fence();
                                 if (!look_again || get(small.x) == 0) wait_for_ring(1);
                               }}});
  };
  EXPECT_EQ(run(true).failure, "");
  EXPECT_NE(run(false).failure, "");
}

TEST(Explorer, FindsWhatDoesNotEnd) {
  const Outcome seen = explore({.name = "turning",
                                .set_up = [] { small = {}; },
                                .actors = {[] { put(small.x, 1); },
                                           [] {
                                             while (get(small.x) != 2 && going()) {
                                             }
                                           }}});
  EXPECT_EQ(seen.failure, "an actor does not end");
}

TEST(Explorer, EndsWhereOneWaitsForAnother) {
  const Outcome seen = explore({.name = "turning",
                                .set_up = [] { small = {}; },
                                .actors = {[] { put(small.x, 1); },
                                           [] {
                                             while (get(small.x) != 1 && going()) {
                                             }
                                           }}});
  EXPECT_EQ(seen.failure, "");
  EXPECT_TRUE(seen.complete);
}

}  // namespace
}  // namespace leat::explore
