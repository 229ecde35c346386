// `leat try` and `leat serve` as a user types them: the demo's application on a rendered picture, what is drawn, and
// what is said of bad input.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/daemon_fixture.h"
#include "tools/json/json.h"
#include "tools/scene/scene.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

// A frame of the demo's scene as a PPM file.
std::string picture(const ScratchFolder& folder) {
  constexpr std::uint32_t kWidth = 640, kHeight = 360;
  scene::Scene scene({.seed = 4711, .camera = 0, .width = kWidth, .height = kHeight});
  std::string text = "P6\n640 360\n255\n";
  const std::size_t head = text.size();
  text.resize(head + scene.rgb_bytes());
  scene.render(60, reinterpret_cast<std::uint8_t*>(text.data() + head), std::size_t{3} * kWidth);
  return folder.write("scene.ppm", text);
}

Exit leat(std::vector<std::string> words) {
  words.insert(words.begin(), LEAT_BINARY);
  return run_to_end(words, 120s);
}

TEST(Try, AnApplicationFindsWhatIsInAPictureAndDrawsIt) {
  const ScratchFolder folder;
  const std::string drawn = folder.path() + "/found.png";
  const Exit e = leat({"try", LEAT_SHAPES, picture(folder), "-o", drawn, "--json"});
  ASSERT_EQ(e.status, 0) << e.err;
  const auto json = Json::parse(e.err);
  ASSERT_EQ(json["pictures"].size(), 1U);
  const auto& answer = json["pictures"][0];
  EXPECT_EQ(answer["outcome"], "completed");
  ASSERT_FALSE(answer["detections"].empty());
  EXPECT_EQ(answer["detections"][0]["labels"].size(), 2U) << answer.dump();
  for (const char* part : {"decode", "shapes/detect", "shapes/classify", "answer"})
    EXPECT_GT(answer["ms"][part].get<double>(), 0.0) << part;
  EXPECT_GT(std::filesystem::file_size(drawn), 1000U);
}

TEST(Try, AModelAloneWithItsWords) {
  const ScratchFolder folder;
  const Exit e = leat({"try", LEAT_DETECT, picture(folder), "--preprocess", "letterbox mean=0.5 std=0.5",
                       "--postprocess", "boxes stride=8 score=0.2 overlap=0.6"});
  ASSERT_EQ(e.status, 0) << e.err;
  EXPECT_NE(e.err.find("%"), std::string::npos) << e.err;
}

TEST(Try, BadInputIsOneLineAndLeavesNothing) {
  const ScratchFolder folder;
  const std::string not_a_model = folder.write("broken.onnx", "no model");
  const std::vector<std::vector<std::string>> cases = {
      {"try", folder.path() + "/absent.onnx", picture(folder)},
      {"try", not_a_model, picture(folder)},
      {"try", LEAT_SHAPES, folder.path() + "/absent.png"},
      {"try", LEAT_SHAPES, picture(folder), "--preprocess", "letterbox"},
      {"try", LEAT_SHAPES, picture(folder), "-o", "/proc/none/found.png"},
      {"serve", folder.path() + "/absent.onnx"},
      {"serve", not_a_model, "--socket", folder.path() + "/s"},
  };
  for (const auto& words : cases) {
    const Exit e = leat(words);
    EXPECT_EQ(e.status, 2) << words[1] << ": " << e.err;
    EXPECT_NE(e.err.find(words[0] == "serve" ? "leat" : "leat try: "), std::string::npos) << e.err;
  }
}

TEST(Serve, PrintsAConfigurationThatIsSound) {
  const ScratchFolder folder;
  const Exit printed =
      leat({"serve", "--print", LEAT_DETECT, "--preprocess", "letterbox mean=0.5 std=0.5", "--postprocess",
            "boxes stride=8 score=0.2 overlap=0.6", "--cores", "0", "--slo-ms", "250"});
  ASSERT_EQ(printed.status, 0) << printed.err;
  const Exit checked = leat({"check", folder.write("leatd.toml", printed.err), "--json"});
  ASSERT_EQ(checked.status, 0) << checked.err;
  const auto json = Json::parse(checked.err);
  EXPECT_EQ(json["applications"][0]["name"], "detect");
  EXPECT_EQ(json["applications"][0]["slo_ms"], 250.0);
}

}  // namespace
}  // namespace leat::test
