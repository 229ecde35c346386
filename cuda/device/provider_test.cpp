// What ONNX Runtime's CUDA provider does of its own accord, over a stand-in of it (cuda/fake/libonnxruntime.cpp) on the
// stand-in driver: convolutions that forget how they ran when the batch changes, graphs, nodes that stay on the host,
// an arena that grows by what is asked for. It cannot show that the provider behaves so; that is read off its sources.
#include <bit>
#include <chrono>
#include <random>
#include <vector>

#include "cuda/device/modules.h"
#include "cuda/device/over_provider.h"
#include "engine/exec/onnx/graph_report.h"
#include "engine/worker/measuring/calibrate.h"

namespace leat {
namespace {

// Batches as they come, each answered as one by one.
bool serves_all_sizes(Classifier& c, std::uint32_t max, int rounds = 3) {
  NEED(c.module != nullptr);
  const auto alone = c.run(1, 7);
  std::mt19937 random(3);
  for (int i = 0; i < rounds * static_cast<int>(max); ++i) {
    const auto batch = static_cast<std::uint32_t>(random() % max + 1);
    const auto answers = c.run(batch, 7);
    NEED(answers.size() == batch && !alone.empty());
    for (const leat_result& a : answers) NEED(std::memcmp(&a, alone.data(), sizeof a) == 0);
  }
  return true;
}

TEST(Provider, AnswersAreTheHostsWithGraphsAndWithout) {
  EXPECT_EQ(over_the_provider([](fake::ProviderState& seen, exec::Device& device) {
              const Model model(Net::plain);
              Classifier with(device, {}, model.path, 6), without(device, {{"graphs", "0"}}, model.path, 6);
              NEED(serves_all_sizes(with, 6) && serves_all_sizes(without, 6));
              for (const std::uint32_t batch : {1U, 3U, 6U}) NEED(same(with.run(batch, 11), without.run(batch, 11)));
              seen.replays_wait = 1;
              return serves_all_sizes(with, 6);
            }),
            0);
}

TEST(Provider, TensorCoresAreForFloat16AndNotForFloat32) {
  EXPECT_EQ(over_the_provider([](fake::ProviderState& seen, exec::Device& device) {
              const Model single(Net::plain);
              NEED(Classifier(device, {}, single.path).module != nullptr && seen.tf32 == 0U);
              const Model half(Net::half);
              NEED(Classifier(device, {}, half.path).module != nullptr && seen.tf32 == 1U);
              const Model again(Net::plain);
              NEED(Classifier(device, {{"tf32", "1"}}, again.path).module != nullptr && seen.tf32 == 1U);
              return true;
            }),
            0);
}

// A replay costs more than a run of the same size as the one before, and far less than a run of another.
TEST(Provider, GraphsAreChosenByWhatAChangeOfSizeCosts) {
  EXPECT_EQ(over_the_provider([](fake::ProviderState& seen, exec::Device& device) {
              const Model model(Net::plain);
              seen.run_us = 1000, seen.replay_us = 3000, seen.plan_us = 30'000;
              Classifier c(device, {}, model.path, 5);
              NEED(c.module && worker::warm_up(*c.module, 5, false).ok());
              const exec::GraphReport report = c.module->graphs();
              NEED(report.batches.size() == 5 && report.why_not.empty());
              for (std::size_t b = 0; b < 5; ++b) NEED(report.batches[b].batch == b + 1 && report.batches[b].graph());
              const std::uint32_t plans = seen.plans, runs = seen.runs;
              NEED(serves_all_sizes(c, 5));
              NEED(seen.plans == plans && seen.runs == runs);
              return true;
            }),
            0);
}

// Where graphs are refused, and where none are asked for.
TEST(Provider, WithoutGraphsFewSizesAreRun) {
  EXPECT_EQ(over_the_provider([](fake::ProviderState& seen, exec::Device& device) {
              const Model model(Net::plain);
              constexpr std::uint32_t kMax = 12;
              const auto few = [&] { return std::popcount(seen.sizes.exchange(0)) <= 5; };  // 1, 2, 4, 8, 12
              Classifier none(device, {{"graphs", "0"}}, model.path, kMax);
              seen.sizes = 0;
              NEED(serves_all_sizes(none, kMax) && few());
              Classifier refused(device, {}, model.path, kMax);
              seen.refuses_graphs = 1;
              NEED(serves_all_sizes(refused, kMax));
              NEED(refused.module->graphs().why_not.find("not permitted") != std::string::npos);
              seen.sizes = 0;
              NEED(serves_all_sizes(refused, kMax) && few());
              seen.refuses_graphs = 0;
              // Rows that move: what a run of more rows reads and writes besides lies in no row of another's.
              TwoStages stages(device, {{"graphs", "0"}});
              Classifier whole(device, {{"graphs", "0"}});
              NEED(stages.module[1] && whole.module);
              seen.sizes = 0;
              for (const std::uint32_t row : {13U, 0U, 5U})
                for (const std::uint32_t batch : {3U, 1U, 2U}) {
                  const auto seed = static_cast<std::uint8_t>(3 + row);
                  NEED(same(stages.run(batch, seed, row), whole.run(batch, seed)));
                }
              return few();
            }),
            0);
}

// The clocks rise while it is measured: what comes first is not slower for it. Here a graph is.
TEST(Provider, WaysAreTimedInTurns) {
  EXPECT_EQ(over_the_provider([](fake::ProviderState& seen, exec::Device& device) {
              const Model model(Net::plain);
              seen.run_us = 2000, seen.replay_us = 4000;
              Classifier c(device, {{"graphs", "model"}}, model.path, 1);
              seen.cold_runs = 5;
              NEED(!c.run(1, 7).empty());
              const exec::GraphReport report = c.module->graphs();
              NEED(report.batches.size() == 1 && !report.batches[0].graph());
              return true;
            }),
            0);
}

// As exporters write a batch that may be any: what is worked out of shapes stays on the host, and graphs are none the
// worse for it. Memory is copied there for nothing; where it is, the node is named.
TEST(Provider, ShapesMayBeWorkedOutOnTheHostAndPicturesMayNot) {
  EXPECT_EQ(
      over_the_provider([](fake::ProviderState& seen, exec::Device& device) {
        seen.run_us = 4000;
        const Model shapes(Net::shapes);
        Classifier c(device, {}, shapes.path, 3);
        NEED(c.module && worker::warm_up(*c.module, 3, false).ok());
        NEED(c.module->graphs().why_not.empty() && c.module->graphs().batches.size() == 3);
        for (const exec::GraphTiming& t : c.module->graphs().batches) NEED(t.graph());
        NEED(serves_all_sizes(c, 3));
        const Model number(Net::number);
        Classifier numbers(device, {}, number.path, 3);
        NEED(serves_all_sizes(numbers, 3) && !numbers.module->graphs().why_not.empty());
        const Model copies(Net::copies);
        const Classifier refused(device, {}, copies.path);
        NEED(refused.module == nullptr && refused.error.find("cannot run NonZero (/NonZero);") != std::string::npos);
        NEED(refused.error.find("fallback = \"cpu\"") != std::string::npos);
        Classifier allowed(device, {{"fallback", "cpu"}}, copies.path);
        NEED(serves_all_sizes(allowed, 4) && !allowed.module->graphs().why_not.empty());
        return true;
      }),
      0);
}

// All sizes are warmed, and the arena has little more than the largest needs.
TEST(Provider, MemoryIsTheLargestBatchs) {
  EXPECT_EQ(over_the_provider([](fake::ProviderState& seen, exec::Device& device) {
              const Model model(Net::plain);
              for (const char* graphs : {"0", "1"}) {
                constexpr std::uint32_t kMax = 16;
                seen.arena_rows = 0;
                Classifier c(device, {{"graphs", graphs}}, model.path, kMax);
                NEED(c.module && worker::warm_up(*c.module, kMax, false).ok());
                NEED(seen.arena_rows * 10 <= kMax * 13);
              }
              return true;
            }),
            0);
}

// A session that is opened again without graphs does not lie beside the one with them.
TEST(Provider, OneSessionAtATimeHasTheMemory) {
  EXPECT_EQ(over_the_provider([](fake::ProviderState& seen, exec::Device& device) {
              const Model model(Net::plain);
              Classifier c(device, {}, model.path);
              seen.refuses_graphs = 1;
              NEED(serves_all_sizes(c, 4) && !c.module->graphs().why_not.empty());
              NEED(seen.most_sessions == 1U);
              return true;
            }),
            0);
}

// A session puts the last on the stream as it ends, be it closed behind a run or opened again without graphs.
TEST(Provider, SessionsEndBeforeTheMemoryThatTheirRunsHavePinned) {
  EXPECT_EQ(over_the_provider([](fake::ProviderState& seen, exec::Device& device) {
              const Model model(Net::plain);
              seen.give_back_us = 20'000;
              for (const bool refused : {false, true}) {
                seen.refuses_graphs = refused ? 1 : 0;
                Classifier c(device, {}, model.path);
                NEED(c.module != nullptr && c.run(2, 7).size() == 2);
              }
              NEED(seen.open_sessions == 0U);
              return true;
            }),
            0);
}

// A session ends behind what is on the stream, and what it puts there itself before its pinned memory goes: each of the
// two waits, left out, is missed.
TEST(Provider, BothWaitsOfASessionsEndAreMissed) {
  const auto ends = [](int forgotten) {
    return over_the_provider([forgotten](fake::ProviderState& seen, exec::Device& device) {
      const Model model(Net::plain);
      const auto find = [](const char* name) { return ::dlsym(::dlopen(LEAT_FAKE_CUDA, RTLD_NOW), name); };
      seen.give_back_us = 20'000;
      Classifier c(device, {{"graphs", "0"}}, model.path);
      NEED(c.module != nullptr && c.run(2, 7).size() == 2);
      static bool too_soon = false;
      const auto look = [](void* state) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
        while (std::chrono::steady_clock::now() < end) {
        }
        too_soon = static_cast<fake::ProviderState*>(state)->open_sessions == 0U;
      };
      NEED(device.api()->enqueue(device.handle(), look, &seen, nullptr, 0) == LEAT_DEVICE_OK);
      reinterpret_cast<void (*)(int)>(find("leat_stand_in_forget_wait"))(forgotten);
      c.module.reset();
      NEED(reinterpret_cast<int (*)()>(find("leat_stand_in_waits"))() == 2);
      NEED(device.wait() && !too_soon);
      return true;
    });
  };
  EXPECT_EQ(ends(-1), 0);
  for (const int forgotten : {0, 1}) EXPECT_NE(ends(forgotten), 0) << "nobody missed wait " << forgotten;
}

TEST(Provider, WhatRunsPinIsGivenBackWhileServing) {
  EXPECT_EQ(over_the_provider([](fake::ProviderState& seen, exec::Device& device) {
              const Model model(Net::plain);
              Classifier c(device, {{"graphs", "0"}}, model.path);
              NEED(c.module != nullptr);
              for (int run = 0; run < 1000; ++run) NEED(c.run(2, 7).size() == 2);
              NEED(seen.runs >= 1000U && seen.most_unsettled_runs > 1U && seen.most_unsettled_runs <= 256U);
              return true;
            }),
            0);
}

}  // namespace
}  // namespace leat
