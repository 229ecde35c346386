// The ring of segments in memory that a record is written into (layout.h). The newest entries take the place of the
// oldest, a segment at a time.
//
// Threads: one writes; others read the same memory at any time, as bytes that change beneath them
// (entries.h trusts none), or through view().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/core/types.h"
#include "engine/record/layout.h"

namespace leat::record {

class Ring {
 public:
  Ring() = default;
  // Over memory of a whole number of segments, at least two, aligned to a page, which outlives it. wall_ns: Unix time
  // less the core's clock.
  Ring(std::span<std::byte> memory, std::uint64_t segment_bytes, std::int64_t wall_ns,
       std::string_view version) noexcept;

  [[nodiscard]] bool empty() const noexcept { return memory_.empty(); }
  [[nodiscard]] std::uint64_t segment_bytes() const noexcept { return segment_bytes_; }

  // ---- the writer ----
  // Where an entry of at most so many bytes may be written; nullptr: the segment is full (begin_segment()).
  [[nodiscard]] std::byte* room(std::size_t most) noexcept {
    return static_cast<std::size_t>(end_ - at_) >= most ? at_ : nullptr;
  }
  void wrote(std::byte* end) noexcept {
    at_ = end;
    // Release: who reads so many bytes finds them.
    std::atomic_ref(header().used).store(static_cast<std::uint64_t>(at_ - entries_), std::memory_order_release);
  }
  void begin_segment(core::TimeNs now) noexcept;
  // What follows does not follow from what was recorded before.
  void interrupt() noexcept { next_ += next_ == 1 ? 0 : 1; }

  // ---- another thread ----
  [[nodiscard]] std::uint64_t segments() const noexcept {
    return segment_bytes_ == 0 ? 0 : memory_.size() / segment_bytes_;
  }
  [[nodiscard]] std::uint64_t newest() const noexcept {
    return newest_.load(std::memory_order_acquire);
  }  // 0: none yet
  // A segment by its sequence number, as far as it is written. It may be overwritten meanwhile: newest() says so
  // afterwards.
  [[nodiscard]] std::span<const std::byte> view(std::uint64_t sequence) const noexcept;
  [[nodiscard]] std::uint64_t place(std::uint64_t sequence) const noexcept {
    return (sequence - 1) % segments() * segment_bytes_;
  }

 private:
  [[nodiscard]] SegmentHeader& header() noexcept {
    return *reinterpret_cast<SegmentHeader*>(entries_ - sizeof(SegmentHeader));
  }

  std::span<std::byte> memory_;
  std::uint64_t segment_bytes_ = 0;
  std::int64_t wall_ns_ = 0;
  std::array<char, 24> version_{};
  std::byte *entries_ = nullptr, *at_ = nullptr, *end_ = nullptr;
  std::uint64_t next_ = 1;
  std::atomic<std::uint64_t> newest_{0};
};

}  // namespace leat::record
