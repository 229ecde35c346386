#include "engine/worker/measuring/calibrate.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/worker/measuring/no_features.h"
#include "engine/worker/measuring/picture.h"
#include "shm/src/rings/clock.h"

namespace leat::worker {
namespace {

constexpr int kRuns = 9, kMinRuns = 3;                                         // that count, of each case
constexpr std::int64_t kBudgetNs = 1'000'000'000, kLongestNs = 3'000'000'000;  // then kLeastRuns, or the first, must do
constexpr std::int64_t kTakenEveryNs = 100'000'000;  // a core that is taken away less often is not shared
constexpr std::int64_t kJudgedNs = 100'000'000;      // less says nothing of who else has the core
constexpr double kTailFactor = 1.15;                 // the worst of a few runs stands in for p99

// A stage in the middle of a route is given features of nothing.
Result<std::int64_t> run_once(exec::Module& module, Picture& picture, std::uint32_t batch,
                              const std::byte* in = nullptr, std::byte* out = nullptr) {
  std::array<exec::ItemReport, exec::kMaxRows> reports;
  const auto items = picture.items(batch);
  const std::int64_t start = shm::monotonic_ns();
  if (!module.run(items, std::span(reports.data(), batch), in, out)) return Error{std::string(module.error())};
  return shm::monotonic_ns() - start;
}

// A picture and how many of it are run together.
struct Case {
  Picture* picture;
  std::uint32_t batch;
  std::vector<std::int64_t> times;

  [[nodiscard]] planner::Latency latency() {
    if (times.size() > 1) times.erase(times.begin());  // what the runtime allocates late
    std::sort(times.begin(), times.end());
    planner::Latency out;
    out.p50_ns = std::max<std::int64_t>(1, times[times.size() / 2]);
    out.p99_ns = std::max(out.p50_ns, static_cast<std::int64_t>(static_cast<double>(times.back()) * kTailFactor));
    out.samples = static_cast<std::uint32_t>(times.size());
    return out;
  }
};

struct Used {
  std::int64_t wall_ns = 0, cpu_ns = 0, taken_away = 0;  // how often the core was
  static Used now() {
    rusage r{};
    (void)getrusage(RUSAGE_THREAD, &r);
    timespec cpu{};  // to the nanosecond; the times in rusage are as old as the last tick
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return {shm::monotonic_ns(), cpu.tv_sec * std::int64_t{1'000'000'000} + cpu.tv_nsec, r.ru_nivcsw};
  }
};

// Who waits for a device has little time of the processor too, but nobody takes it away.
std::uint32_t undisturbed_percent(const Used& from, const Used& to) {
  const std::int64_t wall = std::max<std::int64_t>(1, to.wall_ns - from.wall_ns);
  if (to.taken_away - from.taken_away <= wall / kTakenEveryNs) return 100;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(100 * (to.cpu_ns - from.cpu_ns) / wall, 0, 100));
}

}  // namespace

struct Calibrator::State {
  State(exec::Module& of, std::uint32_t max, bool crops, std::int64_t longest, Told tell, bool no_longer)
      : module(of),
        batch(max),
        longest_ns(longest),
        strict(no_longer),
        told(std::move(tell)),
        pictures(pictures_for(of, crops)) {
    // Batches of the largest, since no others take longer; then one of each smaller size.
    for (std::uint32_t b = 1; b < batch; b *= 2) cases.push_back({&pictures.back(), b, {}});
    cases.push_back({&pictures.back(), batch, {}});
    batches = cases.size();
    for (std::size_t c = 0; c + 1 < pictures.size(); ++c) cases.push_back({&pictures[c], 1, {}});
    began = Used::now();
  }

  exec::Module& module;
  std::uint32_t batch;
  std::int64_t longest_ns;
  bool strict;
  Told told;
  std::vector<Picture> pictures;
  std::vector<Case> cases;  // in turns, so that what else the machine does for a while is not one case's alone
  std::size_t batches = 0;  // of the cases, the first ones
  std::size_t next = 0;     // case
  int rounds = 0;           // done
  std::uint32_t runs = 0;   // done
  Used began;

  void leave_out_batches() {  // from the next on
    cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(next),
                cases.begin() + static_cast<std::ptrdiff_t>(batches));
    batches = next;
  }
  // By what the one before it took.
  [[nodiscard]] bool next_is_too_long() const {
    if (!strict || rounds > 0 || next == 0 || next >= batches) return false;
    const Case& before = cases[next - 1];
    return before.times.back() * cases[next].batch / before.batch > longest_ns;
  }
};

Calibrator::Calibrator(exec::Module& module, std::uint32_t batch, bool crops, std::int64_t longest_ns, Told told,
                       bool strict)
    : state_(std::make_unique<State>(module, batch, crops, longest_ns, std::move(told), strict)) {}
Calibrator::~Calibrator() = default;

Result<bool> Calibrator::step() {
  State& s = *state_;
  if (s.next_is_too_long()) s.leave_out_batches();
  if (s.next == s.cases.size()) {
    s.next = 0;
    ++s.rounds;
    const std::int64_t spent = shm::monotonic_ns() - s.began.wall_ns;
    if (s.rounds > kRuns || spent >= (s.rounds > kMinRuns ? kBudgetNs : kLongestNs)) return false;
  }
  Case& now = s.cases[s.next++];
  const auto took = run_once(s.module, *now.picture, now.batch);
  if (!took.ok()) return Error{took.error()};
  now.times.push_back(*took);
  if (s.rounds == 0 && *took > s.longest_ns && s.next < s.batches) s.leave_out_batches();
  if (++s.runs; s.told) s.told(s.runs, static_cast<std::uint32_t>((kRuns + 1) * s.cases.size()));
  return true;
}

std::uint32_t Calibrator::undisturbed_percent() const {
  const Used now = Used::now();
  return now.wall_ns - state_->began.wall_ns < kJudgedNs ? 100 : worker::undisturbed_percent(state_->began, now);
}

Calibration Calibrator::result() {
  Calibration calibration{.undisturbed_percent = worker::undisturbed_percent(state_->began, Used::now())};
  std::vector<planner::Latency>& out = calibration.latency_by_batch;
  out.resize(state_->batch);
  std::uint32_t before = 0;
  for (Case& c : std::span(state_->cases).first(state_->batches)) {
    const std::uint32_t b = c.batch;
    planner::Latency& here = out[b - 1] = c.latency();
    if (before != 0) {  // a larger batch is not faster; between two sizes a straight line
      const planner::Latency& low = out[before - 1];
      here.p50_ns = std::max(here.p50_ns, low.p50_ns);
      here.p99_ns = std::max(here.p99_ns, low.p99_ns);
      for (std::uint32_t m = before + 1; m < b; ++m) {
        out[m - 1].p50_ns = low.p50_ns + (here.p50_ns - low.p50_ns) * (m - before) / (b - before);
        out[m - 1].p99_ns = low.p99_ns + (here.p99_ns - low.p99_ns) * (m - before) / (b - before);
      }
    }
    before = b;
  }
  for (std::uint32_t b = before + 1; b <= state_->batch; ++b) {
    const planner::Latency& last = out[before - 1];
    out[b - 1] = {last.p50_ns * b / before, last.p99_ns * b / before, 0};
  }
  for (Case& c : std::span(state_->cases).subspan(state_->batches)) calibration.latency_by_size.push_back(c.latency());
  if (state_->pictures.size() > 1) calibration.latency_by_size.push_back(out.front());
  return calibration;
}

Result<Calibration> calibrate(exec::Module& module, std::uint32_t batch, bool crops, const Told& told) {
  Calibrator calibrator(module, batch, crops, kLongestNs, told);
  for (;;) {
    const Result<bool> more = calibrator.step();
    if (!more.ok()) return Error{more.error()};
    if (!*more) return calibrator.result();
  }
}

Status warm_up(exec::Module& module, std::uint32_t batch, bool crops) {
  std::vector<Picture> pictures = pictures_for(module, crops);
  auto rows = NoFeatures::of(module, batch);
  if (!rows.ok()) return Error{rows.error()};
  // Libraries of a device choose and allocate anew for each shape, so each is run once, the largest first: smaller ones
  // find room in what that took. A host needs the extremes alone.
  for (Picture& picture : pictures) {
    for (std::uint32_t b = batch; b != 0; b = module.on_device() || b == 1 ? b - 1 : 1) {
      auto t = run_once(module, picture, b, rows->in(), rows->out());
      if (!t.ok()) return Error{t.error()};
    }
  }
  return Done{};
}

}  // namespace leat::worker
