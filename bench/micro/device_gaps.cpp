// For how much of the time a device has nothing to run between batches: the device plug-in over a stand-in of the
// driver, on which a stand-in of ONNX Runtime's provider takes a model's time asleep and says when each run of it began
// and ended. Batches one behind the other and two in hand, in each way in which they get onto a device's stream
// (engine/exec/onnx/onnx_ways.h), with work on the host for each. A GPU's own speed it cannot show.
#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/micro/batches_in_turn.h"
#include "bench/study.h"
#include "cuda/device/stand_in_host.h"
#include "cuda/device/stand_in_provider.h"
#include "engine/exec/device_plugin.h"
#include "engine/worker/measuring/calibrate.h"

namespace {

using namespace leat;

constexpr int kRounds = 5;
constexpr std::uint32_t kSide = 64;
constexpr std::size_t kSlotBytes = std::size_t{kSide} * kSide * 3;  // whole pages

constexpr cli::Option kOptions[] = {
    cli::real_option("model-ms", "3", 0.1, 1000, "what the stand-in's model takes a batch", "MS"),
    cli::real_option("host-ms", "1", 0, 1000, "what preparing and answering take a batch, before and behind it", "MS"),
    cli::integer_option("batches", "400", 10, 20'000, "each way, in five rounds"),
    {.name = "uploaded", .help = "pictures are uploaded, in place of read where they lie"},
    cli::json_option(),
};
constexpr cli::Command kCommand = {.name = "device_gaps",
                                   .summary = "for how much of the time a device has nothing to run between batches",
                                   .options = kOptions};

// How batches get onto the stream. Which way is taken is chosen by their times, so that those which are not wanted take
// longer while that is done.
struct Way {
  const char *name, *title;
  std::string_view graphs;
  std::uint32_t run, replay;  // times a model's time
};
constexpr std::string_view kPlain = "0", kModel = "model", kAtOnce = "1";
constexpr std::uint32_t kSlow = 5;
constexpr Way kWays[] = {{"plain", "plain", kPlain, 1, 1},
                         {"model_graph", "the model's graph", kModel, kSlow, 1},
                         {"one_launch", "one launch", kAtOnce, kSlow, kSlow}};

// A client's slot as a worker has it: whole pages, known to the device.
class Slot {
 public:
  explicit Slot(exec::Device& device)
      : device_(device), at_(::mmap(nullptr, kSlotBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() {
    if (known_) device_.unregister_host(at_);
    if (at_ != MAP_FAILED) (void)::munmap(at_, kSlotBytes);
  }
  Status make_known() {
    if (at_ == MAP_FAILED) return Error{"no memory for a picture"};
    auto status = device_.register_host(at_, kSlotBytes, true);
    known_ = status.ok();
    return status;
  }
  [[nodiscard]] exec::FrameView frame() const {
    exec::FrameView out;
    out.planes[0] = static_cast<const std::uint8_t*>(at_);
    out.strides[0] = kSide * 3, out.width = out.height = kSide;
    out.format = LEAT_FORMAT_rgb24, out.bytes = kSlotBytes;
    return out;
  }

 private:
  exec::Device& device_;
  void* at_;
  bool known_ = false;
};

// Of some rounds: the part of the time from the first run's beginning to the last one's end in which none ran, and what
// lies between two runs. late: runs that took a millisecond longer than they should, since their thread woke late.
struct Idle {
  std::vector<double> shares, gaps_us;
  std::uint64_t runs = 0, late = 0, long_gaps = 0;

  void add(const fake::ProviderState& provider, std::uint64_t first, std::uint64_t end, double model_ms) {
    constexpr std::int64_t kMs = 1'000'000;
    const auto span = [&](std::uint64_t n) -> const fake::RunSpan& { return provider.spans[n % fake::kRunSpans]; };
    std::int64_t ran_ns = 0;
    for (std::uint64_t n = first; n < end; ++n) {
      const std::int64_t took_ns = span(n).ended_ns - span(n).began_ns;
      ran_ns += took_ns;
      late += static_cast<double>(took_ns) > (model_ms + 1) * kMs ? 1 : 0;
      if (n == first) continue;
      const std::int64_t gap_ns = span(n).began_ns - span(n - 1).ended_ns;
      gaps_us.push_back(static_cast<double>(gap_ns) / 1e3);
      long_gaps += gap_ns > kMs ? 1 : 0;
    }
    runs += end - first;
    shares.push_back(1 -
                     static_cast<double>(ran_ns) / static_cast<double>(span(end - 1).ended_ns - span(first).began_ns));
  }
  [[nodiscard]] double share() const { return bench::median(shares); }
  [[nodiscard]] double gap_us() const { return bench::median(gaps_us); }
  [[nodiscard]] Json json() const {
    return {{"idle", share()}, {"gap_us", gap_us()}, {"runs", runs}, {"woke_late", late}, {"long_gaps", long_gaps}};
  }
};

struct Case {
  Way way;
  std::unique_ptr<exec::Module> module;
  Idle behind, beside;
};

Result<std::unique_ptr<exec::Module>> open(const Way& way, exec::Device& device, const std::string& model,
                                           fake::ProviderState& provider, std::uint32_t model_us) {
  provider.run_us = way.run * model_us, provider.replay_us = way.replay * model_us;
  auto module = exec::Module::open({.name = way.name,
                                    .model_path = model,
                                    .preprocess = "stretch",
                                    .postprocess = "classes",
                                    .extra = {{"graphs", std::string(way.graphs)}},
                                    .device = &device,
                                    .sets = exec::kSets});
  if (!module.ok()) return module;
  if (const auto warmed = worker::warm_up(**module, 1, false); !warmed.ok()) return Error{warmed.error()};
  provider.run_us = provider.replay_us = model_us;
  const exec::GraphReport report = (*module)->graphs();
  const exec::GraphTiming timing = report.batches.empty() ? exec::GraphTiming{} : report.batches[0];
  if (timing.graph() == (way.graphs != kPlain) && timing.whole() == (way.graphs == kAtOnce)) return module;
  return Error{std::string("batches run in another way than ") + way.title + ": " + exec::text_of(report)};
}

Status measure(Case& c, exec::HostStream& stream, const exec::FrameView& frame, fake::ProviderState& provider,
               int batches, double model_ms, double host_ms) {
  bench::BatchesInTurn turn(*c.module, stream, frame, host_ms);
  for (const bool beside : {false, true}) {
    const std::uint64_t first = provider.ended_runs;
    const auto took = beside ? turn.beside(batches) : turn.behind(batches);
    if (!took.good) return Error{std::string(c.module->error())};
    if (provider.ended_runs - first != static_cast<std::uint64_t>(batches))
      return Error{std::string(c.way.title) + ": the model ran another number of times than there were batches"};
    (beside ? c.beside : c.behind).add(provider, first, provider.ended_runs, model_ms);
  }
  return Done{};
}

void print(const std::vector<Case>& cases, bool in_place) {
  std::printf("pictures are %s\n", in_place ? "read where they lie" : "uploaded");
  std::printf("%-18s  %-42s  %-42s\n", "", "one behind the other", "two in hand");
  for (int half = 0; half < 2; ++half)
    std::printf("%*s  %9s %12s %9s %9s", half == 0 ? 18 : 0, "", "idle", "between two", "over 1 ms", "woke late");
  std::printf("  %6s\n", "ratio");
  for (const Case& c : cases) {
    std::printf("%-18s", c.way.title);
    for (const Idle* idle : {&c.behind, &c.beside})
      std::printf("  %7.1f %% %9.0f us %9llu %9llu", 100 * idle->share(), idle->gap_us(),
                  static_cast<unsigned long long>(idle->long_gaps), static_cast<unsigned long long>(idle->late));
    std::printf("  %6.2f\n", c.beside.share() / c.behind.share());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const auto fail = [](const std::string& why) { return cli::fail("device_gaps", why); };
  const double model_ms = args.real("model-ms"), host_ms = args.real("host-ms");
  (void)::prctl(PR_SET_TIMERSLACK, 1UL);  // of all threads to come
  const auto host = stand_in_host();
  if (host == nullptr) return fail("there is no stand-in of the driver; build the tests");
  with_provider(*host);
  host->state().counts_time = 1;  // while it is chosen by time how batches run
  auto device = exec::Device::open(LEAT_DEVICE_PLUGIN, "");
  if (!device.ok()) return fail(device.error());
  auto stream = exec::HostStream::open();
  if (!stream.ok()) return fail(stream.error());
  Slot slot(**device);
  if (!args.flag("uploaded"))
    if (const auto known = slot.make_known(); !known.ok()) return fail(known.error());
  const Model model(Net::plain);
  fake::ProviderState& seen = provider();
  const auto model_us = static_cast<std::uint32_t>(model_ms * 1e3);
  seen.captured_us = model_us;
  std::vector<Case> cases;
  for (const Way& way : kWays) {
    auto module = open(way, **device, model.path, seen, model_us);
    if (!module.ok()) return fail(module.error());
    cases.push_back({way, std::move(*module), {}, {}});
  }
  host->state().counts_time = 0;
  const int batches = static_cast<int>(args.integer("batches")) / kRounds;
  for (int round = 0; round < kRounds; ++round)
    for (Case& c : cases)
      if (const auto measured = measure(c, **stream, slot.frame(), seen, batches, model_ms, host_ms); !measured.ok())
        return fail(measured.error());
  const bool in_place = (*device)->info().picture_source == LEAT_PICTURE_IN_PLACE && !args.flag("uploaded");
  const cli::JsonOutput json(args);
  if (!json.alone()) print(cases, in_place);
  Json out = {{"model_ms", model_ms}, {"host_ms", host_ms}, {"in_place", in_place}};
  for (const Case& c : cases)
    out["ways"][c.way.name] = {
        {"behind", c.behind.json()}, {"beside", c.beside.json()}, {"ratio", c.beside.share() / c.behind.share()}};
  return json.write(out.dump(1));
}
