// Harpagon's dispatch: turns of a whole batch (tc, tc_rates), or of single requests (rr). Each server is a lane; a
// module's lanes stand in ratio order, those of one route side by side.
#include <algorithm>

#include "engine/core/policy/queued.h"

namespace leat::core {
namespace {

constexpr std::int64_t kNano = 1'000'000'000;

}  // namespace

// What is left of the module's budget beside the run itself: no request may wait longer for its batch to start.
TimeNs Queued::collects_ns(ModuleId module, ServerId s) const noexcept {
  return std::max<TimeNs>(0, modules_[module].share_ns - server(s).run_ns[servers_[s].cap]);
}

// Items a ns that the plan gives a server; a plan may leave the rate out: then all it can do.
double Queued::planned_per_ns(ServerId v) const noexcept {
  const RouteSpec& route = view_.route(server(v).route);
  const double most = servers_[v].cap / static_cast<double>(server(v).run_ns[servers_[v].cap]),
               pool = static_cast<double>(route.stages.front().pool.size());
  return route.rate_rps > 0 ? std::min(most, route.rate_rps * 1e-9 / pool) : most;
}

// What Theorem 1 leaves out: requests are no fluid, and servers of different run times drift past each other.
//
// How far apart a route's servers begin. Filled in a row, they take every request for a while, now and each time they
// come round again. A server of another route that may not collect for as long would then find nothing, so these are
// spread evenly.
//
// Which servers are padded: theirs is a plan with dummies, and no batch of real requests fills within the window.
// One pass at start.
void Queued::plan_turns() noexcept {
  for (ModuleId m : component_.modules) {
    const ModuleSpec& spec = view_.topology().modules[m];
    const double real_per_ns = application(m).rate_rps * spec.units_per_request() * 1e-9;
    each_server(m, [&](ServerId v) {
      ServerRules& s = servers_[v];
      double servers_of_route = 0, remaining_per_ns = 0;  // Theorem 1's w: what this route and all after it take
      TimeNs least_collects_ns = kNever;
      each_server(m, [&](ServerId other) {
        const bool same = server(other).route == server(v).route;
        if (servers_[other].ratio <= s.ratio) remaining_per_ns += planned_per_ns(other);
        if (same) ++servers_of_route;
        if (!same) least_collects_ns = std::min(least_collects_ns, collects_ns(m, other));
      });
      const auto row_ns = static_cast<TimeNs>(servers_of_route * s.cap / remaining_per_ns);
      s.padded = real_per_ns > 0 && real_per_ns * static_cast<double>(collects_ns(m, v)) < s.cap - 0.5;
      s.spacing_ns =
          row_ns > least_collects_ns ? static_cast<TimeNs>(s.cap / (servers_of_route * planned_per_ns(v))) : 0;
    });
  }
}

// Harpagon's throughput-cost dispatch (section III-B): whole batches, in ratio order. Each server is fed so that it
// never waits for work and no task waits longer than the module's budget allows: its next batch may be collected from
// budget - d before the server is free, and of all that may collect, the one that is free first is served (earliest
// deadline first); at a tie a batch already begun, then the larger ratio, which is the order of the lanes. A padded
// server's turn ends before one more request would make its first one late.
LaneId Queued::next_by_window(ModuleId module, const Task& task) noexcept {
  const TimeNs now = view_.now, share = modules_[module].share_ns;
  const LaneId first = view_.lanes.first(module), end = first + view_.lanes.count(module);
  const auto rules = [&](LaneId l) -> const ServerRules& { return servers_[lane(l).first_server]; };
  const auto run = [&](LaneId l) { return server(lane(l).first_server).run_ns; };
  for (LaneId l = first; l < end; ++l) {
    LaneRules& turn = lanes_[l];
    const std::uint32_t cap = rules(l).cap;
    if (!rules(l).padded || turn.block_left == 0 || turn.block_left == cap) continue;
    const std::uint32_t items = cap - turn.block_left;
    const TimeNs start = std::max(turn.next_start_ns, now), latest = turn.block_from_ns + share;
    if (start + run(l)[items] > latest || start + run(l)[items + 1] <= latest) continue;
    turn.block_left = 0;
    turn.next_start_ns = start + run(l)[items];
  }
  LaneId best = kNone, soonest = kNone;
  TimeNs best_free = kNever, soonest_open = kNever;
  for (LaneId l = first; l < end; ++l) {
    if (!up(l)) continue;
    const bool begun = lanes_[l].block_left > 0;
    const TimeNs free = std::max(lanes_[l].next_start_ns, now),
                 open = lanes_[l].next_start_ns - collects_ns(module, lane(l).first_server);
    if ((begun || open <= now) && (free < best_free || (free == best_free && begun && lanes_[best].block_left == 0))) {
      best = l;
      best_free = free;
    }
    if (open < soonest_open) {
      soonest = l;
      soonest_open = open;
    }
  }
  if (best == kNone) best = soonest;
  if (best == kNone) return first;
  const ServerRules& s = rules(best);
  LaneRules& chosen = lanes_[best];
  if (chosen.block_left == 0) {
    chosen.block_left = s.cap;
    chosen.block_from_ns = now;
  }
  chosen.block_left -= std::min(chosen.block_left, task.items);
  if (chosen.block_left > 0) return best;
  const TimeNs start = std::max(chosen.next_start_ns, now);
  chosen.next_start_ns = start + run(best)[s.cap];
  const RouteId route = server(lane(best).first_server).route;
  for (LaneId l = first; s.spacing_ns > 0 && l < end; ++l) {
    LaneRules& other = lanes_[l];
    const bool idle = l != best && other.block_left == 0 && other.next_start_ns <= start;
    if (idle && server(lane(l).first_server).route == route) other.next_start_ns = start + s.spacing_ns;
  }
  return best;
}

// Harpagon's dispatch as section III-B prints it and Theorem 1 assumes it: batches in a row, servers in ratio order,
// each as often as its rate asks for. A server's turn is due when its rate has earned it a whole batch; of those due
// the first in ratio order is next, and where none is, the one that is nearest. Nothing here looks at when a server is
// free.
LaneId Queued::next_by_rate(ModuleId module, const Task& task) noexcept {
  const LaneId first = view_.lanes.first(module), end = first + view_.lanes.count(module);
  const auto rules = [&](LaneId l) -> const ServerRules& { return servers_[lane(l).first_server]; };
  LaneId best = kNone;
  std::int64_t best_due = INT64_MIN;  // of a whole batch, permille
  for (LaneId l = first; l < end; ++l) {
    lanes_[l].due_nano = std::min<std::int64_t>(lanes_[l].due_nano + task.items * rules(l).earns_nano,
                                                2 * kNano * static_cast<std::int64_t>(rules(l).cap));
    if (!up(l)) continue;
    const std::int64_t due = lanes_[l].block_left > 0
                                 ? INT64_MAX
                                 : std::min<std::int64_t>(1000, lanes_[l].due_nano / (kNano / 1000) / rules(l).cap);
    if (due > best_due) {
      best = l;
      best_due = due;
    }
  }
  if (best == kNone) return first;
  LaneRules& chosen = lanes_[best];
  if (chosen.block_left == 0) {
    chosen.block_left = rules(best).cap;
    chosen.due_nano -= kNano * static_cast<std::int64_t>(rules(best).cap);
  }
  chosen.block_left -= std::min(chosen.block_left, task.items);
  return best;
}

// Every server begins with a whole batch due: the first turns go round in ratio order.
void Queued::plan_rates() noexcept {
  for (ModuleId m : component_.modules) {
    double all_per_ns = 0;
    each_server(m, [&](ServerId v) { all_per_ns += planned_per_ns(v); });
    each_server(m, [&](ServerId v) {
      servers_[v].earns_nano = static_cast<std::int64_t>(kNano * planned_per_ns(v) / all_per_ns);
      lanes_[server(v).lane].due_nano = kNano * static_cast<std::int64_t>(servers_[v].cap);
    });
  }
}

// Requests in turn: one batch each is dealt to all servers of the same throughput-cost ratio, one request at a time.
// The next round goes to whoever can start a new batch first; at a tie the larger ratio.
LaneId Queued::next_in_turn(ModuleId module, const Task& task) noexcept {
  const LaneId first = view_.lanes.first(module), lanes = view_.lanes.count(module), end = first + lanes;
  const auto rules = [&](LaneId l) -> const ServerRules& { return servers_[lane(l).first_server]; };
  bool open = false;
  for (LaneId l = first; l < end; ++l) open = open || (lanes_[l].block_left > 0 && up(l));
  if (!open) {
    LaneId soonest = kNone;
    for (LaneId l = first; l < end; ++l) {
      lanes_[l].block_left = 0;
      lanes_[l].next_start_ns = std::max(lanes_[l].next_start_ns, view_.now);
      if (!up(l)) continue;
      const TimeNs start = lanes_[l].next_start_ns;
      const bool smaller = soonest != kNone && start == lanes_[soonest].next_start_ns && start > view_.now &&
                           rules(l).cap < rules(soonest).cap;
      if (soonest == kNone || start < lanes_[soonest].next_start_ns || smaller) soonest = l;
    }
    if (soonest == kNone) return first;
    for (LaneId l = first; l < end; ++l) {
      const bool same = l == soonest || (up(l) && rules(l).ratio == rules(soonest).ratio);
      if (!same) continue;
      lanes_[l].block_left = rules(l).cap;
      lanes_[l].next_start_ns += server(lane(l).first_server).run_ns[rules(l).cap];
    }
  }
  for (std::uint32_t i = 0; i < lanes; ++i) {
    const LaneId l = first + (modules_[module].turn + i) % lanes;
    if (lanes_[l].block_left == 0 || !up(l)) continue;
    lanes_[l].block_left -= std::min(lanes_[l].block_left, task.items);
    modules_[module].turn = l - first + 1;
    return l;
  }
  return first;
}

}  // namespace leat::core
