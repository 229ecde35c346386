// Partitions of kind gpu and mps through a whole leatd, over the stand-in driver (cuda/fake): real models, whose part
// on the device's stream the host's code plays; real leatd, workers, descriptors and memory that processes share. It
// shows order, waits, hand-over, faults and the ledger. It cannot show ONNX Runtime's own provider, what a real driver,
// MPS and MIG permit, nor any speed: docs/gpu.md.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "cuda/fake/state.h"
#include "tests/daemon_fixture.h"
#include "tests/shapes_answers.h"
#include "tools/json/json.h"

namespace leat::test {
namespace {

using shm::EdgeCounter;
using shm::RecordKind;
using shm::StreamCounter;

// The GPUs that are not there, for every process this test starts.
fake::Host& gpus() {
  static fake::Host* const kHost = [] {
    static const ScratchFolder kFolder;
    const std::string path = kFolder.path() + "/gpus";
    auto* host = fake::Host::create(path, {"A100-40", "H100-80"}).release();
    host->state().longest_delay_us = 300;
    ::setenv("LEAT_FAKE_GPUS", path.c_str(), 1);
    ::setenv("LD_LIBRARY_PATH", LEAT_FAKE_DRIVERS, 1);
    ::setenv("LEAT_MPS_CONTROL", LEAT_FAKE_MPS, 1);
    return host;
  }();
  return *kHost;
}

// The committed configuration with its models by whole paths and these partitions; `profiles`: a folder, or empty.
std::string shapes_on(const std::string& partitions, const std::string& more, const std::string& profiles) {
  std::string text = text_of(LEAT_MODELS "/shapes.toml");
  for (std::size_t at = 0; (at = text.find("model = \"", at)) != std::string::npos; at += 9)
    text.insert(at + 9, LEAT_MODELS "/");
  for (const std::string model : {"detect", "classify"})
    if (!profiles.empty())
      text.insert(text.find("  model = \"" LEAT_MODELS "/" + model + ".onnx\"\n"),
                  "  profile = \"" + profiles + "/" + model + ".json\"\n");
  const std::string any = "cpu = \"auto\"";
  text.replace(text.find(any), any.size(), partitions);
  return more + text;
}

std::string partition(const std::string& name, const std::string& kind, unsigned gpu, int percent = 0) {
  std::string text =
      "[[partition]]\nname = \"" + name + "\"\nkind = \"" + kind + "\"\nclass = \"cpu:1\"\ncores = \"0\"\n";
  if (kind != "cpu") text += "gpu = \"" + fake::uuid_text(gpu) + "\"\n";
  if (percent != 0) text += "percent = " + std::to_string(percent) + "\n";
  return text;
}

// A detector in two stages on partitions left and right, and the classifier on both; as a plan that the configuration
// above adopts. Profiled once.
struct Split {
  ScratchFolder folder;
  std::string profiles = folder.path() + "/profiles";
  Json plan;

  Split() {
    std::filesystem::create_directory(profiles);
    for (const std::string model : {"detect", "classify"}) {
      const Exit e =
          run_to_end({LEAT_BINARY, "profile", LEAT_MODELS "/" + model + ".onnx", "--config", LEAT_MODELS "/shapes.toml",
                      "--frame", "640x360", "-o", profiles + "/" + model + ".json", "--blocks",
                      model == "detect" ? "3" : "2", "--batches", "1,2,4", "--samples", "5"},
                     60s);
      EXPECT_EQ(e.status, 0) << e.err;
    }
    const Json profile = Json::parse(text_of(profiles + "/detect.json"));
    const auto bytes = profile.at("boundary_bytes");
    Json latency = Json::array();
    for (int b = 1; b <= 4; ++b)
      latency.push_back({{"p50_ns", 8'000'000 * b}, {"p99_ns", 10'000'000 * b}, {"samples", 9}});
    const auto stage = [&](int first, int end, Json pool, std::int64_t transfer) {
      return Json{{"first_block", first},
                  {"end_block", end},
                  {"pool", pool},
                  {"transfer_bytes", transfer},
                  {"latency_by_batch", latency}};
    };
    const auto route = [](int module, Json stages) {
      return Json{{"application", 0}, {"module", module}, {"batch", 4}, {"rate_rps", 50}, {"stages", stages}};
    };
    plan = {{"schema", "leat-plan/1"},
            {"applications",
             {{{"name", "shapes"},
               {"slo_ns", 200'000'000},
               {"rate_rps", 10},
               {"weight", 1},
               {"module",
                {{{"name", "detect"}, {"model", "detect"}},
                 {{"name", "classify"},
                  {"model", "classify"},
                  {"after", {"detect"}},
                  {"items_per_request", 9},
                  {"fan_out_cap", 16}}}}}}},
            {"partitions", Json::array()},
            {"hosts", Json::array()},
            {"routes",
             {route(0, {stage(0, 1, {0}, bytes[0].get<std::int64_t>()), stage(1, 3, {1}, 0)}),
              route(1, {stage(0, 2, {0, 1}, 0)})}},
            {"budget_ns", Json::array()},
            {"certificate",
             {{"objective", 1}, {"upper_bound", 1}, {"gap", 0}, {"binding", ""}, {"method", ""}, {"seconds", 0}}}};
  }
  std::string write(const std::string& kind) {
    plan["partitions"] = Json::array();
    for (const char* name : {"left", "right"})
      plan["partitions"].push_back({{"name", name},
                                    {"kind", kind},
                                    {"class", "cpu:1"},
                                    {"share", 1},
                                    {"size", 1},
                                    {"price", 1},
                                    {"device", plan["partitions"].size()},
                                    {"host", 0},
                                    {"selector", ""}});
    return folder.write(kind + ".json", plan.dump());
  }
};
Split& split() {
  static Split* const kSplit = new Split;
  return *kSplit;
}
std::string with_plan(const std::string& kind, const std::string& preset) {
  return "[daemon]\nplan = \"" + split().write(kind) + "\"\n[policy]\npreset = \"" + preset + "\"\n";
}

const std::vector<leat_result>& on_the_cpu() {
  static const auto kAnswers = [] {
    std::array<std::uint64_t, 2> none{};
    return answers_of(shapes_on(partition("only", "cpu", 0), "", ""), &none);
  }();
  return kAnswers;
}

TEST(GpuServe, WholeModelsAnswerAsOnTheCpu) {
  (void)gpus();
  std::array<std::uint64_t, 2> handed_over{};
  const auto answers = answers_of(shapes_on(partition("g", "gpu", 0), "", ""), &handed_over);
  EXPECT_GT(expect_equal(on_the_cpu(), answers), answers.size());
}

TEST(GpuServe, AnotherGpuThanTheOneNamedIsRefused) {
  (void)gpus();
  const ScratchFolder folder;
  std::string config = shapes_on(partition("g", "gpu", 0), "", "");
  const std::string uuid = fake::uuid_text(0);
  config.replace(config.find(uuid), uuid.size(), "GPU-deadbeef-0000-0000-0000-000000000000");
  const Exit e = run_to_end({LEATD_BINARY, folder.write("a.toml", "[daemon]\nsocket = \"s\"\n" + config)}, 30s);
  EXPECT_EQ(e.status, 2);
  EXPECT_NE(e.err.find("GPU-deadbeef"), std::string::npos) << e.err;
}

// Two processes on one GPU: what the first writes the second reads where it lies.
class SplitOnOneGpu : public testing::TestWithParam<const char*> {};
TEST_P(SplitOnOneGpu, CopiesNothingBetweenTheStages) {
  (void)gpus();
  const std::string kind = GetParam();
  const int percent = kind == "mps" ? 50 : 0;
  std::array<std::uint64_t, 2> handed_over{};
  std::uint64_t copied = 0;
  const auto answers = answers_of(shapes_on(partition("left", kind, 0, percent) + partition("right", kind, 0, percent),
                                            with_plan(kind, "pard"), split().profiles),
                                  &handed_over, &copied);
  EXPECT_GT(expect_equal(on_the_cpu(), answers), answers.size());
  EXPECT_EQ(copied, 0U);
  EXPECT_EQ(handed_over[0],
            2 * kFrames * split().plan["routes"][0]["stages"][0]["transfer_bytes"].get<std::uint64_t>());
}
INSTANTIATE_TEST_SUITE_P(Kinds, SplitOnOneGpu, testing::Values("gpu", "mps"));

// Two GPUs without a way between them: the rows lie in host memory, and are counted as copied.
TEST(GpuServe, BetweenTwoGpusTheRowsGoThroughTheHost) {
  (void)gpus();
  std::array<std::uint64_t, 2> handed_over{};
  std::uint64_t copied = 0;
  const auto answers = answers_of(
      shapes_on(partition("left", "gpu", 0) + partition("right", "gpu", 1), with_plan("gpu", "pard"), split().profiles),
      &handed_over, &copied);
  EXPECT_GT(expect_equal(on_the_cpu(), answers), answers.size());
  EXPECT_EQ(copied, handed_over[0]);
}

// Shares of one GPU under a stream of frames: workers killed, and faults that take all of them, each frame answered
// once. LEAT_GPU_ROUNDS says how many; a few here.
TEST(GpuServe, KillsAndFaultsOfTheWholeGroupLeaveAnExactLedger) {
  (void)gpus();
  const char* const asked = std::getenv("LEAT_GPU_ROUNDS");
  const int rounds = asked != nullptr ? std::atoi(asked) : 4;
  Leatd leatd(shapes_on(partition("left", "mps", 0, 50) + partition("right", "mps", 0, 50),
                        with_plan("mps", "leat") + "[workers]\nlongest_backoff_ms = 20\n", split().profiles));
  auto client = Client::connect(leatd.socket(), "faults");
  ASSERT_TRUE(client.ok()) << leatd.log();
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "shapes";
  o.format = LEAT_FORMAT_nv12;
  o.width = kW, o.height = kH;
  o.depth = o.slots = 6;
  auto stream = client->open_stream(o);
  ASSERT_TRUE(stream.ok()) << leatd.log();
  std::uint64_t sent = 0, answered = 0, completed = 0;
  const auto pump = [&](std::uint64_t frames) {
    for (const std::uint64_t end = answered + frames; answered < end;) {
      while (sent - answered < 4) {
        auto frame = stream->acquire();
        if (!frame) break;
        std::memset(frame->raw().planes[0], 128, frame->raw().strides[0]);
        ASSERT_EQ(frame->submit(leat_submit_options{}), LEAT_ERROR_ok);
        ++sent;
      }
      const auto answer = client->next_answer(30s);
      ASSERT_TRUE(answer) << leat_last_error() << leatd.log();
      ++answered;
      completed += answer->outcome() == Outcome::completed || answer->outcome() == Outcome::late ? 1 : 0;
    }
  };
  std::mt19937 random(7);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(pump(5));
    const auto before = leatd.workers();
    const std::size_t hit = random() % before.size();
    const bool fault = round % 2 == 0;
    if (fault)
      gpus().fault_group(0);
    else
      (void)::kill(before[hit], SIGKILL);
    ASSERT_TRUE(eventually(
        [&] {
          if (testing::Test::HasFatalFailure()) return true;
          pump(1);  // a fault is noticed by whoever calls the device
          const auto now = leatd.workers();
          bool back = now.size() == before.size();
          for (std::size_t w = 0; back && w < now.size(); ++w)
            back = now[w] != 0 && (!(fault || w == hit) || now[w] != before[w]);
          return back;
        },
        30s))
        << leatd.log();
  }
  const std::uint64_t so_far = completed;
  ASSERT_TRUE(eventually([&] { return pump(1), completed > so_far; }, 30s)) << leatd.log();
  while (answered < sent) {
    ASSERT_TRUE(client->next_answer(30s)) << leatd.log();
    ++answered;
  }
  EXPECT_TRUE(eventually([&] { return value(*leatd.total(), StreamCounter::in_flight) == 0; }));
  EXPECT_TRUE(balances(*leatd.total()));
  EXPECT_EQ(value(*leatd.total(), StreamCounter::submitted), sent);
  EXPECT_TRUE(eventually([&] { return leatd.record(RecordKind::edge, 0)->value(EdgeCounter::slots_in_use) == 0U; }));
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

}  // namespace
}  // namespace leat::test
