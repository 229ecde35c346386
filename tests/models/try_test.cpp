// `leat try` and `leat serve` as a user types them: the demo's application on a rendered picture, what is drawn, and
// what is said of bad input.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "engine/exec/test/test_families.h"
#include "leat/result_parts.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"
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
  EXPECT_EQ(answer["model_version"].get<std::string>().size(), 16U);
  ASSERT_FALSE(answer["detections"].empty());
  EXPECT_EQ(answer["detections"][0]["labels"].size(), 2U) << answer.dump();
  for (const char* part : {"decode", "shapes/detect", "shapes/classify", "answer"})
    EXPECT_GT(answer["ms"][part].get<double>(), 0.0) << part;
  EXPECT_GT(std::filesystem::file_size(drawn), 1000U);
}

TEST(Try, AModelAloneWithItsWords) {
  const ScratchFolder folder;
  const Exit e = leat({"try", LEAT_DETECT, picture(folder), "--preprocess", "letterbox mean=0.5 std=0.5",
                       "--postprocess", "boxes stride=8 score=0.2 iou=0.6"});
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
  const Exit printed = leat({"serve", "--print", LEAT_DETECT, "--preprocess", "letterbox mean=0.5 std=0.5",
                             "--postprocess", "boxes stride=8 score=0.2 iou=0.6", "--cores", "0", "--slo-ms", "250"});
  ASSERT_EQ(printed.status, 0) << printed.err;
  const Exit checked = leat({"check", folder.write("leatd.toml", printed.err), "--json"});
  ASSERT_EQ(checked.status, 0) << checked.err;
  const auto json = Json::parse(checked.err);
  EXPECT_EQ(json["applications"][0]["name"], "detect");
  EXPECT_EQ(json["applications"][0]["slo_ms"], 250.0);
}

// The families whose files say everything, one of each answer, each in a folder of its own.
struct SavedModel {
  std::string path;
  exec::FamilyModel family;
};
std::vector<SavedModel> models_that_say_all(const ScratchFolder& folder) {
  std::vector<SavedModel> out;
  std::set<std::string> answers;
  for (exec::FamilyModel& f : exec::family_models()) {
    if (f.asked || !f.refused.empty() || !answers.insert(f.postprocess).second) continue;
    const std::string path = exec::save(f, folder.path() + "/" + std::to_string(out.size()));
    out.push_back({path, std::move(f)});
  }
  return out;
}

// A gray picture of a model's own size.
std::string plain_picture(const ScratchFolder& folder, std::uint32_t width, std::uint32_t height) {
  std::string text = "P6\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n";
  text.append(std::size_t{3} * width * height, '\x80');
  return folder.write("plain.ppm", text);
}

TEST(Try, ModelsThatSayWhatTheyAreNeedNoWords) {
  const ScratchFolder folder;
  const auto models = models_that_say_all(folder);
  ASSERT_GE(models.size(), 10U);
  const std::string drawn = folder.path() + "/found.png";
  for (const auto& [path, family] : models) {
    SCOPED_TRACE(family.name);
    const Exit e = leat({"try", path, plain_picture(folder, family.width, family.height), "--json", "-o", drawn});
    ASSERT_EQ(e.status, 0) << e.err;
    const auto json = Json::parse(e.err);
    const auto& answer = json["pictures"][0];
    EXPECT_EQ(answer["outcome"], "completed");
    if (!family.postprocess.starts_with("boxes")) continue;
    ASSERT_FALSE(answer["detections"].empty()) << answer.dump();
    EXPECT_NEAR(answer["detections"][0]["score"].get<double>(), family.answer[4], 1e-3);
    const auto& name = answer["detections"][0]["class"];
    EXPECT_EQ(name.is_string(), !family.labels.empty()) << "names of the model's own file: " << name;
  }
}

// `leat serve MODEL` as a process of its own, ended by SIGTERM.
class Serving {
 public:
  Serving(const std::string& model, std::string socket) : socket_(std::move(socket)) {
    pid_ = ::fork();
    if (pid_ == 0) {
      ::freopen("/dev/null", "w", stdout);
      ::freopen("/dev/null", "w", stderr);
      ::execl(LEAT_BINARY, "leat", "serve", model.c_str(), "--socket", socket_.c_str(), "--slo-ms", "20000", nullptr);
      ::_exit(127);
    }
  }
  ~Serving() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;
  // Waits until it serves.
  Result<Client> client() const {
    Result<Client> got = Error{"it was not asked"};
    (void)eventually([&] { return (got = Client::connect(socket_, "try_test")).ok(); }, 60s);
    return got;
  }

 private:
  std::string socket_;
  pid_t pid_ = 0;
};

TEST(Serve, ModelsThatSayWhatTheyAreNeedNoWords) {
  const ScratchFolder folder;
  for (const auto& [path, family] : models_that_say_all(folder)) {
    SCOPED_TRACE(family.name);
    const Serving leatd(path, folder.path() + "/s");
    auto client = leatd.client();
    ASSERT_TRUE(client.ok()) << client.error();
    StreamOptions options;
    options.application = "model";
    options.format = LEAT_FORMAT_rgb24;
    options.width = family.width, options.height = family.height;
    options.depth = options.slots = 1;
    auto stream = client->open_stream(options);
    ASSERT_TRUE(stream.ok()) << stream.error();
    auto frame = stream->acquire();
    ASSERT_TRUE(frame);
    for (std::uint32_t y = 0; y < family.height; ++y)
      std::memset(frame->raw().planes[0] + std::size_t{y} * frame->raw().strides[0], 0x80, 3 * family.width);
    ASSERT_EQ(frame->submit(), LEAT_ERROR_ok);
    const auto answer = client->next_answer(30s);
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->outcome(), Outcome::completed) << name_of(answer->reason());
    if (!family.postprocess.starts_with("boxes")) continue;
    ASSERT_GE(answer->result()->detection_count, 1U);
    const leat_detection& first = answer->result()->detections[0];
    EXPECT_NEAR(first.score, family.answer[4], 1e-4);
    EXPECT_NEAR(first.x0, family.answer[0], 1e-3);
    const char* const name = leat_class_name(answer->raw().stream, 0, first.class_id);
    if (family.labels.empty()) continue;
    ASSERT_NE(name, nullptr);
    EXPECT_NE(family.labels.find(name), std::string::npos);
  }
}

// One family by name, in a folder of its own.
SavedModel model_named(const ScratchFolder& folder, const std::string& name) {
  for (exec::FamilyModel& f : exec::family_models())
    if (f.name == name) {
      const std::string path = exec::save(f, folder.path() + "/named");
      return {path, std::move(f)};
    }
  return {};
}

// Where a guess is seen it is made and said; where it would be served it is asked for, in the words of the command.
TEST(Try, WhatIsNotCertainIsAssumedAndSaidOrShownAsItIs) {
  const ScratchFolder folder;
  const SavedModel likely = model_named(folder, "YOLOv7");
  const std::string plain = plain_picture(folder, 64, 64);
  const Exit e = leat({"try", likely.path, plain, "--json"});
  ASSERT_EQ(e.status, 0) << e.err;
  EXPECT_NE(e.err.find("assumed what is likely: --preprocess \\\"letterbox"), std::string::npos) << e.err;
  EXPECT_NE(e.err.find("\"detections\""), std::string::npos) << e.err;
  EXPECT_NE(e.err.find("\"resize\": \"linear\""), std::string::npos) << e.err;
  const ScratchFolder beside;
  const SavedModel pillow = model_named(beside, "RT-DETR, D-FINE");
  const Exit named = leat({"try", pillow.path, plain});
  EXPECT_NE(named.err.find("norm=unit feed.orig_target_sizes=wh\", resized with resize=antialias"), std::string::npos)
      << named.err;
  const Exit asked = leat({"serve", "--print", likely.path});
  EXPECT_EQ(asked.status, 2);
  EXPECT_NE(asked.err.find("--preprocess \"" + likely.family.preprocess + "\""), std::string::npos) << asked.err;
  EXPECT_EQ(asked.err.find("/proc/"), std::string::npos) << asked.err;
  const ScratchFolder other;
  const SavedModel unknown = model_named(other, "HRNet");
  const Exit shown = leat({"try", unknown.path, plain});
  ASSERT_EQ(shown.status, 0) << shown.err;
  EXPECT_NE(shown.err.find("its outputs as they are"), std::string::npos) << shown.err;
  EXPECT_NE(shown.err.find("tensor 2947"), std::string::npos) << shown.err;
  // And each likely reading as a command line, with what it would have found.
  EXPECT_NE(shown.err.find("--postprocess \"points heatmap\"\n  keypoints points"), std::string::npos) << shown.err;
  EXPECT_NE(shown.err.find("--postprocess \"map argmax\"\n  map"), std::string::npos) << shown.err;
}

// The bytes of a file, and those of a JPEG with EXIF's orientation 6: it is to be seen turned by a quarter.
std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::string lying(const std::string& jpeg) {
  std::string exif(
      "\xFF\xE1\x00\x22"
      "Exif\0\0MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0",
      36);
  exif[29] = 6;
  return jpeg.substr(0, 2) + exif + jpeg.substr(2);
}
// Width of a PNG: behind its signature and the head of its first chunk.
std::uint32_t width_of_png(const std::string& png) {
  std::uint32_t width = 0;
  for (std::size_t i = 16; i < 20 && i < png.size(); ++i) width = width << 8 | static_cast<unsigned char>(png[i]);
  return width;
}

TEST(Try, PicturesAreTurnedUnlessTheyAreWantedAsStored) {
  const ScratchFolder folder;
  const std::string jpeg = folder.path() + "/plain.jpg", drawn = folder.path() + "/drawn.png";
  ASSERT_EQ(leat({"try", LEAT_SHAPES, picture(folder), "-o", jpeg}).status, 0);
  const std::string turned = folder.write("lying.jpg", lying(bytes_of(jpeg)));
  ASSERT_EQ(leat({"try", LEAT_SHAPES, turned, "-o", drawn}).status, 0);
  EXPECT_EQ(width_of_png(bytes_of(drawn)), 360U);
  ASSERT_EQ(leat({"try", LEAT_SHAPES, turned, "-o", drawn, "--as-stored"}).status, 0);
  EXPECT_EQ(width_of_png(bytes_of(drawn)), 640U);
}

// A file made by ffmpeg.
std::string made(const ScratchFolder& folder, const std::string& words, const std::string& name) {
  const std::string path = folder.path() + "/" + name;
  const std::string command = "ffmpeg -v error -nostdin -y " + words + " " + path;
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return path;
}
Json tried(const std::string& source) {
  const Exit e = leat({"try", LEAT_SHAPES, source, "--json"});
  EXPECT_EQ(e.status, 0) << e.err;
  return Json::parse(e.err)["pictures"];
}

TEST(Try, GoesOnWherePicturesChangeTheirSize) {
  const ScratchFolder folder;
  const std::string still = picture(folder);
  const auto part = [&](const std::string& size, const std::string& words, const std::string& name) {
    return made(folder, "-loop 1 -r 5 -t 1 -i " + still + " -vf scale=" + size + " -c:v libx264 -g 5 " + words, name);
  };
  const std::string small = part("320:180", "-pix_fmt yuv420p", "small.ts"),
                    large = part("640:360", "-pix_fmt yuv420p -output_ts_offset 1", "large.ts");
  const Json first = tried(small), second = tried(large),
             all = tried(folder.write("joined.ts", bytes_of(small) + bytes_of(large)));
  ASSERT_EQ(all.size(), first.size() + second.size());
  std::size_t found = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Json& alone = i < first.size() ? first[i] : second[i - first.size()];
    EXPECT_EQ(all[i]["size"], alone["size"]) << i;
    EXPECT_EQ(all[i]["detections"], alone["detections"]) << i;
    found += all[i]["detections"].size();
  }
  EXPECT_GT(found, 0U);
}

TEST(Try, SaysHowAPictureIsCodedAndThatOneIsCutShort) {
  const ScratchFolder folder;
  const std::string still = picture(folder), jpeg = made(folder, "-i " + still + " -pix_fmt yuvj420p", "whole.jpg");
  const Exit e = leat({"try", LEAT_SHAPES, jpeg});
  EXPECT_NE(e.err.find(jpeg + ": 640x360, taken as i420: full range, BT.601 (JPEG)\n"), std::string::npos) << e.err;
  EXPECT_EQ(e.err.find("damaged"), std::string::npos) << e.err;
  const std::string bytes = bytes_of(jpeg);
  const Json cut = tried(folder.write("cut.jpg", bytes.substr(0, bytes.size() / 2)));
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0]["color"], "full range, BT.601 (JPEG)");
  EXPECT_TRUE(cut[0].value("damaged", false));
  const Json tall =
      tried(made(folder, "-i " + still + " -vf scale=1280:720 -c:v libx264 -pix_fmt yuv420p", "tall.mp4"));
  EXPECT_EQ(tall[0]["color"], "limited range, BT.709 (default for 720 lines and more)");
}

TEST(Try, FilesThatAreNoPicturesAreSaidToBe) {
  const ScratchFolder folder;
  const std::string text = folder.write("a.webp", "this is no picture"), empty = folder.write("b.png", "");
  const Exit unknown = leat({"try", LEAT_SHAPES, text});
  EXPECT_EQ(unknown.status, 2);
  for (const char* const part : {"a.webp' has no picture that can be decoded", "JPEG, PNG, WebP"})
    EXPECT_NE(unknown.err.find(part), std::string::npos) << unknown.err;
  EXPECT_NE(leat({"try", LEAT_SHAPES, empty}).err.find("b.png' is empty"), std::string::npos);
  const std::string model = folder.write("model.onnx", "");
  for (const char* const command : {"serve", "profile"}) {
    const Exit e = leat({command, model});
    EXPECT_EQ(e.status, 2);
    EXPECT_NE(e.err.find("model.onnx: is empty"), std::string::npos) << e.err;
  }
}

// The words of a shell's line between double quotes or none.
std::vector<std::string> words_of_line(const std::string& line) {
  std::vector<std::string> words;
  bool quoted = false, open = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ' ' && !quoted) {
      open = false;
      continue;
    }
    if (!std::exchange(open, true)) words.emplace_back();
    if (c != '"') words.back() += c;
  }
  return words;
}

// One round: what is asked for can be pasted.
TEST(Serve, AsksForEverythingAtOnceInALineThatWorks) {
  constexpr std::string_view kLikely = "likely --preprocess \"";
  for (const char* const name : {"YOLOv7", "HRNet", "YOLOv5-face", "YOLO pose, no metadata"}) {
    SCOPED_TRACE(name);
    const ScratchFolder folder;
    const SavedModel model = model_named(folder, name);
    const Exit asked = leat({"serve", "--print", model.path});
    ASSERT_EQ(asked.status, 2) << asked.err;
    const std::size_t at = asked.err.find("\n  leat serve ");
    ASSERT_NE(at, std::string::npos) << asked.err;
    const std::string line = asked.err.substr(at + 3, asked.err.find('\n', at + 1) - at - 3);
    if (const std::size_t likely = asked.err.find(kLikely); likely != std::string::npos) {
      const std::size_t from = likely + kLikely.size();
      const std::string picture = asked.err.substr(from, asked.err.find('"', from) - from);
      EXPECT_NE(line.find("--preprocess \"" + picture + "\""), std::string::npos) << asked.err;
    }
    std::vector<std::string> words = words_of_line(line);
    words.erase(words.begin());
    words.emplace_back("--print");
    const Exit pasted = leat(words);
    EXPECT_EQ(pasted.status, 0) << line << "\n" << pasted.err;
    const Exit checked = leat({"check", folder.write("leatd.toml", pasted.err)});
    EXPECT_EQ(checked.status, 0) << checked.err;
    EXPECT_NE(checked.err.find("      preprocess: "), std::string::npos) << checked.err;
  }
}

// An answer of another kind than the structure's: its picture is not that family's for sure.
TEST(Serve, HalfOfTheWordsIsNoReasonToGuessTheOther) {
  const ScratchFolder folder;
  const SavedModel known = model_named(folder, "SCRFD, five strides");
  const Exit certain = leat({"serve", "--print", known.path, "--postprocess", known.family.postprocess});
  EXPECT_NE(certain.err.find("# preprocess = \"" + known.family.preprocess + "\" (from "), std::string::npos)
      << "concluded, and said: " << certain.err;
  const Exit asked = leat({"serve", "--print", known.path, "--postprocess", "embedding"});
  EXPECT_EQ(asked.status, 2) << asked.err;
  EXPECT_NE(asked.err.find("likely --preprocess"), std::string::npos) << asked.err;
}

// What leatd finds wrong in a command line's words it says of that line, and of a user's file in the file's.
TEST(Serve, FaultsAreSaidInTheWordsOfWhatWasTyped) {
  const ScratchFolder folder;
  const SavedModel model = model_named(folder, "YOLOv7");
  const std::string plain = plain_picture(folder, 64, 64);
  for (const Exit& e : {leat({"serve", model.path, "--socket", folder.path() + "/s", "--preprocess", "bogus",
                              "--postprocess", "tensors"}),
                        leat({"try", model.path, plain, "--preprocess", "bogus", "--postprocess", "tensors"})}) {
    EXPECT_EQ(e.status, 2);
    EXPECT_NE(e.err.find(model.path + ": --preprocess: 'bogus' is not known"), std::string::npos) << e.err;
    EXPECT_EQ(e.err.find("/proc/"), std::string::npos) << e.err;
    EXPECT_EQ(e.err.find("application.module."), std::string::npos) << e.err;
  }
  const std::string module = "  [[application.module]]\n  model = \"" + model.path + "\"\n  name = ";
  const std::string file = folder.write("street.toml", "cpu = \"auto\"\n[[application]]\nname = \"a\"\nslo_ms = 100\n" +
                                                           module + "\"one\"\n" + module + "\"two\"\n");
  const Exit checked = leat({"check", file});
  EXPECT_EQ(checked.status, 2);
  for (const char* const part : {"street.toml:6: application.module.model: module 'a/one': ",
                                 "street.toml:9: application.module.model: module 'a/two': "})
    EXPECT_NE(checked.err.find(part), std::string::npos) << "both in one round: " << checked.err;
  EXPECT_EQ(std::count(checked.err.begin(), checked.err.end(), '\n'), 2) << checked.err;
}

TEST(Try, AKnownModelIsChosenByName) {
  const ScratchFolder folder;
  const SavedModel model = model_named(folder, "YOLOv5-face");
  const Exit listed = leat({"try", "--list"});
  EXPECT_EQ(listed.status, 0);
  EXPECT_NE(listed.err.find("yolov5-face"), std::string::npos) << listed.err;
  const std::string plain = plain_picture(folder, 64, 64);
  const Exit e = leat({"try", model.path, plain, "--as", "yolov5-face"});
  ASSERT_EQ(e.status, 0) << e.err;
  EXPECT_NE(e.err.find("face"), std::string::npos) << e.err;
  const Exit printed = leat({"serve", "--print", model.path, "--as", "yolov5-face"});
  EXPECT_NE(printed.err.find("postprocess = \"" + model.family.postprocess + "\""), std::string::npos) << printed.err;
  EXPECT_NE(printed.err.find("labels = [\"face\"]"), std::string::npos) << printed.err;
  EXPECT_EQ(leat({"try", model.path, plain, "--as", "no-such-model"}).status, 2);
  // A configuration names it likewise.
  const std::string config = folder.write(
      "as.toml",
      "cpu = \"auto\"\n[[application]]\nname = \"faces\"\nslo_ms = 1000\n[[application.module]]\nname = \"m\"\n"
      "model = \"" +
          model.path + "\"\nas = \"yolov5-face\"\n");
  const Exit configured = leat({"try", config, plain});
  EXPECT_EQ(configured.status, 0) << configured.err;
  EXPECT_NE(configured.err.find("face"), std::string::npos) << configured.err;
  // Several answers of one model, each of its own head.
  const ScratchFolder other;
  const Exit heads = leat({"try", model_named(other, "FairFace").path, plain, "--as", "fairface", "--json"});
  ASSERT_EQ(heads.status, 0) << heads.err;
  const Json json = Json::parse(heads.err);
  const Json& classes = json["pictures"][0]["parts"][0]["classes"];
  ASSERT_EQ(classes.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(classes[i]["head"].get<std::size_t>(), i);
}

TEST(Serve, SaysWhatItConcludedAndFromWhat) {
  const ScratchFolder folder;
  const auto models = models_that_say_all(folder);
  const Exit printed = leat({"serve", "--print", models[0].path, "--cores", "0"});
  ASSERT_EQ(printed.status, 0) << printed.err;
  EXPECT_NE(printed.err.find("# preprocess = \"letterbox rgb norm=unit pad=114/255\" (from its metadata"),
            std::string::npos)
      << printed.err;
  const Exit checked = leat({"check", folder.write("leatd.toml", printed.err)});
  ASSERT_EQ(checked.status, 0) << checked.err;
  for (const char* const line :
       {"postprocess: boxes layout=yolo8 (from its metadata (task detect))", "labels: 3 names, the first 'ant'"})
    EXPECT_NE(checked.err.find(line), std::string::npos) << checked.err;
}

}  // namespace
}  // namespace leat::test
