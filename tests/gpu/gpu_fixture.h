// leatd on partitions of kind gpu, mps and mig over the stand-in drivers (cuda/fake): the GPUs, the committed
// configuration `shapes` on them, and its detector cut in two.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "cuda/fake/state.h"
#include "tests/models/shapes_answers.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {

using shm::EdgeCounter;
using shm::RecordKind;
using shm::StreamCounter;

// The GPUs that are not there: 0 an A100, 1 an H100, 2 an A100 in MIG mode, cut into 3g (with three compute
// instances), 2g and 1g.
// They are there for every process this test starts.
inline fake::Host& gpus() {
  static fake::Host* const kHost = [] {
    static const ScratchFolder kFolder;
    const std::string path = kFolder.path() + "/gpus";
    auto* host = fake::Host::create(path, {"A100-40", "H100-80", "A100-40"}).release();
    host->state().longest_delay_us = 300;
    host->state().gpus[2].mig = 1;
    host->add_instance(2, 2, 4, 3);
    host->add_instance(2, 1, 0);
    host->add_instance(2, 0, 2);
    ::setenv("LEAT_FAKE_GPUS", path.c_str(), 1);
    ::setenv("LD_LIBRARY_PATH", LEAT_FAKE_DRIVERS, 1);
    ::setenv("LEAT_MPS_CONTROL", LEAT_FAKE_MPS, 1);
    return host;
  }();
  return *kHost;
}

// The committed configuration with its models by whole paths and these partitions; `profiles`: a folder, or empty.
inline std::string shapes_on(const std::string& partitions, const std::string& more, const std::string& profiles) {
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

inline std::string partition_on(const std::string& name, const std::string& kind, const std::string& uuid,
                                int percent = 0) {
  std::string text =
      "[[partition]]\nname = \"" + name + "\"\nkind = \"" + kind + "\"\nclass = \"cpu:1\"\ncores = \"0\"\n";
  if (kind != "cpu") text += "gpu = \"" + uuid + "\"\n";
  if (percent != 0) text += "percent = " + std::to_string(percent) + "\n";
  return text;
}

inline std::string partition_on(const std::string& name, const std::string& kind, unsigned gpu, int percent = 0) {
  return partition_on(name, kind, fake::uuid_text(gpu), percent);
}

// A detector in two stages and the classifier, as a plan that the configuration above adopts. Profiled once.
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
  // The first stage on `producers` partitions p0, p1, ..., the second on the one behind them, the classifier on all.
  std::string write(const std::string& kind, int producers) {
    plan["partitions"] = Json::array();
    Json first = Json::array(), last = Json::array(), all = Json::array();
    last.push_back(producers);
    for (int p = 0; p <= producers; ++p) {
      if (p < producers) first.push_back(p);
      all.push_back(p);
    }
    plan["routes"][0]["stages"][0]["pool"] = first;
    plan["routes"][0]["stages"][1]["pool"] = last;
    plan["routes"][1]["stages"][0]["pool"] = all;
    for (int p = 0; p <= producers; ++p)
      plan["partitions"].push_back({{"name", "p" + std::to_string(p)},
                                    {"kind", kind},
                                    {"class", "cpu:1"},
                                    {"share", 1},
                                    {"size", 1},
                                    {"price", 1},
                                    {"device", plan["partitions"].size()},
                                    {"host", 0},
                                    {"selector", ""}});
    return folder.write(kind + std::to_string(producers) + ".json", plan.dump());
  }
};
inline Split& split() {
  static Split* const kSplit = new Split;
  return *kSplit;
}
inline std::string with_plan(const std::string& kind, const std::string& preset, int producers = 1) {
  return "[daemon]\nplan = \"" + split().write(kind, producers) + "\"\n[policy]\npreset = \"" + preset + "\"\n";
}

inline const std::vector<leat_result>& on_the_cpu() {
  static const auto kAnswers = [] {
    std::array<std::uint64_t, 2> none{};
    return answers_of(shapes_on(partition_on("only", "cpu", 0), "", ""), &none);
  }();
  return kAnswers;
}

// A camera whose frames nobody looks at, as fast as they are answered.
class Camera {
 public:
  Camera(const Leatd& leatd, const std::string& name) : leatd_(leatd) {
    auto client = Client::connect(leatd.socket(), name);
    EXPECT_TRUE(client.ok()) << leatd.log();
    if (!client.ok()) return;
    client_.emplace(std::move(*client));
    leat_stream_options o;
    leat_stream_options_init(&o);
    o.application = "shapes";
    o.format = LEAT_FORMAT_nv12;
    o.width = kW, o.height = kH;
    o.depth = o.slots = 6;
    auto stream = client_->open_stream(o);
    EXPECT_TRUE(stream.ok()) << leatd.log();
    if (stream.ok()) stream_.emplace(std::move(*stream));
  }
  // Until so many more are answered.
  void pump(std::uint64_t frames) {
    ASSERT_TRUE(stream_);
    for (const std::uint64_t end = answered + frames; answered < end;) {
      while (sent - answered < 4) {
        auto frame = stream_->acquire();
        if (!frame) break;
        std::memset(frame->raw().planes[0], 128, frame->raw().strides[0]);
        ASSERT_EQ(frame->submit(leat_submit_options{}), LEAT_ERROR_ok);
        ++sent;
      }
      ASSERT_NO_FATAL_FAILURE(take());
    }
  }
  void drain() {
    while (answered < sent) ASSERT_NO_FATAL_FAILURE(take());
  }
  // Frames are completed again, whatever became of those before.
  void serves_again() {
    const std::uint64_t so_far = completed;
    ASSERT_TRUE(eventually([&] { return testing::Test::HasFatalFailure() || (pump(1), completed > so_far); }, 60s))
        << leatd_.log();
  }
  std::uint64_t sent = 0, answered = 0, completed = 0;

 private:
  void take() {
    const auto answer = client_->next_answer(60s);
    ASSERT_TRUE(answer) << leat_last_error() << leatd_.log();
    ++answered;
    completed += answer->outcome() == Outcome::completed || answer->outcome() == Outcome::late ? 1 : 0;
  }
  const Leatd& leatd_;
  std::optional<Client> client_;
  std::optional<Stream> stream_;
};

// What the pieces of work on a stream are said to take, as long as this lives: by that it is chosen how batches run,
// whatever else the host does, and nothing takes longer for it.
struct Times {
  std::uint32_t put_us = 0, launch_us = 0, graph_launch_us = 0;  // of copies and kernels, of the model, of graphs
};
class CountedTimes {
 public:
  explicit CountedTimes(const Times& t) { set(1, t); }
  CountedTimes(const CountedTimes&) = delete;
  CountedTimes& operator=(const CountedTimes&) = delete;
  ~CountedTimes() { set(counts_, before_); }

 private:
  void set(std::uint32_t counts, const Times& t) {
    state_.put_us = t.put_us, state_.launch_us = t.launch_us, state_.graph_launch_us = t.graph_launch_us;
    state_.counts_time = counts;
  }
  fake::State& state_ = gpus().state();
  const std::uint32_t counts_ = state_.counts_time;
  const Times before_{state_.put_us, state_.launch_us, state_.graph_launch_us};
};

// How batches run, over all partitions, modules and sizes, as status says.
struct Ways {
  int sizes = 0, one_launch = 0, models_graph = 0, plain = 0;
};
inline Ways ways_of(const Leatd& leatd) {
  Ways out;
  const Json status = Json::parse(leatd.status_json());
  for (const Json& partition : status.at("partitions"))
    for (const Json& module : partition.at("gpu").at("modules"))
      for (const Json& batch : module.at("graphs").at("batches")) {
        ++out.sizes;
        ++(batch.at("one_launch").get<bool>() ? out.one_launch
           : batch.at("graph").get<bool>()    ? out.models_graph
                                              : out.plain);
      }
  return out;
}

// Each frame was answered once, and nothing of it is held any more.
inline void expect_exact_ledger(const Leatd& leatd, std::uint64_t sent) {
  EXPECT_TRUE(eventually([&] { return value(*leatd.total(), StreamCounter::in_flight) == 0; }));
  EXPECT_TRUE(balances(*leatd.total()));
  EXPECT_EQ(value(*leatd.total(), StreamCounter::submitted), sent);
  EXPECT_TRUE(eventually([&] { return leatd.record(RecordKind::edge, 0)->value(EdgeCounter::slots_in_use) == 0U; }));
}

}  // namespace leat::test
