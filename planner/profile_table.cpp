#include "planner/profile_table.h"

#include <algorithm>
#include <cassert>

namespace leat::planner {
namespace {

// On the straight line between two measured batches.
std::int64_t between(std::int64_t low, std::int64_t high, std::uint32_t step, std::uint32_t steps) {
  return low + (high - low) * step / steps;
}

}  // namespace

ProfileTable::ProfileTable(const Profile& profile) {
  std::map<Key, std::map<std::uint32_t, const ProfileRow*>> measured;
  for (const ProfileRow& r : profile.rows) measured[{r.partition_class, r.share}][r.batch] = &r;
  for (const auto& [key, by_batch] : measured) {
    std::vector<Row>& rows = rows_[key];
    for (std::uint32_t batch = 1; batch <= by_batch.rbegin()->first; ++batch) {
      const auto above = by_batch.lower_bound(batch);
      const auto below = above->first == batch ? above : std::prev(above);
      const std::uint32_t steps = above->first - below->first;
      Row row{{0}, {0}, {}};
      for (std::uint32_t k = 0; k < profile.blocks; ++k) {
        const Latency& low = below->second->blocks[k];
        const Latency& high = above->second->blocks[k];
        const std::uint32_t step = batch - below->first;
        row.p50_before.push_back(row.p50_before.back() +
                                 (steps == 0 ? low.p50_ns : between(low.p50_ns, high.p50_ns, step, steps)));
        row.p99_before.push_back(row.p99_before.back() +
                                 (steps == 0 ? low.p99_ns : between(low.p99_ns, high.p99_ns, step, steps)));
        row.samples.push_back(steps == 0 ? low.samples : 0);
      }
      rows.push_back(std::move(row));
    }
  }
}

std::uint32_t ProfileTable::largest_batch(const std::string& partition_class, std::uint32_t share) const {
  const auto it = rows_.find({partition_class, share});
  return it == rows_.end() ? 0 : static_cast<std::uint32_t>(it->second.size());
}

const ProfileTable::Row& ProfileTable::row(const std::string& partition_class, std::uint32_t share,
                                           std::uint32_t batch) const {
  const auto it = rows_.find({partition_class, share});
  assert(it != rows_.end() && batch >= 1 && batch <= it->second.size());
  return it->second[batch - 1];
}

std::int64_t ProfileTable::p50_ns(const std::string& c, std::uint32_t share, std::uint32_t batch, std::uint32_t first,
                                  std::uint32_t end) const {
  const Row& r = row(c, share, batch);
  return r.p50_before[end] - r.p50_before[first];
}

std::int64_t ProfileTable::p99_ns(const std::string& c, std::uint32_t share, std::uint32_t batch, std::uint32_t first,
                                  std::uint32_t end) const {
  const Row& r = row(c, share, batch);
  return r.p99_before[end] - r.p99_before[first];
}

std::uint32_t ProfileTable::samples(const std::string& c, std::uint32_t share, std::uint32_t batch, std::uint32_t first,
                                    std::uint32_t end) const {
  const Row& r = row(c, share, batch);
  return *std::min_element(r.samples.begin() + first, r.samples.begin() + end);
}

}  // namespace leat::planner
