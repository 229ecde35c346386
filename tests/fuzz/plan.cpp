// Plans: any text is a plan that says the same when written and read again and makes a sound topology, or an error.
#include "engine/core/model/topology.h"
#include "planner/io/plan_io.h"
#include "tests/fuzz/harness.h"

namespace leat::fuzz {

std::vector<std::string> seeds() {
  return {R"({"schema": "leat-plan/1",
 "applications": [{"name": "a", "slo_ns": 1000000, "rate_rps": 100, "weight": 1,
   "module": [{"name": "m", "model": "m"}, {"name": "n", "model": "n", "after": ["m"], "fan_out_cap": 3}]}],
 "partitions": [{"name": "p", "kind": "emulated", "class": "c", "share": 1, "size": 1, "price": 1, "device": 0, "host": 0,
   "selector": ""}],
 "hosts": [],
 "routes": [
  {"application": 0, "module": 0, "batch": 2, "rate_rps": 100, "stages": [
   {"first_block": 0, "end_block": 1, "pool": [0], "transfer_bytes": 100,
    "latency_by_batch": [{"p50_ns": 10, "p99_ns": 20, "samples": 1}, {"p50_ns": 15, "p99_ns": 20, "samples": 1}]},
   {"first_block": 1, "end_block": 2, "pool": [0], "transfer_bytes": 0,
    "latency_by_batch": [{"p50_ns": 10, "p99_ns": 20, "samples": 1}, {"p50_ns": 15, "p99_ns": 20, "samples": 1}]}]},
  {"application": 0, "module": 1, "batch": 1, "rate_rps": 100, "stages": [
   {"first_block": 0, "end_block": 1, "pool": [0], "transfer_bytes": 0,
    "latency_by_batch": [{"p50_ns": 10, "p99_ns": 20, "samples": 1}]}]}],
 "budget_ns": [[500, 500]],
 "certificate": {"objective": 1, "upper_bound": 2, "gap": 0, "binding": "", "method": "", "seconds": 0}})"};
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat;
  const auto plan = planner::parse_plan({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!plan.ok()) {
    fuzz::insist(!plan.error().empty(), "an error without a text");
    return 0;
  }
  const std::string text = planner::plan_to_json(*plan);
  const auto again = planner::parse_plan(text, "again");
  fuzz::insist(again.ok(), "a plan that cannot be read again");
  fuzz::insist(planner::plan_to_json(*again) == text, "a plan that reads otherwise than it was written");
  (void)core::Topology::from(plan->plan, plan->applications).problem();
  return 0;
}
