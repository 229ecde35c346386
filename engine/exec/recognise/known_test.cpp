#include "engine/exec/recognise/known.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "engine/exec/decode/postprocess.h"
#include "engine/exec/model_files/sha256.h"
#include "engine/exec/module.h"
#include "engine/exec/recognise/norm.h"
#include "engine/exec/recognise/recognise.h"
#include "engine/exec/test/test_family_builder.h"

namespace leat::exec {
namespace {

using families::Builder;
using G = TestGraph;

// Users' lists in a folder of the test's own.
class KnownModels : public testing::Test {
 protected:
  KnownModels() {
    char name[] = "/tmp/leat_known_XXXXXX";
    folder_ = ::mkdtemp(name);
    std::filesystem::create_directories(folder_ + "/leat");
    ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  }
  ~KnownModels() override {
    ::unsetenv("XDG_CONFIG_HOME");
    std::filesystem::remove_all(folder_);
  }
  void write(const std::string& text) { std::ofstream(folder_ + "/leat/models.json") << text; }
  std::string model() {  // of nothing that is known
    Builder b("frames", G::f32, {1, 3, 48, 80});
    b.put("depths", {1, 6, 10}, families::zeros(60));
    b.g.save(folder_ + "/m.onnx");
    return folder_ + "/m.onnx";
  }
  std::string folder_;
};

TEST_F(KnownModels, EveryEntryIsWordsThatAreUnderstood) {
  const auto all = known_models();
  ASSERT_TRUE(all.ok()) << all.error();
  EXPECT_GE(all->size(), 60U);
  std::set<std::string> names;
  for (const KnownModel& k : *all) {
    SCOPED_TRACE(k.name);
    EXPECT_TRUE(names.insert(k.name).second);
    EXPECT_FALSE(k.what.empty() || k.source.empty());
    for (const std::string& words : {k.preprocess, k.preprocess_open}) {
      const auto spec = parse_preprocess(words);
      EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error());
    }
    const auto spec = parse_postprocess(k.postprocess);
    EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error());
    // What decides without a question has a structure to decide by.
    if (k.sure) {
      EXPECT_FALSE(k.outputs.empty() && k.sha256.empty());
    }
  }
}

TEST_F(KnownModels, PortsMatchByNameTypeAndDimensions) {
  const ModelPort port{.name = "boxes", .shape = {1, -1, 4}};
  const auto matches = [&](const char* pattern) {
    std::map<std::string, std::int64_t> letters;
    return port_matches(pattern, port, letters);
  };
  EXPECT_TRUE(matches("boxes [1, ?, 4]") && matches("[1|2, open, 4]") && matches("b* [?, n, 4] float32"));
  EXPECT_TRUE(matches("[open|1, n, 4]"));
  for (const char* const other : {"scores [1, ?, 4]", "[1, ?]", "[2, ?, 4]", "[1, 5, 4]", "[open, ?, 4]", "boxes",
                                  "[1, ?, 4] uint8", "[1, ?, n, 4]"})
    EXPECT_FALSE(matches(other)) << other;
  std::map<std::string, std::int64_t> letters;
  EXPECT_TRUE(port_matches("[a, 3, h, w]", {.name = "x", .shape = {1, 3, 48, 80}}, letters));
  EXPECT_TRUE(port_matches("[a, h, w]", {.name = "y", .shape = {1, 48, 80}}, letters));
  EXPECT_FALSE(port_matches("[a, w, h]", {.name = "y", .shape = {1, 48, 80}}, letters));
}

TEST_F(KnownModels, AUsersListIsAskedFirstAndItsFaultsAreSaid) {
  const std::string path = model();
  EXPECT_FALSE(recognise(path, {}).ok());
  write(R"({"models": [{"name": "ours", "what": "our depth", "preprocess": "stretch bgr norm=half",)"
        R"( "postprocess": "map value", "outputs": ["depths [1, 6, 10]"], "source": "us"}]})");
  const auto found = recognise(path, {});
  ASSERT_TRUE(found.ok()) << found.error();
  EXPECT_EQ(found->preprocess.words, "stretch bgr norm=half");
  EXPECT_EQ(found->postprocess.words, "map value");
  EXPECT_EQ(found->preprocess.from, "its structure (ours)");
  for (const auto& [text, said] :
       {std::pair{"{", "models.json"},
        {"[]", "models"},
        {R"({"models": [{"nam": "x"}]})", "nam"},
        {R"({"models": [{"name": "x"}]})", "postprocess"},
        {R"({"models": [{"name": "x", "preprocess": "raw", "postprocess": "tensors", "counts": {"Conv": 3}}]})",
         "counts"}}) {
    write(text);
    const auto broken = recognise(path, {});
    ASSERT_FALSE(broken.ok()) << text;
    EXPECT_NE(broken.error().find(said), std::string::npos) << broken.error();
    EXPECT_NE(broken.error().find(folder_), std::string::npos) << broken.error();
  }
}

// Two entries of one structure, of which one names the very file: it alone decides, until the file is another.
TEST_F(KnownModels, ASha256DecidesAlone) {
  const std::string path = model();
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::string sum = *sha256_hex(bytes), other(64, '0');
  const auto entry = [](const std::string& name, const std::string& picture, const std::string& more) {
    return R"({"name": ")" + name + R"(", "preprocess": ")" + picture +
           R"(", "postprocess": "map value", "outputs": ["depths [1, 6, 10]"])" + more + "}";
  };
  const auto released = [&](const std::string& s) { return R"(, "sha256": [")" + s + "\"]"; };
  write(R"({"models": [)" + entry("near", "stretch bgr norm=half", released(other)) + "," +
        entry("ours", "stretch rgb norm=unit", R"(, "sure": false)") + "," +
        entry("released", "stretch bgr norm=raw", released(sum)) + "]}");
  const auto found = recognise(path, {});
  ASSERT_TRUE(found.ok()) << found.error();
  EXPECT_EQ(found->preprocess.words, "stretch bgr norm=raw");
  EXPECT_EQ(found->preprocess.from, "its SHA-256 (released)");
  // Other bytes of the same structure are asked for, and what names other files is not proposed.
  std::ofstream(path, std::ios::binary | std::ios::app) << std::string("\x32\x00", 2);  // an empty doc_string
  const auto changed = judge(path, {});
  ASSERT_TRUE(changed.ok()) << changed.error();
  EXPECT_NE(changed->question.find("ours"), std::string::npos) << changed->question;
  EXPECT_EQ(changed->question.find("released"), std::string::npos) << changed->question;
  EXPECT_EQ(changed->question.find("near"), std::string::npos) << changed->question;
  write(R"({"models": [)" + entry("released", "stretch bgr norm=raw", released("123")) + "]}");
  const auto broken = recognise(path, {});
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.error().find("sha256"), std::string::npos) << broken.error();
}

// A configuration's `as`, which the worker hands to its module.
TEST_F(KnownModels, AModuleIsOpenedAsAKnownModel) {
  ModuleSpec spec{.name = "m", .model_path = model(), .as = "midas"};
  const auto opened = Module::open(spec);
  ASSERT_TRUE(opened.ok()) << opened.error();
  EXPECT_EQ((*opened)->recognised().preprocess.words, "stretch rgb norm=unit");
  EXPECT_EQ((*opened)->recognised().postprocess.from, "the known model midas");
  spec.as = "mydas";
  const auto wrong = Module::open(spec);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().find("as: there is no known model 'mydas'; did you mean 'midas'?"), std::string::npos)
      << wrong.error();
  // Given words stay, and a name that is none is said even where all words are given.
  spec.preprocess = "stretch rgb norm=unit", spec.postprocess = "map value", spec.labels = {"x"};
  EXPECT_FALSE(Module::open(spec).ok());
}

TEST_F(KnownModels, ANameChoosesAndAWrongOneIsMetWithTheRightOne) {
  const std::string path = model();
  const auto chosen = recognise(path, {.as = "depth-anything"});
  ASSERT_TRUE(chosen.ok()) << chosen.error();
  EXPECT_EQ(chosen->postprocess.words, "map value");
  EXPECT_EQ(chosen->preprocess.words, "stretch rgb norm=imagenet");
  const auto wrong = recognise(path, {.as = "depht-anything"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().find("'depth-anything'"), std::string::npos) << wrong.error();
  // What was given stays.
  const auto mixed = recognise(path, {.preprocess = "stretch rgb norm=unit", .as = "midas"});
  ASSERT_TRUE(mixed.ok()) << mixed.error();
  EXPECT_EQ(mixed->preprocess.words, "stretch rgb norm=unit");
}

// A question comes with words that can be tried.
TEST_F(KnownModels, AQuestionHasTheLikelyWords) {
  Builder b("input", G::f32, {1, 3, 112, 112});
  b.put("out", {1, 512}, families::zeros(512));
  b.g.save(folder_ + "/face.onnx");
  const auto found = judge(folder_ + "/face.onnx", {});
  ASSERT_TRUE(found.ok()) << found.error();
  EXPECT_NE(found->question.find("arcface"), std::string::npos) << found->question;
  EXPECT_NE(found->question.find("adaface"), std::string::npos) << found->question;
  EXPECT_EQ(found->words.postprocess.words, "embedding unit");
  EXPECT_EQ(found->words.preprocess.words, "stretch rgb norm=half");
}

// IS-Net's three sets of weights have one structure.
TEST_F(KnownModels, ISNetIsAskedForWithEachOfItsNames) {
  for (const bool full : {false, true}) {
    Builder b("input_image", G::f32, {1, 3, 1024, 1024});
    b.g.op("MaxPool", {"input_image"}, "", {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}});
    const auto map = [&](const std::string& name, std::int64_t channels, std::int64_t side) {
      const std::string one = b.g.op("Sigmoid", {b.zero});
      const std::string shaped = b.g.op("Reshape", {one, b.g.integers("", {4}, {1, 1, 1, 1})});
      b.g.output(b.g.op("Sigmoid", {shaped}, name), G::f32, {1, channels, side, side});
    };
    map("o0", 1, 1024);
    for (int i = 1; full && i < 12; ++i) map("o" + std::to_string(i), i < 6 ? 1 : 64, i < 6 ? 1024 : 128);
    b.g.save(folder_ + "/isnet.onnx");
    const auto found = judge(folder_ + "/isnet.onnx", {});
    ASSERT_TRUE(found.ok()) << found.error();
    EXPECT_NE(found->question.find("\"stretch rgb mean=0.5 std=1\""), std::string::npos) << found->question;
    EXPECT_NE(found->question.find("isnet-anime"), std::string::npos) << found->question;
    EXPECT_EQ(found->words.postprocess.words, "map matte");
    // A name settles it.
    const auto chosen = recognise(folder_ + "/isnet.onnx", {.as = "isnet-anime"});
    ASSERT_TRUE(chosen.ok()) << chosen.error();
    EXPECT_EQ(chosen->preprocess.words, "stretch rgb mean=0.485,0.456,0.406 std=1");
  }
}

TEST_F(KnownModels, ANormalisationInTheGraphIsNotDoneTwice) {
  const auto norm = [](std::vector<double> scale, std::vector<double> shift, bool learned = false) {
    return GraphNorm{std::move(scale), std::move(shift), learned};
  };
  EXPECT_EQ(range_wanted({}), "");
  EXPECT_EQ(range_wanted(norm({1 / 127.5}, {-1})), "raw");
  EXPECT_EQ(range_wanted(norm({1 / 255.0}, {0})), "raw");
  EXPECT_EQ(range_wanted(norm({1 / 58.395, 1 / 57.12, 1 / 57.375}, {-2.1179, -2.0357, -1.8044})), "raw");
  EXPECT_EQ(range_wanted(norm({1 / .229, 1 / .224, 1 / .225}, {-2.1179, -2.0357, -1.8044})), "unit");
  EXPECT_EQ(range_wanted(norm({1, 1, 1}, {-104, -117, -123})), "raw");
  EXPECT_EQ(range_wanted(norm({1}, {-.5})), "unit");
  EXPECT_EQ(range_wanted(norm({.458, .448, .45}, {-.03, -.088, -.188})), "");  // Inception's, of ImageNet's own norm
  EXPECT_EQ(range_wanted(norm({1.3, .7, 2}, {.1, -.2, .3}, true)), "");        // trained, says nothing of pixels
  EXPECT_EQ(range_wanted(norm({1 / 60.0}, {-2}, true)), "raw");
  const GraphNorm blue_first = norm({1, 1, 1}, {-104, -117, -123});
  EXPECT_EQ(beside_graph("stretch rgb norm=imagenet size=64x64", blue_first), "stretch bgr norm=raw size=64x64");
  EXPECT_EQ(beside_graph("letterbox rgb mean=0.5 std=0.5 pad=0", norm({1 / 127.5}, {-1})),
            "letterbox rgb norm=raw pad=0");
  EXPECT_EQ(beside_graph("stretch rgb norm=half", {}), "stretch rgb norm=half");
  EXPECT_EQ(beside_graph("stretch rgba mean=0 std=1/255", norm({1 / 127.5}, {-1})), "stretch rgba mean=0 std=1/255");
}

}  // namespace
}  // namespace leat::exec
