// What a record holds, in figures: since when, of which leatd, under which plan and policy, how many entries of which
// kind, and what became of the frames. Two faces: text and JSON.
//
// Thread rule: functions of their arguments.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/record/entries.h"
#include "leat/outcome.h"
#include "leat/result.hpp"
#include "tools/base/json/json.h"

namespace leat::tools {

struct RecordSummary {
  std::string version;  // of the leatd that wrote it
  std::uint64_t segments = 0, segment_bytes = 0, bytes = 0;
  std::uint64_t segments_before = 0;  // that were overwritten, or recorded before a pause
  std::int64_t wall_ns = 0;           // Unix time where it begins
  core::TimeNs span_ns = 0;
  bool whole = false;                                            // it begins where leatd's core did: it can be replayed
  core::TimeNs replays_from_ns = -1;                             // else from the core's first state in it on; -1: none
  std::shared_ptr<const record::RecordedPlan> plan;              // in force where it begins
  std::uint64_t plans = 0;                                       // that took over
  std::array<std::uint64_t, 1u << record::kKindBits> entries{};  // [Kind]
  std::array<std::uint64_t, kOutcomeCount> outcomes{};
  std::array<std::uint64_t, kReasonCount> reasons{};
  std::string problem;  // why it is read no further; empty: all of it is
  std::uint64_t unread_bytes = 0;

  [[nodiscard]] std::uint64_t of(record::Kind kind) const { return entries[static_cast<std::size_t>(kind)]; }
};

// Error: one line; there is not even a plan in it.
[[nodiscard]] Result<RecordSummary> summary_of(record::Record& record);

[[nodiscard]] std::string summary_text(const RecordSummary& summary);
[[nodiscard]] Json summary_json(const RecordSummary& summary);

}  // namespace leat::tools
