// The two 64-byte descriptors that move through a client's rings. The sequence number lies in the descriptor's own
// cache line (ring.h). A SubmissionDescriptor comes from a hostile process: the daemon copies it once and validates the
// copy (client_port.h); nothing but that copy is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shm/src/protocol/color.h"

namespace leat::shm {

// observe: what a coordinated stream's tracking had lost at an answer. key: after how many frames, with kObserveFar
// where that is since an older answer than the one before; items: the drop, millionths; deadline_ns: its camera's
// period; generation: 1 + what its tracker had expected the drop to be, millionths, or 0 where it does not say. It is a
// hint and wakes nobody.
enum class SubmissionKind : std::uint8_t { submit = 1, cancel = 2, observe = 3 };
inline constexpr std::uint32_t kObserveFar = 1U << 16;  // beyond any stride: who does not know it ignores the report

struct alignas(64) SubmissionDescriptor {
  std::uint32_t sequence = 0;  // ring.h
  SubmissionKind kind = SubmissionKind::submit;
  std::uint8_t memory = 0;       // leat_slot_memory
  std::uint16_t stream = 0;      // the client's stream index, as in StreamOpened
  std::uint64_t cookie = 0;      // the client's own; comes back
  std::int64_t capture_ns = 0;   // CLOCK_MONOTONIC
  std::int64_t deadline_ns = 0;  // 0: capture + SLO
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  // of the slot word; with `slot` it names the request for cancel
  std::uint32_t key = 0;         // latest_per_key
  std::uint32_t items = 1;
  std::uint64_t bytes = 0;   // used in the slot: 0 (all of it) for pixels; the length for a bitstream
  std::uint8_t gap = 0;      // of a bitstream: 1: access units before it are missing
  std::uint8_t damaged = 0;  // 1: LEAT_SUBMIT_DAMAGED
  Color color;               // unspecified: the stream's
  std::uint32_t reserved = 0;
};

struct alignas(64) CompletionDescriptor {
  std::uint32_t sequence = 0;
  std::uint8_t outcome = 0;  // leat_outcome
  std::uint8_t reason = 0;   // leat_reason
  std::uint16_t stream = 0;
  std::uint64_t cookie = 0;
  std::int64_t capture_ns = 0;
  std::int64_t deadline_ns = 0;  // as granted
  std::int64_t answered_ns = 0;
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  std::uint32_t where = UINT32_MAX;  // module within the application
  std::uint8_t has_result = 0;       // 1: the result slot holds a leat_result
  std::uint8_t flags = 0;            // LEAT_ANSWER_DAMAGED
  Color color;                       // that the frame was served with
  std::int64_t dispatched_ns = 0;    // first sent to a worker; 0: never
};

static_assert(sizeof(SubmissionDescriptor) == 64 && offsetof(SubmissionDescriptor, sequence) == 0);
static_assert(sizeof(CompletionDescriptor) == 64 && offsetof(CompletionDescriptor, sequence) == 0);
static_assert(std::is_trivially_copyable_v<SubmissionDescriptor> && std::is_trivially_copyable_v<CompletionDescriptor>);

}  // namespace leat::shm
