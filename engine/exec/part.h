// The parts of a result as post-processing declares and writes them (leat/result_types.h). What a module can need at
// most for one item is declared when it is opened (PartSpec); leatd lays the parts of all modules of an application
// out behind the result's head (engine/daemon/scheduler_thread/result_layout.h) and writes the directory into every
// slot; a module finds its own entries there and writes dims, bytes and payload of each. Plain data and inline
// functions; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "leat/result_types.h"

namespace leat::exec {

struct PartSpec {
  std::uint32_t kind = LEAT_PART_none;
  std::uint32_t dtype = LEAT_F32;
  std::uint32_t rank = 0;
  std::array<std::uint32_t, 4> dims{};  // the most of each; for kinds that are lists the first counts their entries
  std::uint64_t bytes = 0;              // the most, of one item: the array
  std::uint64_t tail = 0;               // the most, of one item: what its entries point to (text, bits of masks)
  std::string name;
  bool operator==(const PartSpec&) const = default;
};

inline constexpr std::uint64_t kPartAlignment = 64;
constexpr std::uint64_t round_part(std::uint64_t bytes) noexcept {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

// The directory entry of `rows` items: their arrays one behind the other, then their tails.
inline leat_part entry_of(const PartSpec& need, std::uint32_t module, bool each, std::uint32_t rows) noexcept {
  leat_part part{};
  part.kind = static_cast<std::uint16_t>(need.kind);
  part.module = static_cast<std::uint16_t>(module);
  part.item = each ? LEAT_ITEM_EACH : LEAT_ITEM_FRAME;
  part.dtype = need.dtype;
  part.rank = need.rank;
  std::copy_n(need.dims.begin(), 4, part.dims);
  need.name.copy(part.name, LEAT_PART_NAME_BYTES - 1);
  if (!each) return part;
  part.bytes = rows * (need.bytes + need.tail);
  const bool values = need.kind == LEAT_PART_embedding || need.kind == LEAT_PART_map || need.kind == LEAT_PART_tensor;
  if (!values) {
    part.dims[0] *= rows;
  } else if (need.rank == 4) {
    part.dims[0] *= rows;
  } else {
    std::copy_backward(need.dims.begin(), need.dims.begin() + need.rank, part.dims + need.rank + 1);
    part.dims[0] = rows;
    part.rank = need.rank + 1;
  }
  return part;
}

inline leat_part* directory_of(leat_result* result) noexcept {
  return reinterpret_cast<leat_part*>(reinterpret_cast<std::byte*>(result) + LEAT_PARTS_OFFSET);
}
// First entry of a module's parts, which follow one another; null: it has none here.
inline leat_part* parts_of(leat_result* result, std::uint32_t module) noexcept {
  leat_part* const first = directory_of(result);
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(result->part_count, LEAT_MAX_PARTS); ++i)
    if (first[i].module == module) return first + i;
  return nullptr;
}
// Where an item's array and its tail lie; `row` is its place among the items of an EACH part, 0 for the frame's. Null:
// the part has no such row.
struct PartPlace {
  std::byte* array = nullptr;
  std::byte* tail = nullptr;
  std::uint32_t tail_offset = 0;  // from the part's first byte
};
inline PartPlace place_of(leat_result* result, const leat_part& part, const PartSpec& need,
                          std::uint32_t row) noexcept {
  const bool each = part.item == LEAT_ITEM_EACH;
  const std::uint64_t rows = each ? part.bytes / std::max<std::uint64_t>(1, need.bytes + need.tail) : 1;
  if (row >= rows) return {};
  std::byte* const first = reinterpret_cast<std::byte*>(result) + part.offset;
  const std::uint64_t tail = rows * need.bytes + row * need.tail;
  return {first + row * need.bytes, first + tail, static_cast<std::uint32_t>(tail)};
}
// Says what was written for the frame; EACH parts keep what leatd laid out.
inline void wrote(leat_part& part, std::uint32_t first_dim, std::uint64_t bytes) noexcept {
  if (part.item == LEAT_ITEM_EACH) return;
  part.dims[0] = first_dim;
  part.bytes = bytes;
}

}  // namespace leat::exec
