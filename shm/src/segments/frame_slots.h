// The state of one frame slot: state, owner and generation in one 64-bit word; every move is a single compare-and-swap,
// so a slot is always in exactly one state whoever dies when.
//
//   free -> writing -> submitted -> in_use -> released -> free(generation + 1)
//            |  client    | client    | daemon    | daemon    client
//            +-> free (abandoned; generation + 1)
//
// owner: the stream's index while the slot is not free. The words lie in the uplink, which the client can write: the
// daemon keeps its own record of what is in use (client_port.h) and treats a failed move as a violation. The
// client's library uses them to find free slots; recover() is for a client that died or closed its stream.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "shm/src/segments/segment_layout.h"

namespace leat::shm {

enum class SlotState : std::uint8_t { free = 0, writing = 1, submitted = 2, in_use = 3, released = 4 };

struct SlotValue {
  SlotState state = SlotState::free;
  std::uint32_t owner = 0;  // 24 bits
  std::uint32_t generation = 0;
  bool operator==(const SlotValue&) const = default;
};
constexpr std::uint64_t pack(SlotValue v) noexcept {
  return std::uint64_t{v.generation} << 32 | (std::uint64_t{v.owner} & 0xff'ffffu) << 8 |
         static_cast<std::uint64_t>(v.state);
}
constexpr SlotValue unpack(std::uint64_t w) noexcept {
  return {static_cast<SlotState>(w & 0xff), static_cast<std::uint32_t>(w >> 8 & 0xff'ffff),
          static_cast<std::uint32_t>(w >> 32)};
}

struct SlotWord {
  std::uint64_t value;

  SlotValue load() noexcept { return unpack(atomic_ref(value).load(std::memory_order_acquire)); }  // partner: move()

 private:
  friend class FrameSlots;
  // relaxed: nobody uses the slot; the message that tells of the stream orders it.
  void clear() noexcept { atomic_ref(value).store(0, std::memory_order_relaxed); }
  // acq_rel: what the last holder wrote is visible to the next (acquire), what we wrote to the one after us (release).
  // A move that fails gives nothing to anybody.
  bool move(SlotValue from, SlotValue to) noexcept {
    std::uint64_t expected = pack(from);
    return atomic_ref(value).compare_exchange_strong(expected, pack(to), std::memory_order_acq_rel,
                                                     std::memory_order_relaxed);
  }
};
static_assert(sizeof(SlotWord) == kSlotWordBytes);

// The slots of one stream. A view: it owns nothing and is cheap to copy.
class FrameSlots {
 public:
  FrameSlots() = default;
  FrameSlots(SlotWord* words, std::uint32_t count, std::uint32_t owner) noexcept
      : words_(words), count_(count), owner_(owner) {}

  std::uint32_t count() const noexcept { return count_; }
  SlotValue load(std::uint32_t slot) const noexcept { return words_[slot].load(); }

  // ---- client's moves. `generation` is the one acquire() returned. False: the slot was not in the state before. ----
  struct Acquired {
    std::uint32_t slot, generation;
  };
  std::optional<Acquired> acquire() noexcept {  // free -> writing
    // The first that is free: so few are in use at once that their memory stays in the caches.
    for (std::uint32_t slot = 0; slot < count_; ++slot) {
      const SlotValue v = words_[slot].load();
      if (v.state != SlotState::free) continue;
      if (!words_[slot].move(v, {SlotState::writing, owner_, v.generation})) continue;
      return Acquired{slot, v.generation};
    }
    return std::nullopt;
  }
  bool abandon(std::uint32_t slot, std::uint32_t generation) noexcept {
    return free_from(SlotState::writing, slot, generation);
  }
  bool submit(std::uint32_t slot, std::uint32_t generation) noexcept {
    return step(SlotState::writing, SlotState::submitted, slot, generation);
  }
  bool withdraw(std::uint32_t slot, std::uint32_t generation) noexcept {
    return step(SlotState::submitted, SlotState::writing, slot, generation);
  }
  bool free(std::uint32_t slot, std::uint32_t generation) noexcept {
    return free_from(SlotState::released, slot, generation);
  }

  // ---- daemon's moves ----
  bool take(std::uint32_t slot, std::uint32_t generation) noexcept {
    return step(SlotState::submitted, SlotState::in_use, slot, generation);
  }
  bool release(std::uint32_t slot, std::uint32_t generation) noexcept {
    return step(SlotState::in_use, SlotState::released, slot, generation);
  }
  // As in fresh memory, whatever a stream of the same index left before. Only while nobody uses them.
  void reset() noexcept {
    for (std::uint32_t i = 0; i < count_; ++i) words_[i].clear();
  }
  // For a client that is gone: frees the slot from whatever state. Call it only when no worker reads the slot any more.
  void recover(std::uint32_t slot) noexcept {
    for (SlotValue v = words_[slot].load(); v.state != SlotState::free; v = words_[slot].load())
      if (words_[slot].move(v, {SlotState::free, 0, v.generation + 1})) return;
  }

 private:
  bool step(SlotState from, SlotState to, std::uint32_t slot, std::uint32_t generation) noexcept {
    return words_[slot].move({from, owner_, generation}, {to, owner_, generation});
  }
  bool free_from(SlotState from, std::uint32_t slot, std::uint32_t generation) noexcept {
    return words_[slot].move({from, owner_, generation}, {SlotState::free, 0, generation + 1});
  }

  SlotWord* words_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint32_t owner_ = 0;
};

}  // namespace leat::shm
