// Harpagon's dispatch: turns of a whole batch (tc), or of single requests (rr). Each server is a lane; a module's lanes stand in
// ratio order, those of one route side by side.
#include <algorithm>

#include "engine/core/state.h"

namespace leat::core {
namespace {

// What is left of the module's budget beside the run itself: no request may wait longer for its batch to start.
TimeNs collects_ns(const ModuleState& m, const Server& s) noexcept { return std::max<TimeNs>(0, m.share_ns - s.run_ns[s.cap]); }

}  // namespace

// What Theorem 1 leaves out: requests are no fluid, and servers of different run times drift past each other.
//
// How far apart a route's servers begin. Filled in a row, they take every request for a while, now and each time they come round
// again. A server of another route that may not collect for as long would then find nothing, so these are spread evenly.
//
// Which servers are padded: theirs is a plan with dummies, and no batch of real requests fills within the window.
// One pass at start.
void Scheduler::State::plan_turns() noexcept {
  for (const ModuleState& m : modules) {
    const LaneId end = m.first_lane + m.lanes;
    const ModuleSpec& spec = topology.modules[lanes[m.first_lane].module];
    const double real_per_ns = topology.applications[spec.application].rate_rps * spec.items_per_request * 1e-9;
    const auto server = [&](LaneId l) -> Server& { return servers[lanes[l].first_server]; };
    const auto per_ns = [&](const Server& s) {  // as planned; a plan may leave the rate out: then all it can do
      const RouteSpec& route = topology.routes[s.route];
      const double most = s.cap / static_cast<double>(s.run_ns[s.cap]), pool = static_cast<double>(route.stages.front().pool.size());
      return route.rate_rps > 0 ? std::min(most, route.rate_rps * 1e-9 / pool) : most;
    };
    for (LaneId l = m.first_lane; l < end; ++l) {
      Server& s = server(l);
      double servers_of_route = 0, remaining_per_ns = 0;  // Theorem 1's w: what this route and all after it take
      TimeNs least_collects_ns = kNever;
      for (LaneId other = m.first_lane; other < end; ++other) {
        const Server& o = server(other);
        if (o.ratio <= s.ratio) remaining_per_ns += per_ns(o);
        if (o.route == s.route) ++servers_of_route;
        if (o.route != s.route) least_collects_ns = std::min(least_collects_ns, collects_ns(m, o));
      }
      const auto row_ns = static_cast<TimeNs>(servers_of_route * s.cap / remaining_per_ns);
      s.padded = real_per_ns > 0 && real_per_ns * static_cast<double>(collects_ns(m, s)) < s.cap - 0.5;
      s.spacing_ns = row_ns > least_collects_ns ? static_cast<TimeNs>(s.cap / (servers_of_route * per_ns(s))) : 0;
    }
  }
}

// Harpagon's throughput-cost dispatch (section III-B): whole batches, in ratio order. Each server is fed so that it never waits
// for work and no task waits longer than the module's budget allows: its next batch may be collected from budget - d before
// the server is free, and of all that may collect, the one that is free first is served (earliest deadline first); at a tie
// a batch already begun, then the larger ratio, which is the order of the lanes. A padded server's turn ends before one more
// request would make its first one late.
LaneId Scheduler::State::next_by_window(ModuleId module, const Task& task) noexcept {
  const ModuleState& m = modules[module];
  for (LaneId l = m.first_lane; l < m.first_lane + m.lanes; ++l) {
    Lane& lane = lanes[l];
    const Server& s = servers[lane.first_server];
    if (!s.padded || lane.block_left == 0 || lane.block_left == s.cap) continue;
    const std::uint32_t items = s.cap - lane.block_left;
    const TimeNs start = std::max(lane.next_start_ns, now), latest = lane.block_from_ns + m.share_ns;
    if (start + s.run_ns[items] > latest || start + s.run_ns[items + 1] <= latest) continue;
    lane.block_left = 0;
    lane.next_start_ns = start + s.run_ns[items];
  }
  LaneId best = kNone, soonest = kNone;
  TimeNs best_free = kNever, soonest_open = kNever;
  for (LaneId l = m.first_lane; l < m.first_lane + m.lanes; ++l) {
    const Server& s = servers[lanes[l].first_server];
    if (!partitions[s.partition].up) continue;
    const bool begun = lanes[l].block_left > 0;
    const TimeNs free = std::max(lanes[l].next_start_ns, now), open = lanes[l].next_start_ns - collects_ns(m, s);
    if ((begun || open <= now) && (free < best_free || (free == best_free && begun && lanes[best].block_left == 0))) {
      best = l;
      best_free = free;
    }
    if (open < soonest_open) {
      soonest = l;
      soonest_open = open;
    }
  }
  if (best == kNone) best = soonest;
  if (best == kNone) return m.first_lane;
  const Server& s = servers[lanes[best].first_server];
  if (lanes[best].block_left == 0) {
    lanes[best].block_left = s.cap;
    lanes[best].block_from_ns = now;
  }
  lanes[best].block_left -= std::min(lanes[best].block_left, task.items);
  if (lanes[best].block_left > 0) return best;
  const TimeNs start = std::max(lanes[best].next_start_ns, now);
  lanes[best].next_start_ns = start + s.run_ns[s.cap];
  for (LaneId l = m.first_lane; s.spacing_ns > 0 && l < m.first_lane + m.lanes; ++l) {
    Lane& other = lanes[l];
    const bool idle = l != best && other.block_left == 0 && other.next_start_ns <= start;
    if (idle && servers[other.first_server].route == s.route) other.next_start_ns = start + s.spacing_ns;
  }
  return best;
}

// Requests in turn: one batch each is dealt to all servers of the same throughput-cost ratio, one request at a time. The next
// round goes to whoever can start a new batch first; at a tie the larger ratio.
LaneId Scheduler::State::next_in_turn(ModuleId module, const Task& task) noexcept {
  ModuleState& m = modules[module];
  const LaneId first = m.first_lane, end = m.first_lane + m.lanes;
  const auto up = [&](LaneId l) { return partitions[servers[lanes[l].first_server].partition].up; };
  const auto server = [&](LaneId l) -> const Server& { return servers[lanes[l].first_server]; };
  bool open = false;
  for (LaneId l = first; l < end; ++l) open = open || (lanes[l].block_left > 0 && up(l));
  if (!open) {
    LaneId soonest = kNone;
    for (LaneId l = first; l < end; ++l) {
      lanes[l].block_left = 0;
      lanes[l].next_start_ns = std::max(lanes[l].next_start_ns, now);
      if (!up(l)) continue;
      const bool smaller = soonest != kNone && lanes[l].next_start_ns == lanes[soonest].next_start_ns && lanes[l].next_start_ns > now &&
                           server(l).cap < server(soonest).cap;
      if (soonest == kNone || lanes[l].next_start_ns < lanes[soonest].next_start_ns || smaller) soonest = l;
    }
    if (soonest == kNone) return first;
    for (LaneId l = first; l < end; ++l) {
      const bool same = l == soonest || (up(l) && server(l).ratio == server(soonest).ratio);
      if (!same) continue;
      lanes[l].block_left = server(l).cap;
      lanes[l].next_start_ns += server(l).run_ns[server(l).cap];
    }
  }
  for (std::uint32_t i = 0; i < m.lanes; ++i) {
    const LaneId l = first + (m.turn + i) % m.lanes;
    if (lanes[l].block_left == 0 || !up(l)) continue;
    lanes[l].block_left -= std::min(lanes[l].block_left, task.items);
    m.turn = l - first + 1;
    return l;
  }
  return first;
}

}  // namespace leat::core
