// A single-producer single-consumer ring of 64-byte descriptors in shared memory.
//
// Each descriptor carries its sequence number in its own cache line, so one line moves per message and no index is
// shared on the way there. Cell i & mask holds message i when its sequence equals i + 1. Indexes are free-running
// 32-bit counts. The consumer publishes its index rarely (every quarter of the ring, or on publish()); the producer
// reads it only when its cached value says "full".
//
// Throughput: a producer asks for the line of a cell kAhead messages before it writes it, so that it waits for no line
// while both ends run; push and pop spans, and a consumer that finds little waiting should let the producer run ahead a
// few cells (at_least) instead of tugging at the line being written. docs/internals/transport.md has what each is
// worth.
//
// Hostile peers: the consumer copies a cell once (copy_once) and believes only the copy; a wrong sequence number is
// just "nothing yet". A producer facing a hostile consumer gets `corrupt()` when the published index is impossible.
// Thread rule: one thread per end. Neither end allocates, locks or calls the kernel.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <type_traits>

#include "shm/src/rings/fences.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::shm {

template <class T>
concept Descriptor = std::is_trivially_copyable_v<T> && sizeof(T) == kLine &&
                     alignof(T) == kLine&& std::is_same_v<decltype(T::sequence), std::uint32_t>;

template <Descriptor T>
class RingProducer {
 public:
  RingProducer() = default;
  // `cells`: `capacity` (a power of two) descriptors, zeroed before first use; `consumed`: the consumer's index line.
  RingProducer(T* cells, std::uint32_t capacity, const IndexLine* consumed) noexcept
      : cells_(cells), mask_(capacity - 1), consumed_(const_cast<IndexLine*>(consumed)) {}

  // How many more can be pushed now; looks at the consumer's line only when the cached answer is less than `wanted`.
  [[nodiscard]] std::uint32_t room(std::uint32_t wanted) noexcept {
    std::uint32_t used = next_ - cached_;
    if (mask_ + 1 - used < wanted) {
      // acquire: the consumer has copied those cells out before we overwrite them; partner: RingConsumer::publish.
      const std::uint32_t seen = atomic_ref(consumed_->value).load(std::memory_order_acquire);
      if (seen - cached_ > next_ - cached_) corrupt_ = true;  // behind the last or ahead of the head: impossible
      if (corrupt_) return 0;
      cached_ = seen;
      used = next_ - cached_;
    }
    return mask_ + 1 - used;
  }

  [[nodiscard]] bool push(const T& item) noexcept {
    if (room(1) == 0) return false;
    write(item);
    return true;
  }

  // Pushes as many as fit; returns how many.
  [[nodiscard]] std::uint32_t push(std::span<const T> items) noexcept {
    const auto wanted = static_cast<std::uint32_t>(items.size());
    const std::uint32_t count = std::min(wanted, room(wanted));
    for (std::uint32_t i = 0; i < count; ++i) write(items[i]);
    return count;
  }

  [[nodiscard]] std::uint32_t pushed() const noexcept { return next_; }
  // The consumer has published an index that cannot be; the peer is broken or hostile. Nothing can be pushed any more.
  [[nodiscard]] bool corrupt() const noexcept { return corrupt_; }

 private:
  // A line that is asked for this many messages before it is written has come when its turn is. Measured: asking to
  // read it is worth most (docs/internals/transport.md), and 32 ahead is as good as more.
  static constexpr std::uint32_t kAhead = 32;

  void write(const T& item) noexcept {
    __builtin_prefetch(cells_ + ((next_ + kAhead) & mask_), 1);
    T* cell = cells_ + (next_ & mask_);
    constexpr std::size_t kBody = sizeof(std::uint32_t);
    copy_in(reinterpret_cast<std::byte*>(cell) + kBody, reinterpret_cast<const std::byte*>(&item) + kBody,
            sizeof(T) - kBody);
    ++next_;
    atomic_ref(cell->sequence).store(next_, std::memory_order_release);  // partner: RingConsumer::ready
  }

  T* cells_ = nullptr;
  std::uint32_t mask_ = 0;
  IndexLine* consumed_ = nullptr;
  std::uint32_t next_ = 0;
  std::uint32_t cached_ = 0;
  bool corrupt_ = false;
};

template <Descriptor T>
class RingConsumer {
 public:
  RingConsumer() = default;
  RingConsumer(const T* cells, std::uint32_t capacity, IndexLine* consumed) noexcept
      : cells_(const_cast<T*>(cells)), mask_(capacity - 1), consumed_(consumed) {}

  [[nodiscard]] bool empty() const noexcept { return !ready(next_); }

  // Copies the next message out. False: nothing there.
  [[nodiscard]] bool pop(T& out) noexcept {
    if (!ready(next_)) return false;
    take(out);
    publish_if_due();
    return true;
  }

  // Copies up to out.size() messages; returns how many.
  [[nodiscard]] std::uint32_t pop(std::span<T> out) noexcept {
    std::uint32_t count = 0;
    while (count < out.size() && ready(next_)) take(out[count++]);
    if (count != 0) publish_if_due();
    return count;
  }

  // For throughput: true when at least `wanted` messages wait, looking at the last of them only.
  [[nodiscard]] bool at_least(std::uint32_t wanted) const noexcept { return ready(next_ + wanted - 1); }

  // Tells the producer what was taken; called by itself every quarter of the ring. Call it before parking, so that a
  // producer that found the ring full sees the room.
  void publish() noexcept {
    published_ = next_;
    // release: our copies of those cells are done before the producer may overwrite them; partner: RingProducer::room.
    atomic_ref(consumed_->value).store(next_, std::memory_order_release);
  }
  [[nodiscard]] std::uint32_t popped() const noexcept { return next_; }

 private:
  bool ready(std::uint32_t index) const noexcept {
    // acquire: the message's body is visible; partner: RingProducer::write.
    return atomic_ref(cells_[index & mask_].sequence).load(std::memory_order_acquire) == index + 1;
  }
  void take(T& out) noexcept {
    copy_once(out, cells_ + (next_ & mask_));
    ++next_;
  }
  void publish_if_due() noexcept {
    if (next_ - published_ > mask_ / 4) publish();
  }

  T* cells_ = nullptr;
  std::uint32_t mask_ = 0;
  IndexLine* consumed_ = nullptr;
  std::uint32_t next_ = 0;
  std::uint32_t published_ = 0;
};

}  // namespace leat::shm
