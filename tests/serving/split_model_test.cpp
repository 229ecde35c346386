// A real model in several stages through the whole daemon: `leat profile` cuts the detector of `shapes` into blocks,
// `leat plan` is given partitions that cannot hold it whole, and leatd must answer what it answers with the model in
// one piece.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/models/shapes_answers.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kApplication = R"([[application]]
name = "shapes"
slo_ms = 10000
  [[application.module]]
  name = "detect"
  [[application.module]]
  name = "classify"
  after = ["detect"]
  items_per_request = 9
  fan_out_cap = 16
)";

// The committed configuration with its models by whole paths, three partitions on one core, and `more` in front.
std::string shapes_on_three(const std::string& more, const std::string& profiles) {
  std::string text = text_of(LEAT_MODELS "/shapes.toml");
  for (std::size_t at = 0; (at = text.find("model = \"", at)) != std::string::npos; at += 9)
    text.insert(at + 9, LEAT_MODELS "/");
  const std::string any = "cpu = \"auto\"";
  for (const std::string model : {"detect", "classify"})
    if (!profiles.empty())
      text.insert(text.find("  model = \"" LEAT_MODELS "/" + model + ".onnx\"\n"),
                  "  profile = \"" + profiles + "/" + model + ".json\"\n");
  std::string partitions;
  for (const char* name : {"left", "right", "third"})
    partitions += std::string("[[partition]]\nname = \"") + name + "\"\ncores = \"0\"\n";
  text.replace(text.find(any), any.size(), partitions);
  return more + text;
}

// The plan with the module behind the detector in two stages as well: one task a detection.
Json with_classify_split(Json plan) {
  for (Json& route : plan["routes"]) {
    if (route["module"] != 1) continue;
    Json first = route["stages"][0], last = first;
    for (Json& l : first["latency_by_batch"]) l["p50_ns"] = l["p99_ns"] = l["p99_ns"].get<std::int64_t>() / 2 + 1;
    last["latency_by_batch"] = first["latency_by_batch"];
    first["end_block"] = last["first_block"] = 1;
    first["transfer_bytes"] = 8192;
    last["pool"] = {0, 1};
    route["stages"] = {first, last};
  }
  return plan;
}

// Profiles of both models in that folder, and a plan for three partitions that cannot hold the detector whole.
void make_plan(const ScratchFolder& folder, const std::string& profiles, const std::string& plan, bool half) {
  std::filesystem::create_directory(profiles);
  const auto leat = [](std::vector<std::string> words) {
    words.insert(words.begin(), LEAT_BINARY);
    const Exit e = run_to_end(words);
    ASSERT_EQ(e.status, 0) << e.err;
  };
  for (const std::string model : {"detect", "classify"}) {
    std::vector<std::string> words = {"profile",   LEAT_MODELS "/" + model + ".onnx",
                                      "--config",  LEAT_MODELS "/shapes.toml",
                                      "--frame",   "640x360",
                                      "-o",        profiles + "/" + model + ".json",
                                      "--blocks",  model == "detect" ? "3" : "2",
                                      "--batches", "1,2,4",
                                      "--samples", "5"};
    if (half) words.emplace_back("--half-boundaries");
    ASSERT_NO_FATAL_FAILURE(leat(words));
  }
  const Json profile = Json::parse(text_of(profiles + "/detect.json"));
  std::int64_t whole_bytes = 0, largest = 0;
  for (const Json& b : profile.at("block_memory_bytes")) {
    whole_bytes += b.get<std::int64_t>();
    largest = std::max(largest, b.get<std::int64_t>());
  }
  ASSERT_LT(largest + 1, whole_bytes);
  Json host = {{"schema", "leat-host/1"}, {"partitions", Json::array()}};
  for (const char* name : {"left", "right", "third"})
    host["partitions"].push_back(
        {{"name", name}, {"kind", "cpu"}, {"class", "cpu:1"}, {"memory_bytes", (largest + whole_bytes) / 2}});
  ASSERT_NO_FATAL_FAILURE(
      leat({"plan", "--application", folder.write("app.toml", kApplication), "--host",
            folder.write("host.json", host.dump()), "--profiles", profiles, "-o", plan, "--try", "500"}));
}

TEST(SplitModel, AnswersAsTheWholeModel) {
  const ScratchFolder folder;
  const std::string profiles = folder.path() + "/profiles", plan = folder.path() + "/plan.json";
  ASSERT_NO_FATAL_FAILURE(make_plan(folder, profiles, plan, false));
  Json planned = Json::parse(text_of(plan));
  std::size_t split_route = planned.at("routes").size();
  for (std::size_t r = 0; r < planned.at("routes").size(); ++r)
    if (planned["routes"][r]["stages"].size() > 1) split_route = r;
  ASSERT_LT(split_route, planned.at("routes").size()) << "no partition holds the whole model";

  std::array<std::uint64_t, 2> handed_over{};
  const auto whole = answers_of(shapes_on_three("", ""), &handed_over);
  EXPECT_EQ(handed_over[0], 0U);
  const std::string more_split = folder.write("more.json", with_classify_split(planned).dump());
  for (const std::string& path : {plan, more_split}) {
    for (const char* preset : {"ppipe", "leat", "pard"}) {
      SCOPED_TRACE(path + ", " + preset);
      const auto split = answers_of(
          shapes_on_three("[daemon]\nplan = \"" + path + "\"\n[policy]\npreset = \"" + preset + "\"\n", profiles),
          &handed_over);
      const std::uint64_t objects = expect_equal(whole, split);
      EXPECT_GT(objects, whole.size()) << "frames with something to find";
      EXPECT_EQ(handed_over[0],
                2 * kFrames * planned["routes"][split_route]["stages"][0]["transfer_bytes"].get<std::uint64_t>());
      EXPECT_EQ(handed_over[1], path == plan ? 0 : objects * 8192);
    }
  }
}

float overlap(const leat_detection& a, const leat_detection& b) {
  const float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0), h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (w <= 0 || h <= 0) return 0;
  const float both = w * h, all = (a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0);
  return both / (all - both);
}

// Features in float16 between the stages: half the bytes, and the same objects.
TEST(SplitModel, InHalfPrecisionFindsTheSameObjects) {
  const ScratchFolder folder;
  const std::string profiles = folder.path() + "/profiles", plan = folder.path() + "/plan.json";
  ASSERT_NO_FATAL_FAILURE(make_plan(folder, profiles, plan, true));
  const Json planned = Json::parse(text_of(plan)), profile = Json::parse(text_of(profiles + "/detect.json"));
  EXPECT_NE(profile.at("cuts").at(0).get<std::string>().find(" as float16"), std::string::npos);
  std::array<std::uint64_t, 2> handed_over{};
  const auto whole = answers_of(shapes_on_three("", ""), &handed_over);
  const auto split = answers_of(shapes_on_three("[daemon]\nplan = \"" + plan + "\"\n", profiles), &handed_over);
  std::uint64_t bytes = 0;
  for (std::size_t r = 0; r < planned.at("routes").size(); ++r)
    if (planned.at("routes").at(r).at("stages").size() > 1)
      bytes = planned.at("routes").at(r).at("stages").at(0).at("transfer_bytes").get<std::uint64_t>();
  EXPECT_GT(bytes, 0U);
  EXPECT_EQ(handed_over[0], 2 * kFrames * bytes);
  ASSERT_EQ(whole.size(), split.size());
  std::uint64_t objects = 0, found = 0, same = 0, others = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    others += split[i].detection_count;
    for (std::uint32_t d = 0; d < whole[i].detection_count; ++d) {
      const leat_detection& is = whole[i].detections[d];
      ++objects;
      for (std::uint32_t e = 0; e < split[i].detection_count; ++e) {
        if (overlap(is, split[i].detections[e]) < .9F) continue;
        ++found;
        const auto class_of = [](const leat_label& l) { return l.class_id; };
        same += std::ranges::equal(is.labels, split[i].detections[e].labels, {}, class_of, class_of) ? 1 : 0;
        break;
      }
    }
  }
  std::printf("of %llu objects %llu are found at the same place, %llu with the same labels; %llu in all\n",
              static_cast<unsigned long long>(objects), static_cast<unsigned long long>(found),
              static_cast<unsigned long long>(same), static_cast<unsigned long long>(others));
  EXPECT_GT(objects, whole.size());
  EXPECT_GE(found * 100, objects * 98);
  EXPECT_LE(others * 100, objects * 102);
}

}  // namespace
}  // namespace leat::test
