// One model, one version: whatever becomes of a model's files while leatd serves, every answer comes from what lay
// there when leatd started, and says so; a worker that cannot have that any more says why, and others serve on.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "engine/exec/model_files/sha256.h"
#include "engine/exec/test/test_models.h"
#include "leat/client.hpp"
#include "leat/result_parts.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// What an answer is of, and what it says: its first part's bytes.
using Told = std::pair<std::uint64_t, std::string>;

std::string model(std::uint64_t seed) { return exec::chain_model(seed, 1, 0, 3, 16); }

// Another file of that name, as programs that write carefully put it there.
void replace(const fs::path& path, const std::string& bytes) {
  std::ofstream(path.string() + ".new", std::ios::binary) << bytes;
  fs::rename(path.string() + ".new", path);
}
void write_over(const fs::path& path, const std::string& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file << bytes;
}

class OneVersion : public ::testing::Test {
 protected:
  ScratchFolder folder_;
  const fs::path path_ = fs::path(folder_.path()) / "m.onnx";

  std::string config() const {
    std::string out;
    for (const char* name : {"left", "right"})
      out += std::string("[[partition]]\nname = \"") + name + "\"\ncores = \"0\"\n";
    return out + "[[application]]\nname = \"a\"\nslo_ms = 5000\n[[application.module]]\nname = \"m\"\nmodel = \"" +
           path_.string() + "\"\npreprocess = \"stretch rgb norm=unit\"\npostprocess = \"tensors\"\nbatch = 1\n";
  }
};

// A client that sends the same picture again and again, four at a time, until it is told to stop.
class Load {
 public:
  explicit Load(const Leatd& leatd) : client_(std::move(Client::connect(leatd.socket(), "load")).value()) {
    leat_stream_options o;
    leat_stream_options_init(&o);
    o.application = "a", o.format = LEAT_FORMAT_rgb24, o.width = o.height = 16, o.depth = 4;
    o.overload = LEAT_OVERLOAD_never_drop;
    auto stream = client_.open_stream(o);
    EXPECT_TRUE(stream.ok()) << leatd.log();
    stream_ = std::move(*stream);
    for (int i = 0; i < 4; ++i) send();
  }
  // Takes `count` answers that have a result.
  void take(int count) {
    for (int i = 0; i < count;) {
      const auto answer = client_.next_answer(kPatience);
      ASSERT_TRUE(answer) << "no answer";
      leat_part_view part;
      if (answer->result() != nullptr && leat_part_at(answer->result(), answer->raw().result_bytes, 0, &part) != 0) {
        told.emplace(answer->model_version(), std::string(static_cast<const char*>(part.data), part.bytes));
        ++i;
      }
      send();
    }
  }
  // Takes answers until `condition` holds.
  template <class Condition>
  bool until(Condition condition) {
    return eventually([&] {
      take(1);
      return condition();
    });
  }
  std::set<Told> told;

 private:
  void send() {
    auto frame = stream_.acquire();
    if (!frame) return;  // the last answer still holds its slot
    for (std::uint64_t i = 0; i < frame->raw().bytes; ++i) frame->raw().planes[0][i] = static_cast<std::uint8_t>(i * 7);
    ASSERT_EQ(frame->submit(), LEAT_ERROR_ok);
  }
  Client client_;
  Stream stream_;
};

Json partition(const Leatd& leatd, std::size_t i) { return Json::parse(leatd.status_json()).at("partitions").at(i); }
bool restarted(const Leatd& leatd, std::size_t i) {
  const Json p = partition(leatd, i);
  return p.at("state").get<std::string>() == "up" && p.at("restarts").get<int>() > 0;
}
bool says(const Leatd& leatd, const std::string& text) { return leatd.log().find(text) != std::string::npos; }

TEST_F(OneVersion, AReplacedFileIsNotServedUntilLeatdStartsAgain) {
  folder_.write("m.onnx", model(1));
  Leatd leatd(config());
  std::set<Told> before, after;
  const std::string sha256 = *exec::sha256_hex(model(1));
  const Json status = Json::parse(leatd.status_json()).at("applications").at(0);
  EXPECT_EQ(status.at("model_version").get<std::string>(), sha256.substr(0, 16));
  EXPECT_EQ(status.at("modules").at(0).at("sha256").get<std::string>(), sha256);
  {
    Load load(leatd);
    load.take(20);
    replace(path_, model(2));
    for (std::size_t i : {0, 1}) {
      ASSERT_EQ(kill(leatd.workers()[i], SIGKILL), 0);
      ASSERT_TRUE(load.until([&] { return restarted(leatd, i); })) << leatd.log();
      load.take(20);
    }
    before = load.told;
  }
  ASSERT_EQ(before.size(), 1U) << "answers of more than one version";
  EXPECT_EQ(before.begin()->first, std::stoull(sha256.substr(0, 16), nullptr, 16));
  EXPECT_TRUE(says(leatd, "m.onnx has been replaced since leatd started; serving on with the version of then"))
      << leatd.log();
  EXPECT_EQ(leatd.stop(), 0);
  leatd.start();
  {
    Load load(leatd);
    load.take(20);
    after = load.told;
  }
  ASSERT_EQ(after.size(), 1U);
  EXPECT_NE(after.begin()->first, before.begin()->first);
  EXPECT_NE(after.begin()->second, before.begin()->second) << "the two models cannot be told apart";
}

TEST_F(OneVersion, AFileThatIsWrittenOverIsRefusedAndTheOthersServeOn) {
  folder_.write("m.onnx", model(1));
  Leatd leatd(config());
  Load load(leatd);
  load.take(20);
  write_over(path_, model(2));
  ASSERT_EQ(kill(leatd.workers()[0], SIGKILL), 0);
  const std::string line = path_.string() + ": has been written over since leatd started: it was sha256 " +
                           exec::sha256_hex(model(1))->substr(0, 12) + " and is " +
                           exec::sha256_hex(model(2))->substr(0, 12) +
                           "; put the old file back, or restart leatd to serve the new one";
  ASSERT_TRUE(load.until([&] { return says(leatd, line); })) << leatd.log();
  EXPECT_TRUE(eventually([&] { return partition(leatd, 0).at("why_down").get<std::string>() == line; }));
  EXPECT_EQ(partition(leatd, 1).at("why_down").get<std::string>(), "");
  const Exit status = run_to_end({LEAT_BINARY, "status", "--socket", leatd.socket()});
  EXPECT_NE(status.err.find("  down: " + line), std::string::npos) << status.err;
  EXPECT_NE(status.err.find("    sha256 " + exec::sha256_hex(model(1))->substr(0, 12) + "\n"), std::string::npos);
  load.take(20);
  replace(path_, model(1));  // as good as ever, by its bytes
  ASSERT_TRUE(load.until([&] { return restarted(leatd, 0); })) << leatd.log();
  EXPECT_EQ(partition(leatd, 0).at("why_down").get<std::string>(), "");
  load.take(40);
  EXPECT_EQ(load.told.size(), 1U) << "answers of more than one version";
}

TEST_F(OneVersion, WeightsInAFileOfTheirOwnArePartOfIt) {
  const fs::path weights = fs::path(folder_.path()) / "weights.bin";
  const auto bytes_of = [](const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  (void)exec::with_external_weights(model(2), folder_.path());
  const std::string others = bytes_of(weights);
  folder_.write("m.onnx", exec::with_external_weights(model(1), folder_.path()));
  const std::string own = bytes_of(weights);
  ASSERT_NE(own, others);
  Leatd leatd(config());
  const std::string lines =
      *exec::sha256_hex(bytes_of(path_)) + "  m.onnx\n" + *exec::sha256_hex(own) + "  weights.bin\n";
  EXPECT_EQ(
      Json::parse(leatd.status_json()).at("applications").at(0).at("modules").at(0).at("sha256").get<std::string>(),
      *exec::sha256_hex(lines));
  Load load(leatd);
  load.take(20);
  replace(weights, others);
  ASSERT_EQ(kill(leatd.workers()[0], SIGKILL), 0);
  ASSERT_TRUE(load.until([&] { return restarted(leatd, 0); })) << leatd.log();
  load.take(20);
  replace(weights, own);
  EXPECT_EQ(leatd.stop(), 0);
  leatd.start();
  Load again(leatd);
  again.take(20);
  write_over(weights, others);
  again.take(20);  // who serves has the weights for himself
  ASSERT_EQ(kill(leatd.workers()[1], SIGKILL), 0);
  ASSERT_TRUE(again.until([&] { return says(leatd, "weights.bin: has been written over"); })) << leatd.log();
  load.told.insert(again.told.begin(), again.told.end());
  EXPECT_EQ(load.told.size(), 1U) << "answers of more than one version";
}

// A plug-in is given a path, and may look for more files beside it.
TEST_F(OneVersion, AnExecutorThatOpensItsFileItselfDoesNotGetAnother) {
  const std::string file = folder_.write("m.bin", "one");
  Leatd leatd(
      "[[partition]]\nname = \"p\"\ncores = \"0\"\n[[application]]\nname = \"a\"\nslo_ms = 100\n"
      "[[application.module]]\nname = \"m\"\nbatch = 1\nexecutor = \"" COSTLY_EXECUTOR "\"\nmodel = \"" +
      file + "\"\n");
  const std::string version = exec::sha256_hex("one")->substr(0, 16);
  EXPECT_EQ(Json::parse(leatd.status_json()).at("applications").at(0).at("model_version").get<std::string>(), version);
  replace(file, "two");
  ASSERT_EQ(kill(leatd.workers()[0], SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return says(leatd, "m.bin: has been replaced since leatd started, and executor"); }))
      << leatd.log();
  EXPECT_TRUE(eventually([&] { return !leatd.events(shm::EventKind::worker_failed).empty(); }));
  replace(file, "one");
  EXPECT_TRUE(eventually([&] { return restarted(leatd, 0); })) << leatd.log();
}

}  // namespace
}  // namespace leat::test
