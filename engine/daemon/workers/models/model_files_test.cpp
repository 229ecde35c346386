#include "engine/daemon/workers/models/model_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/exec/model_files/external_data.h"
#include "engine/exec/model_files/sha256.h"

namespace leat::daemon {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// Fields of a protobuf message, as onnx.proto numbers them.
std::string field(unsigned number, const std::string& bytes) {
  std::string out;
  for (std::uint64_t v : {std::uint64_t{number} << 3 | 2, std::uint64_t{bytes.size()}}) {
    for (; v >= 128; v >>= 7) out += static_cast<char>(v | 128);
    out += static_cast<char>(v);
  }
  return out + bytes;
}
std::string entry(const std::string& key, const std::string& value) {
  return field(13, field(1, key) + field(2, value));
}
std::string weights(const std::string& location) {
  return field(8, "w") + entry("location", location) + entry("offset", "0");
}
std::string graph(const std::string& fields) { return field(7, fields); }

Names files_in(const std::string& model) {
  const Fd fd(memfd_create("model", MFD_CLOEXEC));
  EXPECT_EQ(write(fd.get(), model.data(), model.size()), static_cast<ssize_t>(model.size()));
  return exec::external_files(fd.get());
}

TEST(ExternalFiles, AreFoundWhereverTheModelHoldsThem) {
  const std::string own = field(5, weights("own.bin")), same = field(5, weights("own.bin")),
                    plain = field(5, field(9, std::string(100'000, '\xff'))),
                    of_node = field(1, field(5, field(5, weights("node/a.bin")))),
                    of_branch = field(1, field(5, field(6, field(5, weights("branch.bin"))))),
                    sparse = field(15, field(1, weights("sparse.bin")) + field(2, weights("indices.bin")));
  EXPECT_EQ(files_in(field(2, "producer") + graph(plain + own + of_node + same + of_branch + sparse)),
            (Names{"own.bin", "node/a.bin", "branch.bin", "sparse.bin", "indices.bin"}));
  EXPECT_EQ(files_in(field(25, field(7, field(5, field(5, weights("function.bin")))))), Names{"function.bin"});
  EXPECT_EQ(files_in(graph(plain)), Names{});
}

TEST(ExternalFiles, ADamagedModelHasThoseBeforeTheDamage) {
  const std::string whole = graph(field(5, weights("a")) + field(5, weights("b")));
  for (std::size_t bytes = 0; bytes <= whole.rfind('b'); ++bytes)
    EXPECT_LE(files_in(whole.substr(0, bytes)).size(), 1U);
  EXPECT_EQ(files_in(whole).size(), 2U);
  std::string nested = field(5, weights("deep"));
  for (int i = 0; i < 1000; ++i) nested = field(1, field(5, field(6, nested)));
  EXPECT_EQ(files_in(graph(nested)), Names{});
}

class ModelFiles : public ::testing::Test {
 protected:
  ModelFiles() {
    std::string name = (fs::temp_directory_path() / "leat-files-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~ModelFiles() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }
  static worker::ModuleSetup module(const std::string& path, std::uint32_t index = 0) {
    worker::ModuleSetup m;
    m.application = "a", m.index = index, m.executor = "onnx", m.model_path = path;
    return m;
  }
  static std::vector<worker::Setup> setups(std::vector<worker::ModuleSetup> modules) {
    std::vector<worker::Setup> out(1);
    out[0].modules = std::move(modules);
    return out;
  }
  static std::uint64_t beginning(const std::string& sha256) { return std::stoull(sha256.substr(0, 16), nullptr, 16); }
  fs::path folder_;
};

TEST_F(ModelFiles, OneModelIsNamedByItsFileAndSeveralByAll) {
  const std::string one = write("one.onnx", "1"), two = write("two.onnx", "2");
  const std::string first = *exec::sha256_hex("1"), second = *exec::sha256_hex("2");
  auto alone = setups({module(one)}), both = setups({module(one), module(two, 1)});
  ASSERT_TRUE(pin_models(alone).ok() && pin_models(both).ok());
  EXPECT_EQ(*sha256_of(alone[0].modules[0]), first);
  EXPECT_EQ(alone[0].modules[0].version, beginning(first));
  EXPECT_EQ(*sha256_of(both[0].modules[1]), second);
  const std::uint64_t version = beginning(*exec::sha256_hex(first + "\n" + second + "\n"));
  EXPECT_EQ(both[0].modules[0].version, version);
  EXPECT_EQ(both[0].modules[1].version, version);
}

TEST_F(ModelFiles, WhatCannotBeOpenedHasNoVersion) {
  auto none = setups({module((folder_ / "none.onnx").string()), module(folder_.string(), 1), module("", 2)});
  ASSERT_TRUE(pin_models(none).ok());
  for (const worker::ModuleSetup& m : none[0].modules) {
    EXPECT_TRUE(m.files.empty());
    EXPECT_EQ(m.version, 0U);
  }
}

TEST_F(ModelFiles, WhatAnswersAreReadByBelongsToTheModel) {
  auto told = setups({module(write("m.onnx", "1"))}), concluded = told;
  const std::string keys = write("keys.txt", "a\nb\n");
  told[0].modules[0].postprocess = "text ctc keys=keys.txt";
  ASSERT_TRUE(pin_models(told).ok() && pin_models(concluded).ok());
  ASSERT_EQ(told[0].modules[0].files.size(), 2U);
  EXPECT_EQ(told[0].modules[0].files[1].path, keys);
  EXPECT_EQ(told[0].modules[0].files[1].sha256, *exec::sha256_hex("a\nb\n"));
  EXPECT_NE(told[0].modules[0].version, concluded[0].modules[0].version);

  worker::Ready ready;
  ready.recognised.resize(1);
  ready.recognised[0].preprocess.words = "stretch", ready.recognised[0].labels.words = "a\tb";
  ready.recognised[0].postprocess.words = "text ctc keys=keys.txt";
  ASSERT_TRUE(keep_words(ready, concluded[0]).ok());
  const worker::ModuleSetup& m = concluded[0].modules[0];
  EXPECT_EQ(m.preprocess, "stretch");
  EXPECT_EQ(m.labels, std::vector<std::string>{"a\tb"});
  EXPECT_EQ(m.postprocess, told[0].modules[0].postprocess);
  EXPECT_EQ(m.files.size(), 2U);
  ready.recognised[0].preprocess.words = "letterbox";
  ASSERT_TRUE(keep_words(ready, concluded[0]).ok());
  EXPECT_EQ(m.preprocess, "stretch");
  EXPECT_EQ(m.files.size(), 2U);
}

// leatd may be root, and a worker in other hands: what it names is not opened for it.
TEST_F(ModelFiles, AWorkerNamesNoFilesOutsideOfItsModelsFolder) {
  std::filesystem::create_symlink("/etc/hostname", folder_ / "link.txt");
  write("huge.txt", std::string(5 << 20, 'a'));
  for (const std::string keys : {"/etc/hostname", "../../etc/hostname", "link.txt", "huge.txt"}) {
    auto all = setups({module(write("m.onnx", "1"))});
    ASSERT_TRUE(pin_models(all).ok());
    worker::Ready ready;
    ready.recognised.resize(1);
    ready.recognised[0].postprocess.words = "text ctc keys=" + keys;
    const Status kept = keep_words(ready, all[0]);
    EXPECT_EQ(kept.ok(), !keys.starts_with("/") && !keys.starts_with("..")) << keys;
    EXPECT_EQ(all[0].modules[0].files.size(), 1U) << keys;
    if (!kept.ok()) {
      EXPECT_EQ(all[0].modules[0].postprocess, "");
    }
  }
}

// The runtime would take a file of that name from the folder that leatd was started in.
TEST_F(ModelFiles, AModelWithoutItsWeightsIsRefused) {
  auto all = setups({module(write("m.onnx", graph(field(5, weights("w.bin")))))});
  const auto status = pin_models(all);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().find("m.onnx: keeps weights in 'w.bin', and there is no such file"), std::string::npos)
      << status.error();
  EXPECT_NE(status.error().find(folder_.string() + "; copy it there too"), std::string::npos) << status.error();
  write("w.bin", "weights");
  EXPECT_TRUE(pin_models(all).ok());
}

TEST_F(ModelFiles, AModelNamesNoFilesOutsideOfItsFolder) {
  for (const char* location : {"../w.bin", "/etc/hostname", "a/../../w.bin"}) {
    auto all = setups({module(write("m.onnx", graph(field(5, weights(location)))))});
    const auto status = pin_models(all);
    ASSERT_FALSE(status.ok()) << location;
    EXPECT_NE(status.error().find("m.onnx: keeps weights in '" + std::string(location) + "', outside of its folder"),
              std::string::npos)
        << status.error();
  }
}

}  // namespace
}  // namespace leat::daemon
