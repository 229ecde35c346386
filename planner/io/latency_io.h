// A measured latency as plans and profiles write it.
#pragma once

#include "planner/profile.h"
#include "tools/base/documents/document.h"

namespace leat::planner {

// {"p50_ns", "p99_ns", "samples", "spread_ns"}; all but the first may be left out. What is wrong is told to the
// document.
Latency latency_from(const JsonCursor& c);

}  // namespace leat::planner
