// What leatd costs a model: frames a second of a module through leatd against the same module called in a bare loop,
// both on the same core, round by round in turn.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "bench/serving/leatd_child.h"
#include "bench/serving/peers.h"
#include "engine/exec/module.h"
#include "engine/exec/registry.h"
#include "leat/client.hpp"
#include "leat/executor.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"
#include "tools/scene/scene.h"

namespace {

using namespace leat;
using bench::Cores;
using bench::Figure;

constexpr std::uint32_t kWidth = 1280, kHeight = 720;
constexpr std::uint32_t kFrames = 6;  // different frames, and the stream's slots: both loops read as much memory
constexpr int kMinRounds = 3;
constexpr double kRoundSeconds = 0.4;
constexpr const char* kPreprocess = "letterbox mean=0.5 std=0.5";
constexpr const char* kPostprocess = "boxes stride=8 score=0.2 iou=0.6";

constexpr cli::Option kOptions[] = {
    cli::real_option("seconds", "20", 2, 240, "time to measure, all parts together", "S"),
    {.name = "model",
     .type = cli::Type::path,
     .value = "FILE",
     .fallback = LEAT_MODELS "/detect.onnx",
     .help = "a detector with this repository's kind of outputs"},
    bench::kLeatdOption,
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "overhead",
    .summary = "measures what leatd costs a model's throughput",
    .description =
        "Bare: pre-processing, model and post-processing in a loop, batch 1, one thread, pinned. leatd: the same "
        "module on a partition of the same "
        "core, with the scheduler and this client on another. Executor: the model alone, without pre- and "
        "post-processing. Rounds alternate; "
        "a ratio is of neighbouring rounds, the figure is the median of the rounds, and rounds in which other programs "
        "took the core "
        "are left out. The partition may hold one batch behind the one it runs (policy queue_ahead = 1).",
    .options = kOptions};

// Time a thread could have run and was kept waiting for its core, by other programs: such rounds say nothing about
// leatd.
constexpr double kDisturbedShare = 0.02;
std::int64_t kept_waiting_ns(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/schedstat");
  std::int64_t ran = 0, waited = 0;
  return file >> ran >> waited ? waited : 0;
}
pid_t first_child_of(pid_t parent) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(parent) + "/task")) {
    std::ifstream file(task.path() / "children");
    pid_t child = 0;
    if (file >> child) return child;
  }
  return 0;
}

using Pixels = std::vector<std::uint8_t>;
std::vector<Pixels> street() {
  scene::Scene scene({.seed = 5, .width = kWidth, .height = kHeight});
  Pixels rgb(scene.rgb_bytes());
  std::vector<Pixels> out(kFrames, Pixels(scene.nv12_bytes()));
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    scene.render(i * 11, rgb.data(), std::size_t{3} * kWidth);
    scene::to_nv12(rgb.data(), std::size_t{3} * kWidth, kWidth, kHeight, out[i].data());
  }
  return out;
}

// Calls `once` for a round and returns calls a second. `once` returns false on a failure.
// `pid`: whose waiting is added to *waited_ns.
template <class F>
double rate(F&& once, bool* good, pid_t pid, std::int64_t* waited_ns) {
  const std::int64_t waited_before = kept_waiting_ns(pid);
  const std::int64_t start = shm::monotonic_ns(), end = start + static_cast<std::int64_t>(kRoundSeconds * 1e9);
  std::uint64_t calls = 0;
  std::int64_t now = start;
  for (; now < end && *good; now = shm::monotonic_ns()) *good = once(), ++calls;
  *waited_ns += kept_waiting_ns(pid) - waited_before;
  return static_cast<double>(calls) * 1e9 / static_cast<double>(now - start);
}

class Bare {
 public:
  Status open(const std::string& model) {
    auto module = exec::Module::open(
        {.name = "bare", .model_path = model, .preprocess = kPreprocess, .postprocess = kPostprocess});
    if (!module) return Error{module.error()};
    module_ = std::move(*module);
    return open_executor(model);
  }
  ~Bare() {
    if (session_ != nullptr) exec::onnx_executor()->close(session_);
  }
  double module_rate(const std::vector<Pixels>& frames, bool* good, std::int64_t* waited_ns) {
    std::size_t next = 0;
    return rate(
        [&] {
          const Pixels& p = frames[next++ % frames.size()];
          exec::Item item{.frame = {.format = LEAT_FORMAT_nv12, .width = kWidth, .height = kHeight, .bytes = p.size()},
                          .result = &result_};
          item.frame.planes[0] = p.data(), item.frame.planes[1] = p.data() + std::size_t{kWidth} * kHeight;
          item.frame.strides[0] = item.frame.strides[1] = kWidth;
          exec::ItemReport report;
          return module_->run({&item, 1}, {&report, 1}) && report.reason == Reason::none;
        },
        good, getpid(), waited_ns);
  }
  double executor_rate(bool* good, std::int64_t* waited_ns) {
    return rate(
        [&] { return exec::onnx_executor()->run(session_, 1, &input_, 1, outputs_, output_count_, nullptr, 0) == 0; },
        good, getpid(), waited_ns);
  }

 private:
  Status open_executor(const std::string& model) {
    char error[256] = "";
    const leat_session_options options{
        .model_path = model.c_str(), .end_block = UINT32_MAX, .batch_max = 1, .threads = 1};
    std::uint32_t inputs = 1;
    if (exec::onnx_executor()->open(&options, &session_, error, sizeof error) != 0 ||
        exec::onnx_executor()->describe(session_, 1, &input_, &inputs, outputs_, &output_count_, error, sizeof error) !=
            0)
      return Error{error};
    buffers_.emplace_back(input_.bytes);
    input_.data = buffers_.back().data();
    for (std::uint32_t i = 0; i < output_count_; ++i) {
      buffers_.emplace_back(outputs_[i].bytes);
      outputs_[i].data = buffers_.back().data();
    }
    return Done{};
  }
  std::unique_ptr<exec::Module> module_;
  leat_session* session_ = nullptr;
  leat_tensor input_{}, outputs_[16] = {};
  std::uint32_t output_count_ = 16;
  std::vector<std::vector<std::byte>> buffers_;
  leat_result result_{};
};

class ThroughLeatd {
 public:
  Status open(const Cores& cores, const std::string& leatd, const std::string& model,
              const std::vector<Pixels>& frames) {
    auto daemon = bench::LeatdChild::start(
        leatd, "scheduler_core = " + std::to_string(cores.far) +
                   "\n[policy]\nqueue_ahead = 1\n[[partition]]\nname = \"p\"\nkind = \"cpu\"\ncores = \"" +
                   std::to_string(cores.near) +
                   "\"\n[[application]]\nname = \"model\"\nslo_ms = 10000\n[[application.module]]\nname = "
                   "\"detect\"\nmodel = \"" +
                   model + "\"\npreprocess = \"" + kPreprocess + "\"\npostprocess = \"" + kPostprocess +
                   "\"\nbatch = 1\n");
    if (!daemon) return Error{daemon.error()};
    daemon_ = std::move(*daemon);
    StreamOptions o;
    o.application = "model";
    o.format = LEAT_FORMAT_nv12;
    o.width = kWidth, o.height = kHeight;
    o.depth = o.slots = kFrames;
    o.overload = LEAT_OVERLOAD_never_drop;
    auto connection = bench::connect(*daemon_, "overhead", o, std::chrono::seconds(30));
    if (!connection.ok()) return Error{connection.error()};
    client_.emplace(std::move(connection->client));
    stream_.emplace(std::move(connection->stream));
    worker_ = first_child_of(daemon_->pid());
    return fill_slots(frames);
  }
  // Every slot in flight; each answered one is submitted again as it is.
  double module_rate(bool* good, std::int64_t* waited_ns) {
    while (in_flight_ < kFrames && *good) *good = submit();
    const double out = rate([&] { return take() && submit(); }, good, worker_, waited_ns);
    while (in_flight_ > 0 && *good) *good = take();
    return out;
  }

 private:
  // The slots are written once; what is submitted later carries the same pixels, as the bare loop's frames do.
  Status fill_slots(const std::vector<Pixels>& frames) {
    std::vector<Frame> held;
    while (auto frame = stream_->acquire()) {
      const Pixels& p = frames[held.size() % frames.size()];
      const std::uint8_t* from = p.data();
      for (std::uint32_t plane = 0; plane < 2; ++plane) {
        for (std::uint32_t y = 0; y < (*frame)->rows[plane]; ++y, from += (*frame)->row_bytes[plane])
          std::memcpy(frame->plane(plane) + std::size_t{y} * (*frame)->strides[plane], from,
                      (*frame)->row_bytes[plane]);
      }
      held.push_back(std::move(*frame));
    }
    return held.size() == kFrames ? Status(Done{})
                                  : Status(Error{"the stream does not have the slots it was opened with"});
  }
  bool submit() {
    auto frame = stream_->acquire();
    if (!frame || frame->submit() != LEAT_ERROR_ok) return false;
    ++in_flight_;
    return true;
  }
  bool take() {
    const auto answer = client_->next_answer(std::chrono::seconds(10));
    if (!answer) return false;
    --in_flight_;
    return answer->outcome() == Outcome::completed;
  }
  std::unique_ptr<bench::LeatdChild> daemon_;
  std::optional<Client> client_;
  std::optional<Stream> stream_;
  std::uint32_t in_flight_ = 0;
  pid_t worker_ = 0;
};

struct Figures {
  Figure leatd_fps, bare_fps, executor_fps, over_bare, over_executor;
  std::size_t dropped = 0;  // rounds in which other programs took the core
};

Result<Figures> measure(const Cores& cores, double seconds, const std::string& leatd, const std::string& model) {
  const auto frames = street();
  bench::pin(cores.near);  // before the session's memory and threads are made
  Bare bare;
  if (const auto status = bare.open(model); !status) return Error{status.error()};
  bench::pin(cores.far);
  ThroughLeatd path;
  if (const auto status = path.open(cores, leatd, model, frames); !status) return Error{status.error()};
  std::vector<double> with, without, alone, over_bare, over_alone;
  bool good = true;
  std::size_t dropped = 0;
  std::int64_t waited_ns = 0;
  static_cast<void>(path.module_rate(&good, &waited_ns));  // warm
  const std::int64_t end = shm::monotonic_ns() + static_cast<std::int64_t>(seconds * 1e9);
  while (good && (shm::monotonic_ns() < end || with.size() + dropped < kMinRounds)) {
    waited_ns = 0;
    const std::int64_t start = shm::monotonic_ns();
    bench::pin(cores.near);
    const double before = bare.module_rate(frames, &good, &waited_ns);
    const double executor = bare.executor_rate(&good, &waited_ns);
    bench::pin(cores.far);
    const double leatd_rate = path.module_rate(&good, &waited_ns);
    bench::pin(cores.near);
    const double mean =
        (before + bare.module_rate(frames, &good, &waited_ns)) / 2;  // what slows the host for a while meets both
    if (static_cast<double>(waited_ns) > kDisturbedShare * static_cast<double>(shm::monotonic_ns() - start)) {
      ++dropped;
      continue;
    }
    with.push_back(leatd_rate), without.push_back(mean), alone.push_back(executor);
    over_bare.push_back(leatd_rate / mean), over_alone.push_back(leatd_rate / executor);
  }
  if (!good) return Error{"a frame was not completed; run it alone, or look at leatd's log"};
  return Figures{bench::figure(with),      bench::figure(without),    bench::figure(alone),
                 bench::figure(over_bare), bench::figure(over_alone), dropped};
}

// No undisturbed round: unknown, not zero.
Json median(const Figure& f) { return f.rounds == 0 ? Json() : Json(f.median); }
Json to_json(const Figure& f) {
  if (f.rounds == 0) return nullptr;
  return {{"median", f.median}, {"p10", f.low}, {"p90", f.high}, {"rounds", f.rounds}};
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const Cores cores = bench::choose_cores();
  if (cores.near == cores.far)
    return cli::fail("overhead",
                     "only one core may be used here, and leatd's scheduler needs another than the model's; give it "
                     "two (taskset, cgroup)");
  bench::prefer();
  const auto f = measure(cores, args.real("seconds"), bench::leatd_of(args), args.text("model"));
  if (!f) return cli::fail("overhead", f.error());
  const cli::JsonOutput json(args);
  const Json out = {{"throughput_over_bare", median(f->over_bare)},
                    {"throughput_over_executor", median(f->over_executor)},
                    {"rounds_dropped", f->dropped},
                    {"spread",
                     {{"throughput_over_bare", to_json(f->over_bare)},
                      {"throughput_over_executor", to_json(f->over_executor)},
                      {"leatd_fps", to_json(f->leatd_fps)},
                      {"bare_fps", to_json(f->bare_fps)},
                      {"executor_fps", to_json(f->executor_fps)}}}};
  if (const int failed = json.write(out.dump(2)); failed != 0 || json.alone()) return failed;
  const auto line = [](const char* what, const Figure& x, const char* unit, const char* bar) {
    if (x.rounds == 0)
      std::printf("%-44s unknown: other programs took the core in every round\n", what);
    else
      std::printf("%-44s %8.3f %s  (p10 %.3f, p90 %.3f, %zu rounds)%s\n", what, x.median, unit, x.low, x.high, x.rounds,
                  bar);
  };
  line("module through leatd", f->leatd_fps, "frames/s", "");
  line("module in a bare loop", f->bare_fps, "frames/s", "");
  line("executor alone in a bare loop", f->executor_fps, "frames/s", "");
  line("through leatd over the bare module", f->over_bare, "x", "  bar: >= 0.95");
  line("through leatd over the executor alone", f->over_executor, "x", "");
  return 0;
}
