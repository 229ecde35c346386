// A batch in a worker's hand: its tasks as leatd sent them, the items that its module is given, what became of each.
// Plain data of one thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/exec/module.h"
#include "engine/worker/link/channel.h"

namespace leat::worker {

struct Batch {
  std::array<DispatchCell, kMaxBatch> cells;
  std::uint32_t count = 0;  // of them
  std::array<exec::Item, kMaxBatch> items;
  std::array<exec::ItemReport, kMaxBatch> reports;
  std::array<std::uint16_t, kMaxBatch> task_of;  // items[i] is task task_of[i]
  std::uint32_t item_count = 0;                  // 0: nothing of it can be run
  std::array<TaskReport, kMaxBatch> tasks;
  // What a report says of it as a whole.
  std::int64_t started_ns = 0, ended_ns = 0;
  std::uint64_t pixel_bytes_copied = 0;
  std::uint32_t rows_copied = 0, squeezed = 0, not_finite = 0;

  [[nodiscard]] std::span<const DispatchCell> all_cells() const noexcept { return {cells.data(), count}; }
  [[nodiscard]] std::span<const exec::Item> all_items() const noexcept { return {items.data(), item_count}; }
};

}  // namespace leat::worker
