// Partitions of kind gpu, mig and mps through a whole leatd, over the stand-in drivers (cuda/fake): real models, whose
// part on the device's stream the host's code plays; real leatd, workers, descriptors and memory that processes share.
// It shows order, waits, hand-over, and answers that are the CPU's. It cannot show ONNX Runtime's own provider, what a
// real driver, MPS and MIG permit, nor any speed: docs/guide/gpu.md. Kills and faults: gpu_faults_test.cpp.
#include "tests/gpu/gpu_fixture.h"

namespace leat::test {
namespace {

// Of the 3g instance two compute instances, and the 2g instance beside it.
const std::string kFirstOf3g = fake::uuid_text(2, 0, 0), kSecondOf3g = fake::uuid_text(2, 0, 1),
                  k2g = fake::uuid_text(2, 1, 0);

struct Served {
  const char* name;
  std::string partitions;
};
class WholeModels : public testing::TestWithParam<Served> {};
TEST_P(WholeModels, AnswerAsOnTheCpu) {
  (void)gpus();
  std::array<std::uint64_t, 2> handed_over{};
  const auto answers = answers_of(shapes_on(GetParam().partitions, "", ""), &handed_over);
  EXPECT_GT(expect_equal(on_the_cpu(), answers), answers.size());
}
// A driver that pins no read-only pages, and counts other multiprocessors of an instance than NVML does: served all the
// same, and no frame by a copy that is waited for.
TEST(GpuServe, OnADriverThatDiffersAnswersAreTheSame) {
  (void)gpus();
  const auto& expected = on_the_cpu();
  gpus().state().pins_no_read_only = 1;
  gpus().state().instance_multiprocessors = 26;
  gpus().state().pageable_bytes = 0;
  std::array<std::uint64_t, 2> handed_over{};
  const auto answers = answers_of(shapes_on(partition_on("m", "mig", k2g), "", ""), &handed_over);
  gpus().state().pins_no_read_only = 0;
  gpus().state().instance_multiprocessors = 0;
  EXPECT_GT(expect_equal(expected, answers), answers.size());
  EXPECT_EQ(gpus().state().pageable_bytes, 0U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, WholeModels,
                         testing::Values(Served{"Gpu", partition_on("g", "gpu", 0)},
                                         Served{"Mig", partition_on("m", "mig", k2g)},
                                         Served{"Mps", partition_on("s", "mps", 1, 25)},
                                         Served{"MpsOnMig", partition_on("t", "mps", k2g, 50)}),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(GpuServe, AnotherGpuThanTheOneNamedIsRefused) {
  (void)gpus();
  const ScratchFolder folder;
  std::string config = shapes_on(partition_on("g", "gpu", "GPU-deadbeef-0000-0000-0000-000000000000"), "", "");
  const Exit e = run_to_end({LEATD_BINARY, folder.write("a.toml", "[daemon]\nsocket = \"s\"\n" + config)});
  EXPECT_EQ(e.status, 2);
  EXPECT_NE(e.err.find("GPU-deadbeef"), std::string::npos) << e.err;
}

// The guide's configurations, as they stand there.
TEST(GpuGuide, ExamplesPassTheCheck) {
  (void)gpus();
  const std::string page = text_of(LEAT_MODELS "/../../../docs/guide/gpu.md"), begin = "```toml\n", end = "```\n";
  const ScratchFolder folder;
  for (const char* model : {"/detect.onnx", "/classify.onnx"})
    std::filesystem::create_symlink(std::string(LEAT_MODELS) + model, folder.path() + model);
  int checked = 0;
  for (std::size_t at = 0; (at = page.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    const std::string text = page.substr(at, page.find(end, at) - at);
    const Exit e = run_to_end({LEAT_BINARY, "check", folder.write("a.toml", text)}, 120s);
    EXPECT_EQ(e.status, 0) << text << e.err;
    ++checked;
  }
  EXPECT_GE(checked, 1);
}

// Two processes on one GPU, or in one GPU instance: what the first writes the second reads where it lies.
struct Pair {
  const char* name;
  std::string kind, first, second;
  int percent;
  bool in_place;
};
class Split2 : public testing::TestWithParam<Pair> {};
TEST_P(Split2, CopiesNothingInsideAndEverythingAcross) {
  (void)gpus();
  const Pair& p = GetParam();
  std::array<std::uint64_t, 2> handed_over{};
  std::uint64_t copied = 0;
  const auto answers = answers_of(
      shapes_on(partition_on("p0", p.kind, p.first, p.percent) + partition_on("p1", p.kind, p.second, p.percent),
                with_plan(p.kind, "pard"), split().profiles),
      &handed_over, &copied);
  EXPECT_GT(expect_equal(on_the_cpu(), answers), answers.size());
  EXPECT_EQ(handed_over[0],
            2 * kFrames * split().plan["routes"][0]["stages"][0]["transfer_bytes"].get<std::uint64_t>());
  EXPECT_EQ(copied, p.in_place ? 0U : handed_over[0]);
}
INSTANTIATE_TEST_SUITE_P(Pairs, Split2,
                         testing::Values(Pair{"OneGpu", "gpu", fake::uuid_text(0), fake::uuid_text(0), 0, true},
                                         Pair{"TwoShares", "mps", fake::uuid_text(0), fake::uuid_text(0), 50, true},
                                         Pair{"TwoComputeInstances", "mig", kFirstOf3g, kSecondOf3g, 0, true},
                                         Pair{"TwoGpuInstances", "mig", kFirstOf3g, k2g, 0, false},
                                         Pair{"TwoGpus", "gpu", fake::uuid_text(0), fake::uuid_text(1), 0, false}),
                         [](const auto& p) { return std::string(p.param.name); });

// Between two GPUs by what was measured of this very pair: rows through the host where the mapping is refused, or reads
// something else than was written; one copy out of the other GPU's memory where it works. Answers are the CPU's each
// time.
struct Way {
  const char* name;
  fake::Peer there, back;  // from the first GPU to the second, which is the features' way, and the other way round
  std::string way, said;
};
class BetweenTwoGpus : public testing::TestWithParam<Way> {};
TEST_P(BetweenTwoGpus, ThePairIsMeasuredAndItsWayTaken) {
  const Way& w = GetParam();
  auto& peer = gpus().state().peer;
  peer[0][1] = w.there, peer[1][0] = w.back;
  std::array<std::uint64_t, 2> handed_over{};
  std::uint64_t copied = 0;
  std::string status, log;
  const auto answers = answers_of(shapes_on(partition_on("p0", "gpu", 0) + partition_on("p1", "gpu", 1),
                                            with_plan("gpu", "pard"), split().profiles),
                                  &handed_over, &copied, [&](Leatd& leatd) {
                                    status = leatd.status_json();
                                    log = leatd.log();
                                  });
  peer[0][1] = peer[1][0] = fake::kPeerRefused;
  EXPECT_GT(expect_equal(on_the_cpu(), answers), answers.size());
  EXPECT_EQ(copied, handed_over[0]);
  const Json edge = Json::parse(status).at("edges").at(0);
  EXPECT_EQ(edge.at("memory").get<std::string>(), w.way == "peer" ? "device" : "host");
  ASSERT_EQ(edge.at("ways").size(), 1U);
  const Json& way = edge.at("ways").at(0);
  EXPECT_EQ(way.at("way").get<std::string>(), w.way);
  EXPECT_EQ(way.at("from").get<std::string>(), fake::uuid_text(0));
  EXPECT_GT(way.at("host_gbps").get<double>(), 0);
  EXPECT_EQ(way.at("gbps").get<double>() > 0, w.way == "peer");
  EXPECT_NE(way.at("why_not").get<std::string>().find(w.said), std::string::npos) << way.dump();
  EXPECT_NE(log.find("features from " + fake::uuid_text(0) + " to " + fake::uuid_text(1) + ": " + w.way),
            std::string::npos)
      << log;
}
INSTANTIATE_TEST_SUITE_P(Ways, BetweenTwoGpus,
                         testing::Values(Way{"Works", fake::kPeerWorks, fake::kPeerRefused, "peer", ""},
                                         Way{"Refused", fake::kPeerRefused, fake::kPeerWorks, "host", "INVALID_DEVICE"},
                                         Way{"Lies", fake::kPeerLies, fake::kPeerWorks, "host", "it maps, but"}),
                         [](const auto& p) { return std::string(p.param.name); });

// Memory inside one GPU that another process maps and does not see: rows through the host.
TEST(GpuServe, AMappingInPlaceThatLiesIsNotUsed) {
  gpus().state().in_place_lies = 1;
  std::string log;
  std::array<std::uint64_t, 2> handed_over{};
  std::uint64_t copied = 0;
  const auto answers = answers_of(shapes_on(partition_on("p0", "gpu", 0) + partition_on("p1", "gpu", 0),
                                            with_plan("gpu", "pard"), split().profiles),
                                  &handed_over, &copied, [&](Leatd& leatd) { log = leatd.log(); });
  gpus().state().in_place_lies = 0;
  EXPECT_NE(log.find("'p0' and 'p1' are on one device and take turns there"), std::string::npos) << log;
  EXPECT_GT(expect_equal(on_the_cpu(), answers), answers.size());
  EXPECT_EQ(copied, handed_over[0]);
}

// What each worker took of its device, and which batches it runs as graphs, by status and log. The stand-in is slow to
// launch, so that graphs win.
TEST(GpuServe, SaysItsMemoryAndItsGraphs) {
  const CountedTimes counted({.launch_us = 5000});
  Leatd leatd(shapes_on(partition_on("whole", "gpu", 0), "", ""));
  const auto gpu = [&] { return Json::parse(leatd.status_json()).at("partitions").at(0).at("gpu"); };
  const Json before = gpu();
  EXPECT_EQ(before.at("multiprocessors").get<int>(), 108);
  EXPECT_EQ(before.at("memory_bytes").get<std::uint64_t>() >> 30, 40U);
  std::uint64_t of_modules = 0;
  int graphs = 0;
  for (const Json& module : before.at("modules")) {
    of_modules += module.at("memory_bytes").get<std::uint64_t>();
    EXPECT_EQ(module.at("graphs").at("batches").size(), module.at("name") == "shapes/detect" ? 4U : 16U);
    for (const Json& batch : module.at("graphs").at("batches")) {
      const double at_once = batch.at("one_launch_ms").get<double>();
      const bool graph = std::min(batch.at("graph_ms").get<double>(), at_once) < batch.at("ms").get<double>();
      EXPECT_EQ(batch.at("one_launch").get<bool>(), graph && at_once <= batch.at("graph_ms").get<double>());
      EXPECT_EQ(batch.at("graph").get<bool>(), graph);
      graphs += graph ? 1 : 0;
    }
  }
  EXPECT_EQ(graphs, 4 + 16);
  EXPECT_GT(of_modules, 0U);
  EXPECT_GE(before.at("allocated_bytes").get<std::uint64_t>(), of_modules);
  EXPECT_NE(leatd.log().find("CUDA graphs at batch 1 ("), std::string::npos) << leatd.log();
  const auto pinned = [&] { return gpu().at("pinned_bytes").get<std::uint64_t>(); };
  const std::uint64_t min = pinned();
  {
    Camera camera(leatd, "pinned");
    ASSERT_NO_FATAL_FAILURE(camera.pump(2));
    EXPECT_TRUE(eventually([&] { return pinned() > min; })) << "frames of a stream are pinned";
    ASSERT_NO_FATAL_FAILURE(camera.drain());
  }
  EXPECT_TRUE(eventually([&] { return pinned() == min; })) << "and forgotten with it";
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// Each of the three ways is served where it is the fastest, by what a stand-in makes dear: status says which it is, and
// what is put on the stream for a batch says so too. A frame is read where it lies where copies are dear.
struct Fastest {
  const char* name;
  Times times;
  int Ways::*all;             // sizes run so
  std::uint64_t least, most;  // launches a batch
};
class EachWay : public testing::TestWithParam<Fastest> {};
TEST_P(EachWay, IsServedWhereItIsTheFastest) {
  const Fastest& way = GetParam();
  const CountedTimes counted(way.times);
  const fake::State& state = gpus().state();
  // By profiles: nothing is measured while it serves.
  Leatd leatd(shapes_on(partition_on("whole", "gpu", 0), "", split().profiles));
  const Ways ways = ways_of(leatd);
  EXPECT_EQ(ways.sizes, 4 + 16) << leatd.status_json();
  EXPECT_EQ(ways.*way.all, ways.sizes) << leatd.status_json();
  const auto batches = [&] {
    std::uint64_t sum = 0;
    for (const std::uint32_t m : {0U, 1U})
      sum += leatd.record(RecordKind::module, m)->value(shm::ModuleCounter::batches).value_or(0);
    return sum;
  };
  Camera camera(leatd, "ways");
  ASSERT_NO_FATAL_FAILURE(camera.pump(1));
  ASSERT_NO_FATAL_FAILURE(camera.drain());
  ASSERT_TRUE(eventually([&] { return value(*leatd.total(), StreamCounter::in_flight) == 0; }));
  const std::uint64_t launches = state.launches, before = batches();
  ASSERT_NO_FATAL_FAILURE(camera.pump(20));
  ASSERT_NO_FATAL_FAILURE(camera.drain());
  ASSERT_TRUE(eventually([&] { return value(*leatd.total(), StreamCounter::in_flight) == 0; }));
  const std::uint64_t put = state.launches - launches, ran = batches() - before;
  EXPECT_GT(ran, 0U);
  EXPECT_GE(put, way.least * ran) << ran << " batches";
  EXPECT_LE(put, way.most * ran) << ran << " batches";
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}
// Of a plain batch: its jobs, the pictures, the model and its outputs; frames that are uploaded besides.
INSTANTIATE_TEST_SUITE_P(OfThree, EachWay,
                         testing::Values(Fastest{"OneLaunch", {4000, 0, 0}, &Ways::one_launch, 1, 1},
                                         Fastest{"Plain", {0, 0, 20'000}, &Ways::plain, 4, 12}),
                         [](const auto& p) { return std::string(p.param.name); });

// Stages on either side of an edge, whose rows are others for each batch, run as graphs where launches are slow;
// nothing leaves the device for it, and answers are the CPU's.
TEST(GpuServe, StagesBesideAnEdgeRunAsGraphs) {
  const CountedTimes counted({.launch_us = 5000});
  std::array<std::uint64_t, 2> handed_over{};
  std::uint64_t copied = 0;
  std::string status;
  const auto answers = answers_of(shapes_on(partition_on("p0", "mps", 0, 50) + partition_on("p1", "mps", 0, 50),
                                            with_plan("mps", "pard"), split().profiles),
                                  &handed_over, &copied, [&](Leatd& leatd) { status = leatd.status_json(); });
  EXPECT_GT(expect_equal(on_the_cpu(), answers), answers.size());
  EXPECT_GT(handed_over[0], 0U);
  EXPECT_EQ(copied, 0U);
  int graphs = 0, batches = 0;
  const Json partitions = Json::parse(status).at("partitions");
  for (const Json& partition : partitions)
    for (const Json& module : partition.at("gpu").at("modules")) {
      if (module.at("name") != "shapes/detect") continue;
      for (const Json& batch : module.at("graphs").at("batches"))
        ++batches, graphs += batch.at("graph").get<bool>() ? 1 : 0;
    }
  EXPECT_EQ(batches, 2 * 4) << status;
  EXPECT_EQ(graphs, batches) << status;
}

// What there is to see of it: `leat top` has, of each partition, device, share, multiprocessors, memory and busy time,
// and of the edge between them the way and both counts of bytes; `leat status` says the same in words.
TEST(GpuServe, TopAndStatusShowDevicesAndEdges) {
  (void)gpus();
  Leatd leatd(shapes_on(partition_on("p0", "mps", 0, 50) + partition_on("p1", "mps", 0, 50), with_plan("mps", "pard"),
                        split().profiles));
  Camera camera(leatd, "seen");
  ASSERT_NO_FATAL_FAILURE(camera.pump(10));
  ASSERT_NO_FATAL_FAILURE(camera.drain());
  const ScratchFolder folder;
  const auto said = [&](const std::string& words) {
    const std::string file = folder.path() + "/out";
    const Exit e = run_to_end(
        {"/bin/sh", "-c", std::string(LEAT_BINARY) + " " + words + " --socket " + leatd.socket() + " > " + file});
    EXPECT_EQ(e.status, 0) << e.err;
    return text_of(file);
  };
  const Json seen = Json::parse(said("top --once --json --delay 0.1"));
  ASSERT_EQ(seen.at("partitions").size(), 2U);
  for (const Json& p : seen.at("partitions")) {
    EXPECT_EQ(p.at("device").get<std::string>(), fake::uuid_text(0));
    EXPECT_EQ(p.at("share_percent").get<double>(), 50);
    EXPECT_EQ(p.at("multiprocessors").get<double>(), 54);
    EXPECT_GT(p.at("device_bytes").get<double>(), 0);
    EXPECT_TRUE(p.at("busy_percent").is_number()) << p.dump();
  }
  const Json& edge = seen.at("edges").at(0);
  EXPECT_EQ(edge.at("way").get<std::string>(), "in place");
  EXPECT_GT(edge.at("bytes_in_place").get<double>(), 0);
  EXPECT_EQ(edge.at("bytes_copied").get<double>(), 0);
  const std::string status = said("status");
  for (const std::string& words :
       {fake::uuid_text(0) + ", 50 %, 54 multiprocessors", std::string("MiB made here"), std::string("in place")})
    EXPECT_NE(status.find(words), std::string::npos) << words << "\n" << status;
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// From the measurement of a share to a plan for two of them, and the answers of that: nothing names a class by hand.
TEST(GpuServe, ProfiledOnAShareAndPlannedAtStart) {
  (void)gpus();
  const ScratchFolder folder;
  std::string partitions;
  for (const char* name : {"a", "b"})
    partitions += std::string("[[partition]]\nname = \"") + name + "\"\nkind = \"mps\"\ngpu = \"" + fake::uuid_text(0) +
                  "\"\npercent = 50\n";
  for (const std::string model : {"detect", "classify"}) {
    const std::string file = folder.path() + "/" + model + ".json";
    const Exit e = run_to_end(
        {LEAT_BINARY, "profile", LEAT_MODELS "/" + model + ".onnx", "--config", LEAT_MODELS "/shapes.toml", "--frame",
         "640x360", "--gpu", fake::uuid_text(0) + ":50", "-o", file, "--batches", "1,2,4", "--samples", "5"},
        120s);
    ASSERT_EQ(e.status, 0) << e.err;
    const Json profile = Json::parse(text_of(file));
    ASSERT_EQ(profile.at("rows").size(), 3U);
    for (const Json& row : profile.at("rows")) EXPECT_EQ(row.at("class").get<std::string>(), "mps:50");
    EXPECT_NE(profile.at("provenance").at("machine").get<std::string>().find("stand-in A100-40"), std::string::npos);
  }
  std::array<std::uint64_t, 2> handed_over{};
  const auto answers = answers_of(shapes_on(partitions, "[daemon]\nplan = \"auto\"\n", folder.path()), &handed_over);
  EXPECT_GT(expect_equal(on_the_cpu(), answers), answers.size());
}

}  // namespace
}  // namespace leat::test
