#include "planner/build/cpu_host.h"

#include <algorithm>
#include <string>

namespace leat::planner {
namespace {

// Of the scheduler thread, for an item, where it sleeps between events: measured with the demo's application at full
// load.
constexpr double kSchedulerNs = 25'000;
constexpr double kUnknownItemNs = 1'000'000;

}  // namespace

double item_ns(std::span<const Latency> latency) {
  double best = latency.empty() ? kUnknownItemNs : 1e18;
  for (std::size_t b = 0; b < latency.size(); ++b)
    best = std::min(best, static_cast<double>(latency[b].p50_ns) / static_cast<double>(b + 1));
  return best;
}

std::vector<Partition> cpu_partitions(std::span<const std::uint32_t> cores, std::uint32_t each, double mean_item_ns) {
  each = std::clamp<std::uint32_t>(each, 1, static_cast<std::uint32_t>(std::max<std::size_t>(cores.size(), 1)));
  std::size_t count = cores.size() / each;
  if (cores.size() > each && static_cast<double>(count) * kSchedulerNs > mean_item_ns / 2)
    count = (cores.size() - 1) / each;
  std::vector<Partition> out;
  for (std::size_t k = 0; k < count; ++k) {
    Partition p;
    std::vector<std::uint32_t> own(cores.begin() + static_cast<std::ptrdiff_t>(k * each),
                                   cores.begin() + static_cast<std::ptrdiff_t>((k + 1) * each));
    for (const std::uint32_t core : own) p.selector += (p.selector.empty() ? "" : ",") + std::to_string(core);
    p.name = "cpu" + std::to_string(own.front());
    p.kind = PartitionKind::cpu;
    p.partition_class = "cpu:" + std::to_string(each);
    p.size = p.price = each;
    p.device = static_cast<std::uint32_t>(k);
    out.push_back(std::move(p));
  }
  return out;
}

}  // namespace leat::planner
