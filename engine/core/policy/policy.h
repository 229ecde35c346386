// A policy: which scheduler serves the components of a plan, and the settings of Leat's own. Ratios are in permille and
// times in nanoseconds, so that a decision is the same on every machine. Read once, by Scheduler's constructor and by
// what it prepares; set-up only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/types.h"

namespace leat::core {

class SchedulerFactory;  // policy/registry.h

// Promises are pessimistic: p99 times this margin, at first. It grows by a tenth when one is broken and falls slowly
// (policy/look_ahead/periodic.cpp); docs/research/studies.md, freshness.
inline constexpr std::uint32_t kPromiseMarginPermille = 1100;

// What studies and tests alone change of Leat's rules, in code: each is a constant of the product, with the study that
// says what it is worth (docs/internals/policies.md).
struct LeatVariant {
  // Which components window_scheduler.h decides: those in which modules share partitions; none, or all of one stage.
  enum class Windows : std::uint8_t { shared, none, all };
  Windows windows = Windows::shared;  // bench/papers/shared_study, bench/papers/pard_study
  bool fits = true;                   // queues look at what ends in time on unequal partitions; bench/papers/elsa_study
  bool one_request = false;           // queues: batches of one request, as ELSA's; bench/papers/elsa_study
  bool foresees = true;               // queues: false: only what has expired is dropped; bench/papers/elsa_study
  bool ages = true;  // queues: caps and order by the age of a burst (burst_caps.cpp); bench/papers/pard_study on
                     // Azure's LLM traces
};

struct Policy {
  std::shared_ptr<const SchedulerFactory> scheduler;  // for every component; nullptr: Leat's own, by the plan

  std::uint32_t queue_ahead = 0;    // batches a partition may hold behind the one it runs
  TimeNs ahead_within_ns = kNever;  // where they all are expected to end within that
  // A partition may go on by itself with what a batch's requests need next, where all of that takes no longer; 0: it
  // asks each time.
  TimeNs goes_on_within_ns = 0;
  std::uint64_t seed = 1;  // of schedulers that draw

  // ---- Leat's own ----
  // Queues: of the SLO, what batches on the longest path may take together; 0: the plan's batches.
  std::uint32_t batch_latency_share_permille = 850;
  // Windows: standard deviations of the time to the end that a batch keeps free.
  std::uint32_t risk_permille = 1500;
  // Now and then what only an estimate condemns is run on an idle partition (canary.h).
  bool canaries = true;
  // Where periodic streams share a partition with another class: weigh moves, idle on purpose.
  bool look_ahead = true;
  // With look_ahead: least run time of background streams in each window.
  TimeNs background_budget_ns = 100'000'000;
  TimeNs background_window_ns = 1'000'000'000;
  LeatVariant variant;

  std::vector<std::string> given;  // the keys that were set, as read (policy/policy_settings.h)
  std::vector<std::string> notes;  // a line for each that was given by an old name
};

}  // namespace leat::core
