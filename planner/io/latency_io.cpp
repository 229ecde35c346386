#include "planner/io/latency_io.h"

namespace leat::planner {

Latency latency_from(const JsonCursor& c) {
  c.only({"p50_ns", "p99_ns", "samples", "spread_ns"});
  Latency l;
  l.p50_ns = c.at("p50_ns").integer(1, INT64_MAX);
  l.p99_ns = c.integer_or("p99_ns", l.p50_ns, 1, INT64_MAX);
  l.samples = static_cast<std::uint32_t>(c.integer_or("samples", 0, 0, UINT32_MAX));
  l.spread_ns = c.integer_or("spread_ns", 0, 0, INT64_MAX);
  return l;
}

}  // namespace leat::planner
