// Where a task could go, on links and partitions: nothing changes here.
#include <algorithm>

#include "engine/core/policy/reservations/reservations.h"

namespace leat::core {

// Time on the links into stage k when its two ends are on different hosts.
TimeNs Reservations::stage_link_ns(const RouteSpec& route, std::size_t k, std::uint32_t items) const noexcept {
  return view_.model.link_ns(route.stages[k - 1].transfer_bytes * items, route.stages[k - 1].pool.front(),
                             route.stages[k].pool.front());
}

// The entry's partition: of all that can run it, the one whose features would have left it first (Algorithm 2 looks at
// the end of the stage alone, and then waits for that partition's uplink).
LegPlan Reservations::earliest_entry(RouteId id, std::uint32_t items, bool by_uplink) const noexcept {
  const RouteSpec& route = view_.route(id);
  const StageSpec& stage = route.stages.front();
  const TimeNs run = duration(route, 0, items);
  const bool sends = by_uplink && route.stages.size() > 1 && !view_.topology().hosts.empty();
  const TimeNs move = sends ? stage_link_ns(route, 1, items) : 0;
  LegPlan best;
  TimeNs min = kNever;
  book(id, 0).bounds.search({view_.now, view_.now}, run, kNever, [&](std::size_t i, TimeNs soonest) {
    const PartitionId p = stage.pool[i];
    const TimeNs no_earlier = soonest + run + move;
    const auto limit = [&] { return min == kNever ? kNever : min - run - move; };
    const auto idle_longer = [&] { return manner_.longest_idle && free_ns(p) < free_ns(best.partition); };
    if (no_earlier > min || (no_earlier == min && !idle_longer()) || !usable(p)) return limit();
    const TimeNs start = timelines_[p].earliest(view_.now, run);
    TimeNs key = start + run;
    if (move > 0) key = links_.up[view_.topology().partitions[p].host].earliest(key, move) + move;
    if (key < min || (key == min && idle_longer())) {
      min = key;
      best = {.partition = p, .start_ns = start, .end_ns = start + run};
    }
    return limit();
  });
  return best;
}

// When the features that `from` has made can be on the leg's partition.
void Reservations::travel(const RouteSpec& route, std::size_t k, PartitionId from, std::uint32_t items,
                          const Departure& when, LegPlan& leg) const noexcept {
  const std::uint32_t there = view_.topology().partitions[leg.partition].host;
  TimeNs move = when.move_ns, soonest = when.far_ns - move;
  if (!links_.equal) {
    move = view_.model.link_ns(route.stages[k - 1].transfer_bytes * items, from, leg.partition);
    soonest = when.near_ns;
  } else if (there == when.here) {
    move = 0;
  }
  leg.depart_ns =
      move == 0 ? when.near_ns : Timeline::earliest_on_both(links_.up[when.here], links_.down[there], soonest, move);
  leg.arrive_ns = leg.depart_ns + move;
}

// The same of a batch's members, each on its own: they fit between what is booked where all together would wait.
void Reservations::travel_each(const RouteSpec& route, std::size_t k, PartitionId from, TimeNs made,
                               std::uint32_t members, LegPlan& leg) const noexcept {
  const TimeNs all = view_.model.link_ns(route.stages[k - 1].transfer_bytes * members, from, leg.partition);
  leg.depart_ns = leg.arrive_ns = made;
  if (all == 0) return;
  leg.each_ns = (all + members - 1) / members;
  const Timeline &up = links_.up[view_.topology().partitions[from].host],
                 &down = links_.down[view_.topology().partitions[leg.partition].host];
  for (std::uint32_t i = 0; i < members; ++i) {
    const TimeNs at = Timeline::earliest_on_both(up, down, leg.arrive_ns, leg.each_ns);
    if (i == 0) leg.depart_ns = at;
    leg.arrive_ns = at + leg.each_ns;
  }
}

// Stage k after the features were made on `from`, in a booking of its own: the partition that ends first, of
// equals the pool's first one.
LegPlan Reservations::earliest_own(RouteId id, std::size_t k, PartitionId from, std::uint32_t items,
                                   const Departure& when, bool apart) const noexcept {
  const RouteSpec& route = view_.route(id);
  const StageSpec& stage = route.stages[k];
  const TimeNs run = duration(route, k, items);
  const PoolBounds& bounds = book(id, k).bounds;
  PoolBounds::Ready ready = when;
  if (apart) ready.far_ns = std::min(ready.far_ns, ready.near_ns + when.move_ns);  // they fit in where all would wait
  const auto exactly = [&](PartitionId p) {
    LegPlan leg{.partition = p};
    if (apart && items > 1) {
      travel_each(route, k, from, when.near_ns, items, leg);
    } else {
      travel(route, k, from, items, when, leg);
    }
    leg.start_ns = timelines_[p].earliest(leg.arrive_ns, run);
    leg.end_ns = leg.start_ns + run;
    return leg;
  };
  // The most promising first: what it can do is a bound for all others.
  LegPlan best{.end_ns = kNever};
  PartitionId promising = kNone;
  TimeNs soonest = kNever;
  bounds.search(ready, run, kNever - 1, [&](std::size_t i, TimeNs start) {
    const PartitionId p = stage.pool[i];
    if (usable(p) && (start = timelines_[p].earliest(start, run)) < soonest) {
      soonest = start;
      promising = p;
    }
    return soonest - 1;
  });
  if (promising == kNone) return best;
  const LegPlan enough = exactly(promising);
  if (enough.start_ns == soonest) return enough;  // nobody before it in the pool can do as well, nobody at all better
  bounds.search(ready, run, enough.start_ns, [&](std::size_t i, TimeNs start) {
    const PartitionId p = stage.pool[i];
    const TimeNs limit = best.partition == kNone ? enough.start_ns : std::min(enough.start_ns, best.start_ns - 1);
    if (!usable(p) || timelines_[p].earliest(start, run) > limit) return limit;
    const LegPlan leg = exactly(p);
    if (leg.end_ns < best.end_ns) best = leg;
    return std::min(limit, best.start_ns - 1);
  });
  return best;
}

// Stage k on the pool's partition that can start first; links are not looked at.
LegPlan Reservations::earliest_in_pool(RouteId id, std::size_t k, std::uint32_t items, TimeNs ready) const noexcept {
  const StageSpec& stage = view_.route(id).stages[k];
  LegPlan best{.end_ns = kNever};
  const TimeNs run = duration(view_.route(id), k, items);
  for (PartitionId p : stage.pool) {
    if (!usable(p)) continue;
    const TimeNs start = timelines_[p].earliest(ready, run);
    const bool idler = best.partition != kNone && start == best.start_ns && free_ns(p) < free_ns(best.partition);
    if (start < best.start_ns || best.partition == kNone || idler)
      best = {.partition = p, .start_ns = start, .end_ns = start + run};
  }
  return best;
}

// The booking's end may move to `end` without touching what is booked behind it.
bool Reservations::extends(const Booking& booking, TimeNs end) const noexcept {
  if (booking.next != kNone && bookings_[booking.next].start_ns < std::min(end, bookings_[booking.next].end_ns))
    return end <= booking.end_ns;
  return end <= booking.end_ns ||
         timelines_[booking.partition].earliest(booking.end_ns, end - booking.end_ns) == booking.end_ns;
}

}  // namespace leat::core
