// What a record tells of frames, batches and partitions, put together without a core: who submitted what, where it ran
// and for how long, what became of it, and what else happened. Frames and batches that began before the record are left
// out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/record/entries.h"

namespace leat::record {

struct History {
  struct Stream {  // opened once, closed once
    core::StreamId id = 0;
    core::StreamConfig config;
    core::TimeNs opened_ns = 0, closed_ns = core::kNever;
  };
  struct Frame {
    core::TimeNs at_ns = 0, capture_ns = 0;
    core::TimeNs deadline_ns = 0;  // as submitted; 0: its stream's
    std::uint32_t stream = 0;      // index into streams
    std::uint32_t items = 1, key = 0;
    std::uint64_t branch_draw = 0;
    core::TimeNs answered_ns = 0;  // 0: not within the record
    Outcome outcome = Outcome::pending;
    Reason reason = Reason::none;
  };
  struct Run {                 // one stage of one batch
    core::TimeNs sent_ns = 0;  // when it was due there: sent, or done with the stage before
    core::TimeNs start_ns = 0, end_ns = 0;
    core::PartitionId partition = 0;
    core::RouteId route = 0;
    core::ModuleId module = 0;
    std::uint32_t stage = 0;
    std::uint32_t units = 0;             // what its tasks take of the route's tables
    std::uint32_t first = 0, count = 0;  // of tasks
    std::uint32_t plan = 0;              // index into plans
    bool lost = false;                   // its partition was, before it ended
    // Its partition began it by itself, behind the one before it; it went on with another so.
    bool went_on = false, goes_on = false;
  };
  struct Task {                                   // of a run
    std::uint32_t frame = core::kNone;            // index into frames; kNone: not known
    std::uint32_t item = 0, rows = 1, units = 1;  // as core::TaskRef has them
    std::uint32_t fan_out = core::kNone;          // what its route's last stage found; kNone: it has not ended well
  };
  // Of streams that wait for grants, where the core asked or told:
  struct Offer {  // a picture that one had at hand then, and had not before
    core::TimeNs at_ns = 0;
    core::TimeNs capture_ns = 0;  // by its client's word; 0: it would be taken when it is wanted
    std::uint32_t stream = 0;     // index into streams
  };
  struct Told {
    core::TimeNs at_ns = 0;
    std::uint32_t stream = 0;
    bool open = false;  // every picture is wanted; else it takes turns, and may just have got one
  };
  struct Plan {
    core::TimeNs at_ns = 0;
    std::shared_ptr<const RecordedPlan> plan;
    bool measured_anew = false;
  };
  struct Change {  // of a partition
    core::TimeNs at_ns = 0;
    core::PartitionId partition = 0;
    bool up = false;
  };
  struct Happened {
    core::TimeNs at_ns = 0;
    Note note;
  };

  core::TimeNs begin_ns = 0, end_ns = 0;
  std::vector<Plan> plans;  // the first is in force at the beginning
  std::vector<Stream> streams;
  std::vector<Frame> frames;  // by at_ns
  std::vector<Run> runs;      // by end_ns
  std::vector<Task> tasks;
  std::vector<Offer> offers;
  std::vector<Told> told;
  std::vector<Change> changes;
  std::vector<Happened> notes;
  bool whole = false;  // the core was made within it: nothing came before
  std::string cut;     // why the record ends before its end; empty: it does not

  [[nodiscard]] const RecordedPlan& plan() const { return *plans.front().plan; }
};

// Error: one line. The record is read from its beginning.
[[nodiscard]] Result<History> history(Record& record);

}  // namespace leat::record
