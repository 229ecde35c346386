#include "engine/record/ring.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace leat::record {

Ring::Ring(std::span<std::byte> memory, std::uint64_t segment_bytes, std::int64_t wall_ns,
           std::string_view version) noexcept
    : memory_(memory), segment_bytes_(segment_bytes), wall_ns_(wall_ns) {
  std::copy_n(version.data(), std::min(version.size(), version_.size() - 1), version_.data());
}

void Ring::begin_segment(core::TimeNs now) noexcept {
  const std::uint64_t sequence = next_++;
  std::byte* const begin = memory_.data() + place(sequence);
  SegmentHeader* const h = reinterpret_cast<SegmentHeader*>(begin);
  // Who copies it meanwhile sees that it is another, or an empty one.
  std::atomic_ref(h->used).store(0, std::memory_order_relaxed);
  std::atomic_ref(h->sequence).store(0, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  h->magic = kMagic;
  h->format = kFormat;
  h->header_bytes = sizeof(SegmentHeader);
  h->segment_bytes = segment_bytes_;
  h->begin_ns = now;
  h->wall_ns = now + wall_ns_;
  h->version = version_;
  h->reserved = {};
  std::atomic_ref(h->sequence).store(sequence, std::memory_order_release);
  entries_ = at_ = begin + sizeof(SegmentHeader);
  end_ = begin + segment_bytes_;
  newest_.store(sequence, std::memory_order_release);
}

std::span<const std::byte> Ring::view(std::uint64_t sequence) const noexcept {
  const std::span<const std::byte> all = memory_.subspan(place(sequence), segment_bytes_);
  const auto& h = *reinterpret_cast<const SegmentHeader*>(all.data());
  const std::uint64_t used = std::atomic_ref(const_cast<std::uint64_t&>(h.used)).load(std::memory_order_acquire);
  return all.first(std::min(sizeof(SegmentHeader) + used, segment_bytes_));
}

}  // namespace leat::record
