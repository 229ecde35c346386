// How long batches took in a record, to draw from: by stage, by the class of the partition and by size, from about the
// same time.
//
// What is drawn is how long a batch held its partition: from when it was due there and the one before it had ended to
// the scheduler's knowledge of its end, so that wake-ups and reports are within it. Partitions are of one class where
// the plan gives them one latency table for the stage. A size or a class that the record has not seen gets a draw of
// the nearest that it has, scaled as the plans' tables say.
//
// Thread rule: const; several threads may draw.
#pragma once

#include <cstdint>
#include <map>
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

  // Of a batch of `units` that begins at `at_ns` of the record, where the plan says `table`; `draw`: any number.
  [[nodiscard]] Drawn draw(const StageKey& stage, const core::LatencyTable& table, std::uint32_t units,
                           core::TimeNs at_ns, std::uint64_t draw) const;

 private:
  struct Run {
    core::TimeNs at_ns = 0, took_ns = 0;
  };
  struct Class {
    std::vector<core::TimeNs> table;
    std::map<std::uint32_t, std::vector<Run>> sizes;  // each by at_ns
  };
  struct Times {
    std::vector<Class> classes;
  };

  std::map<StageKey, Times> stages_;
  std::map<std::string, std::vector<double>> ratios_;  // by module: to what the plan said
};

}  // namespace leat::sim
