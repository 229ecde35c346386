// Whether periodic streams can be kept fresh on the partitions they share: said before anything starts. `leat check`,
// leatd's start and the freshness study ask it.
//
// Two necessary conditions, for work that is not interrupted once it runs:
//   load   Demands that can only go to a set of partitions need no more than that set's time: sum of run / period <=
//   its size. Above
//          it with the safe bounds (p99 x margin) only, promises cannot all be kept, though typical run times fit.
//   block  A job of r on a partition shuts out a stream of period P and run time d for r + d. Two results in
//   neighbouring windows
//          are less than 2 P apart, and less than 2 P - d where max_age < P (each result must then come in its own
//          frame's window). If r + d is no less, the job can never run there without an uncovered window.
// Control plane: allocates. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/core/scheduler.h"

namespace leat::core {

struct Demand {  // one stream's (or several alike streams') work at one module
  std::string name;
  TimeNs period_ns = 0;
  TimeNs max_age_ns = 0;  // 0: the deadline's worth, taken as one period
  Priority priority = Priority::normal;
  double count = 1;                // streams
  TimeNs run_ns = 0, safe_ns = 0;  // of one request alone: p50; p99
  TimeNs item_ns = 0;              // p50 of a request's share in the best batch; 0: run_ns
  std::vector<PartitionId> pool;
};

enum class Obstacle : std::uint8_t { overload, broken_promises, block };

struct Finding {
  Obstacle obstacle = Obstacle::overload;
  double load = 0;                   // overload, broken_promises: of the partitions' time
  std::vector<std::size_t> demands;  // those concerned; block: the long job, then the stream it shuts out
  std::string text;                  // one line that says what, and what to do
};

// `names`: of the partitions, for the text. `margin_permille`: of promises (Policy). Background demands are left out of
// the load: they take what is left. Empty: nothing speaks against it.
[[nodiscard]] std::vector<Finding> obstacles(std::span<const Demand> demands, std::span<const std::string> names,
                                             std::uint32_t margin_permille);

// The second condition alone.
[[nodiscard]] bool never_fits(TimeNs job_run_ns, const Demand& beside) noexcept;

}  // namespace leat::core
