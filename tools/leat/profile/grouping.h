// Groups the stretches of a model between neighbouring cut points ("segments") into blocks.
//
// By time (PPipe section 5.1): the largest block is as short as it can be, and under that bound the blocks are as equal
// as they can be (least sum of squares). By bytes: the fewest bytes cross the cuts while no block is longer than
// `balance` times that shortest largest block. Exact, by dynamic programming over segments; O(segments^2 * blocks).
// Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leat::tools {

enum class GroupBy : std::uint8_t { time, bytes };

struct Grouping {
  std::vector<std::uint32_t> cuts;  // blocks - 1 indexes of cuts; cut i lies behind segment i
  std::vector<std::int64_t> block_ns;
  std::uint64_t bytes = 0;  // of one item, over all cuts
};

// segment_ns: one entry a segment; cut_bytes: one entry fewer, of one item crossing behind segment i.
// Preconditions: 1 <= blocks <= segments; balance >= 1.
Grouping group(std::span<const std::int64_t> segment_ns, std::span<const std::uint64_t> cut_bytes, std::uint32_t blocks,
               GroupBy by, double balance);

// Largest block over the mean of all; 1: all are equal.
double imbalance(std::span<const std::int64_t> block_ns);

}  // namespace leat::tools
