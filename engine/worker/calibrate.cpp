#include "engine/worker/calibrate.h"

#include <time.h>

#include <algorithm>
#include <array>

#include "engine/worker/picture.h"

namespace leat::worker {
namespace {

constexpr int kRuns = 9, kLeastRuns = 3;
constexpr std::int64_t kBudgetNs = 250'000'000;  // of one batch size; slow models get kLeastRuns
constexpr double kTailFactor = 1.15;             // the worst of a few runs stands in for p99

std::int64_t clock_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

// A stage in the middle of a route is given features of nothing.
Result<std::int64_t> run_once(exec::Module& module, Picture& picture, std::uint32_t batch, std::span<std::byte> in = {}, std::span<std::byte> out = {}) {
  std::array<exec::ItemReport, exec::kMaxRows> reports;
  const auto items = picture.items(batch);
  const std::int64_t start = clock_ns();
  if (!module.run(items, std::span(reports.data(), batch), in.empty() ? nullptr : in.data(), out.empty() ? nullptr : out.data())) return Error{std::string(module.error())};
  return clock_ns() - start;
}

Result<planner::Latency> measure(exec::Module& module, Picture& picture, std::uint32_t batch) {
  std::vector<std::int64_t> times;
  const std::int64_t start = clock_ns();
  if (auto first = run_once(module, picture, batch); !first.ok()) return Error{first.error()};  // not counted
  for (int i = 0; i < kRuns && (i < kLeastRuns || clock_ns() - start < kBudgetNs); ++i) {
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

Result<std::vector<planner::Latency>> calibrate(exec::Module& module, std::uint32_t batch, bool crops) {
  Picture picture(crops);
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t b = 1; b < batch; b *= 2) sizes.push_back(b);
  sizes.push_back(batch);
  std::vector<planner::Latency> out(batch);
  std::uint32_t before = 0;
  for (const auto b : sizes) {
    auto measured = measure(module, picture, b);
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
  return out;
}

Status warm_up(exec::Module& module, std::uint32_t batch, bool crops) {
  Picture picture(crops);
  std::vector<std::byte> in(module.feature_bytes_in() * batch), out(module.feature_bytes_out() * batch);
  for (const auto b : {1u, batch}) {
    auto t = run_once(module, picture, b, in, out);
    if (!t.ok()) return Error{t.error()};
  }
  return Done{};
}

}  // namespace leat::worker
