// The channel between leatd's scheduler thread and one worker: one sealed memfd with two rings of 64-byte cells and two
// sleep words. Both ends are ours, but a worker runs models, so the daemon checks what it reads back (worker_port.h).
//
//   dispatch ring  daemon -> worker   one cell a task; the cells of a batch follow each other
//   report ring    worker -> daemon   one cell a finished batch and 14 results; larger batches use several cells
//
// Client memory never passes here: a task names a pool (a stream's slots, handed to the worker over the control socket,
// protocol.h) and a slot in it, and rows of the features between two stages. Thread rule: one thread at each end of
// each ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shm/src/protocol/color.h"
#include "shm/src/rings/ring.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::worker {

inline constexpr std::uint32_t kMaxBatch = 64;         // items in one batch
inline constexpr std::uint32_t kMaxQueuedBatches = 8;  // batches sent to a worker and not reported yet
inline constexpr std::uint32_t kMaxAccessUnits = 256;  // sent to a worker and not read yet
inline constexpr std::uint32_t kDispatchRing = 2048;   // cells; room for kMaxQueuedBatches of kMaxBatch
inline constexpr std::uint32_t kReportRing = 1024;
inline constexpr std::uint32_t kMaxModules = 64;  // sessions of one worker
inline constexpr std::uint8_t kNoModule = UINT8_MAX;
inline constexpr std::uint32_t kMaxPools = 1024;     // streams a worker can serve at once
inline constexpr std::uint32_t kNoRow = UINT32_MAX;  // a stage without features on that side

// task: one of a batch. access_unit: what the slot of a bitstream holds, to be decoded, whatever becomes of its frame;
// `item` is its length, `items` 2 where others before it are missing, else 1.
enum class CellKind : std::uint8_t { task, access_unit };

struct alignas(64) DispatchCell {
  std::uint32_t sequence = 0;  // ring.h
  std::uint32_t control = 0;   // control messages sent before this cell: the worker reads that many first
  std::uint32_t batch = 0, batch_generation = 0;
  std::uint16_t module = 0;  // session index, as in Setup
  std::uint8_t stage = 0;
  CellKind kind = CellKind::task;
  std::uint16_t position = 0, count = 0;  // this is task `position` of `count` in its batch
  std::uint32_t pool = 0, pool_generation = 0;
  std::uint32_t slot = 0;
  std::uint32_t item = 0;   // behind a fan-out: index of the detection
  std::uint16_t items = 1;  // rows of the batch it fills
  shm::Color color;         // of the frame, as its client states it
  // Its first row among the features it is made from, and of those it makes. The cells of a batch come in the order of
  // the first; the rows of the second follow one another.
  std::uint32_t row_in = kNoRow, row_out = kNoRow;
  // Of the whole batch: the session that the worker goes on with by itself, with up to then_cap tasks for what each of
  // these found, if they all together are no more than then_batch; kNoModule: it does not.
  std::uint8_t then = kNoModule, then_cap = 0, then_batch = 0;
  std::uint8_t alone = 0;  // of the whole batch, 1: no other is begun before it has ended, and it after all before it
  std::int64_t dispatched_ns = 0;
};

struct TaskReport {
  std::uint8_t reason = 0;  // leat_reason; 0: done
  std::uint8_t fan_out = 0;
};

inline constexpr std::uint32_t kResultsPerCell = 8;

// Whether the worker has gone on by itself behind the batch (DispatchCell::then), or this is what it has gone on with:
// its tasks are, in the batch's order, each one's results from the first on. decoded: no batch; so many access units
// have been read as `count` says, and their slots are not looked at any more. beside: the batch, the second of those
// that the worker has, has begun before the first has ended; without results.
enum class ReportKind : std::uint8_t { batch, goes_on, sequel, decoded, beside };

struct alignas(64) ReportCell {
  std::uint32_t sequence = 0;  // ring.h
  std::uint32_t batch = 0, batch_generation = 0;
  std::uint8_t stage = 0;
  ReportKind kind = ReportKind::batch;
  std::uint16_t first = 0, count = 0;  // results[i] belongs to task first + i of `count`
  std::uint8_t squeezed = 0;           // of the whole batch: tasks whose picture was too wide for the module (sizes.h)
  std::uint8_t not_finite = 0;         // of the whole batch: tasks whose model gave numbers that are not finite
  std::uint32_t rows_copied = 0;       // of the whole batch: features that did not lie together
  std::int64_t started_ns = 0;         // CLOCK_MONOTONIC, of the whole batch
  std::int64_t ended_ns = 0;
  std::uint64_t pixel_bytes_copied = 0;  // of the whole batch, after the producer's write (module.h)
  TaskReport results[kResultsPerCell];
};
static_assert(sizeof(DispatchCell) == 64 && sizeof(ReportCell) == 64);
static_assert(kMaxBatch <= UINT8_MAX, "ReportCell counts a batch's tasks in bytes");
static_assert(std::is_trivially_copyable_v<DispatchCell> && std::is_trivially_copyable_v<ReportCell>);
static_assert(kDispatchRing >= 2 * (kMaxQueuedBatches * kMaxBatch + kMaxAccessUnits));
static_assert(kReportRing >=
              2 * (kMaxQueuedBatches * ((kMaxBatch + kResultsPerCell - 1) / kResultsPerCell + 1) + kMaxAccessUnits));

struct ChannelLayout {
  std::uint64_t dispatch_index, worker_sleep;  // written by the worker
  std::uint64_t report_index, daemon_sleep;    // written by the daemon
  std::uint64_t dispatch_cells, report_cells;
  std::uint64_t bytes;
};
constexpr ChannelLayout channel_layout() noexcept {
  ChannelLayout l{};
  l.dispatch_index = sizeof(shm::SegmentHeader);
  l.worker_sleep = l.dispatch_index + shm::kLine;
  l.report_index = l.worker_sleep + 2 * shm::kLine;
  l.daemon_sleep = l.report_index + shm::kLine;
  l.dispatch_cells = shm::kPage;
  l.report_cells = l.dispatch_cells + std::uint64_t{kDispatchRing} * shm::kLine;
  l.bytes = shm::round_up(l.report_cells + std::uint64_t{kReportRing} * shm::kLine, shm::kPage);
  return l;
}

}  // namespace leat::worker
