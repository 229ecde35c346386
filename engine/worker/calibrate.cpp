#include "engine/worker/calibrate.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "engine/exec/device_plugin.h"
#include "engine/worker/picture.h"
#include "shm/src/clock.h"

namespace leat::worker {
namespace {

constexpr int kRuns = 9, kLeastRuns = 3;                                       // that count, of each case
constexpr std::int64_t kBudgetNs = 1'000'000'000, kLongestNs = 3'000'000'000;  // then kLeastRuns, or the first, must do
constexpr std::int64_t kTakenEveryNs = 20'000'000;  // a core that is taken away less often is not shared
constexpr double kTailFactor = 1.15;                // the worst of a few runs stands in for p99

// One for each size that the module's pictures have; one where they have one size.
std::vector<Picture> pictures_for(const exec::Module& module, bool crops) {
  std::vector<Picture> out;
  if (std::vector<leat_tensor_shape> tensors = module.tensor_shapes(); !tensors.empty()) {
    out.emplace_back(std::move(tensors));
    return out;
  }
  for (const exec::Size size : module.sizes()) out.push_back(Picture::of_size(crops, size));
  if (out.empty()) out.emplace_back(crops);
  return out;
}

// A stage in the middle of a route is given features of nothing.
Result<std::int64_t> run_once(exec::Module& module, Picture& picture, std::uint32_t batch, std::span<std::byte> in = {},
                              std::span<std::byte> out = {}) {
  std::array<exec::ItemReport, exec::kMaxRows> reports;
  const auto items = picture.items(batch);
  const std::int64_t start = shm::monotonic_ns();
  if (!module.run(items, std::span(reports.data(), batch), in.empty() ? nullptr : in.data(),
                  out.empty() ? nullptr : out.data()))
    return Error{std::string(module.error())};
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
    const auto ns = [](const timeval& t) { return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_usec * 1000; };
    return {shm::monotonic_ns(), ns(r.ru_utime) + ns(r.ru_stime), r.ru_nivcsw};
  }
};

// Who waits for a device has little time of the processor too, but nobody takes it away.
std::uint32_t undisturbed_percent(const Used& from, const Used& to) {
  const std::int64_t wall = std::max<std::int64_t>(1, to.wall_ns - from.wall_ns);
  if (to.taken_away - from.taken_away < wall / kTakenEveryNs) return 100;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(100 * (to.cpu_ns - from.cpu_ns) / wall, 0, 100));
}

// In turns, so that what else the machine does for a while is not one case's alone.
Status measure(exec::Module& module, std::span<Case> cases, const Told& told) {
  const auto most = static_cast<std::uint32_t>((kRuns + 1) * cases.size());
  std::uint32_t runs = 0;
  const std::int64_t start = shm::monotonic_ns();
  for (int done = 0; done <= kRuns; ++done) {
    if (done > 0 && shm::monotonic_ns() - start >= (done > kLeastRuns ? kBudgetNs : kLongestNs)) break;
    for (Case& c : cases) {
      auto t = run_once(module, *c.picture, c.batch);
      if (!t.ok()) return Error{t.error()};
      c.times.push_back(*t);
      if (told) told(++runs, most);
    }
  }
  return Done{};
}

}  // namespace

Result<Calibration> calibrate(exec::Module& module, std::uint32_t batch, bool crops, const Told& told) {
  std::vector<Picture> pictures = pictures_for(module, crops);
  std::vector<Case> cases;  // batches of the largest, since no others take longer; then one of each smaller size
  for (std::uint32_t b = 1; b < batch; b *= 2) cases.push_back({&pictures.back(), b, {}});
  cases.push_back({&pictures.back(), batch, {}});
  const std::size_t batches = cases.size();
  for (std::size_t c = 0; c + 1 < pictures.size(); ++c) cases.push_back({&pictures[c], 1, {}});
  const Used before_all = Used::now();
  if (auto status = measure(module, cases, told); !status) return Error{status.error()};

  Calibration calibration{.undisturbed_percent = undisturbed_percent(before_all, Used::now())};
  std::vector<planner::Latency>& out = calibration.latency_by_batch;
  out.resize(batch);
  std::uint32_t before = 0;
  for (Case& c : std::span(cases).first(batches)) {
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
  for (Case& c : std::span(cases).subspan(batches)) calibration.latency_by_size.push_back(c.latency());
  if (pictures.size() > 1) calibration.latency_by_size.push_back(out.front());
  return calibration;
}

Status warm_up(exec::Module& module, std::uint32_t batch, bool crops) {
  std::vector<Picture> pictures = pictures_for(module, crops);
  const std::uint64_t bytes_in = module.feature_bytes_in() * batch, bytes_out = module.feature_bytes_out() * batch;
  std::vector<std::byte> in, out;
  exec::DeviceBuffer in_there, out_there;
  std::span<std::byte> from, to;
  exec::Device* const device = module.on_device() ? module.spec().device : nullptr;
  const auto room = [&](std::uint64_t bytes, bool there, std::vector<std::byte>& host, exec::DeviceBuffer& buffer,
                        std::span<std::byte>& span) -> Status {
    if (bytes == 0) return Done{};
    if (!there) return host.resize(bytes), span = host, Done{};
    auto made = device->allocate(bytes);
    if (!made.ok()) return Error{made.error()};
    buffer = std::move(*made);
    span = {buffer.data(), bytes};
    return Done{};
  };
  if (auto status = room(bytes_in, device != nullptr, in, in_there, from); !status) return status;
  if (auto status = room(bytes_out, device != nullptr && !module.spec().host_features_out, out, out_there, to); !status)
    return status;
  // Libraries of a device choose and allocate anew for each shape, so each is run once; a host needs the extremes
  // alone.
  for (Picture& picture : pictures) {
    for (std::uint32_t b = 1; b <= batch; b = device != nullptr || b == batch ? b + 1 : batch) {
      auto t = run_once(module, picture, b, from, to);
      if (!t.ok()) return Error{t.error()};
    }
  }
  return Done{};
}

}  // namespace leat::worker
