// What the explorer saves (stores that do not branch, states that were there before, words that nobody shares) loses
// nothing: random programs have the same outcomes with it and without. LEAT_EXPLORE=large: longer ones too.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "shm/src/rings/fences.h"
#include "tests/explore/explorer.h"

namespace leat::explore {
namespace {

constexpr std::memory_order kOrders[] = {std::memory_order_relaxed, std::memory_order_acquire,
                                         std::memory_order_release, std::memory_order_acq_rel};

// One step of an actor.
struct Step {
  enum What { load, store, exchange, fence, bell, sleep } what = load;
  std::uint32_t word = 0;
  std::memory_order order = std::memory_order_relaxed;
  std::uint64_t value = 0;  // stored; unique
};
using Program = std::vector<std::vector<Step>>;

Program random_program(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  Program program(2 + below(2));
  std::uint64_t value = 1;
  for (auto& actor : program)
    for (std::size_t left = program.size() == 2 ? 3 + below(2) : 2 + below(2); left != 0; --left) {
      Step s{.word = below(2), .value = value++};
      const std::uint32_t what = below(9);
      if (what < 3) {
        s.order = kOrders[below(2)];
      } else if (what < 6) {
        s.what = Step::store;
        s.order = below(2) == 0 ? std::memory_order_relaxed : std::memory_order_release;
      } else if (what < 7) {
        s.what = Step::exchange;
        s.order = kOrders[below(4)];
      } else if (what < 8) {
        s.what = Step::fence;
        s.order = below(2) == 0 ? std::memory_order_seq_cst : kOrders[1 + below(2)];
      } else {
        s.what = below(3) == 0 ? Step::sleep : Step::bell;
      }
      actor.push_back(s);
    }
  return program;
}

// What was read, by actor, and the newest of each word; also whether somebody slept for ever.
struct Seen {
  std::set<std::string> outcomes;
  bool slept = false;
  std::uint64_t executions = 0;
};

Seen run(const Program& program, bool plainly, std::uint64_t executions) {
  std::array<std::uint64_t, 2> words{};
  std::vector<std::string> read(program.size());
  Seen seen;
  Model model{.name = "random", .set_up = [&] {
                words = {};
                for (std::string& r : read) r.clear();
              }};
  for (std::size_t i = 0; i < program.size(); ++i)
    model.actors.push_back([&, i] {
      for (const Step& s : program[i]) {
        const shm::atomic_ref word(words[s.word]);
        std::uint64_t was = 0;
        switch (s.what) {
          case Step::load:
            read[i] += std::to_string(word.load(s.order)) + ",";
            break;
          case Step::store:
            word.store(s.value, s.order);
            break;
          case Step::exchange:  // for nought, or for what is there
            if (!word.compare_exchange_strong(was, s.value, s.order, std::memory_order_relaxed))
              (void)word.compare_exchange_strong(was, s.value, s.order, std::memory_order_relaxed);
            read[i] += std::to_string(was) + ",";
            break;
          case Step::fence:
            explore::fence(s.order, std::source_location::current());
            break;
          case Step::bell:
            ring(0);
            break;
          case Step::sleep:
            wait_for_ring(1);
            drain(0);
            break;
        }
      }
    });
  model.check = [&] {
    std::string all;
    for (const std::string& r : read) all += r + ";";
    seen.outcomes.insert(all + std::to_string(words[0]) + "," + std::to_string(words[1]));
  };
  const Outcome outcome = explore(model, {.executions = executions, .plainly = plainly});
  seen.slept = !outcome.failure.empty();
  seen.executions = outcome.complete || seen.slept ? outcome.executions : 0;
  return seen;
}

TEST(Savings, LoseNothing) {
  const char* wish = std::getenv("LEAT_EXPLORE");
  const std::uint64_t max = wish != nullptr && std::string(wish) == "large" ? 400'000 : 8'000;
  std::mt19937 random(7);
  std::uint64_t saving = 0, plainly = 0;
  int compared = 0;
  for (int i = 0; i < 300; ++i) {
    const Program program = random_program(random);
    const Seen quick = run(program, false, max);
    ASSERT_NE(quick.executions, 0U);
    const Seen whole = run(program, true, max);
    if (whole.executions == 0) continue;  // too many
    EXPECT_EQ(quick.slept, whole.slept) << "program " << i;
    if (!whole.slept) {  // else the exploration ends there
      ++compared;
      EXPECT_EQ(quick.outcomes, whole.outcomes) << "program " << i;
      saving += quick.executions;
      plainly += whole.executions;
    }
  }
  EXPECT_GT(compared, 100);
  std::printf("%d programs: %llu executions instead of %llu\n", compared, static_cast<unsigned long long>(saving),
              static_cast<unsigned long long>(plainly));
}

}  // namespace
}  // namespace leat::explore
