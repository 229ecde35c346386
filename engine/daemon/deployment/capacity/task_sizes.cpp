#include "engine/daemon/deployment/capacity/task_sizes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/worker/link/channel.h"

namespace leat::daemon {
namespace {

constexpr std::uint32_t kUnits = 8;

struct Point {
  std::uint32_t at = 0;  // units
  planner::Latency latency;
};

// Of 1 to the last: more takes no less; between two points a straight line.
std::vector<planner::Latency> line_through(std::vector<Point> points) {
  std::vector<planner::Latency> out(points.back().at, points.front().latency);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const auto& [from, low] = points[i - 1];
    auto& [to, high] = points[i];
    high.p50_ns = std::max(high.p50_ns, low.p50_ns);
    high.p99_ns = std::max({high.p99_ns, low.p99_ns, high.p50_ns});
    for (std::uint32_t u = from + 1; u < to; ++u) {
      planner::Latency& here = out[u - 1] = low;
      here.p50_ns += (high.p50_ns - low.p50_ns) * (u - from) / (to - from);
      here.p99_ns += (high.p99_ns - low.p99_ns) * (u - from) / (to - from);
    }
    out[to - 1] = high;
  }
  return out;
}

// How many units one picture of the largest size is; 1: sizes are not divided.
std::uint32_t units_of_largest(std::size_t classes, std::span<const MeasuredSizes> partitions) {
  std::size_t batch = 1;
  for (const MeasuredSizes& m : partitions) {
    if (m.by_size.size() != classes || m.rows.empty()) return 1;
    batch = std::max(batch, m.rows.size());
  }
  if (partitions.empty() || classes == 1) return 1;
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(worker::kMaxBatch / batch, 1, kUnits));
}

}  // namespace

double ModuleSizes::mean_units() const noexcept {
  if (units.empty()) return 1;
  return std::accumulate(units.begin(), units.end(), 0.0) / static_cast<double>(units.size());
}

ModuleSizes divide_sizes(const std::string& preprocess, bool crops, std::span<const MeasuredSizes> partitions) {
  ModuleSizes out;
  const auto spec = exec::parse_preprocess(preprocess);
  if (!spec.ok() || !spec->sizes.varies()) return out;
  std::vector<exec::Size> sizes = spec->sizes.sizes();
  const std::uint32_t each = units_of_largest(sizes.size(), partitions);
  if (each == 1 && spec->sizes.wide != exec::Wide::split) return out;
  out.cut = spec->cut, out.rule = spec->sizes, out.crops = crops;
  out.sizes = std::move(sizes);
  out.units.assign(out.sizes.size(), 1);
  if (each == 1) return out;
  out.units.back() = each;
  for (const MeasuredSizes& m : partitions) {
    std::uint32_t before = 1;
    for (std::size_t c = 0; c + 1 < out.units.size(); ++c) {
      const double part = static_cast<double>(m.by_size[c].p50_ns) / static_cast<double>(m.by_size.back().p50_ns);
      const double units = std::nearbyint(std::min(part, 1.0) * each);
      before = out.units[c] = std::clamp(static_cast<std::uint32_t>(units), std::max(before, out.units[c]), each);
    }
  }
  return out;
}

std::vector<planner::Latency> ModuleSizes::table(const MeasuredSizes& measured) const {
  if (units.empty()) return measured.rows;
  std::vector<Point> points;
  for (std::size_t c = 0; c + 1 < units.size() && units[c] < each(); ++c) {
    if (!points.empty() && points.back().at == units[c]) points.pop_back();  // the larger one speaks for both
    points.push_back({units[c], measured.by_size[c]});
  }
  for (std::uint32_t b = 1; b <= measured.rows.size(); ++b) points.push_back({b * each(), measured.rows[b - 1]});
  return line_through(std::move(points));
}

std::uint32_t ModuleSizes::units_of(std::uint32_t width, std::uint32_t height, const leat_result* result,
                                    std::uint64_t slot_bytes, std::uint32_t item) const noexcept {
  if (sizes.empty()) return 1;
  auto w = static_cast<float>(width), h = static_cast<float>(height);
  if (crops && result != nullptr && result->kind == LEAT_RESULT_DETECTIONS) {
    exec::Region region;
    if (!exec::region_of(result, static_cast<std::int32_t>(item), cut, &region, slot_bytes)) return 1;  // fails at once
    w = region.projected ? region.width : region.box.x1 - region.box.x0;
    h = region.projected ? region.height : region.box.y1 - region.box.y0;
  }
  const exec::Pieces pieces = rule.pieces_of(w, h);
  const exec::Piece last = pieces.at(pieces.count - 1);
  const exec::Size size = rule.size_of(w * (last.to - last.from), h);
  return size == exec::Size{} ? 1 : (pieces.count - 1) * each() + units[exec::class_of(sizes, size)];
}

}  // namespace leat::daemon
