// `leat profile` as a user runs it: killed and run again, fed with garbage, and all the way from the committed models
// over a plan to a leatd that serves by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/exec/test/test_graph.h"
#include "engine/exec/test/test_models.h"
#include "planner/io/profile_io.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Exit leat(std::vector<std::string> words, std::chrono::milliseconds limit = 180s) {
  words.insert(words.begin(), LEAT_BINARY);
  return run_to_end(words, limit);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(LeatProfile, GoesOnAfterAKill) {
  const ScratchFolder folder;
  const std::string model = folder.write("m.onnx", exec::residual_model(21, 4)), output = folder.path() + "/m.json";
  const std::vector<std::string> words{
      LEAT_BINARY, "profile",         model,       "-o",      output,      "--blocks", "3",
      "--batches", "1,2,3,4,5,6,7,8", "--samples", "1000000", "--seconds", "0.25"};
  std::vector<char*> argv;
  for (const auto& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  ASSERT_EQ(posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ), 0);
  const bool begun = eventually([&] { return std::filesystem::exists(output); });
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  int raw = 0;
  ASSERT_EQ(waitpid(pid, &raw, 0), pid);
  ASSERT_TRUE(begun);
  ASSERT_TRUE(WIFSIGNALED(raw)) << "it ended before it could be killed";
  const auto before = planner::read_profile(output);  // never half a file
  ASSERT_TRUE(before.ok()) << before.error();
  ASSERT_LT(before->rows.size(), 8u);

  const Exit again = leat({words.begin() + 1, words.end()});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr(std::to_string(before->rows.size()) + " kept from before"));
  const auto after = planner::read_profile(output);
  ASSERT_TRUE(after.ok()) << after.error();
  ASSERT_EQ(after->rows.size(), 8u);
  EXPECT_EQ(after->cuts, before->cuts);
  for (std::size_t r = 0; r < before->rows.size(); ++r) {
    EXPECT_EQ(after->rows[r].batch, before->rows[r].batch);
    for (std::size_t b = 0; b < 3; ++b)
      EXPECT_EQ(after->rows[r].blocks[b].p50_ns, before->rows[r].blocks[b].p50_ns) << "measured once is enough";
  }
}

// A module whose pictures vary: a row for each size, and batches of the largest.
TEST(LeatProfile, SizesHaveRows) {
  const ScratchFolder folder;
  exec::TestGraph g;
  g.input("x", exec::TestGraph::f32, {"n", 3, 32, "w"});
  const std::string w = g.constant("w", {16, 3, 3, 3}, std::vector<float>(432, .01F));
  g.output(g.op("Flatten", {g.op("GlobalAveragePool", {g.op("Conv", {"x", w}, "", {{"pads", {1, 1, 1, 1}}})})}, "y"),
           exec::TestGraph::f32, {"n", 16});
  const std::string model = folder.path() + "/wide.onnx", output = folder.path() + "/p.json";
  g.save(model);
  const std::string config =
      folder.write("leatd.toml",
                   "[[partition]]\nname = \"p\"\ncores = \"0\"\n[[application]]\nname = \"t\"\n"
                   "slo_ms = 100\n[[application.module]]\nname = \"m\"\nmodel = \"" +
                       model + "\"\npreprocess = \"letterbox height=32 widths=32,640 norm=unit rgb\"\n" +
                       "postprocess = \"tensors\"\n");
  const Exit open = leat({"profile", model, "-o", output, "--samples", "5"});
  EXPECT_EQ(open.status, 2);
  EXPECT_THAT(open.err, HasSubstr("leaves the size of its input open"));
  const Exit made = leat(
      {"profile", model, "--config", config, "-o", output, "--batches", "1,2", "--samples", "20", "--seconds", "0.5"});
  ASSERT_EQ(made.status, 0) << made.err;
  const auto profile = planner::read_profile(output);
  ASSERT_TRUE(profile.ok()) << profile.error();
  ASSERT_EQ(profile->rows.size(), 2U);
  ASSERT_EQ(profile->sizes.size(), 2U);
  EXPECT_EQ(profile->sizes[0].width, 32U);
  EXPECT_EQ(profile->sizes[1].width, 640U);
  EXPECT_LT(2 * profile->sizes[0].latency.p50_ns, profile->sizes[1].latency.p50_ns) << "a twentieth of the pixels";
  EXPECT_LT(2 * profile->sizes[0].latency.p50_ns, profile->rows[0].blocks[0].p50_ns) << "rows are of the largest";
}

TEST(LeatProfile, BadInputIsOneLineAndStatusTwo) {
  const ScratchFolder folder;
  const std::string good = folder.write("good.onnx", exec::chain_model(22, 3)),
                    junk = folder.write("junk.onnx", std::string(3000, '\x80')), output = folder.path() + "/p.json";
  const struct {
    std::vector<std::string> words;
    std::vector<std::string> says;
  } cases[] = {
      {{}, {"MODEL.onnx"}},
      {{folder.path() + "/none.onnx"}, {"none.onnx", "cannot be read"}},
      {{folder.path()}, {"is a directory"}},
      {{junk}, {"junk.onnx", "not an ONNX model"}},
      {{good, "--blocks", "9"}, {"good.onnx", "5 cut points", "at most 6 blocks"}},
      {{good, "--blocks", "0"}, {"blocks"}},
      {{good, "--batches", "1,x"}, {"--batches", "'x'"}},
      {{good, "--batches", "65"}, {"--batches", "'65'"}},
      {{good, "--partitions", "mig:1g.10gb"}, {"--partitions", "mig:1g.10gb"}},
      {{good, "--partitions", "1,9999"}, {"'9999'", "more cores"}},
      {{good, "--shares", "0"}, {"--shares"}},
      {{good, "--group", "colour"}, {"group"}},
      {{good, "--partition", "1"}, {"--partition"}},
      {{good, good}, {"good.onnx"}},
      {{good, "--config", folder.path() + "/none.toml"}, {"none.toml", "cannot be read"}},
      {{good, "--config", LEAT_MODELS "/shapes.toml"}, {"shapes.toml", "has no module that runs"}},
      {{LEAT_MODELS "/detect.onnx", "--config", LEAT_MODELS "/shapes.toml", "--module", "shapes/classify"},
       {"has no module 'shapes/classify'"}},
      {{LEAT_MODELS "/detect.onnx", "--config", LEAT_MODELS "/shapes.toml", "--frame", "641x360"},
       {"--frame", "641x360"}},
      {{good, "--module", "shapes/detect"}, {"--module", "--config"}},
  };
  for (const auto& c : cases) {
    std::vector<std::string> words{"profile", "-o", output};
    words.insert(words.end(), c.words.begin(), c.words.end());
    const Exit e = leat(words);
    EXPECT_EQ(e.status, 2) << e.err;
    EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
    for (const auto& text : c.says) EXPECT_THAT(e.err, HasSubstr(text));
    EXPECT_FALSE(std::filesystem::exists(output)) << e.err;
  }
}

// As leatd serves it: row by row.
TEST(LeatProfile, AFixedBatchIsMeasuredAndSaid) {
  const ScratchFolder folder;
  const std::string model = folder.write("fixed.onnx", exec::chain_model(22, 3, 1)), output = folder.path() + "/p.json";
  const Exit e = leat({"profile", model, "-o", output, "--batches", "1,4,8", "--samples", "5"});
  ASSERT_EQ(e.status, 0) << e.err;
  EXPECT_THAT(e.err, HasSubstr("note: the model fixes the batch at 1"));
  const auto profile = planner::read_profile(output);
  ASSERT_TRUE(profile.ok()) << profile.error();
  ASSERT_EQ(profile->rows.size(), 1U);
  EXPECT_EQ(profile->rows[0].batch, 1U);
}

TEST(LeatProfile, SaysItInJsonAndVerifies) {
  const ScratchFolder folder;
  const std::string model = folder.write("m.onnx", exec::residual_model(23, 4));
  const Exit e = leat({"profile", model, "-o", folder.path() + "/m.json", "--blocks", "2", "--group", "bytes",
                       "--balance", "3", "--batches", "2", "--samples", "5", "--verify", "--json"});
  ASSERT_EQ(e.status, 0) << e.err;
  const auto parsed = Json::try_parse(e.err.substr(e.err.find('{')));
  ASSERT_TRUE(parsed) << e.err;
  const Json& json = *parsed;
  EXPECT_EQ(json["model"], "m");
  EXPECT_GE(json["segment_ns"].size(), 2u);
  EXPECT_EQ(json["rows"].size(), 2u) << "batch 1 is always measured";
  EXPECT_EQ(json["rows"][1]["block_p50_ns"].size(), 2u);
  EXPECT_GE(json["rows"][0]["imbalance"].get<double>(), 1.0);
  EXPECT_LE(json["verified"]["difference"].get<double>(), 1e-4);
  EXPECT_LE(json["verified"]["difference_random_weights"].get<double>(), 1e-4);
}

// Any host of one core has these: what is tried here is that the files fit each other, not speed.
constexpr const char* kHost = R"({"schema": "leat-host/1", "partitions": [
  {"name": "left", "kind": "cpu", "class": "cpu:1"}, {"name": "right", "kind": "cpu", "class": "cpu:1"}]})";

// The committed configuration with its models by whole paths, its partitions named, an SLO that any host keeps, and the
// plan. leatd serves it, and it is what is planned for.
std::string shapes_by(const std::string& plan) {
  std::string text = text_of(LEAT_MODELS "/shapes.toml");
  text.replace(text.find("slo_ms = 200"), 12, "slo_ms = 10000");
  for (std::size_t at = 0; (at = text.find("model = \"", at)) != std::string::npos; at += 9)
    text.insert(at + 9, LEAT_MODELS "/");
  const std::string
      any = "cpu = \"auto\"",
      two = "[[partition]]\nname = \"left\"\ncores = \"0\"\n[[partition]]\nname = \"right\"\ncores = \"0\"\n";
  text.replace(text.find(any), any.size(), two);
  return "[daemon]\nplan = \"" + plan + "\"\n" + text;  // the fixture's own [daemon] keys are options
}

TEST(LeatProfile, ShapesFromModelsOverAPlanToAServingDaemon) {
  const ScratchFolder folder;
  const std::string profiles = folder.path() + "/profiles", plan = folder.path() + "/plan.json";
  std::filesystem::create_directory(profiles);
  for (const std::string model : {"detect", "classify"}) {
    const Exit e = leat({"profile", LEAT_MODELS "/" + model + ".onnx", "--config", LEAT_MODELS "/shapes.toml", "-o",
                         profiles + "/" + model + ".json", "--batches", "1,4", "--samples", "10"});
    ASSERT_EQ(e.status, 0) << e.err;
  }
  const Exit planned = leat({"plan", "--application", folder.write("shapes.toml", shapes_by(plan)), "--host",
                             folder.write("host.json", kHost), "--profiles", profiles, "-o", plan, "--try", "500"});
  ASSERT_EQ(planned.status, 0) << planned.err;

  const Exit checked = leat({"check", folder.path() + "/shapes.toml"});
  EXPECT_EQ(checked.status, 0) << checked.err;
  EXPECT_THAT(checked.err, HasSubstr("latency from the plan"));

  Leatd leatd(shapes_by(plan));
  ASSERT_TRUE(leatd.alive()) << leatd.log();
  auto client = Client::connect(leatd.socket(), "profile");
  ASSERT_TRUE(client.ok()) << client.error() << leatd.log();
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "shapes";
  o.format = LEAT_FORMAT_nv12;
  o.width = 640, o.height = 360;
  o.depth = o.slots = 2;
  o.overload = LEAT_OVERLOAD_never_drop;
  o.slo_ns = 60'000'000'000;
  auto stream = client->open_stream(o);
  ASSERT_TRUE(stream.ok()) << stream.error();
  for (int i = 0; i < 5; ++i) {
    auto frame = stream->acquire();
    ASSERT_TRUE(frame);
    (void)paint(frame->raw(), 40 + i);
    ASSERT_EQ(frame->submit({}), LEAT_ERROR_ok) << leat_last_error();
    const auto answer = client->next_answer(30s);
    ASSERT_TRUE(answer) << leat_last_error() << leatd.log();
    EXPECT_EQ(answer->outcome(), Outcome::completed) << name_of(answer->reason());
  }
  EXPECT_EQ(leatd.stop(), 0);
}

// Profiles of several blocks: every route covers all of them, and the plan keeps what it promises by the profiles.
TEST(LeatProfile, BlocksArePlannedByTheirNumbers) {
  const ScratchFolder folder;
  const std::string profiles = folder.path() + "/profiles", plan = folder.path() + "/plan.json";
  std::filesystem::create_directory(profiles);
  for (const std::string model : {"detect", "classify"}) {
    const Exit e =
        leat({"profile", LEAT_MODELS "/" + model + ".onnx", "--config", LEAT_MODELS "/shapes.toml", "--frame",
              "640x360", "-o", profiles + "/" + model + ".json", "--blocks", "3", "--batches", "1", "--samples", "10"});
    ASSERT_EQ(e.status, 0) << e.err;
  }
  const Exit planned = leat({"plan", "--application", folder.write("shapes.toml", shapes_by(plan)), "--host",
                             folder.write("host.json", kHost), "--profiles", profiles, "-o", plan, "--try", "500"});
  ASSERT_EQ(planned.status, 0) << planned.err;
  EXPECT_EQ(run_to_end({LEAT_PLAN_BINARY, "check", plan, "--profiles", profiles}).status, 0);
  const auto json = Json::parse(text_of(plan));
  const auto profile = planner::read_profile(profiles + "/detect.json");
  ASSERT_TRUE(profile.ok()) << profile.error();
  EXPECT_THAT(profile->provenance.method,
              HasSubstr("module shapes/detect with pre- and post-processing of 640x360 frames"));
  for (const auto& route : json["routes"]) EXPECT_EQ(route["stages"].back()["end_block"], 3);
}

}  // namespace
}  // namespace leat::test
