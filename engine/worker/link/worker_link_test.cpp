// What leatd and its workers share: control messages, the channel's layout.
#include <gtest/gtest.h>

#include "engine/exec/picture/sizes.h"
#include "engine/worker/link/channel.h"
#include "engine/worker/link/protocol.h"
#include "tools/base/cores/cores.h"

namespace leat::worker {
namespace {

TEST(Protocol, SetupSurvivesTheWay) {
  worker::Setup setup;
  setup.partition = "p";
  setup.cores = {1, 3};
  setup.yields = 9;
  setup.calibrate = true;
  setup.user = "nobody";
  setup.sandbox = Sandbox::devices;
  ModuleSetup m;
  m.application = "a";
  m.name = "m";
  m.as = "arcface";
  m.preprocess = "letterbox";
  m.labels = {"x\ty"};
  m.batch = 4;
  m.after_fan_out = true;
  m.latency_by_batch = {{1, 2, 3}};
  m.extra = {{"key", "value"}};
  m.first_block = 2;
  m.end_block = 5;
  m.cuts = {"a", "b"};
  m.edge_in = 1;
  m.files = {{.path = "/m.onnx", .location = "", .sha256 = "ab", .fd = nullptr},
             {.path = "/w/x", .location = "w/x", .sha256 = "cd", .fd = nullptr}};
  m.version = UINT64_MAX;
  setup.edges = {{7, true, true, true, true, {.rows = 5, .scrap = 4, .row_bytes = 1000}},
                 {6, false, false, false, false, {.rows = 50, .scrap = 4, .row_bytes = std::uint64_t{1} << 33}}};
  setup.modules.push_back(m);
  const auto packet = encode(setup);
  EXPECT_EQ(*type_of(packet), ControlType::setup);
  const auto back = decode_setup(packet);
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(back->cores, setup.cores);
  EXPECT_EQ(back->yields, 9U);
  EXPECT_TRUE(back->calibrate);
  EXPECT_EQ(back->user, "nobody");
  EXPECT_EQ(back->sandbox, Sandbox::devices);
  ASSERT_EQ(back->modules.size(), 1U);
  EXPECT_EQ(back->modules[0].labels, m.labels);
  EXPECT_EQ(back->modules[0].extra, m.extra);
  EXPECT_EQ(back->modules[0].latency_by_batch[0].p99_ns, 2);
  EXPECT_EQ(back->modules[0].first_block, 2U);
  EXPECT_EQ(back->modules[0].end_block, 5U);
  EXPECT_EQ(back->modules[0].cuts, m.cuts);
  EXPECT_EQ(back->modules[0].edge_in, 1U);
  EXPECT_EQ(back->modules[0].edge_out, kNoEdge);
  ASSERT_EQ(back->modules[0].files.size(), 2U);
  EXPECT_EQ(back->modules[0].files[1].path, "/w/x");
  EXPECT_EQ(back->modules[0].files[1].location, "w/x");
  EXPECT_EQ(back->modules[0].files[1].sha256, "cd");
  EXPECT_EQ(back->modules[0].version, UINT64_MAX);
  ASSERT_EQ(back->edges.size(), 2U);
  EXPECT_TRUE(back->edges[0].writes && back->edges[0].peer && !back->edges[1].peer);
  EXPECT_EQ(back->edges[1].edge, 6U);
  EXPECT_EQ(back->edges[1].spec.row_bytes, std::uint64_t{1} << 33);
}

TEST(Protocol, WhatAWorkerSaysOfItsDeviceComesThrough) {
  Ready ready;
  ready.device = {.name = "a GPU",
                  .multiprocessors = 27,
                  .memory_bytes = std::uint64_t{1} << 35,
                  .memory = {1, 2, 3},
                  .modules = {{.graphs = {{{1, 20, 10}, {2, 30, 40}}, "it said no"}, .bytes = 5, .provider_bytes = 6}}};
  const auto back = decode_ready(encode(ready));
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(back->device, ready.device);
  EXPECT_EQ(*decode_memory(encode(DeviceMemory{7, 8, 9})), (DeviceMemory{7, 8, 9}));
  EXPECT_FALSE(decode_memory(encode_opening(1)).ok());
}

TEST(Protocol, NonsenseIsOneLine) {
  EXPECT_FALSE(type_of({}).ok());
  auto packet = encode(Ready{});
  packet.pop_back();
  EXPECT_FALSE(decode_ready(packet).ok());
  EXPECT_FALSE(decode_add_pool(encode(ForgetPool{})).ok());
  EXPECT_EQ(decode_failed(encode_failed("why")), "why");
  EXPECT_EQ(decode_failed(encode_failed("two\nlines")), "two lines");
  EXPECT_TRUE(decode_failed({}).empty());
  EXPECT_EQ(decode_measuring(encode(MeasuringProgress{3, 40}))->done, 3U);
  EXPECT_FALSE(decode_measuring(encode(MeasuringProgress{41, 40})).ok());
  EXPECT_FALSE(decode_measuring(encode(MeasuringProgress{0, 0})).ok());
}

TEST(Protocol, LatenciesThatCannotBeAreRefused) {
  const auto reports = [](std::vector<planner::Latency> list) {
    return decode_ready(
        encode(Ready{.latency_by_batch = {std::move(list)}, .latency_by_size = {{}}, .not_enclosed = ""}));
  };
  const auto by_size = [](std::vector<std::vector<planner::Latency>> list) {
    return decode_ready(encode(Ready{.latency_by_batch = {{{1, 2, 3}}}, .latency_by_size = list, .not_enclosed = ""}));
  };
  EXPECT_TRUE(reports({{1, 2, 3}}).ok());
  EXPECT_FALSE(reports({{0, 2, 3}}).ok());
  EXPECT_FALSE(reports({{3, 2, 3}}).ok());
  EXPECT_FALSE(reports({{1, INT64_MAX, 3}}).ok());
  EXPECT_FALSE(reports(std::vector<planner::Latency>(kMaxBatch + 1, {1, 2, 3})).ok());
  EXPECT_TRUE(by_size({{{1, 2, 3}, {2, 2, 3}}}).ok());
  EXPECT_FALSE(by_size({{{1, 2, 3}, {0, 2, 3}}}).ok());
  EXPECT_FALSE(by_size({{{1, 2, 3}}, {{1, 2, 3}}}).ok()) << "of a module that there is not";
  EXPECT_FALSE(by_size({std::vector<planner::Latency>(exec::kMaxSizeClasses + 1, {1, 2, 3})}).ok());
}

TEST(Protocol, PartsAndTensorsThatCannotBeAreRefused) {
  Ready ready;
  ready.parts = {{{.rank = 4, .bytes = 100}}};
  ready.tensors = {{}};
  ready.tensor_names = {{}};
  EXPECT_TRUE(decode_ready(encode(ready)).ok());
  ready.parts[0][0].rank = 5;  // its dimensions would be copied beyond their array
  EXPECT_FALSE(decode_ready(encode(ready)).ok());
  ready.parts[0][0] = {.bytes = shm::kMaxResultBytes + std::uint64_t{1}};
  EXPECT_FALSE(decode_ready(encode(ready)).ok());
  ready.parts = {std::vector<exec::PartSpec>(LEAT_MAX_PARTS + 1)};
  EXPECT_FALSE(decode_ready(encode(ready)).ok());
  ready.parts = {{}, {}};
  EXPECT_FALSE(decode_ready(encode(ready)).ok()) << "tensors of a module that there is not";
  ready.tensors = {{{.rank = LEAT_MAX_TENSOR_RANK + 1}}, {}};
  EXPECT_FALSE(decode_ready(encode(ready)).ok());
}

TEST(Protocol, WhatGoesToTheLogIsOneLine) {
  Ready ready;
  ready.not_enclosed = "two\nlines";
  ready.undisturbed_percent = 1000;
  EXPECT_EQ(decode_ready(encode(ready))->undisturbed_percent, 100U);
  ready.undisturbed_percent = 40;
  EXPECT_EQ(decode_ready(encode(ready))->undisturbed_percent, 40U);
  EXPECT_EQ(decode_ready(encode(ready))->not_enclosed, "two lines");
}

TEST(Channel, PartsDoNotOverlap) {
  constexpr ChannelLayout l = channel_layout();
  EXPECT_LE(l.daemon_sleep + shm::kLine, l.dispatch_cells);
  EXPECT_EQ(l.dispatch_cells + kDispatchRing * sizeof(DispatchCell), l.report_cells);
  EXPECT_GE(l.bytes, l.report_cells + kReportRing * sizeof(ReportCell));
}

// What a worker measures again becomes the plan, so it is looked at like the first time.
TEST(Protocol, MeasuringAgain) {
  const auto asked = decode_measure(encode(Measure{.module = 3, .longest_ns = 50'000'000, .undisturbed_percent = 60}));
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(asked->module, 3U);
  EXPECT_EQ(asked->longest_ns, 50'000'000);
  EXPECT_EQ(asked->undisturbed_percent, 60U);
  Measured found{.module = 3, .latency_by_batch = {{10, 20, 3}}, .latency_by_size = {}, .undisturbed_percent = 900};
  const auto back = decode_measured(encode(found));
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(back->module, 3U);
  EXPECT_EQ(back->latency_by_batch[0].p99_ns, 20);
  EXPECT_EQ(back->undisturbed_percent, 100U);
  found.latency_by_batch[0].p50_ns = 0;
  EXPECT_FALSE(decode_measured(encode(found)).ok());
  found.latency_by_batch.assign(1000, {1'000'000'000, 1'000'000'000, 10});
  EXPECT_FALSE(decode_measured(encode(found)).ok());
}

}  // namespace
}  // namespace leat::worker
