// The system that PARD's paper measures everything in: a queue per worker, requests dealt out in turn, the next batch
// collected while the last one runs. PARD, what it is compared with and its ablations (Table 1) differ in the order and
// in the drop rule alone.
#pragma once

#include "engine/core/policy_keys.h"
#include "engine/papers/pard/clipper.h"
#include "engine/papers/pard/overload_control.h"
#include "engine/papers/pard/pard.h"

namespace leat::papers {

struct WorkerQueues {
  enum class By : std::uint8_t { fcfs, lbf, hbf, adaptive, instant };
  enum class Drop : std::uint8_t {
    none,
    expired,
    clipper,
    worst_case,
    nexus,
    nexus_local,
    overload_control,
    proactive
  };
  By order = By::fcfs;
  Drop drop = Drop::none;
  bool form_ahead = true;
  bool per_worker = true;            // false: one queue a module, batches formed when a worker is free
  TimeNs window_ns = 5'000'000'000;  // of q, of the smoothed rate (the present one is over a fifth) and of batch waits
  ClipperSplit::Reading reading = ClipperSplit::Reading::elapsed;
  ProactiveDrop::Settings pard;
  OverloadControl::Settings overload;
};
extern const std::span<const Key<WorkerQueues>> kWorkerQueueKeys;
[[nodiscard]] Rules rules(Site& site, const WorkerQueues& settings);
void use(const WorkerQueues& settings, Policy& out);

// What looks back, over a so much shorter time: for a trace that is replayed faster. Others' policies stay as they are.
void shorten_windows(Policy& policy, std::int64_t times);

}  // namespace leat::papers
