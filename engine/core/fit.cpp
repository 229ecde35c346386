// Late binding with unequal partitions or unequal requests: a partition takes what ends in time there, and leaves the rest to faster
// ones or to the next batch.
//
// A lane is mixed when its servers run at different speeds; they then stand slowest first, so that an idle slow partition is offered a
// task before an idle fast one: ELSA's "smallest partition with positive slack" (Algorithm 2), decided when a partition is idle instead
// of on arrival. A task is in time on server v, in a batch of n items, when now + d_v(n) + L_sub <= its deadline; the batch grows in the
// lane's order while that holds for everyone in it. Only the fastest server's d decides whether a task is hopeless.
#include <algorithm>
#include <bit>

#include "engine/core/state.h"

namespace leat::core {
namespace {

// How many tasks that do not fit are looked past, per batch: keeps a decision short.
constexpr std::uint32_t kLooks = 64;

}  // namespace

void Scheduler::State::form_fitting(Lane& lane, const Server& server, TimeNs start, std::uint32_t target) noexcept {
  const bool high_first = choose_order(lane, server);
  const Server& fastest = servers[lane.first_server + lane.servers - 1];
  const std::uint32_t room = topology.routes[server.route].batch, fast_room = topology.routes[fastest.route].batch;
  const TimeNs after = modules[lane.module].after_ns;
  TimeNs until = kNever;  // the first moment at which somebody in the batch would be late
  std::uint32_t looks = 0;
  for (std::uint32_t left = lane.classes; left != 0 && looks < kLooks;) {
    const auto top = static_cast<std::size_t>(std::bit_width(left) - 1);
    left &= ~(1u << top);
    TaskId next = kNone;
    for (TaskId id = high_first ? lane.queue[top].back() : lane.queue[top].front(); id != kNone && looks < kLooks; id = next) {
      const Task& t = tasks[id];
      next = high_first ? t.before : t.after;
      const TimeNs fast = modules[lane.module].paced(fastest.run_ns[std::min(t.items, fast_room)]);
      if (const Reason reason = verdict(t, lane, start, fast); reason != Reason::none && !probe(t, start, fast)) {
        // Siblings go with it, perhaps the next one too: begin again at the end of the queue.
        drop_request(t.request, Outcome::dropped, reason, lane.module);
        next = high_first ? lane.queue[top].back() : lane.queue[top].front();
        continue;
      }
      const std::uint32_t items = lane.forming.items + t.items;
      const TimeNs bound = std::min(until, t.give_up_ns == kNever ? kNever : t.give_up_ns - after);
      const bool alone = lane.forming.tasks == 0 && &server == &fastest;  // nobody could do better
      if (items > room || (lane.forming.tasks > 0 && items > target) || (start + modules[lane.module].paced(server.run_ns[std::min(items, room)]) > bound && !alone)) {
        ++looks;
        continue;
      }
      until = bound;
      take(lane, id);
      if (lane.forming.items >= target) return;
    }
  }
}

// Caps of a mixed module's servers: each the largest batch that ends within the module's part of what the plan allots, `budget`.
void Scheduler::State::cap_by_time(ModuleId module, TimeNs budget) noexcept {
  ModuleState& m = modules[module];
  for (ServerId v = lanes[m.first_lane].first_server; v < lanes[m.first_lane].first_server + lanes[m.first_lane].servers; ++v) {
    const std::uint32_t largest = topology.routes[servers[v].route].batch;
    servers[v].cap = 1;
    while (servers[v].cap < largest && servers[v].run_ns[servers[v].cap + 1] <= budget) ++servers[v].cap;
  }
}

}  // namespace leat::core
