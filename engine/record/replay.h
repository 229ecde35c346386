// A record, replayed: the core that it was recorded from is made again and fed the same, and its actions are compared,
// each where it was taken. Where the ring has come round, that begins with the first state of the core that is in it.
// The same release gives the same actions, all of them; the first that differs is a fault, of
// the core, of its driver or of the record.
//
// Set-up and tools; one thread. The record may be anything: what it names is checked, and a core that it leads to a
// broken invariant ends the process as it would have ended leatd. Of a state only damage is noticed: who replays one
// takes its word as he would that of a program.
#pragma once

#include <cstdint>
#include <string>

#include "engine/core/policy/policy_settings.h"
#include "engine/record/entries.h"

namespace leat::record {

struct Replayed {
  std::uint64_t events = 0, actions = 0;  // of the record, from from_ns on
  std::uint64_t skipped = 0;              // actions before that
  std::uint64_t same = 0;                 // actions up to the first that differs
  std::uint64_t plans = 0, losses = 0;    // put in force, of partitions
  core::TimeNs begin_ns = 0, end_ns = 0;
  core::TimeNs from_ns = 0;             // where the core was made, or taken from the first state in the record
  core::RequestCounters before, total;  // of the core, there and at the end
  std::string difference;               // the first, one line; empty: there is none
  core::TimeNs differs_ns = 0;          // when it is
  Kind differs_in = Kind::check;        // and of which entry
  std::string cut;                      // why the record ends before its end; empty: it does not
};

// Error: one line. The record is read from its beginning.
[[nodiscard]] Result<Replayed> replay(Record& record, core::Presets presets);

// The policy of a recorded plan. Error: it is one that this program does not have.
[[nodiscard]] Result<core::Policy> policy_of(const RecordedPlan& plan, core::Presets presets);

}  // namespace leat::record
