// What the client of a stream that waits for grants says of it: one cell a stream, in the uplink. The client writes,
// the daemon reads; whatever stands in it is the client's word, and only ever moves that stream's turns.
#pragma once

#include <atomic>
#include <cstdint>

#include "shm/src/rings/fences.h"

namespace leat::shm {

struct alignas(64) OfferCell {
  std::uint32_t asks;      // not 0: it has a picture that was not wanted when it looked
  std::uint32_t awaits;    // not 0: it sleeps, or is about to, until that changes
  std::uint64_t offered;   // pictures that it had so far, submitted or not
  std::int64_t newest_ns;  // capture time of the newest of them; 0: it is made when it is wanted
  std::uint64_t reserved[5];
};
static_assert(sizeof(OfferCell) == 64);

// The daemon's side, when a page has been written: its client is to be woken if it sleeps.
inline bool awaits_turn(OfferCell& cell) noexcept {
  full_fence();  // the page before our look; partner: may_sleep(), between `awaits` and the look at the page
  return atomic_ref(cell.awaits).load(std::memory_order_relaxed) != 0;
}

}  // namespace leat::shm
