// Simulate and adjust (thesis, section 3.4.4, step 2, Algorithm 2) for one partition: when would the streams' next
// frames come by themselves, and in which batches do they come instead. Batches follow each other without gaps, every
// one as large as its most particular member allows, and each member's frame is the newest at the batch's start. A
// batch is of one module, of those that could start first the one whose frame is due first.
//
// No allocation beyond the vectors' capacity. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/core/types.h"

namespace leat::core::streams {

struct Candidate {           // a stream, as packing sees it
  std::uint32_t stream = 0;  // the caller's own number
  TimeNs next_ns = 0;        // when its next frame would come by itself
  TimeNs interval_ns = 0;    // and from then on
  std::uint32_t batch = 1;   // the largest that it may ride in
  bool probe = false;        // its first frame comes with the one before it: twice in the members, one after the other
  TimeNs apart_ns = 0;       // from one to the next at least, where slots are even
  std::uint32_t module = 0;
  bool early = true;  // it may come before its time
};

struct PlannedBatch {
  TimeNs start_ns = 0;
  TimeNs end_ns = 0;        // start + run time; the next one waits for the grace too
  std::uint32_t first = 0;  // its members: members[first .. first+count)
  std::uint32_t count = 0;
  PartitionId partition = 0;
};

// Of a module: [p][b-1] is the run time of a batch of b on partition p. All partitions that serve it have the same
// number of batch sizes, at least 1, those that do not have none.
using BatchTimes = std::vector<std::vector<TimeNs>>;

struct PackingRules {
  PartitionId partition = 0;
  TimeNs from_ns = 0;   // no batch starts before this,
  TimeNs until_ns = 0;  // and none at this or later
  double grace = 0;     // of a batch's run time: kept free behind it
  // How much of its interval a frame may come before its time to fill a batch or a gap. The thesis has no bound
  // (infinity), so a partition is never idle while there is a stream; a small one saves detections where there is room.
  double reach = 0;
  // A stream's next frame is due an interval after its last was planned, and two are never closer than apart_ns.
  // Otherwise (the thesis), an interval after its last was due: its rate stays what it was, but behind a frame that
  // came early there is a long gap.
  bool even = false;
};

class Packing {
 public:
  explicit Packing(std::size_t streams, std::size_t modules = 1);

  // Appends the partition's batches to `batches` and their members' numbers to `members`, neither beyond its capacity.
  // batch_ns: by module.
  void pack(std::span<const Candidate> candidates, std::span<const BatchTimes> batch_ns, const PackingRules& rules,
            std::vector<PlannedBatch>& batches, std::vector<std::uint32_t>& members);

 private:
  struct Request {  // a candidate's next frame
    TimeNs at_ns;
    std::uint32_t candidate;
  };
  using Heap = std::vector<Request>;  // the first on top
  struct Opening {                    // where the next batch can start
    std::size_t module;
    TimeNs start_ns;
  };
  void collect();
  [[nodiscard]] std::optional<Opening> first_opening(TimeNs free_ns) const;
  std::uint32_t fill(const Opening& at, std::uint32_t largest, std::vector<std::uint32_t>& members);
  void request_again(Heap& next, TimeNs start_ns);
  [[nodiscard]] bool in_reach(const Request& r) const;
  [[nodiscard]] TimeNs earliest(const Request& r) const;

  std::vector<Heap> next_;            // by module: of each of its candidates the next frame
  std::vector<std::uint32_t> taken_;  // by candidate: the batch that it is in already
  std::uint32_t number_ = 0;          // of the batch that is filled
  std::span<const Candidate> candidates_;
  PackingRules rules_;
};

}  // namespace leat::core::streams
