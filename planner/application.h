// An application: a DAG of modules with one end-to-end SLO (PARD section 3; Harpagon section III-A).
// Plain data, filled by application_io (TOML) or by a test. Read by the planner, the core and the daemon. No thread
// rule: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leat::planner {

struct Module {
  std::string name;                  // unique within the application
  std::string model;                 // names a Profile (and, for the daemon, an ONNX file)
  std::vector<std::uint32_t> after;  // indexes of its predecessors; empty: it takes the client's frame
  double items_per_request =
      1.0;  // mean sub-requests one request makes here (a cascade's fan-out; < 1: taken by chance)
  std::uint32_t fan_out_cap = 1;  // at most this many sub-requests per request; what exceeds it is not run
};

struct Application {
  std::string name;
  std::int64_t slo_ns = 0;      // from capture to answer
  double rate_rps = 0;          // expected requests per second, all streams together; 0: unknown
  double weight = 1;            // PPipe's max-min: the planner maximises min(rate / weight)
  std::vector<Module> modules;  // topologically ordered: after[] only names smaller indexes
};

}  // namespace leat::planner
