#include "planner/mig/measured_sizes.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leat::planner {

Result<std::vector<double>> class_latency_s(const Profile& profile, const std::string& partition_class,
                                            std::size_t batches) {
  std::vector<std::pair<std::uint32_t, double>> known;
  for (const ProfileRow& row : profile.rows) {
    if (row.partition_class != partition_class || row.share != 1) continue;
    double ns = 0;
    for (const Latency& b : row.blocks) ns += static_cast<double>(b.p99_ns);
    known.emplace_back(row.batch, ns * 1e-9);
  }
  std::sort(known.begin(), known.end());
  if (known.empty() || known.back().first < batches)
    return Error{"profile of '" + profile.model + "': class " + partition_class + " must be measured up to batch " +
                 std::to_string(batches)};
  std::vector<double> out;
  std::size_t i = 0;
  for (std::uint32_t b = 1; b <= batches; ++b) {
    while (known[i].first < b) ++i;
    if (known[i].first == b || i == 0) {
      out.push_back(known[i].second);
      continue;
    }
    const double part = static_cast<double>(b - known[i - 1].first) / (known[i].first - known[i - 1].first);
    out.push_back(known[i - 1].second + part * (known[i].second - known[i - 1].second));
  }
  return out;
}

std::string class_for(const Profile& profile, const MigGeometry& geometry, const MigProfile& size) {
  std::string own = "mig:" + size.name;
  if (std::any_of(profile.rows.begin(), profile.rows.end(),
                  [&](const ProfileRow& r) { return r.partition_class == own; }))
    return own;
  return "mps:" + std::to_string(std::lround(100.0 * size.compute / geometry.compute_slices));
}

ParisSize measured_size(double compute, const std::vector<double>& latency_s) {
  ParisSize size{compute, {}, {}};
  double max = 0;
  for (std::size_t b = 0; b < latency_s.size(); ++b) max = std::max(max, static_cast<double>(b + 1) / latency_s[b]);
  for (std::size_t b = 0; b < latency_s.size(); ++b) {
    size.throughput_qps.push_back(1 / latency_s[b]);
    size.utilisation.push_back(static_cast<double>(b + 1) / latency_s[b] / max);
  }
  return size;
}

}  // namespace leat::planner
