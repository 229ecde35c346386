// Discrete-event simulator around the scheduler core: the same object code that the daemon runs, driven by an event
// heap.
//
// Use: fill a Scenario (topology, policy, streams, arrivals, faults), call run(scenario). One seed decides everything;
// the hash over the whole event trace is the same on every machine (no unordered iteration, integer time, no
// mathematical library).
//
// Model: a partition runs its batches one at a time, in the order in which they reach it, not before the start that the
// scheduler reserved. A batch takes the p50 of its stage at its number of items, times noise, times the partition's
// present slowness; Scenario::duration replaces that. Between stages on different hosts a batch holds the sender's
// uplink and the receiver's downlink together, first come first served. Equal times: ends of batches, then faults, then
// timers, then arrivals.
//
// Checks, always on: a partition is never given a batch while down, nor more batches at a time than the policy lets it
// hold; a stage is not started before its predecessor's end; no start is reserved in the past; nothing answered twice;
// no answer counted completed after its deadline (on the scheduler's clock, so with clock steps too). With check_every:
// Scheduler::audit() after every n-th event. Thread rule: none shared; runs of different scenarios may go in parallel.
// Precondition: topology.problem().empty().
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/core/counters.h"
#include "engine/core/scheduler.h"
#include "engine/record/recorded_core.h"
#include "engine/sim/workload/arrivals.h"
#include "engine/sim/workload/cameras.h"
#include "engine/sim/workload/producers.h"

namespace leat::sim {

enum class FaultKind : std::uint8_t {
  lose,       // the partition's worker dies; what it held is gone
  restore,    // it is back
  slow,       // it takes value/1000 of its planned time from now on (1000: as planned)
  clock_step  // the clock the scheduler sees jumps by `value` ns (negative: back)
};
struct Fault {
  TimeNs at_ns = 0;
  FaultKind kind = FaultKind::lose;
  core::PartitionId partition = 0;
  std::int64_t value = 1000;
};

// What an execution is asked for: one batch on one stage.
struct Execution {
  core::RouteId route = 0;
  std::uint32_t stage = 0;
  core::PartitionId partition = 0;
  std::uint32_t items = 1;
  TimeNs at_ns = 0;  // when it begins
  TimeNs planned_ns = 0;
  std::uint64_t serial = 0;              // number of this execution
  std::span<const core::TaskRef> tasks;  // token = index of the arrival
  const core::Topology* plan = nullptr;  // that it was formed under
  // Its partition begins it by itself, behind the one before it; it goes on with another so (Scenario::goes_on).
  bool went_on = false, goes_on = false;
};

struct AnswerEvent {
  TimeNs at_ns = 0;
  std::size_t arrival = 0;  // index into Scenario::arrivals; behind them, what cameras sent, in that order
  Outcome outcome = Outcome::pending;
  Reason reason = Reason::none;
  core::ModuleId where = core::kNone;
};
struct RunEvent {  // one stage of one batch, when it has ended
  TimeNs start_ns = 0, end_ns = 0;
  core::PartitionId partition = 0;
  core::RouteId route = 0;
  std::uint32_t stage = 0, items = 0;
};

struct Replacement {  // another plan takes over: the same applications and modules
  TimeNs at_ns = 0;
  core::Topology topology;
  bool measured_anew = false;  // as core::Scheduler::replace says
};

struct StreamLife {  // opened before what comes at the same time
  TimeNs opened_ns = 0, closed_ns = core::kNever;
};

struct ShownEvent {  // a coordinated stream's answer has come: from now on its client tracks from there
  TimeNs at_ns = 0;
  std::uint32_t camera = 0;  // index into Scenario::cameras
  std::uint64_t frame = 0;
};

struct Scenario {
  core::Topology topology;
  core::Policy policy;
  core::Limits limits{.streams = 64, .requests = 16384, .tasks = 65536, .batches = 2048, .actions = 32768};
  std::vector<core::StreamConfig> streams{core::StreamConfig{.depth = 16384}};
  std::vector<StreamLife> lives;  // by stream, of those that come later or go before the end; the others do not
  // Sorted by at_ns. Of a stream that waits for grants: when its pictures are there; it submits those that are wanted.
  std::vector<Arrival> arrivals;
  std::vector<Producer> producers;        // by stream, of those that wait for grants; the others have the default
  WriteTimes write;                       // optional: by arrival, of those that wait, in the place of the producers'
  std::vector<Fault> faults;              // sorted by at_ns
  std::vector<Replacement> replacements;  // sorted by at_ns; with Scenario::reality only where routes stay the same
  std::vector<Camera> cameras;            // clients of coordinated streams: they send what they are asked for
  TimeNs cameras_until_ns = 0;            // no camera sends anything from then on
  std::uint64_t seed = 1;
  std::uint32_t noise_permille = 0;  // standard deviation of a batch's duration around its plan
  // What stages really take, where it differs from what the scheduler believes: the same topology with other latencies
  // (as many batches each). Must outlive run(). nullptr: as believed.
  const core::Topology* reality = nullptr;
  TimeNs estimate_every_ns = 1'000'000'000;  // the estimator's period (PARD: one second)
  std::uint32_t estimate_draws = 10'000;     // M
  std::uint32_t check_every = 0;
  TimeNs drain_ns = 60'000'000'000;  // after the last arrival; what is still in flight then breaks liveness
  // Optional. What goes into the core and comes out is recorded there (engine/record/), under these names.
  record::Ring* record = nullptr;
  record::Names names;
  // Optional. How much of a batch an item takes (core::TaskSizes), by its arrival; 1 or more.
  std::function<std::uint32_t(std::size_t arrival, core::ModuleId module, std::uint32_t item)> size;
  // Optional. What a task finds for the modules behind its own, where any of them has several tasks a request; default:
  // Poisson by the topology's means.
  std::function<std::uint32_t(std::size_t arrival, core::ModuleId module, std::uint32_t item)> fan_out;
  // Partitions go on by themselves where the core says that they may (Action::then), as workers do.
  bool goes_on = false;
  // Optional. The duration of one execution, before slowness; and what one wants to see.
  std::function<TimeNs(const Execution&)> duration;
  std::function<void(const AnswerEvent&)> on_answer;
  std::function<void(const RunEvent&)> on_run;
  std::function<void(const ShownEvent&)> on_shown;
  std::function<void(TimeNs, std::uint32_t camera, const core::StreamSchedule&)> on_schedule;
  std::function<void(const core::Sample&)>
      on_sample;  // queueing delays, in the order of dispatch; needs limits.samples
};

struct Outcomes {
  core::Counters counters;
  std::uint64_t requests = 0;
  std::uint64_t left_out = 0;  // of them pictures that were not wanted, and so not submitted
  std::uint64_t events = 0;
  std::uint64_t trace_hash = 0;
  TimeNs first_ns = 0, last_ns = 0;   // first arrival, last answer
  TimeNs run_ns = 0, invalid_ns = 0;  // execution time of all tasks; of those whose request was not completed
  bool drained = true;                // liveness: nothing in flight at the end
  double cpu_seconds = 0;             // of this thread, for the run itself

  [[nodiscard]] double goodput() const {  // completed over submitted
    return requests == 0 ? 1
                         : static_cast<double>(counters.total.of(Outcome::completed)) / static_cast<double>(requests);
  }
  [[nodiscard]] double drop_rate() const { return 1 - goodput(); }
  [[nodiscard]] double invalid_rate() const {
    return run_ns == 0 ? 0 : static_cast<double>(invalid_ns) / static_cast<double>(run_ns);
  }
};

[[nodiscard]] Outcomes run(const Scenario& scenario);

}  // namespace leat::sim
