// Each paper's scheduler put together: what its keys set, and the policy that is made of it. presets.cpp names them.
#pragma once

#include "engine/core/policy_keys.h"
#include "engine/papers/drop_rules.h"
#include "engine/papers/pard.h"

namespace leat::papers {

// The system that PARD's paper measures everything in: a queue per worker, requests dealt out in turn, the next batch
// collected while the last one runs. PARD, what it is compared with and its ablations (Table 1) differ in the order and
// in the drop rule alone.
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
void use(const WorkerQueues& settings, Policy& out);

// What looks back, over a so much shorter time: for a trace that is replayed faster. Others' policies stay as they are.
void shorten_windows(Policy& policy, std::int64_t times);

struct Elsa {
  enum class Place : std::uint8_t { elsa, least_wait, rr, random };
  Place place = Place::elsa;
  bool expired = false;  // what has expired is dropped
  std::uint32_t alpha_permille = 1000, beta_permille = 1000;
};
extern const std::span<const Key<Elsa>> kElsaKeys;
void use(const Elsa& settings, Policy& out);

struct Fifs {
  bool random = false;   // any idle partition, not the first
  bool expired = false;  // what has expired is dropped
};
extern const std::span<const Key<Fifs>> kFifsKeys;
void use(const Fifs& settings, Policy& out);

struct Harpagon {
  enum class Dispatch : std::uint8_t { tc, tc_rates, rr };
  Dispatch dispatch = Dispatch::tc;
};
extern const std::span<const Key<Harpagon>> kHarpagonKeys;
void use(const Harpagon& settings, Policy& out);

struct PPipe {
  bool append_only = false;   // nothing is booked before what is booked already
  bool as_simulated = false;  // what else its authors' simulator does beyond Algorithm 1
};
extern const std::span<const Key<PPipe>> kPPipeKeys;
void use(const PPipe& settings, Policy& out);

struct Reactive {
  bool append_only = false;
};
extern const std::span<const Key<Reactive>> kReactiveKeys;
void use(const Reactive& settings, Policy& out);

}  // namespace leat::papers
