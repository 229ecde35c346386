// What one reader may see of the counters: a segment of the same layout without the flight recorder, into which its
// owner copies the records that are his. Readers map it as they map the whole (CountersReader), and it stays theirs to
// read for as long as they like; what memory it holds is given back by empty() whether they have let go of it or not.
//
// It is not sealed against its owner's punching holes, so it is read-only only to other users than the owner's
// (segment.h), who may see everything anyway. Memory is brought record by record. Thread rule: one thread; empty() on
// any, once it is the last call: it waits for whoever has mapped the segment in many places.
#pragma once

#include "shm/src/counters/counters.h"

namespace leat::shm {

class CountersView {
 public:
  static Result<CountersView> create();

  // The record as it is now, in whole or not at all: where its writer is busy, or memory is short, what was copied
  // before stays. Both writers are this process's.
  void copy(const CountersWriter& from, RecordKind kind, std::uint32_t index);
  // As CountersWriter::end(); nothing where the record was never copied.
  void end(RecordKind kind, std::uint32_t index) noexcept;
  // Is it shown as live, and which life of the record is it? 0: it is not.
  std::uint32_t epoch_of_live(RecordKind kind, std::uint32_t index) const noexcept;

  void empty() noexcept;
  Result<Fd> share() const { return segment_.share_read_only(); }
  std::uint64_t bytes() const noexcept { return segment_.bytes(); }

 private:
  bool brought(std::uint64_t offset);
  Segment segment_;
  std::vector<bool> pages_;  // that have memory
};

}  // namespace leat::shm
