// How long batches took in a record, to draw from: by stage, by the class of the partition and by size.
//
// What is drawn is how long a batch held its partition: from when it was due there and the one before it had ended to
// the scheduler's knowledge of its end, so that wake-ups and reports are within it. Partitions are of one class where
// the plan gives them one latency table for the stage. A size or a class that the record has not seen gets a draw of
// the nearest that it has, scaled as the plans' tables say.
//
// A host that had something else to do for a while had less for its clients too, and nothing came then: drawn from
// other times the one and the other would be put together anew. So what took twice as long as such batches mostly do
// stays where it was: a partition is as slow while it was, whatever runs there, and what is drawn beside has none of
// it. A batch that begins where and when one of the record did takes what that took.
//
// Thread rule: const; several threads may draw.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/record/history.h"

namespace leat::sim {

class RecordedTimes {
 public:
  // Which part of a model it is. Plans that cut a model at other places than the recorded ones are told apart by the
  // number of stages only.
  struct StageKey {
    std::string module;  // as people know it
    std::uint32_t stages = 1, stage = 0;
    // Of what a partition goes on with by itself the daemon hears at once with what came before: one takes longer by
    // it, and the other hardly any time.
    bool went_on = false, goes_on = false;
    auto operator<=>(const StageKey&) const = default;
  };
  struct Drawn {
    core::TimeNs ns = 0;
    bool seen = false;  // of this class and size
  };

  explicit RecordedTimes(const record::History& history);

  // Of a batch of `units` that begins at `at_ns` of the record on `partition` (core::kNone: one that the record does
  // not have), where the plan says `table`; `draw`: any number.
  [[nodiscard]] Drawn draw(const StageKey& stage, const core::LatencyTable& table, std::uint32_t units,
                           core::PartitionId partition, core::TimeNs at_ns, std::uint64_t draw) const;

 private:
  struct Run {
    core::TimeNs at_ns = 0, took_ns = 0;
  };
  struct Size {
    std::vector<Run> runs;  // by at_ns
    core::TimeNs mostly_ns = 0;
  };
  struct Class {
    std::vector<core::TimeNs> table;
    std::map<std::uint32_t, Size> sizes;
  };
  struct Times {
    std::vector<Class> classes;
  };
  struct Span {  // of a partition's time: what ran took so many times as long as it mostly does
    core::TimeNs from_ns = 0, to_ns = 0, mostly_ns = 0;
    double slow = 1;
  };
  struct Near {
    const Size* size = nullptr;
    double scale = 1;
    bool seen = false;
  };
  [[nodiscard]] const Times* times_of(StageKey stage) const;
  [[nodiscard]] static Near nearest(const Times& times, const std::vector<core::TimeNs>& table, std::uint32_t units);
  void keep_spans(const record::History& history);
  [[nodiscard]] static core::TimeNs through_stalls(std::span<const Span> spans, core::TimeNs at_ns,
                                                   core::TimeNs alone_ns);

  std::map<StageKey, Times> stages_;
  std::map<std::string, std::vector<double>> ratios_;  // by module: to what the plan said, in order
  std::vector<std::vector<Span>> spans_;               // [partition], by time, none over another
};

}  // namespace leat::sim
