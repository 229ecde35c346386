// What the core knows about the recent past, as plain data. An Estimator, where the scheduler has one, makes it off the
// hot path from the samples that the scheduler leaves behind; the driver hands it in with Scheduler::set_estimates,
// about once a second (PARD: State Planner). Until the first call, and for modules it leaves out, everything is 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/types.h"

namespace leat::core {

struct ModuleEstimate {
  TimeNs queue_ns = 0;  // q_i: recent mean queueing delay (t_b - t_r), linearly weighted window
  TimeNs wait_after_ns =
      0;  // W_k = F^-1(lambda): quantile of the summed batch waits of the modules after this one (worst path)
  TimeNs worst_ns = 0;  // recent worst latency at this module: queue, batch wait and execution (PARD-WCL)
};

struct Estimates {
  std::vector<ModuleEstimate> modules;  // by ModuleId
};

// One task's passage through a module, left for the estimator.
struct Sample {
  ModuleId module = 0;
  TimeNs at_ns = 0;     // when its batch started
  TimeNs queue_ns = 0;  // t_b - t_r
  TimeNs wait_ns = 0;   // t_e - t_b
  TimeNs run_ns = 0;    // expected execution time of its batch
};

// Makes estimates of samples, off the hot path. One thread at a time; it may be another than the scheduler's when the
// samples were copied out there.
class Estimator {
 public:
  virtual ~Estimator() = default;
  virtual void add(std::span<const Sample> samples) noexcept = 0;
  [[nodiscard]] virtual const Estimates& update(TimeNs now) noexcept = 0;
};

}  // namespace leat::core
