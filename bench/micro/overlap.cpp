// What batches that overlap gain (engine/exec/module.h): a stand-in for a device, whose model takes its time asleep,
// with work on the host for each batch, and for how much of the time it has nothing to do between its runs; then real
// models on this host's cores, one batch behind the other and overlapping, as workers measure it when they start.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/micro/batches_in_turn.h"
#include "engine/exec/host_stream.h"
#include "engine/exec/module.h"
#include "engine/exec/test/test_graph.h"
#include "engine/worker/measuring/overlap_gain.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"

namespace {

using namespace leat;

constexpr int kRounds = 5;

constexpr cli::Option kOptions[] = {
    cli::real_option("model-ms", "3", 0.1, 1000, "what the stand-in's model takes a batch", "MS"),
    cli::real_option("host-ms", "1", 0, 1000, "what preparing and answering take a batch, before and behind it", "MS"),
    cli::integer_option("batches", "300", 2, 1e6, "of the stand-in, each way"),
    cli::integer_option("threads", "2", 1, 256, "of the models"),
    cli::integer_option("repeats", "3", 1, 100, "of the models; the median is shown"),
    {.name = "models",
     .type = cli::Type::text,
     .value = "FOLDER",
     .help =
         "with the demo's detect.onnx and classify.onnx; a slight model is made beside them; none: the stand-in alone"},
    cli::json_option(),
};
constexpr cli::Command kCommand = {.name = "overlap", .summary = "what batches that overlap gain", .options = kOptions};

// The part of the time, from when the first batch can run to the end of the last one's run, in which none runs.
struct Gaps {
  double behind = 0, beside = 0;
};

Gaps gaps_of(exec::Module& module, exec::HostStream& stream, int batches, double host_ms) {
  const std::vector<std::uint8_t> pixels(64);
  exec::FrameView frame;
  frame.planes[0] = pixels.data();
  frame.strides[0] = 8, frame.width = frame.height = 8;
  frame.format = LEAT_FORMAT_gray8, frame.bytes = pixels.size();
  bench::BatchesInTurn turn(module, stream, frame, host_ms);
  const auto idle = [](std::int64_t ran_ns, const bench::BatchesInTurn::Took& took) {
    return 1 - static_cast<double>(ran_ns) / static_cast<double>(took.all_ns);
  };
  const auto behind = turn.behind(batches);
  const std::int64_t busy_ns = stream.busy_ns();
  const auto beside = turn.beside(batches);
  return {idle(behind.in_run_ns, behind), idle(stream.busy_ns() - busy_ns, beside)};
}

// Medians of rounds in turns.
Gaps gaps_of_rounds(exec::Module& module, exec::HostStream& stream, int batches, double host_ms) {
  std::vector<double> behind, beside;
  for (int r = 0; r < kRounds; ++r) {
    const Gaps gaps = gaps_of(module, stream, std::max(2, batches / kRounds), host_ms);
    behind.push_back(gaps.behind);
    beside.push_back(gaps.beside);
  }
  std::ranges::sort(behind);
  std::ranges::sort(beside);
  return {behind[kRounds / 2], beside[kRounds / 2]};
}

// Times as many batches, the median of some repeats; below 0: it failed.
double gain_of(exec::Module& module, exec::HostStream& stream, std::uint32_t batch, bool crops, int repeats) {
  std::vector<double> gains;
  for (int r = 0; r < repeats; ++r) {
    const auto gain = worker::measure_overlap(module, stream, batch, crops);
    if (!gain.ok()) return std::fprintf(stderr, "overlap: %s\n", gain.error().c_str()), -1;
    gains.push_back(static_cast<double>(gain->behind_ns) / static_cast<double>(gain->beside_ns));
  }
  std::ranges::sort(gains);
  return gains[gains.size() / 2];
}

// A detector whose model is little beside what is before and behind it: 6400 candidates of 80 classes from a picture of
// 640 by 640, by one convolution of strides and one of single pixels. It is not trained; no candidate is a box.
std::string save_slight(const std::string& folder) {
  constexpr int kSide = 640, kStride = 8, kChannels = 8, kRows = 84, kCells = kSide / kStride * (kSide / kStride);
  exec::TestGraph g;
  const auto weights = [](std::size_t count) {
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = 0.001F * static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
    return out;
  };
  std::string x = g.input("images", exec::TestGraph::f32, {"n", 3, kSide, kSide});
  x = g.op("Conv", {x, g.constant("", {kChannels, 3, kStride, kStride}, weights(kChannels * 3 * kStride * kStride))},
           "", {{"strides", {kStride, kStride}}});
  x = g.op("Conv", {g.op("Relu", {x}), g.constant("", {kRows, kChannels, 1, 1}, weights(kRows * kChannels))});
  x = g.op("Reshape", {x, g.integers("", {3}, {-1, kRows, kCells})});
  g.output(x, exec::TestGraph::f32, {"n", kRows, kCells});
  std::string path = folder + "/slight.onnx";
  g.save(path);
  return path;
}

struct Case {
  std::string name, path, preprocess, postprocess;
  bool crops = false;
};

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const double model_ms = args.real("model-ms"), host_ms = args.real("host-ms");
  const auto model_ns = static_cast<std::int64_t>(model_ms * 1e6);
  auto stand_in =
      exec::Module::open({.name = "stand-in", .executor = "emulated", .emulated_ns = {model_ns}, .sets = exec::kSets});
  if (!stand_in.ok()) return cli::fail("overlap", stand_in.error());
  auto stream = exec::HostStream::open();  // behind the stand-in, which has made this thread's sleeps exact
  if (!stream.ok()) return cli::fail("overlap", stream.error());
  const Gaps gaps = gaps_of_rounds(**stand_in, **stream, static_cast<int>(args.integer("batches")), host_ms);
  Json out = {{"gap_share", {{"behind", gaps.behind}, {"beside", gaps.beside}}}};
  const std::string folder = args.text("models");
  const std::string scratch = std::filesystem::temp_directory_path() / ("leat-overlap-" + std::to_string(::getpid()));
  std::vector<Case> cases;
  if (!folder.empty()) {
    std::filesystem::create_directory(scratch);
    cases = {{"detect", folder + "/detect.onnx", "letterbox mean=0.5 std=0.5", "boxes stride=8 score=0.2 iou=0.6"},
             {"classify", folder + "/classify.onnx", "stretch crop=0.1 mean=0.5 std=0.5", "classes", true},
             {"slight", save_slight(scratch), "letterbox", "boxes layout=yolo8 score=0.2 iou=0.6"}};
  }
  std::string why;
  for (const Case& c : cases) {
    for (const std::uint32_t batch : {1u, 4u, 8u}) {
      auto module = exec::Module::open({.name = c.name,
                                        .model_path = c.path,
                                        .preprocess = c.preprocess,
                                        .postprocess = c.postprocess,
                                        .batch_max = batch,
                                        .threads = static_cast<std::uint32_t>(args.integer("threads")),
                                        .sets = exec::kSets});
      if (!module.ok()) {
        why = module.error();
        break;
      }
      const double gain = gain_of(**module, **stream, batch, c.crops, static_cast<int>(args.integer("repeats")));
      if (gain < 0) return cli::kBadInput;
      out["gain"][c.name][std::to_string(batch)] = gain;
    }
  }
  std::filesystem::remove_all(scratch);
  if (!why.empty()) return cli::fail("overlap", why);
  const cli::JsonOutput json(args);
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  std::printf(
      "a model of %.1f ms with %.1f ms of work on the host: idle %.1f %% of the time behind one another, %.1f %% "
      "overlapping\n",
      model_ms, host_ms, 100 * gaps.behind, 100 * gaps.beside);
  if (!out.contains("gain")) return 0;
  for (const auto& [name, batches] : out["gain"].items())
    for (const auto& [batch, gain] : batches.items())
      std::printf("%s, batches of %s: %.2f times as many (1.00: not tried, its host's part is too small)\n",
                  name.c_str(), batch.c_str(), gain.get<double>());
  return 0;
}
