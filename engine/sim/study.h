// One plan under one load, many policies: what `leat sim` and the comparison with the running daemon measure.
//
// A Study is what does not change; a Load is one draw of arrivals (load factor and seed), shared by all policies, with
// its clairvoyant bound; measure() runs one policy over it. Thread rule: constant objects may be shared; measure() may
// run in parallel.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/sim/simulator.h"
#include "engine/sim/workload/fault_file.h"
#include "engine/sim/workload/workload.h"
#include "planner/io/plan_io.h"
#include "planner/profile.h"

namespace leat::sim {

struct ItemSizes {  // of requests: log-normal, clamped to [1, largest]
  double median = 1, sigma = 0;
  std::uint32_t largest = 1;  // 1: every request is one item
};

struct Study {
  planner::PlanFile plan;
  core::Topology believed, reality;  // the same but for latencies
  FaultFile faults;
  std::vector<ArrivalProcess> processes;  // [application]
  std::vector<double> full_rps;           // [application]: at load factor 1
  ItemSizes items;
  std::uint32_t streams = 1;    // of each application; its requests go to them in turn
  std::uint32_t depth = 16384;  // of each stream
  TimeNs length_ns = 0;         // of arrivals; 0: the traces' own, 60 s where none has one
  TimeNs bin_ns = 0;            // of rate series in the replay; 0: their own
  std::uint32_t noise_permille = 0;
  std::uint32_t check_every = 0;
};

// The rate that the plan's routes were planned for: the least over the application's modules; 0: the plan does not say.
[[nodiscard]] double planned_rate(const planner::PlanFile& plan, std::uint32_t application);

// Of the arrivals of one run: what Study::length_ns says, or the longest of the traces, or a minute.
[[nodiscard]] TimeNs length_of(const Study& study, double factor);

// Requests of one run at that load, on average.
[[nodiscard]] double expected_requests(const Study& study, double factor);

// What stages really take: as the profiles measured it (none: as the plan says), times the errors. One line where a
// profile lacks a row.
[[nodiscard]] Result<core::Topology> reality_of(const planner::PlanFile& plan, const core::Topology& believed,
                                                std::span<const planner::Profile> profiles,
                                                std::span<const ProfileError> errors);

// Every batch holds its partition so much longer than it runs: what wake-ups and reports cost a daemon (leat top: "over
// us").
void add_overhead(core::Topology& reality, TimeNs per_batch_ns);

struct Load {
  double factor = 1;
  std::uint64_t seed = 1;
  std::vector<Arrival> arrivals;  // stream = application x Study::streams + its own
  TimeNs length_ns = 0;
  std::uint64_t bound = 0;  // no scheduler completes more (all applications, each as if alone; batches without noise)
};
[[nodiscard]] Load make_load(const Study& study, double factor, std::uint64_t seed);

// What happened when. Filled only where asked for.
struct History {
  TimeNs bin_ns = 0;
  std::vector<std::uint32_t> arrived, in_time;  // [bin], by arrival: of those that arrived then
  std::vector<std::vector<double>>
      wait_ns;  // [module][bin]: mean queueing delay of tasks whose batch began then; NaN: none
  std::vector<RunEvent> runs;
};

struct Measured {
  Outcomes outcomes;
  double seconds = 0;             // of arrivals
  double bound_share = 0;         // completed / bound
  double p50_ms = 0, p99_ms = 0;  // from capture, of delivered answers (completed and late); NaN: none
  History history;

  [[nodiscard]] double goodput_rps() const {
    return static_cast<double>(outcomes.counters.total.of(Outcome::completed)) / seconds;
  }
  [[nodiscard]] double share(Outcome o) const;  // of all requests
  [[nodiscard]] double share(Reason r) const;
};

// progress: told, now and then, how many more requests are answered.
[[nodiscard]] Measured measure(const Study& study, const Load& load, const core::Policy& policy, bool with_history,
                               const std::function<void(std::uint64_t)>& progress = {});

}  // namespace leat::sim
