// Whatever is wrong before leatd serves: one line that says what and what to do, exit status 2, nothing left behind.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/daemon_fixture.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kGood = R"([[partition]]
name = "p"
kind = "emulated"
[[application]]
name = "echo"
slo_ms = 500
  [[application.module]]
  name = "sum"
  latency_ms = [0.5]
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Exit run_leatd(const ScratchFolder& folder, const std::string& config, std::vector<std::string> options = {}) {
  std::vector<std::string> words{LEATD_BINARY, "--worker", LEAT_WORKER_BINARY, "--socket", folder.path() + "/s.sock"};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(folder.write("c.toml", config));
  return run_to_end(words, 10s);
}

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  const auto start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1, end - (start == std::string::npos ? 0 : start + 1) + 1);
}

struct Case {
  const char* name;
  std::string config;
  std::vector<std::string> says;  // all of these in the one line
};

TEST(BadConfig, EveryFaultIsOneLineAndStatusTwo) {
  const Case cases[] = {
      {"not TOML", "[[partition\n", {"c.toml:1", "TOML"}},
      {"unknown key", replaced(kGood, "slo_ms", "slo_mss"), {"c.toml:6", "slo_mss", "did you mean 'slo_ms'?"}},
      {"unknown table", std::string(kGood) + "[deamon]\n", {"deamon", "did you mean 'daemon'?"}},
      {"wrong type", replaced(kGood, "500", "\"fast\""), {"c.toml:6", "slo_ms", "number"}},
      {"missing key", replaced(kGood, "slo_ms = 500", ""), {"c.toml:4", "application", "slo_ms", "missing"}},
      {"duplicate partition", std::string(kGood) + "[[partition]]\nname = \"p\"\n", {"'p'", "twice"}},
      {"duplicate application", std::string(kGood) + "[[application]]\nname = \"echo\"\nslo_ms = 5\n", {"'echo'", "twice"}},
      {"duplicate module", std::string(kGood) + "  [[application.module]]\n  name = \"sum\"\n  latency_ms = [1]\n", {"'sum'", "rename"}},
      {"no such predecessor", std::string(kGood) + "  after = [\"nobody\"]\n", {"'nobody'", "does not exist"}},
      {"cycle", std::string(kGood) + "  after = [\"sum\"]\n", {"cycle"}},
      {"missing model", replaced(kGood, "latency_ms = [0.5]", "model = \"nowhere.onnx\""), {"nowhere.onnx", "no file"}},
      {"no partition", replaced(kGood, "[[partition]]\nname = \"p\"\nkind = \"emulated\"\n", ""), {"no partition", "cpu = \"auto\""}},
      {"no application", "cpu = \"auto\"\n", {"no application"}},
      {"cores that are not", replaced(kGood, "kind = \"emulated\"", "kind = \"cpu\"\ncores = \"4000\""), {"4000", "does not offer"}},
      {"cores that are no list", replaced(kGood, "kind = \"emulated\"", "kind = \"cpu\"\ncores = \"a-b\""), {"a-b", "list of cores"}},
      {"unknown preset", std::string("[policy]\npreset = \"laet\"\n") + kGood, {"laet", "leat"}},
      {"unknown policy key", std::string("[policy]\nordre = \"lbf\"\n") + kGood, {"ordre", "did you mean 'order'?"}},
      {"missing plan", std::string("[daemon]\nplan = \"none.json\"\n") + kGood, {"none.json", "leat-plan"}},
      {"executor without partition", replaced(kGood, "latency_ms = [0.5]", "model = \"c.toml\""), {"no partition can run", "cpu partition"}},
  };
  for (const auto& c : cases) {
    const ScratchFolder folder;
    const Exit e = run_leatd(folder, c.config);
    EXPECT_EQ(e.status, 2) << c.name << ": " << e.err;
    const std::string line = last_line(e.err);
    EXPECT_EQ(line.rfind("leatd: ", 0), 0U) << c.name << ": " << e.err;
    for (const auto& word : c.says) EXPECT_NE(line.find(word), std::string::npos) << c.name << ": '" << word << "' is not in: " << line;
    EXPECT_FALSE(std::filesystem::exists(folder.path() + "/s.sock")) << c.name;
  }
}

TEST(BadConfig, ABrokenModelIsNamed) {
  const ScratchFolder folder;
  (void)folder.write("broken.onnx", "this is no model");
  const Exit e = run_leatd(folder, replaced(replaced(kGood, "kind = \"emulated\"", "kind = \"cpu\"\ncores = \"0\""), "latency_ms = [0.5]", "model = \"broken.onnx\""));
  EXPECT_EQ(e.status, 2) << e.err;
  EXPECT_NE(last_line(e.err).find("broken.onnx"), std::string::npos) << e.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/s.sock"));
}

TEST(BadConfig, ASecondDaemonIsRefusedAndTheFirstServesOn) {
  Leatd first(kGood);
  const ScratchFolder folder;
  const Exit e = run_to_end({LEATD_BINARY, "--worker", LEAT_WORKER_BINARY, "--socket", first.socket(), folder.write("c.toml", kGood)}, 10s);
  EXPECT_EQ(e.status, 2) << e.err;
  EXPECT_NE(last_line(e.err).find(first.socket()), std::string::npos) << e.err;
  EXPECT_FALSE(first.status_json().empty());
}

TEST(BadConfig, ADeadDaemonsSocketIsTakenOver) {
  Leatd leatd(kGood);
  leatd.kill();
  EXPECT_TRUE(std::filesystem::exists(leatd.socket()));
  leatd.start();
  EXPECT_FALSE(leatd.status_json().empty());
}

TEST(BadConfig, AnUnwritableSocketIsNamed) {
  const ScratchFolder folder;
  const Exit e = run_to_end({LEATD_BINARY, "--worker", LEAT_WORKER_BINARY, "--socket", folder.path() + "/no/such/folder/s.sock", folder.write("c.toml", kGood)}, 10s);
  EXPECT_EQ(e.status, 2) << e.err;
  EXPECT_NE(last_line(e.err).find("/no/such/folder"), std::string::npos) << e.err;
}

TEST(BadConfig, NoMemoryForASegmentIsAnAnswer) {
  Leatd leatd(std::string("[limits]\nmemory_mib = 8\n") + kGood);
  auto client = Client::connect(leatd.socket(), "greedy");
  ASSERT_TRUE(client.ok());
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "echo";
  o.format = LEAT_FORMAT_rgb24;
  o.width = 4096;
  o.height = 2160;
  const auto stream = client->open_stream(o);
  ASSERT_FALSE(stream.ok());
  EXPECT_NE(stream.error().find("memory_mib"), std::string::npos) << stream.error();
  EXPECT_FALSE(leatd.status_json().empty());
}

TEST(BadConfig, AMissingWorkerIsNamed) {
  const ScratchFolder folder;
  const Exit e = run_to_end({LEATD_BINARY, "--worker", folder.path() + "/leat-worker", "--socket", folder.path() + "/s.sock", folder.write("c.toml", kGood)}, 10s);
  EXPECT_EQ(e.status, 2) << e.err;
  EXPECT_NE(last_line(e.err).find("leat-worker"), std::string::npos) << e.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/s.sock"));
}

TEST(BadConfig, CheckStartsNothing) {
  const ScratchFolder folder;
  const Exit e = run_leatd(folder, kGood, {"--check"});
  EXPECT_EQ(e.status, 0) << e.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/s.sock"));
}

}  // namespace
}  // namespace leat::test
