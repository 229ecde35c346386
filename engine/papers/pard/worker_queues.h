// The system that PARD's paper measures everything in: a queue per worker, requests dealt out in turn, the next batch
// collected while the last one runs. PARD, what it is compared with and its ablations (Table 1) differ in the order and
// in the drop rule alone.
//
// A drop rule is a class (queues.h) and a DropKind beside it; a preset that names it is a row in presets.cpp.
#pragma once

#include "engine/core/policy/policy_keys.h"
#include "engine/papers/pard/clipper.h"
#include "engine/papers/pard/overload_control.h"
#include "engine/papers/pard/pard.h"

namespace leat::papers {

struct WorkerQueues;

struct DropKind {
  std::unique_ptr<DropRule> (*make)(Site&, const WorkerQueues&);
  bool (*estimates)(const WorkerQueues&) = nullptr;  // with these settings it looks at estimates; nullptr: never
  bool window = false;                               // it looks at window_ns, whatever its settings
};
template <class Rule>
std::unique_ptr<DropRule> plain(Site&, const WorkerQueues&) {
  return std::make_unique<Rule>();
}
template <class Rule>  // that reads its site
std::unique_ptr<DropRule> placed(Site& site, const WorkerQueues&) {
  return std::make_unique<Rule>(site);
}

inline constexpr DropKind kKeepAll{.make = plain<KeepAll>}, kDropExpired{.make = plain<DropExpired>};
extern const DropKind kClipperSplit, kWorstCaseSplit, kNexusWindow, kNexusLocalWindow, kOverloadControl, kProactiveDrop;

struct WorkerQueues {
  enum class By : std::uint8_t { fcfs, lbf, hbf, adaptive, instant };
  By order = By::fcfs;
  const DropKind* drop = &kKeepAll;
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
