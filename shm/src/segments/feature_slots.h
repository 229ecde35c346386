// Feature slots: where one stage of a route writes what the next one reads. One segment an edge (a module's boundary
// between two blocks), made by the daemon before anything is served and mapped once at start: for writing by the
// workers whose stage ends there, read-only by those whose stage begins there.
//
// A slot is one item's row, dense, in host memory. The rows of a batch follow one another, so that a batch that stays
// together is read in place. Behind the slots lie scrap rows, room for one batch that found no slots: several may write
// there at once, and what is read there is worth nothing; whoever hands scrap out answers for it. Ownership: pools and
// views own their mappings. Thread rule: pools and views none; FeatureRows belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shm/src/segments/segment.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::shm {

// Sent by the daemon to workers, never read from a segment.
struct FeatureSpec {
  std::uint32_t rows = 0;       // 1..kMaxFeatureRows
  std::uint32_t scrap = 0;      // rows behind them
  std::uint64_t row_bytes = 0;  // of one item

  constexpr std::uint64_t bytes() const noexcept {
    return round_up(kPage + (std::uint64_t{rows} + scrap) * row_bytes, kPage);
  }
};

// The daemon's side: the segment.
class FeaturePool {
 public:
  static Result<FeaturePool> create(const FeatureSpec& spec);
  const FeatureSpec& spec() const noexcept { return spec_; }
  Result<Fd> for_producer() const { return duplicate(segment_.fd()); }
  Result<Fd> for_consumer() const { return segment_.share_read_only(); }

 private:
  FeatureSpec spec_;
  Segment segment_;
};

// A worker's side: the rows. Writable only where it was mapped so.
class FeatureView {
 public:
  static Result<FeatureView> map(const FeatureSpec& spec, Fd fd, Access access);
  // Rows in a device's memory of spec.bytes(), which outlives this: addresses to hand to the device, nothing to touch.
  static FeatureView on_device(const FeatureSpec& spec, std::byte* memory);
  std::byte* row(std::uint32_t row) const noexcept { return first_ + row * spec_.row_bytes; }
  const FeatureSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] bool on_device() const noexcept { return on_device_; }
  [[nodiscard]] std::span<std::byte> memory() const noexcept { return {memory_.data(), memory_.bytes()}; }  // host only

 private:
  FeatureSpec spec_;
  Mapping memory_;
  std::byte* first_ = nullptr;
  bool on_device_ = false;
};

// Which rows are in use: the daemon's own memory, no worker sees it. Nothing here allocates after construction.
class FeatureRows {
 public:
  explicit FeatureRows(const FeatureSpec& spec) : rows_(spec.rows), used_(spec.rows / 64 + 1, 0) {}

  // `count` rows that follow one another, the lowest there are (the same few stay in the caches): the first, or the
  // first scrap row when there are none. Precondition: 1 <= count <= scrap.
  [[nodiscard]] std::uint32_t take(std::uint32_t count) noexcept;
  // Scrap rows are nobody's: giving them back does nothing. Aborts when a row is not in use: it would be given out
  // twice.
  void give(std::uint32_t first, std::uint32_t count) noexcept;

  [[nodiscard]] bool scrap(std::uint32_t row) const noexcept { return row >= rows_; }
  [[nodiscard]] std::uint32_t in_use() const noexcept { return in_use_; }

 private:
  [[nodiscard]] bool used(std::uint32_t row) const noexcept { return (used_[row / 64] >> (row % 64) & 1) != 0; }

  std::uint32_t rows_, in_use_ = 0;
  std::vector<std::uint64_t> used_;  // one bit a row
};

}  // namespace leat::shm
