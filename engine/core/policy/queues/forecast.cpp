// What a batch that module k is about to start will meet further on, from the present state instead of averages of the
// past.
//
// Fluid view of a later module i: its consumers still have `left_i` of running work; `ahead_i` items will have reached
// it before this batch does (running at k, queued or running in between, queued at i); each costs tau_i = 1 /
// throughput at its batch cap, c_i. The batch reaches i at A_i, so its last item waits
//     q_i = max(0, left_i / W_i + (ahead_i + max(0, n - c_i)) tau_i - R_i - A_i),     A_j = max over predecessors i of
//     A_i + q_i + d_i,
// and L_sub(k) = max over paths of sum (q_i + d_i). This replaces PARD's averages in equation 3.
//
// R_i: when the batch starts, the other W_i - 1 consumers are still busy, evenly spread over d_i(c_i): work worth d_i
// (W_i - 1) / 2 that the fluid has counted is not before this batch but beside it, so R_i = d_i(c_i) (W_i - 1) / (2
// W_i). Spread is not always even: only half of it is believed.
//
// All d_i and tau_i are the profile's times the module's latency scale: what its recent batches took of their profiled
// time.
#include <algorithm>

#include "engine/core/policy/queues/queue_scheduler.h"

namespace leat::core {
namespace {

// Of R. Under a steady overload of 1.5 with caps for .85 of the SLO 95.94 % of the bound; with all of it the rule
// breaks down where one module's batch is much longer than the rest, with none caps may take .76 only
// (docs/internals/policies.md).
constexpr TimeNs kBelievedPermille = 500;

}  // namespace

TimeNs QueueScheduler::forecast(ModuleId from, std::uint32_t n, TimeNs d) const noexcept {
  const ApplicationSpec& app = application(from);
  const ModuleId first = app.modules.front();
  struct Node {
    TimeNs arrive = -1;        // A_i; -1: not after `from`
    std::int64_t content = 0;  // items between `from` and here
    TimeNs end = 0;
  };
  std::array<Node, kMaxModulesPerApplication> node{};
  node[from - first] = {.arrive = 0, .content = view_.load.module(from).running_items, .end = d};
  TimeNs after = 0;
  for (std::size_t k = from - first + 1; k < app.modules.size(); ++k) {
    const ModuleId id = app.modules[k];
    const ModuleRules& m = modules_[id];
    const ModuleLoad& seen = view_.load.module(id);
    Node& here = node[k];
    for (ModuleId before : view_.topology().modules[id].before) {
      const Node& p = node[before - first];
      if (p.arrive < 0) continue;
      here.arrive = std::max(here.arrive, p.end);
      here.content = std::max(here.content, p.content);
    }
    if (here.arrive < 0) continue;
    const std::int64_t ahead = here.content + seen.queued_items;
    const TimeNs left =
        seen.running == 0 ? 0
                          : std::max<TimeNs>(0, seen.running_end_sum - static_cast<TimeNs>(seen.running) * view_.now) /
                                m.consumer_count;
    const ConsumerId s = queue_of(id).first_consumer;
    const TimeNs* run_ns = consumer(s).run_ns;
    const std::uint32_t cap = cap_of(s);
    const std::int64_t rest = n > cap ? n - cap : 0;
    const TimeNs beside =
        seen.scaled(run_ns[cap]) * (m.consumer_count - 1) / (2 * m.consumer_count) * kBelievedPermille / 1000;
    const TimeNs wait = left + (ahead + rest) * seen.scaled(m.ns_per_item) - beside - here.arrive;
    // Without a queue there it runs as the batch it comes in; with one, in a full batch.
    const TimeNs run = seen.scaled(run_ns[wait > 0 ? cap : std::min(n, cap)]);
    here.end = here.arrive + std::max<TimeNs>(0, wait) + run;
    here.content = ahead + seen.running_items;
    after = std::max(after, here.end - d);
  }
  return after;
}

}  // namespace leat::core
