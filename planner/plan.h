// A plan: partitions, links and routes for all applications, with the certificate of how good it is.
// The one structure that carries all the papers: ELSA chooses among routes of different partition sizes, Harpagon's
// multi-tuple configuration is several routes of one module with different batches, PPipe's pooled pipelines are routes
// of several stages. Plain data; plan_io reads and writes JSON (docs/guide/plans.md). Indexes are into the plan's own
// vectors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/partition_kind.h"
#include "planner/profile.h"

namespace leat::planner {

struct Partition {
  std::string name;  // unique: "cpu0", "gpu0/mig1", ...
  PartitionKind kind = PartitionKind::emulated;
  std::string partition_class;  // matches ProfileRow::partition_class
  std::uint32_t share = 1;      // 1/share of its device
  double size = 1;              // relative compute (cores, GPCs, SM fraction): ELSA's ascending order, Harpagon's price
  double price = 1;             // cost per second, any unit
  double watts = 0;             // drawn while busy; 0: unknown (then only size counts in a plan for least power)
  std::int64_t memory_bytes = 0;  // of the partition; 0: unknown, no limit
  std::uint32_t device = 0;       // partitions of one device fail together under MPS
  std::uint32_t host = 0;         // partitions of one host share its links
  std::string selector;           // how a worker finds it: core list "2-3", MIG UUID, "MPS 50%", ...
};

// Network of one host; on a single host the hand-over between devices. 0: free (not modelled).
struct Link {
  double up_gbps = 0;
  double down_gbps = 0;
};

struct Stage {
  std::uint32_t first_block = 0, end_block = 1;  // [first, end)
  std::vector<std::uint32_t> pool;               // partitions that hold these blocks
  std::vector<Latency> latency_by_batch;         // [b-1]: one batch of b through this stage, b = 1..Route::batch
  std::int64_t transfer_bytes = 0;               // per item, from this stage to the next; 0 after the last
};

struct Route {
  std::uint32_t application = 0, module = 0;
  std::uint32_t batch = 1;    // the planned batch size, and the largest the route may run
  double rate_rps = 0;        // planned throughput of this route
  std::vector<Stage> stages;  // one for an unsplit model
};

// What the planner can prove about a plan.
struct Certificate {
  double objective = 0;
  double upper_bound = 0;
  double gap = 0;       // (upper_bound - objective) / upper_bound
  std::string binding;  // which constraint binds, in words
  std::string method;   // how it was found
  double seconds = 0;
};

struct Plan {
  std::vector<Partition> partitions;
  std::vector<Link> hosts;  // empty: links are not modelled
  std::vector<Route> routes;
  std::vector<std::vector<std::int64_t>> budget_ns;  // [application][module]; empty: no split (PARD-style end to end)
  Certificate certificate;
};

}  // namespace leat::planner
