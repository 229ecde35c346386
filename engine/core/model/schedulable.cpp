#include "engine/core/model/schedulable.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace leat::core {
namespace {

std::string text_of(const char* format, auto... values) {
  char out[512];
  std::snprintf(out, sizeof out, format, values...);
  return out;
}

double ms(TimeNs ns) { return static_cast<double>(ns) / 1e6; }

std::string list_of(const std::vector<PartitionId>& pool, std::span<const std::string> names) {
  std::string out = pool.size() == 1 ? "partition " : "partitions ";
  for (std::size_t i = 0; i < pool.size(); ++i) {
    out += (i == 0 ? "" : ", ") + (pool[i] < names.size() ? names[pool[i]] : std::to_string(pool[i]));
  }
  return out;
}

std::vector<PartitionId> sorted(std::vector<PartitionId> pool) {
  std::sort(pool.begin(), pool.end());
  pool.erase(std::unique(pool.begin(), pool.end()), pool.end());
  return pool;
}

// Sets of partitions worth asking about: each pool, and the pools that overlap it taken together until nothing more
// does.
std::set<std::vector<PartitionId>> groups(std::span<const Demand> demands) {
  std::set<std::vector<PartitionId>> out;
  for (const Demand& d : demands) {
    std::vector<PartitionId> group = sorted(d.pool);
    out.insert(group);
    for (bool grown = true; grown;) {
      grown = false;
      for (const Demand& other : demands) {
        const std::vector<PartitionId> pool = sorted(other.pool);
        const bool overlaps = std::any_of(
            pool.begin(), pool.end(), [&](PartitionId p) { return std::binary_search(group.begin(), group.end(), p); });
        if (!overlaps || std::includes(group.begin(), group.end(), pool.begin(), pool.end())) continue;
        group.insert(group.end(), pool.begin(), pool.end());
        group = sorted(std::move(group));
        grown = true;
      }
    }
    out.insert(std::move(group));
  }
  return out;
}

void check_load(std::span<const Demand> demands, std::span<const std::string> names, std::uint32_t margin_permille,
                std::vector<Finding>& out) {
  for (const std::vector<PartitionId>& group : groups(demands)) {
    if (group.empty()) continue;
    Finding f;
    double typical = 0, safe = 0;
    std::string parts;
    for (std::size_t i = 0; i < demands.size(); ++i) {
      const Demand& d = demands[i];
      const std::vector<PartitionId> pool = sorted(d.pool);
      if (d.period_ns <= 0 || pool.empty() || d.priority == Priority::background ||
          !std::includes(group.begin(), group.end(), pool.begin(), pool.end()))
        continue;
      const double item = static_cast<double>(d.item_ns > 0 ? d.item_ns : d.run_ns),
                   rate = d.count / static_cast<double>(d.period_ns) / static_cast<double>(group.size());
      typical += item * rate;
      safe += item / static_cast<double>(d.run_ns) * static_cast<double>(d.safe_ns) * margin_permille / 1000 * rate;
      parts += (parts.empty() ? "" : ", ") + text_of("%s %.0f %%", d.name.c_str(), 100 * item * rate);
      f.demands.push_back(i);
    }
    const std::string where = list_of(group, names);
    if (typical > 1) {
      f.obstacle = Obstacle::overload;
      f.load = typical;
      f.text = text_of(
          "unschedulable: periodic work takes %.0f %% of %s (%s); lengthen a period, use a smaller model, larger "
          "batches or more partitions",
          100 * typical, where.c_str(), parts.c_str());
    } else if (safe > 1) {
      f.obstacle = Obstacle::broken_promises;
      f.load = safe;
      f.text = text_of(
          "tight: by p99 and margin periodic work takes %.0f %% of %s, typically %.0f %% (%s); in bad moments the "
          "lowest class goes uncovered",
          100 * safe, where.c_str(), 100 * typical, parts.c_str());
    } else {
      continue;
    }
    out.push_back(std::move(f));
  }
}

}  // namespace

bool never_fits(TimeNs job_run_ns, const Demand& d) noexcept {
  const TimeNs room = 2 * d.period_ns - (d.max_age_ns < d.period_ns ? d.run_ns : 0);
  return d.period_ns > 0 && job_run_ns + d.run_ns >= room;
}

std::vector<Finding> obstacles(std::span<const Demand> demands, std::span<const std::string> names,
                               std::uint32_t margin_permille) {
  std::vector<Finding> out;
  check_load(demands, names, margin_permille, out);
  for (std::size_t j = 0; j < demands.size(); ++j) {
    const Demand& job = demands[j];
    for (std::size_t i = 0; i < demands.size(); ++i) {
      const Demand& stream = demands[i];
      if (stream.priority <= job.priority || job.pool.empty()) continue;
      // Everywhere the job can go it must meet a stream that has nowhere else to go.
      const bool everywhere =
          stream.pool.size() == 1 &&
          std::all_of(job.pool.begin(), job.pool.end(), [&](PartitionId p) { return p == stream.pool.front(); });
      if (!everywhere || !never_fits(job.run_ns, stream)) continue;
      Finding f{.obstacle = Obstacle::block, .load = 0, .demands = {j, i}, .text = {}};
      f.text = text_of(
          "'%s' (%.1f ms) can never run beside '%s' (%.1f ms every %.1f ms) on %s without leaving it uncovered; give "
          "it a partition of its own or cut it into pieces",
          job.name.c_str(), ms(job.run_ns), stream.name.c_str(), ms(stream.run_ns), ms(stream.period_ns),
          list_of(stream.pool, names).c_str());
      out.push_back(std::move(f));
      break;
    }
  }
  return out;
}

}  // namespace leat::core
