// Whether a batch runs as a CUDA graph, over the stand-in driver: what is captured is replayed, the faster way by the
// device's own time is taken for each batch, and what cannot be captured runs without and says so once. ONNX Runtime's
// own capture (enable_cuda_graph) is not in it: host code plays the model's part.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <vector>

#include "cuda/device/modules.h"
#include "cuda/device/own_process.h"
#include "engine/exec/device_plugin.h"
#include "engine/exec/module.h"
#include "engine/exec/onnx/onnx_graphs.h"

namespace leat {
namespace {

TEST(Graph, IsCapturedOnceReplayedAndTimed) {
  EXPECT_EQ(
      in_own_process([](fake::Host& host, exec::Device& device) {
        const leat_device_api& api = *device.api();
        int count = 0;
        const auto add = [](void* to) { ++*static_cast<int*>(to); };
        std::uint32_t graph = 0;
        NEED(api.begin_capture(device.handle(), nullptr, 0) == LEAT_DEVICE_OK);
        for (int i = 0; i < 2; ++i) NEED(api.enqueue(device.handle(), add, &count, nullptr, 0) == LEAT_DEVICE_OK);
        NEED(api.end_capture(device.handle(), &graph, nullptr, 0) == LEAT_DEVICE_OK && graph == 1);
        NEED(device.wait() && count == 0);
        const std::uint64_t before_launch = host.state().launches;
        for (int i = 0; i < 3; ++i) NEED(api.launch(device.handle(), graph, nullptr, 0) == LEAT_DEVICE_OK);
        NEED(device.wait() && count == 6 && host.state().launches - before_launch == 3U);
        host.state().graph_launch_us = 3000;
        const exec::TimedWay replay{[&] { (void)api.launch(device.handle(), graph, nullptr, 0); }, nullptr};
        const std::uint64_t slow = exec::time_on_device(api, device.handle(), {&replay, 1})[0];
        NEED(slow >= 3'000'000 && slow <= 3'000'001);
        NEED(api.launch(device.handle(), 7, nullptr, 0) == LEAT_DEVICE_FAILED);
        NEED(api.end_capture(device.handle(), nullptr, nullptr, 0) == LEAT_DEVICE_OK);  // nothing is being captured
        NEED(api.end_capture(device.handle(), &graph, nullptr, 0) == LEAT_DEVICE_FAILED && graph == 1);
        api.release_graph(device.handle(), graph);
        NEED(api.launch(device.handle(), graph, nullptr, 0) == LEAT_DEVICE_FAILED);
        std::uint32_t next = 0;
        NEED(api.begin_capture(device.handle(), nullptr, 0) == LEAT_DEVICE_OK);
        NEED(api.end_capture(device.handle(), &next, nullptr, 0) == LEAT_DEVICE_OK && next == graph);  // its place
        leat_device_usage usage{};
        NEED(api.usage(device.handle(), &usage, nullptr, 0) == LEAT_DEVICE_OK);
        const std::uint64_t before = usage.allocated_bytes;
        {
          auto memory = device.allocate(5 << 20);
          NEED(memory.ok());
          NEED(api.usage(device.handle(), &usage, nullptr, 0) == LEAT_DEVICE_OK);
          NEED(usage.allocated_bytes == before + (6 << 20) && usage.imported_bytes == 0);
        }
        NEED(api.usage(device.handle(), &usage, nullptr, 0) == LEAT_DEVICE_OK);
        NEED(usage.allocated_bytes == before);
        return true;
      }),
      0);
}

#ifndef __SANITIZE_THREAD__  // ONNX Runtime is not instrumented

// Each batch once, then answers with and without: equal, whatever was chosen.
bool chooses(exec::Device& device, bool graph) {
  Classifier with(device), without(device, {{"graphs", "0"}});
  NEED(with.module && without.module);
  for (const std::uint32_t batch : {1U, 4U})
    for (const std::uint8_t seed : {std::uint8_t{3}, std::uint8_t{11}})
      NEED(same(with.run(batch, seed), without.run(batch, seed)));
  NEED(without.module->graphs() == exec::GraphReport{});
  const exec::GraphReport report = with.module->graphs();
  NEED(report.why_not.empty() && report.batches.size() == 2);
  for (const exec::GraphTiming& t : report.batches) NEED(t.graph_ns != 0 && t.plain_ns != 0 && t.graph() == graph);
  const std::string text = exec::text_of(report);
  NEED(text.starts_with(graph ? "CUDA graphs at batch 1 (" : "no CUDA graph at batch 1 ("));
  return true;
}

// Rows that move: a graph is captured over buffers that do not, once for each batch, and answers stay what they are.
bool stages_choose(exec::Device& device, bool graph) {
  TwoStages with(device), without(device, {{"graphs", "0"}});
  Classifier whole(device, {{"graphs", "0"}});
  NEED(with.module[1] && without.module[1] && whole.module);
  for (const std::uint32_t row : {0U, 5U, 12U, 3U})
    for (const std::uint32_t batch : {1U, 4U}) {
      const auto seed = static_cast<std::uint8_t>(3 + 2 * row);
      const auto answers = with.run(batch, seed, row);
      NEED(same(answers, without.run(batch, seed, row)) && same(answers, whole.run(batch, seed)));
    }
  for (const auto& module : with.module) {
    const exec::GraphReport report = module->graphs();
    NEED(report.why_not.empty() && report.batches.size() == 2);
    for (const exec::GraphTiming& t : report.batches) NEED(t.graph_ns != 0 && t.graph() == graph);
  }
  for (const auto& module : without.module) NEED(module->graphs() == exec::GraphReport{});
  return true;
}

TEST(GraphChoice, OfAStageWhoseRowsMoveFasterWithIsTaken) {
  EXPECT_EQ(in_own_process([](fake::Host& host, exec::Device& device) {
              host.state().launch_us = 20'000;
              return stages_choose(device, true);
            }),
            0);
}

// Rows are copied in and out beside the launch; pictures of the first stage and downloads of the last are in it.
TEST(GraphChoice, OfAStageWhoseRowsMoveOneLaunchIsTaken) {
  EXPECT_EQ(in_own_process([](fake::Host& host, exec::Device& device) {
              host.state().put_us = host.state().launch_us = 20'000;
              TwoStages with(device), without(device, {{"graphs", "0"}});
              NEED(with.module[1] && without.module[1]);
              for (const std::uint32_t row : {0U, 5U, 12U, 3U})
                for (const std::uint32_t batch : {1U, 4U})
                  NEED(same(with.run(batch, static_cast<std::uint8_t>(3 + row), row),
                            without.run(batch, static_cast<std::uint8_t>(3 + row), row)));
              for (const auto& module : with.module)
                for (const exec::GraphTiming& t : module->graphs().batches) NEED(t.whole());
              return true;
            }),
            0);
}

TEST(GraphChoice, OfAStageWhoseRowsMoveFasterWithoutIsTaken) {
  EXPECT_EQ(in_own_process([](fake::Host& host, exec::Device& device) {
              host.state().graph_launch_us = 20'000;
              return stages_choose(device, false);
            }),
            0);
}

// One stage's graph is refused in service, at a batch it has not run: both go on.
TEST(GraphChoice, OfAStageWhoseRowsMoveRefusedRunsWithout) {
  EXPECT_EQ(in_own_process([](fake::Host& host, exec::Device& device) {
              host.state().launch_us = 20'000;
              TwoStages with(device);
              Classifier whole(device, {{"graphs", "0"}});
              NEED(with.module[1] && whole.module);
              NEED(same(with.run(1, 3, 0), whole.run(1, 3)));
              host.state().refuse_capture = 1;
              for (const std::uint32_t batch : {2U, 1U, 4U}) NEED(same(with.run(batch, 9, batch), whole.run(batch, 9)));
              for (const auto& module : with.module)
                NEED(exec::text_of(module->graphs()).find("CAPTURE_UNSUPPORTED") != std::string::npos);
              return true;
            }),
            0);
}

TEST(GraphChoice, FasterWithIsTaken) {
  EXPECT_EQ(in_own_process([](fake::Host& host, exec::Device& device) {
              host.state().launch_us = 20'000;
              return chooses(device, true);
            }),
            0);
}

TEST(GraphChoice, FasterWithoutIsTaken) {
  EXPECT_EQ(in_own_process([](fake::Host& host, exec::Device& device) {
              host.state().graph_launch_us = 20'000;
              return chooses(device, false);
            }),
            0);
}

// From the batch on at which it stops working: the one before was a graph, and is none any more.
TEST(GraphChoice, WhatCannotBeCapturedRunsWithoutAndSaysSoInOneLine) {
  EXPECT_EQ(in_own_process([](fake::Host& host, exec::Device& device) {
              host.state().launch_us = 20'000;
              Classifier with(device), without(device, {{"graphs", "0"}});
              NEED(same(with.run(1, 3), without.run(1, 3)));
              NEED(with.module->graphs().batches.at(0).graph());
              host.state().refuse_capture = 1;
              for (const std::uint32_t batch : {2U, 3U, 1U, 2U}) NEED(same(with.run(batch, 5), without.run(batch, 5)));
              const exec::GraphReport report = with.module->graphs();
              for (const exec::GraphTiming& t : report.batches) NEED(!t.graph());
              NEED(report.batches.size() == 2);  // nobody asked again
              const std::string text = exec::text_of(report);
              NEED(text.find("CAPTURE_UNSUPPORTED") != std::string::npos && text.find('\n') == std::string::npos);
              return true;
            }),
            0);
}

TEST(GraphChoice, AnotherWordThanZeroAndOneIsRefused) {
  EXPECT_EQ(in_own_process([](fake::Host&, exec::Device& device) {
              NEED(Classifier(device, {{"graphs", "always"}}).module == nullptr);
              NEED(Classifier(device, {{"graphs", "1"}}).module != nullptr);
              return true;
            }),
            0);
}

#endif

}  // namespace
}  // namespace leat
