// What a coordinated stream's client is told: when its next frames are wanted, and how it stands; and what one is told
// that waits for grants: whether every frame is wanted, or one for each turn. One page a stream, in the downlink: the
// daemon writes, the client reads. A seqlock: `version` is odd while the page is being written; the words are relaxed
// atomics.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shm/src/rings/fences.h"

namespace leat::shm {

inline constexpr std::uint32_t kScheduleFrames = 24;

// As written and as read: plain values.
struct Schedule {
  std::uint32_t standing = 0;  // leat_standing
  std::uint32_t interval = 0;  // frames from one that is wanted to the next
  std::uint32_t count = 0;     // of `frames`
  std::uint32_t evictions = 0;
  std::uint32_t sla_ppm = 0, planned_ppm = 0, measured_ppm = 0;  // drop of accuracy, millionths
  std::uint32_t granted = 0;                                     // turns so far, of a stream that waits for grants
  // The newest frame taken until then is wanted, CLOCK_MONOTONIC, in order; the lowest bit: and the one before it.
  std::array<std::uint64_t, kScheduleFrames> frames{};
  // When a client that says what it expects to have lost may send one without being told a time: from `above` on,
  // `earliest` after the frame before; `latest` after it in any case; as often as a bucket allows that holds so many
  // hundredths of a frame and gets one in every `refill`. latest 0: not at all.
  std::uint32_t ask_above_ppm = 0, ask_earliest_us = 0, ask_latest_us = 0, ask_refill_us = 0, ask_bucket = 0;
  // A client's own algorithm is better than what it tracks from so much on that the tracker expects to have lost; 0:
  // not known.
  std::uint32_t local_above_ppm = 0;
};
static_assert(sizeof(Schedule) % 8 == 0);

struct alignas(64) SchedulePage {
  std::uint64_t version;
  std::array<std::uint64_t, sizeof(Schedule) / 8> words;

  // One writer.
  void write(const Schedule& s) noexcept {
    std::array<std::uint64_t, sizeof(Schedule) / 8> from;
    std::memcpy(from.data(), &s, sizeof s);
    atomic_ref v(version);
    const std::uint64_t before = v.load(std::memory_order_relaxed);
    v.store(before + 1, std::memory_order_relaxed);
    release_fence();  // the odd version before the words; partner: the acquire fence in read()
    for (std::size_t i = 0; i < from.size(); ++i) atomic_ref(words[i]).store(from[i], std::memory_order_relaxed);
    v.store(before + 2, std::memory_order_release);  // the words before it; partner: the first load in read()
  }
  // Where the page is newer than `seen` and not being written: copies it, moves `seen` on, and says true.
  bool read(std::uint64_t& seen, Schedule& out) noexcept {
    atomic_ref v(version);
    const std::uint64_t before = v.load(std::memory_order_acquire);  // partner: the last store in write()
    if (before == seen || before % 2 != 0) return false;
    std::array<std::uint64_t, sizeof(Schedule) / 8> to;
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = atomic_ref(words[i]).load(std::memory_order_relaxed);
    acquire_fence();  // the words before the second look; partner: the release fence in write()
    if (v.load(std::memory_order_relaxed) != before) return false;
    std::memcpy(static_cast<void*>(&out), to.data(), sizeof out);
    seen = before;
    return true;
  }
};
static_assert(sizeof(SchedulePage) % 64 == 0);

}  // namespace leat::shm
