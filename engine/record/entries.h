// A record, read: from bytes that may be anything to entries, one by one, each within its bounds. What an entry names
// need not exist; who uses it looks.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/record/bytes.h"
#include "engine/record/layout.h"
#include "engine/record/plan_bytes.h"
#include "engine/record/recorded_core.h"
#include "leat/result.hpp"

namespace leat::record {

struct Entry {
  Kind kind = Kind::advance;
  core::TimeNs at_ns = 0;
  // Of those that its kind has:
  std::uint32_t stream = core::kNone;  // stream: its number; else the core's
  bool context = false;                // plan, stream: as they are where a segment begins; nothing has happened
  core::StreamConfig config;           // stream (context), open_stream
  core::Submission submission;         // submit; answer, transfer: token
  core::RequestHandle request;         // cancel
  core::Observation seen;              // observe
  std::uint32_t batch = core::kNone;   // stage_started, stage_beside, stage_finished, dispatch
  std::uint32_t generation = 0;        // of it, where `stale`: it is not the one that was dispatched last
  bool stale = false;
  std::uint32_t stage = 0;                // dispatch: the first
  std::vector<core::TaskResult> results;  // stage_finished
  core::TimeNs went_on_ns = 0;            // likewise
  core::PartitionId partition = core::kNone;
  core::Estimates estimates;
  std::shared_ptr<const RecordedPlan> plan;  // plan, replace
  bool flag = false;                     // replace: measured anew. picture: there is one. dispatch: it runs already.
                                         // begin, state: tasks are measured. schedule: its stream is open
  bool offers = false;                   // begin, state: streams' pictures are asked for
  std::uint32_t application = 0;         // give_up
  std::uint32_t skipped = 0, units = 1;  // units, picture: answers as before; units
  core::TimeNs picture_ns = 0;           // picture
  core::RouteId route = 0;               // dispatch
  std::vector<core::PartitionId> path;   // likewise
  std::vector<core::TaskRef> tasks;      // likewise; without handles
  Outcome outcome = Outcome::pending;    // answer
  Reason reason = Reason::none;          // answer, close_stream, give_up
  core::ModuleId where = core::kNone;    // answer
  std::uint64_t hash = 0;                // check; state: of all its pieces, in the first
  Note note;
  std::span<const std::byte> piece;  // state: within the record
  bool first = false, last = false;  // of its pieces
};

// As layout.h calls it.
[[nodiscard]] std::string_view name_of(Kind kind) noexcept;

class Record {
 public:
  // Takes the bytes of a file, or of a copy of a ring: those of its segments that follow one another up to the newest.
  // Error: one line.
  static Result<Record> read(std::vector<std::byte> bytes);
  // A file that leatd may be writing; error: one line that begins with the path.
  static Result<Record> read_file(const std::string& path);

  [[nodiscard]] std::size_t segments() const noexcept { return segments_.size(); }
  [[nodiscard]] std::uint64_t segment_bytes() const noexcept;
  [[nodiscard]] std::uint64_t first_sequence() const noexcept;  // so many, less one, came before it
  [[nodiscard]] core::TimeNs begin_ns() const noexcept;
  [[nodiscard]] std::int64_t wall_ns() const noexcept;  // Unix time at begin_ns()
  [[nodiscard]] std::uint64_t bytes() const noexcept;   // of entries
  [[nodiscard]] std::string version() const;            // of the leatd that wrote it

  // From the beginning again.
  void rewind() noexcept;
  // The next entry; false: there is none, or what there is cannot be read (problem()). `out` keeps its memory.
  [[nodiscard]] bool next(Entry& out);
  // Why reading has ended before its end; empty: it has not.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  // Of entries, from there on.
  [[nodiscard]] std::uint64_t unread_bytes() const noexcept { return unread_bytes_; }

 private:
  struct Segment {
    SegmentHeader header;
    std::span<const std::byte> entries;
  };
  bool decode(Entry& out);
  bool decode_stream(core::StreamConfig& out);
  bool decode_plan_entry(Entry& out);
  bool decode_tasks(Entry& out, bool plain);

  std::vector<std::byte> bytes_;
  std::vector<Segment> segments_;
  std::size_t segment_ = 0;
  ByteReader at_;
  core::TimeNs now_ = 0;
  std::shared_ptr<const RecordedPlan> plan_;  // the last, and its bytes: most segments repeat it
  std::string plan_bytes_;
  std::string problem_;
  std::uint64_t unread_bytes_ = 0;
};

}  // namespace leat::record
