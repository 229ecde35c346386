// A client that takes 3 MiB of raw outputs of every frame, through leatd and in a plain loop, in turn.
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "bench/serving/leatd_child.h"
#include "bench/serving/peers.h"
#include "engine/exec/registry.h"
#include "engine/exec/test/test_graph.h"
#include "leat/client.hpp"
#include "leat/result_parts.h"
#include "shm/src/counters/counters.h"
#include "shm/src/protocol/control_protocol.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"

namespace {

using namespace leat;
using bench::Cores;
using bench::Figure;
using Graph = exec::TestGraph;

constexpr std::int64_t kRows = 96, kInner = 256, kColumns = 8192;  // 96 x 8192 float32: 3 MiB
constexpr std::uint32_t kInFlight = 4;
constexpr double kRoundSeconds = 0.7;
constexpr std::size_t kMinRounds = 3;

constexpr cli::Option kOptions[] = {
    cli::real_option("seconds", "30", 0.5, 600, "length of the whole measurement", "S"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "tensor_outputs",
    .summary = "measures raw outputs of 3 MiB a frame through leatd against a plain loop",
    .description =
        "Plain: write the input, run the model, read every output value, on one pinned core, one thread. leatd: the "
        "same "
        "model on a partition of the same core, the client and the scheduler on another. Rounds alternate; a ratio is "
        "of neighbouring rounds, the figure is their median. Run alone: the model without writing and reading.",
    .options = kOptions};

struct Folder {
  std::string path = "/tmp/leat-tensors-XXXXXX";
  Folder() {
    if (::mkdtemp(path.data()) == nullptr) std::abort();
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

void save_model(const std::string& path) {
  Graph g;
  const std::vector<float> first(kInner * kInner, 0.01F), second(kInner * kColumns, 0.02F);
  g.input("x", Graph::f32, {"n", kRows, kInner});
  const std::string hidden = g.op("MatMul", {"x", g.constant("a", {kInner, kInner}, first)});
  g.output(g.op("MatMul", {hidden, g.constant("b", {kInner, kColumns}, second)}, "y"), Graph::f32,
           {"n", kRows, kColumns});
  g.save(path);
}

void write(float* x, std::uint32_t round) {
  for (std::int64_t i = 0; i < kRows * kInner; ++i) x[i] = static_cast<float>((i + round) % 100) * 0.01F;
}
// Several sums, so that reading is not a chain of additions.
float read(const float* y) {
  float sums[16] = {};
  for (std::int64_t i = 0; i < kRows * kColumns; i += 16)
    for (std::int64_t k = 0; k < 16; ++k) sums[k] += y[i + k];
  float sum = 0;
  for (const float s : sums) sum += s;
  return sum;
}

template <class F>
double rate(F&& once, bool* good) {
  const std::int64_t start = shm::monotonic_ns(), end = start + static_cast<std::int64_t>(kRoundSeconds * 1e9);
  std::uint64_t calls = 0;
  std::int64_t now = start;
  for (; now < end && *good; now = shm::monotonic_ns()) *good = once(calls++);
  return static_cast<double>(calls) * 1e9 / static_cast<double>(now - start);
}

class Plain {
 public:
  ~Plain() {
    if (session_ != nullptr) exec::onnx_executor()->close(session_);
  }
  Status open(const std::string& model) {
    char error[256] = "";
    const leat_session_options options{
        .model_path = model.c_str(), .end_block = UINT32_MAX, .batch_max = 1, .threads = 1};
    std::uint32_t inputs = 1, outputs = 1;
    const leat_executor* const onnx = exec::onnx_executor();
    if (onnx->open(&options, &session_, error, sizeof error) != 0 ||
        onnx->describe(session_, 1, &input_, &inputs, &output_, &outputs, error, sizeof error) != 0)
      return Error{error};
    x_.resize(input_.bytes / sizeof(float)), y_.resize(output_.bytes / sizeof(float));
    input_.data = x_.data(), output_.data = y_.data();
    return Done{};
  }
  double loop(bool* good) {
    return rate(
        [&](std::uint64_t n) {
          write(x_.data(), static_cast<std::uint32_t>(n));
          return run() && read(y_.data()) > 0;
        },
        good);
  }
  double run_alone(bool* good) {
    return rate([&](std::uint64_t) { return run(); }, good);
  }

 private:
  bool run() { return exec::onnx_executor()->run(session_, 1, &input_, 1, &output_, 1, nullptr, 0) == 0; }
  leat_session* session_ = nullptr;
  leat_tensor input_{}, output_{};
  std::vector<float> x_, y_;
};

class ThroughLeatd {
 public:
  Status open(const Cores& cores, const std::string& model) {
    auto daemon = bench::LeatdChild::start(
        bench::leatd_beside(),
        "scheduler_core = " + std::to_string(cores.far) +
            "\n[policy]\nqueue_ahead = 1\n[[partition]]\nname = \"p\"\nkind = \"cpu\"\ncores = \"" +
            std::to_string(cores.near) +
            "\"\n[[application]]\nname = \"t\"\nslo_ms = 10000\n[[application.module]]\nname = "
            "\"m\"\nmodel = \"" +
            model + "\"\npreprocess = \"tensors\"\npostprocess = \"tensors\"\nbatch = 1\n");
    if (!daemon) return Error{daemon.error()};
    daemon_ = std::move(*daemon);
    const leat_tensor_shape shape{LEAT_F32, 2, {kRows, kInner}};
    leat_stream_options o;
    leat_stream_options_init(&o);
    o.application = "t";
    o.format = LEAT_FORMAT_tensors;
    o.overload = LEAT_OVERLOAD_never_drop;
    o.depth = o.slots = kInFlight;
    o.tensors = &shape, o.tensor_count = 1;
    auto connection = bench::connect(*daemon_, "tensors", o, std::chrono::seconds(30));
    if (!connection.ok()) return Error{connection.error()};
    client_.emplace(std::move(connection->client));
    stream_.emplace(std::move(connection->stream));
    return Done{};
  }
  double loop(bool* good) {
    while (in_flight_ < kInFlight && *good) *good = submit(in_flight_);
    const double out = rate([&](std::uint64_t n) { return take() && submit(static_cast<std::uint32_t>(n)); }, good);
    while (in_flight_ > 0 && *good) *good = take();
    return out;
  }
  // Of all frames so far, as leatd counts them; none: it does not say.
  std::optional<std::uint64_t> bytes_copied() {
    leat_error error{};
    auto observer = shm::Observer::connect(daemon_->socket(), &error);
    if (!observer.ok()) return std::nullopt;
    auto counters = observer->counters(&error);
    if (!counters.ok()) return std::nullopt;
    const auto board = shm::CountersReader::map(std::move(counters->fd), counters->bytes);
    if (!board.ok()) return std::nullopt;
    const auto total = board->snapshot(shm::RecordKind::total, 0);
    return total ? total->value(shm::StreamCounter::bytes_copied) : std::nullopt;
  }

 private:
  bool submit(std::uint32_t round) {
    auto frame = stream_->acquire();
    if (!frame) return false;
    write(static_cast<float*>(frame->raw().tensors[0]), round);
    if (frame->submit() != LEAT_ERROR_ok) return false;
    ++in_flight_;
    return true;
  }
  bool take() {
    const auto answer = client_->next_answer(std::chrono::seconds(10));
    if (!answer || answer->outcome() != Outcome::completed) return false;
    --in_flight_;
    leat_part_view y;
    return leat_find_part(answer->result(), answer->raw().result_bytes, LEAT_PART_tensor, "y", &y) &&
           read(static_cast<const float*>(y.data)) > 0;
  }
  std::unique_ptr<bench::LeatdChild> daemon_;
  std::optional<Client> client_;
  std::optional<Stream> stream_;
  std::uint32_t in_flight_ = 0;
};

Json to_json(const Figure& f) { return {{"median", f.median}, {"p10", f.low}, {"p90", f.high}, {"rounds", f.rounds}}; }

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const cli::JsonOutput json(args);
  const Cores cores = bench::choose_cores();
  if (cores.near == cores.far)
    return cli::fail(kCommand.name, "only one core may be used here, and leatd's scheduler needs another; give it two");
  bench::prefer();
  const Folder folder;
  const std::string model = folder.path + "/m.onnx";
  save_model(model);
  bench::pin(cores.near);  // before the session's memory is made
  Plain plain;
  if (const auto status = plain.open(model); !status) return cli::fail(kCommand.name, status.error());
  bench::pin(cores.far);
  ThroughLeatd path;
  if (const auto status = path.open(cores, model); !status) return cli::fail(kCommand.name, status.error());
  std::vector<double> leatd, loop, over_loop, over_run;
  bool good = true;
  (void)path.loop(&good);  // warm
  const std::int64_t end = shm::monotonic_ns() + static_cast<std::int64_t>(args.real("seconds") * 1e9);
  while (good && (shm::monotonic_ns() < end || loop.size() < kMinRounds)) {
    bench::pin(cores.near);
    const double before = plain.loop(&good), alone = plain.run_alone(&good);
    bench::pin(cores.far);
    leatd.push_back(path.loop(&good));
    bench::pin(cores.near);
    loop.push_back((before + plain.loop(&good)) / 2);  // what slows the host for a while meets both
    over_loop.push_back(leatd.back() / loop.back()), over_run.push_back(leatd.back() / alone);
  }
  const auto copied = path.bytes_copied();
  if (!good || !copied) return cli::fail(kCommand.name, "a frame was not completed; run it alone");
  const Figure ratio = bench::figure(over_loop), run = bench::figure(over_run);
  if (!json.alone()) {
    std::printf("plain loop %.1f frames/s, leatd %.1f, %llu bytes copied\n", bench::figure(loop).median,
                bench::figure(leatd).median, static_cast<unsigned long long>(*copied));
    std::printf("over the plain loop %.3f (p10 %.3f, p90 %.3f, %zu rounds), bar 0.95; over the run alone %.3f\n",
                ratio.median, ratio.low, ratio.high, ratio.rounds, run.median);
  }
  const Json figures = {{"over_plain_loop", ratio.median},
                        {"over_run_alone", run.median},
                        {"bytes_copied", *copied},
                        {"spread",
                         {{"over_plain_loop", to_json(ratio)},
                          {"over_run_alone", to_json(run)},
                          {"leatd_fps", to_json(bench::figure(leatd))},
                          {"plain_fps", to_json(bench::figure(loop))}}}};
  return json.write(figures.dump(2));
}
