// A record: what went into a scheduler core and what came out of it, in order, in a ring of segments of one size, in
// memory as on the disk. docs/reference/record.md describes the bytes.
//
// Each segment can be read by itself: it begins with what the plan in force is and which streams are open. The one
// that is written is `used` bytes long; what lies behind them is of an earlier round.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace leat::record {

inline constexpr std::array<char, 8> kMagic = {'l', 'e', 'a', 't', 'r', 'e', 'c', '\n'};
inline constexpr std::uint32_t kFormat = 3;
inline constexpr std::uint64_t kSegmentBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMinSegmentBytes = std::uint64_t{1} << 12;
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 34;

struct SegmentHeader {
  std::array<char, 8> magic{};
  std::uint32_t format = 0;
  std::uint32_t header_bytes = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t sequence = 0;  // from 1; each segment's is one more than that of the one before it in time
  std::uint64_t used = 0;      // bytes of entries behind the header
  std::int64_t begin_ns = 0;   // the core's clock: the first entry counts from here
  std::int64_t wall_ns = 0;    // Unix time at that moment
  std::array<char, 24> version{};
  std::array<char, 48> reserved{};
};
static_assert(sizeof(SegmentHeader) == 128);

// An entry's first byte: its kind, and flags that say what follows.
enum class Kind : std::uint8_t {
  plan = 1,         // the first of a segment: the one in force. Else it has just been put in force (`replace`)
  stream = 2,       // one that is open where a segment begins; or the number that open_stream got
  begin = 3,        // the core was made here, with the plan before it
  open_stream = 4,  // events
  close_stream = 5,
  submit = 6,
  cancel = 7,
  observe = 8,
  stage_started = 9,
  stage_finished = 10,
  partition_lost = 11,
  partition_ready = 12,
  estimates = 13,
  advance = 14,
  replace = 15,
  take_retired = 16,
  give_up = 17,
  units = 18,     // what the core asked for within an event: what a task takes
  picture = 19,   // and when a stream's picture was taken
  dispatch = 20,  // actions, where they were taken
  answer = 21,
  transfer = 22,
  schedule = 23,
  check = 24,         // a hash over all actions so far
  note = 25,          // what the core is not told: clients, violations, why a worker ended
  stage_beside = 26,  // an event
  state = 27          // a piece of the core's whole state, between two events; pieces follow each other
};
inline constexpr std::uint8_t kKindBits = 5;
inline constexpr std::uint8_t kKindMask = (1u << kKindBits) - 1;
// What they say, recorded_core.cpp shows; of an event the third says that it comes at the time of the one before.
inline constexpr std::uint8_t kFirst = 1u << kKindBits, kSecond = kFirst << 1, kThird = kFirst << 2, kSameTime = kThird;

inline constexpr std::uint32_t kActionsPerCheck = 64;

// States are written so often that a ring that has come round begins with less than so much of it before the first one,
// and take no more than so much of it.
inline constexpr std::uint64_t kStatesPerRing = 8;
inline constexpr std::uint64_t kMaxStateShare = 8;

}  // namespace leat::record
