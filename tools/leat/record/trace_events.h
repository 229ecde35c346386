// A record's history as trace events (the JSON format of chrome://tracing, which Perfetto's viewer opens): batches as
// slices on the rows of their partitions, arrows from the batch that a frame was in to the next, what was not served as
// instants, plans and partitions as marks. Times are in microseconds since the record's beginning.
//
// Thread rule: functions of their arguments.
#pragma once

#include <cstdint>
#include <string>

#include "engine/record/history.h"

namespace leat::tools {

struct TraceEvents {
  std::string json;
  std::uint64_t slices = 0, arrows = 0, unserved = 0, marks = 0;
};

[[nodiscard]] TraceEvents trace_events(const record::History& history);

}  // namespace leat::tools
