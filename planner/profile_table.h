// A profile as prefix sums: the latency of any block range at any (class, share, batch), gaps between measured batches
// filled on a straight line. Immutable after construction; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/profile.h"

namespace leat::planner {

class ProfileTable {
 public:
  // Precondition: problem_of(profile) is empty. Keeps only the classes it is asked about later; copies what it needs.
  explicit ProfileTable(const Profile& profile);

  // Largest batch measured at (class, share); 0: not measured at all.
  std::uint32_t largest_batch(const std::string& partition_class, std::uint32_t share) const;
  // p50 / p99 of blocks [first, end) for one batch. Precondition: 1 <= batch <= largest_batch.
  std::int64_t p50_ns(const std::string& partition_class, std::uint32_t share, std::uint32_t batch, std::uint32_t first,
                      std::uint32_t end) const;
  std::int64_t p99_ns(const std::string& partition_class, std::uint32_t share, std::uint32_t batch, std::uint32_t first,
                      std::uint32_t end) const;
  // Samples behind a whole range: the smallest of its blocks; 0 where the batch was filled in.
  std::uint32_t samples(const std::string& partition_class, std::uint32_t share, std::uint32_t batch,
                        std::uint32_t first, std::uint32_t end) const;

 private:
  struct Row {
    std::vector<std::int64_t> p50_before, p99_before;  // [k]: sum over blocks < k
    std::vector<std::uint32_t> samples;
  };
  using Key = std::pair<std::string, std::uint32_t>;
  const Row& row(const std::string& partition_class, std::uint32_t share, std::uint32_t batch) const;
  std::map<Key, std::vector<Row>> rows_;  // [batch - 1]
};

}  // namespace leat::planner
