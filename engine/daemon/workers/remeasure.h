// Measures again what was measured at start while something else had the cores (worker::kUndisturbedPercent), once its
// partition is idle: the estimates of single batches heal by what batches take (engine/core/policy/canary.h), but batch
// sizes and the objective that leatd chose come from the whole table.
//
// A partition is idle when it has run nothing for a second. Its worker then runs a batch after the other until it has
// its figures, somebody else takes its core, or a frame comes, which waits for one of these batches: none takes longer
// than half of the shortest objective, but for a single picture. What is disturbed by a quarter less than before takes
// its place, and is tried again later. Where a partition is never idle, what its batches took for five seconds brings
// the table down: only that of a module that has the partition to itself, since others' batch sizes follow their
// latency scale.
//
// Thread rule: the control thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/daemon/deployment/deployment.h"
#include "engine/daemon/metrics/metrics.h"
#include "engine/daemon/workers/supervisor.h"

namespace leat::daemon {

class Remeasure {
 public:
  // All outlive this. `ready`: what the workers said at start; new figures take the place of those.
  Remeasure(const Deployment& deployment, Metrics& metrics, Supervisor& supervisor, std::span<worker::Ready> ready);

  // As measured().
  [[nodiscard]] std::optional<std::string> advance(std::int64_t now);
  [[nodiscard]] std::int64_t next_due() const noexcept { return next_ns_; }  // INT64_MAX: nothing is in doubt
  // A worker has answered. A line for the log: `ready` has new figures, from which the plan is to be made again.
  [[nodiscard]] std::optional<std::string> measured(std::uint32_t slot, const worker::Measured& what, std::int64_t now);
  void lost(std::uint32_t slot);

 private:
  struct Ran {
    std::uint64_t batches = 0, items = 0, busy_ns = 0;
  };
  struct Partition {
    bool doubtful = false, asked = false;
    Ran seen, window;  // when it was looked at last, and five seconds ago
    std::int64_t window_ns = 0;
    std::int64_t idle_since = 0;  // as far as was seen
    std::int64_t not_before = 0;
    std::uint32_t module = 0;  // of its worker's: the next to measure
    worker::Ready found;       // of those before it
  };
  [[nodiscard]] std::uint32_t partition_of(std::uint32_t slot) const;
  void look_at(std::uint32_t partition, std::int64_t now);
  [[nodiscard]] std::optional<std::string> learn(std::uint32_t partition, std::int64_t now);
  [[nodiscard]] std::int64_t shortest_objective(std::uint32_t partition) const;
  [[nodiscard]] std::string line_of(std::uint32_t partition, const worker::Ready& before) const;

  const Deployment& deployment_;
  Metrics& metrics_;
  Supervisor& supervisor_;
  std::span<worker::Ready> ready_;
  std::vector<Partition> partitions_;
  std::int64_t next_ns_ = INT64_MAX;
};

}  // namespace leat::daemon
