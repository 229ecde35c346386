#include "planner/mig/change.h"

#include <algorithm>
#include <limits>

namespace leat::planner {
namespace {

constexpr double kInUse = 1000;  // an instance in use outweighs all that are idle

struct Dealer {
  const LayoutSpace& space;
  const MigHost& host;

  double weight(const MigInstance& i) const {
    return host.geometry.profiles[i.placement.profile].compute * (i.used_by.empty() ? 1.0 : kInUse);
  }
  // The way to lay `counts` on this GPU that keeps most; second: the weight of what is stopped.
  std::pair<GpuChange, double> lay(const MigGpu& gpu, const SizeCounts& counts) const {
    GpuChange best;
    double min_stopped = std::numeric_limits<double>::infinity();
    for (const auto& placements : placements_of(host.geometry, space.profiles(), counts)) {
      GpuChange change;
      double stopped = 0;
      change.created = placements;
      for (const MigInstance& i : gpu.instances) {
        const auto same = std::find(change.created.begin(), change.created.end(), i.placement);
        if (same != change.created.end()) {
          change.created.erase(same);
          change.kept.push_back(i);
        } else {
          change.destroyed.push_back(i);
          stopped += weight(i);
        }
      }
      if (stopped >= min_stopped) continue;
      min_stopped = stopped;
      best = std::move(change);
    }
    std::stable_sort(best.created.begin(), best.created.end(), [&](const MigPlacement& a, const MigPlacement& b) {
      const std::uint32_t x = host.geometry.profiles[a.profile].memory, y = host.geometry.profiles[b.profile].memory;
      return x != y ? x > y : a.start < b.start;
    });
    return {std::move(best), min_stopped};
  }
  SizeCounts counts_of(const MigGpu& gpu) const {
    SizeCounts counts(space.profiles().size());
    for (const MigInstance& i : gpu.instances)
      for (std::size_t k = 0; k < counts.size(); ++k)
        if (space.profiles()[k] == i.placement.profile) ++counts[k];
    return counts;
  }
};

double served(const SizeDemand& demand, const SizeCounts& counts) {
  return served_load(demand, {counts.begin(), counts.end()}).rate_rps;
}

MigChange unchanged(const Dealer& dealer, const SizeDemand& demand) {
  MigChange out;
  out.counts.assign(dealer.space.profiles().size(), 0);
  for (const MigGpu& gpu : dealer.host.gpus) {
    out.gpus.push_back({gpu.instances, {}, {}});
    const SizeCounts counts = dealer.counts_of(gpu);
    for (std::size_t k = 0; k < counts.size(); ++k) out.counts[k] += counts[k];
  }
  out.served_rps = out.served_before_rps = served(demand, out.counts);
  return out;
}

}  // namespace

MigChange change_to(const LayoutSpace& space, const MigHost& host, const std::vector<std::uint32_t>& layouts,
                    const SizeDemand& demand) {
  const Dealer dealer{space, host};
  const std::size_t count = host.gpus.size();
  std::vector<std::vector<double>> stopped(count, std::vector<double>(count));
  for (std::size_t g = 0; g < count; ++g)
    for (std::size_t i = 0; i < count; ++i)
      stopped[g][i] = dealer.lay(host.gpus[g], space.layouts()[layouts[i]]).second;
  // Least total over all ways to deal: best[set] for the first popcount(set) GPUs having the layouts in `set`.
  std::vector<double> best(1u << count, std::numeric_limits<double>::infinity());
  std::vector<std::uint32_t> last(1u << count);
  best[0] = 0;
  for (std::uint32_t set = 0; set < best.size(); ++set) {
    const auto g = static_cast<std::size_t>(__builtin_popcount(set));
    for (std::uint32_t i = 0; i < count; ++i) {
      if ((set >> i & 1) != 0) continue;
      const std::uint32_t next = set | 1u << i;
      if (best[set] + stopped[g][i] >= best[next]) continue;
      best[next] = best[set] + stopped[g][i];
      last[next] = i;
    }
  }
  MigChange out = unchanged(dealer, demand);
  out.counts.assign(space.profiles().size(), 0);
  for (std::uint32_t set = static_cast<std::uint32_t>(best.size() - 1); set != 0; set &= ~(1u << last[set])) {
    const auto g = static_cast<std::size_t>(__builtin_popcount(set)) - 1;
    const SizeCounts& counts = space.layouts()[layouts[last[set]]];
    out.gpus[g] = dealer.lay(host.gpus[g], counts).first;
    for (std::size_t k = 0; k < counts.size(); ++k) out.counts[k] += counts[k];
  }
  out.served_rps = served(demand, out.counts);
  return out;
}

MigChange min_change(const LayoutSpace& space, const MigHost& host, const LayoutChoice& best, double tolerance,
                     const SizeDemand& demand) {
  const Dealer dealer{space, host};
  const double enough = best.served_rps * (1 - tolerance) * (1 - 1e-9);
  MigChange now = unchanged(dealer, demand);
  std::vector<SizeCounts> counts;
  for (const MigGpu& gpu : host.gpus) counts.push_back(dealer.counts_of(gpu));
  while (now.served_rps < enough) {
    double best_score = 0, best_served = 0;
    std::size_t where = host.gpus.size();
    std::uint32_t to = 0;
    for (std::size_t g = 0; g < host.gpus.size(); ++g)
      for (std::uint32_t l = 0; l < space.layouts().size(); ++l) {
        SizeCounts total = now.counts;
        for (std::size_t k = 0; k < total.size(); ++k) total[k] += space.layouts()[l][k] - counts[g][k];
        const double after = served(demand, total);
        if (after <= now.served_rps * (1 + 1e-9)) continue;
        const double score = (after - now.served_rps) / (1 + dealer.lay(host.gpus[g], space.layouts()[l]).second);
        if (score <= best_score) continue;
        best_score = score;
        best_served = after;
        where = g;
        to = l;
      }
    if (where == host.gpus.size()) return change_to(space, host, best.layouts, demand);
    for (std::size_t k = 0; k < now.counts.size(); ++k) now.counts[k] += space.layouts()[to][k] - counts[where][k];
    counts[where] = space.layouts()[to];
    now.gpus[where] = dealer.lay(host.gpus[where], counts[where]).first;
    now.served_rps = best_served;
  }
  return now;
}

std::vector<std::string> commands_for(const MigHost& host, const MigChange& change) {
  std::vector<std::string> out;
  for (std::size_t g = 0; g < host.gpus.size(); ++g) {
    const MigGpu& gpu = host.gpus[g];
    const GpuChange& c = change.gpus[g];
    if (!c.any()) continue;
    const std::string device = "nvidia-smi mig -i " + std::to_string(gpu.index);
    if (!gpu.mig_enabled) {
      out.push_back("# GPU " + std::to_string(gpu.index) +
                    ": MIG mode is off; turning it on needs root and an idle GPU, and may reset it");
      out.push_back("nvidia-smi -i " + std::to_string(gpu.index) + " -mig 1");
    }
    for (const MigInstance& i : c.destroyed) {
      const std::string what =
          host.geometry.profiles[i.placement.profile].name + " at " + std::to_string(i.placement.start);
      if (!i.used_by.empty())
        out.push_back("# GPU " + std::to_string(gpu.index) + ": stop " + i.used_by + " on " + what + " first");
      out.push_back(device + " -dci -gi " + std::to_string(i.id));
      out.push_back(device + " -dgi -gi " + std::to_string(i.id));
    }
    for (const MigPlacement& p : c.created)
      out.push_back(device + " -cgi " + host.geometry.profiles[p.profile].name + ":" + std::to_string(p.start) + " -C");
  }
  return out;
}

}  // namespace leat::planner
