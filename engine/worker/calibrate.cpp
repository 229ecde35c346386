#include "engine/worker/calibrate.h"

#include <time.h>

#include <algorithm>
#include <array>

#include "engine/exec/device_plugin.h"
#include "engine/worker/picture.h"
#include "shm/src/clock.h"

namespace leat::worker {
namespace {

constexpr int kRuns = 9, kLeastRuns = 3;
constexpr std::int64_t kBudgetNs = 250'000'000;     // of one batch size; slow models get kLeastRuns
constexpr std::int64_t kLongestNs = 1'000'000'000;  // then the runs that there were must do
constexpr std::int64_t kModuleNs = 2'000'000'000;   // of one module; what comes after runs once
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

// At least one run is counted; the first is not, but once `until_ns` has passed.
Result<planner::Latency> measure(exec::Module& module, Picture& picture, std::uint32_t batch, std::int64_t until_ns) {
  std::vector<std::int64_t> times;
  const std::int64_t start = shm::monotonic_ns();
  auto first = run_once(module, picture, batch);
  if (!first.ok()) return Error{first.error()};
  if (start >= until_ns) times.push_back(*first);
  const auto goes_on = [&](int done) {
    const std::int64_t took = shm::monotonic_ns() - start;
    return done == 0 ||
           (start < until_ns && done < kRuns && (took < kBudgetNs || (done < kLeastRuns && took < kLongestNs)));
  };
  while (goes_on(static_cast<int>(times.size()))) {
    auto t = run_once(module, picture, batch);
    if (!t.ok()) return Error{t.error()};
    times.push_back(*t);
  }
  std::sort(times.begin(), times.end());
  planner::Latency out;
  out.p50_ns = std::max<std::int64_t>(1, times[times.size() / 2]);
  out.p99_ns = std::max(out.p50_ns, static_cast<std::int64_t>(static_cast<double>(times.back()) * kTailFactor));
  out.samples = static_cast<std::uint32_t>(times.size());
  return out;
}

}  // namespace

Result<Calibration> calibrate(exec::Module& module, std::uint32_t batch, bool crops) {
  std::vector<Picture> pictures = pictures_for(module, crops);
  Picture& picture = pictures.back();  // the largest: no batch takes longer
  Calibration calibration;
  const std::int64_t until = shm::monotonic_ns() + kModuleNs;
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t b = 1; b < batch; b *= 2) sizes.push_back(b);
  sizes.push_back(batch);
  std::vector<planner::Latency>& out = calibration.latency_by_batch;
  out.resize(batch);
  std::uint32_t before = 0;
  for (const auto b : sizes) {
    auto measured = measure(module, picture, b, until);
    if (!measured.ok()) return Error{measured.error()};
    planner::Latency& here = out[b - 1] = *measured;
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
  for (std::size_t c = 0; c + 1 < pictures.size(); ++c) {
    auto measured = measure(module, pictures[c], 1, until);
    if (!measured.ok()) return Error{measured.error()};
    calibration.latency_by_size.push_back(*measured);
  }
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
