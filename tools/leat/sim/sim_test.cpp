// `leat sim` from words to table, JSON and pictures: the same seed is the same output, bad input is one line and
// status 2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tools/base/json/json.h"
#include "tools/leat/commands.h"

namespace leat::tools {
extern const cli::Subcommand kLeatSim;
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

class SimCommand : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/leat-sim-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    Json latency = Json::array();
    for (int b = 1; b <= 4; ++b)
      latency.push_back({{"p50_ns", (4 + 2 * b) * 1000000}, {"p99_ns", (4 + 2 * b) * 1000000}, {"samples", 0}});
    const auto stage = [&](int first, int end, Json pool, int bytes) {
      return Json{{"first_block", first},
                  {"end_block", end},
                  {"pool", pool},
                  {"transfer_bytes", bytes},
                  {"latency_by_batch", latency}};
    };
    Json partitions = Json::array();
    for (int p = 0; p < 6; ++p) {
      partitions.push_back({{"name", "p" + std::to_string(p)},
                            {"kind", "emulated"},
                            {"class", "c"},
                            {"share", 1},
                            {"size", 1},
                            {"price", 1},
                            {"device", p},
                            {"host", 0},
                            {"selector", ""}});
    }
    plan_ = {
        {"schema", "leat-plan/1"},
        {"applications",
         {{{"name", "app"},
           {"slo_ns", 200000000},
           {"weight", 1},
           {"module", {{{"name", "a"}, {"model", "a"}}, {{"name", "b"}, {"model", "b"}, {"after", {"a"}}}}}}}},
        {"partitions", partitions},
        {"hosts", {{{"up_gbps", 10}, {"down_gbps", 10}}}},
        {"routes",
         {{{"application", 0}, {"module", 0}, {"batch", 4}, {"rate_rps", 600}, {"stages", {stage(0, 1, {0, 1}, 0)}}},
          {{"application", 0},
           {"module", 1},
           {"batch", 4},
           {"rate_rps", 600},
           {"stages", {stage(0, 1, {2, 3}, 100000), stage(1, 2, {4, 5}, 0)}}}}},
        {"budget_ns", Json::array()},
        {"certificate",
         {{"objective", 1}, {"upper_bound", 1}, {"gap", 0}, {"binding", ""}, {"method", ""}, {"seconds", 0}}}};
    write("plan.json", plan_.dump());
  }
  void TearDown() override {
    std::error_code none;
    std::filesystem::remove_all(folder_, none);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  static std::string read(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  // Runs the command on the plan; what it printed is in out_ and err_.
  int sim(std::vector<std::string> words, bool with_plan = true) {
    if (with_plan) words.insert(words.begin(), {"--plan", path("plan.json"), "--seconds", "5"});
    const cli::Parse parsed = cli::parse(*kLeatSim.command, words);
    if (parsed.exit_status >= 0) {
      out_ = parsed.out, err_ = parsed.err;
      return parsed.exit_status;
    }
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = kLeatSim.run(parsed.arguments);
    out_ = testing::internal::GetCapturedStdout(), err_ = testing::internal::GetCapturedStderr();
    return status;
  }
  std::string last_line() const {
    const std::string all = out_.substr(0, out_.size() - 1);
    return all.substr(all.rfind('\n') + 1);
  }
  void refused(const std::vector<std::string>& words, const std::string& what) {
    EXPECT_EQ(sim(words), cli::kBadInput) << testing::PrintToString(words);
    EXPECT_THAT(err_, HasSubstr(what));
    EXPECT_THAT(err_, StartsWith("leat sim: "));
    EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
  }
  std::string folder_, out_, err_;
  Json plan_;
};

TEST_F(SimCommand, SeedFirstHashLastAndTheSameTwice) {
  const std::vector<std::string> words{"--presets", "leat,pard,ppipe", "--seed",    "7", "--seeds",
                                       "2",         "--sweep",         "0.5:1:0.25"};
  ASSERT_EQ(sim(words), 0) << err_;
  EXPECT_THAT(out_, StartsWith("seed 7\n"));
  const std::string hash = last_line(), first = out_;
  EXPECT_THAT(hash, StartsWith("trace hash "));
  EXPECT_THAT(out_, HasSubstr("in time, in % of the requests, over load"));
  for (const char* threads : {"1", "3"}) {
    std::vector<std::string> again = words;
    again.insert(again.end(), {"--threads", threads});
    ASSERT_EQ(sim(again), 0);
    EXPECT_EQ(out_, first);
  }
  ASSERT_EQ(sim({"--presets", "leat,pard,ppipe", "--seed", "8", "--seeds", "2", "--sweep", "0.5:1:0.25"}), 0);
  EXPECT_NE(last_line(), hash);
}

TEST_F(SimCommand, JsonAddsUp) {
  ASSERT_EQ(sim({"--presets", "pard,naive", "--load", "1.3", "--noise", "50", "--check", "11", "--json", "-"}), 0)
      << err_;
  const Json j = Json::parse(out_);
  ASSERT_EQ(j["presets"].size(), 2u);
  EXPECT_EQ(j["modules"], Json({"app/a", "app/b"}));
  EXPECT_EQ(j["full_rate_rps"]["app"], 600);
  for (const auto& [name, preset] : j["presets"].items()) {
    const Json& run = preset["runs"][0];
    double sum = run["in_time"].get<double>() + run["late"].get<double>();
    for (const auto& [reason, share] : run["reasons"].items()) sum += share.get<double>();
    EXPECT_NEAR(sum, 1, 1e-12) << name;
    EXPECT_NEAR(run["goodput_rps"].get<double>() * run["seconds"].get<double>(),
                run["in_time"].get<double>() * run["requests"].get<double>(), 1e-6);
    EXPECT_LE(run["bound_share"].get<double>(), 1);
    EXPECT_LE(run["p50_ms"].get<double>(), run["p99_ms"].get<double>());
    EXPECT_TRUE(run["drained"].get<bool>());
  }
  EXPECT_GT(j["presets"]["pard"]["in_time"].get<double>(), j["presets"]["naive"]["in_time"].get<double>());
}

TEST_F(SimCommand, AReportIsAFolderOfPictures) {
  write("faults.toml", "[[lost]]\npartition = 'p4'\nat_s = 2\nback_s = 3\n");
  ASSERT_EQ(sim({"--presets", "leat,nexus", "--faults", path("faults.toml"), "--sweep", "0.5:1:0.5", "--report",
                 path("out"), "--timeline-at", "1.8"}),
            0)
      << err_;
  const std::string index = read(path("out/index.html"));
  for (const char* name :
       {"goodput.svg", "drops.svg", "queueing.svg", "attainment.svg", "timeline-leat.svg", "timeline-nexus.svg"}) {
    EXPECT_THAT(index, HasSubstr(name));
    const std::string picture = read(path(std::string("out/") + name));
    EXPECT_TRUE(picture.starts_with("<svg") && picture.ends_with("</svg>\n")) << name;
    EXPECT_EQ(picture.find("nan"), std::string::npos) << name;
  }
  // p4 is lost from 2.0 s on in a window of 1.8 to 2.8 s: its row is grey over the last four fifths.
  EXPECT_NE(read(path("out/timeline-leat.svg"))
                .find("<rect x=\"280\" y=\"129\" width=\"600\" height=\"16\" rx=\"0\" fill=\"#cccccc\""),
            std::string::npos);
  EXPECT_THAT(index, HasSubstr(last_line()));
}

TEST_F(SimCommand, TracesOfBothKindsAndOneForEachApplication) {
  write("x_1s_a.csv", "10\n40\n10\n0\n90\n");
  std::string times;
  for (int i = 0; i < 500; ++i) times += std::to_string(i * 0.01) + "\n";
  write("x_arrivals_a.csv", times);
  Json two = plan_;
  two["applications"].push_back(two["applications"][0]);
  two["applications"][1]["name"] = "other";
  for (int r = 0; r < 2; ++r) {
    two["routes"].push_back(two["routes"][r]);
    two["routes"][2 + r]["application"] = 1;
  }
  write("plan.json", two.dump());
  ASSERT_EQ(sim({"--plan", path("plan.json"), "--trace", path("x_1s_a.csv"), "--trace",
                 "other=" + path("x_arrivals_a.csv"), "--load", "0.3", "--json", "-"},
                false),
            0)
      << err_;
  const Json run = Json::parse(out_)["presets"]["leat"]["runs"][0];
  EXPECT_EQ(run["seconds"], 5);  // of the series, which is longer than 500 requests at 180/s
  EXPECT_NEAR(run["requests"].get<double>(), 5 * 180 + 500, 120);
  refused({"--trace", "nobody=poisson"}, "no application 'nobody'");
}

TEST_F(SimCommand, AnApplicationFileChangesTheSlo) {
  write("tight.toml",
        "[[application]]\nname = 'app'\nslo_ms = 20\n[[application.module]]\nname = 'a'\n[[application.module]]\nname "
        "= 'b'\nafter = ['a']\n");
  ASSERT_EQ(sim({"--application", path("tight.toml"), "--load", "0.2", "--json", "-"}), 0) << err_;
  EXPECT_LT(Json::parse(out_)["presets"]["leat"]["in_time"].get<double>(), 0.99);
  write("other.toml", "[[application]]\nname = 'app'\nslo_ms = 20\n[[application.module]]\nname = 'a'\n");
  refused({"--application", path("other.toml")}, "other modules than in the plan");
}

// Three stages on a request's way, each holding its partition a millisecond longer than it runs.
TEST_F(SimCommand, AnOverheadIsPaidByEveryBatch) {
  const auto p50_ms = [&](const char* overhead_us) {
    EXPECT_EQ(sim({"--load", "0.05", "--presets", "fifs", "--overhead-us", overhead_us, "--json", "-"}), 0) << err_;
    return Json::parse(out_)["presets"]["fifs"]["runs"][0]["p50_ms"].get<double>();
  };
  EXPECT_NEAR(p50_ms("1000") - p50_ms("0"), 3, 0.5);
}

TEST_F(SimCommand, BadInputIsOneLineAndStatus2) {
  refused({"--presets", "leat,best"}, "no preset 'best'");
  refused({"--trace", "nothing_here.csv"}, "the name does not say what its lines are");
  refused({"--trace", path("absent_1s_.csv")}, "cannot be opened");
  refused({"--sweep", "1:0.5:0.1"}, "--sweep");
  refused({"--sweep", "0.5:1"}, "LOW:HIGH:STEP");
  refused({"--items", "4:1:99"}, "--items");
  refused({"--faults", path("absent.toml")}, "cannot be read");
  refused({"--profiles", path("absent")}, "absent");
  refused({"--report", "/proc/none"}, "cannot be made");
  EXPECT_EQ(out_.find("preset"), std::string::npos) << "said before the runs";
  refused({"--timeline-at", "99", "--report", path("late")}, "end after 5 s");
  refused({"--json", "/proc/none/x.json"}, "/proc/none/x.json");
  refused({"--rate", "1e7", "--load", "100"}, "--seconds");
  refused({"--load", "0"}, "load");
  refused({"--lode", "1"}, "load");
  write("x_1s_a.csv", "12\nmany\n");
  refused({"--trace", path("x_1s_a.csv")}, ":2:");
}

TEST_F(SimCommand, CoordinatedClientsKeepTheirAccuracyAndSendFewFrames) {
  refused({"--coordinated", "4"}, "one uncut module");  // the plan's application has two modules
  plan_["applications"][0]["module"] = Json::array();
  plan_["applications"][0]["module"].push_back({{"name", "a"}, {"model", "a"}});
  const Json first_route = plan_["routes"][0];
  plan_["routes"] = Json::array();
  plan_["routes"].push_back(first_route);
  write("plan.json", plan_.dump());
  refused({"--coordinated", "4", "--video", "cats"}, "there is no video 'cats'");
  const std::vector<std::string> words{"--coordinated", "6", "--video", "easy", "--json"};
  ASSERT_EQ(sim(words), 0) << err_;
  const Json figures = Json::parse(out_);
  EXPECT_EQ(figures["admitted"].get<int>(), 6);
  EXPECT_GE(figures["seconds_within_sla_share"].get<double>(), 0.95);
  EXPECT_LT(figures["detections_per_second"].get<double>(), figures["frames_per_second"].get<double>() / 8);
  EXPECT_EQ(figures["goodput"].get<double>(), 1);
  EXPECT_EQ(figures["per_client"].size(), 6u);
  const std::string first = out_;
  ASSERT_EQ(sim(words), 0);
  EXPECT_EQ(out_, first);
  // As tasks of two clients: the quicker one gets more turns.
  ASSERT_EQ(sim({"--coordinated", "4", "--tasks", "2", "--video", "easy,fast", "--json"}), 0) << err_;
  const Json tasks = Json::parse(out_);
  EXPECT_EQ(tasks["admitted"].get<int>(), 4);
  for (const std::size_t quick : {1u, 3u})
    EXPECT_GT(tasks["per_client"][quick]["detections_per_second"].get<double>(),
              tasks["per_client"][quick - 1]["detections_per_second"].get<double>());
}

TEST_F(SimCommand, CoordinatedClientsAreOfAllApplicationsThatCanBeCoordinated) {
  const Json of_two = plan_["applications"][0];  // of two modules: not one of them
  plan_["applications"] = Json::array();
  plan_["applications"].push_back(of_two);
  Json routes = plan_["routes"];
  for (int a = 1; a <= 2; ++a) {  // one module each, on the same two partitions
    Json single = of_two;
    single["name"] = "single" + std::to_string(a);
    single["module"] = Json::array();
    single["module"].push_back({{"name", "a"}, {"model", "a"}});
    plan_["applications"].push_back(single);
    Json route = plan_["routes"][0];
    route["application"] = a;
    routes.push_back(route);
  }
  plan_["routes"] = routes;
  write("plan.json", plan_.dump());
  for (const char* tasks : {"1", "2"}) {
    ASSERT_EQ(sim({"--coordinated", "8", "--tasks", tasks, "--video", "easy", "--json"}), 0) << err_;
    const Json figures = Json::parse(out_);
    EXPECT_EQ(figures["admitted"].get<int>(), 8) << tasks;
    EXPECT_GE(figures["seconds_within_sla_share"].get<double>(), 0.95) << tasks;
    std::map<std::string, int> clients;
    for (const Json& each : figures["per_client"]) ++clients[each["application"].get<std::string>()];
    EXPECT_THAT(clients, ElementsAre(Pair("single1", 4), Pair("single2", 4)));
  }
  ASSERT_EQ(sim({"--coordinated", "8", "--video", "easy"}), 0);
  EXPECT_THAT(out_, HasSubstr("application"));
  EXPECT_THAT(out_, HasSubstr("single2"));
}

TEST_F(SimCommand, GarbagePlansAreRefused) {
  const std::string good = plan_.dump();
  for (std::size_t cut = 0; cut < good.size(); cut += 37) {
    write("plan.json", good.substr(0, cut));
    refused({}, "plan.json");
  }
  std::uint64_t x = 88172645463325252u;
  for (int i = 0; i < 300; ++i) {  // one byte changed: refused in one line, or still a plan
    std::string bad = good;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    bad[x % bad.size()] = static_cast<char>(' ' + (x >> 32) % 90);
    write("plan.json", bad);
    const int status = sim({"--seconds", "0.05"});
    EXPECT_TRUE(status == 0 || status == cli::kBadInput) << bad;
    EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), status == 0 ? 0 : 1) << err_;
  }
  Json bare = plan_;
  for (Json& r : bare["routes"]) r["rate_rps"] = 0;
  write("plan.json", bare.dump());
  refused({}, "state --rate");
  EXPECT_EQ(sim({"--rate", "100"}), 0);
}

}  // namespace
}  // namespace leat::tools
