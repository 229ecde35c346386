// Where a task could go: nothing changes here.
#include <algorithm>
#include <cmath>

#include "engine/core/policy/reserved.h"

namespace leat::core {

// Time on the links into stage k when its two ends are on different hosts.
TimeNs Reserved::stage_link_ns(const RouteSpec& route, std::size_t k, std::uint32_t items) const noexcept {
  return view_.model.link_ns(route.stages[k - 1].transfer_bytes * items, route.stages[k - 1].pool.front(),
                             route.stages[k].pool.front());
}

// The entry's partition: of all that can run it, the one whose features would have left it first (Algorithm 2 looks at
// the end of the stage alone, and then waits for that partition's uplink).
LegPlan Reserved::probe_entry(RouteId id, std::uint32_t items, bool by_uplink) const noexcept {
  const RouteSpec& route = view_.route(id);
  const StageSpec& stage = route.stages.front();
  const TimeNs run = duration(route, 0, items);
  const bool sends = by_uplink && route.stages.size() > 1 && !view_.topology().hosts.empty();
  const TimeNs move = sends ? stage_link_ns(route, 1, items) : 0;
  LegPlan best;
  TimeNs least = kNever;
  book(id, 0).bounds.search({view_.now, view_.now}, run, kNever, [&](std::size_t i, TimeNs soonest) {
    const PartitionId p = stage.pool[i];
    const TimeNs no_earlier = soonest + run + move;
    const auto limit = [&] { return least == kNever ? kNever : least - run - move; };
    const auto idle_longer = [&] { return !manner_.as_simulated && free_ns(p) < free_ns(best.partition); };
    if (no_earlier > least || (no_earlier == least && !idle_longer()) || !usable(p)) return limit();
    const TimeNs start = timelines_[p].earliest(view_.now, run);
    TimeNs key = start + run;
    if (move > 0) key = up_[view_.topology().partitions[p].host].earliest(key, move) + move;
    if (key < least || (key == least && idle_longer())) {
      least = key;
      best = {.partition = p, .start_ns = start, .end_ns = start + run};
    }
    return limit();
  });
  return best;
}

// When the features that `from` has made can be on the leg's partition.
void Reserved::travel(const RouteSpec& route, std::size_t k, PartitionId from, std::uint32_t items,
                      const Departure& when, LegPlan& leg) const noexcept {
  const std::uint32_t there = view_.topology().partitions[leg.partition].host;
  TimeNs move = when.move_ns, soonest = when.far_ns - move;
  if (!equal_links_) {
    move = view_.model.link_ns(route.stages[k - 1].transfer_bytes * items, from, leg.partition);
    soonest = when.near_ns;
  } else if (there == when.here) {
    move = 0;
  }
  leg.depart_ns = move == 0 ? when.near_ns : Timeline::earliest_on_both(up_[when.here], down_[there], soonest, move);
  leg.arrive_ns = leg.depart_ns + move;
}

// The same of a batch's members, each on its own: they fit between what is booked where all together would wait.
void Reserved::travel_each(const RouteSpec& route, std::size_t k, PartitionId from, TimeNs made, std::uint32_t members,
                           LegPlan& leg) const noexcept {
  const TimeNs all = view_.model.link_ns(route.stages[k - 1].transfer_bytes * members, from, leg.partition);
  leg.depart_ns = leg.arrive_ns = made;
  if (all == 0) return;
  leg.each_ns = (all + members - 1) / members;
  const Timeline &up = up_[view_.topology().partitions[from].host],
                 &down = down_[view_.topology().partitions[leg.partition].host];
  for (std::uint32_t i = 0; i < members; ++i) {
    const TimeNs at = Timeline::earliest_on_both(up, down, leg.arrive_ns, leg.each_ns);
    if (i == 0) leg.depart_ns = at;
    leg.arrive_ns = at + leg.each_ns;
  }
}

// Whether a member of this unsent batch has its next stage already.
bool Reserved::booked_on(const Booking& booking) const noexcept {
  for (TaskId t = booking.first; t != kNone; t = itineraries_[t].legs[booking.stage].next) {
    if (itineraries_[t].legs[booking.stage + 1].booking != kNone) return true;
  }
  return false;
}

// Stage k after the features were made on `from`, in a booking of its own: the partition that ends first, of
// equals the pool's first one.
LegPlan Reserved::probe_own(RouteId id, std::size_t k, PartitionId from, std::uint32_t items, const Departure& when,
                            bool apart) const noexcept {
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

// The same, made at `made`, or an unsent batch to join.
LegPlan Reserved::probe_leg(RouteId id, std::size_t k, PartitionId from, TimeNs made, std::uint32_t items, TimeNs bound,
                            bool join, bool apart) const noexcept {
  const RouteSpec& route = view_.route(id);
  const StageSpec& stage = route.stages[k];
  TimeNs rest = 0;
  for (std::size_t j = k + 1; j < route.stages.size(); ++j)
    rest += stage_link_ns(route, j, items) + duration(route, j, items);
  const Departure when = departure(id, k, from, made, items);
  const LegPlan own = probe_own(id, k, from, items, when, apart);
  const bool in_time = own.partition != kNone && own.end_ns + rest <= bound;
  if (!join || (in_time && own.start_ns == own.arrive_ns)) return own;
  LegPlan joined;
  const auto run = [&](std::uint32_t held) -> TimeNs {
    if (!fits(stage, held + items) || (in_time && !gains(stage, held, items))) return -1;
    return duration(route, k, held + items);
  };
  const BookingId found = book(id, k).unsent.first_to_end(
      std::max(view_.now, made - 1) + 1, bound - rest, run, [&](BookingId at, TimeNs end) {
        const Booking& booking = bookings_[at];
        if (booking.lone) return false;
        const bool near = view_.topology().partitions[booking.partition].host == when.here;
        if (booking.start_ns < (near ? when.near_ns : when.far_ns)) return false;
        if (end + rest > booking.bound_ns || !usable(booking.partition) || !extends(booking, end)) return false;
        if (k + 1 < route.stages.size() && booked_on(booking))
          return false;  // its members would have to be booked anew: grow()
        joined = {.partition = booking.partition, .join = at, .start_ns = booking.start_ns, .end_ns = end};
        travel(route, k, from, items, when, joined);
        return joined.arrive_ns <= booking.start_ns;
      });
  return found != kNone ? joined : own;
}

// The booking's end may move to `end` without touching what is booked behind it.
bool Reserved::extends(const Booking& booking, TimeNs end) const noexcept {
  if (booking.next != kNone && bookings_[booking.next].start_ns < std::min(end, bookings_[booking.next].end_ns))
    return end <= booking.end_ns;
  return end <= booking.end_ns ||
         timelines_[booking.partition].earliest(booking.end_ns, end - booking.end_ns) == booking.end_ns;
}

PathPlan Reserved::probe_path(RouteId id, std::uint32_t items, TimeNs bound, bool by_uplink, bool join,
                              bool apart) const noexcept {
  const RouteSpec& route = view_.route(id);
  PathPlan plan{.route = id};
  plan.legs[0] = probe_entry(id, items, by_uplink);
  if (plan.legs[0].partition == kNone) return plan;
  TimeNs service = duration(route, 0, items);
  for (std::size_t k = 1; k < route.stages.size(); ++k) {
    plan.legs[k] = probe_leg(id, k, plan.legs[k - 1].partition, plan.legs[k - 1].end_ns, items, bound, join, apart);
    if (plan.legs[k].partition == kNone) return plan;
    service += duration(route, k, items) + plan.legs[k].arrive_ns - plan.legs[k].depart_ns;
  }
  plan.end_ns = plan.legs[route.stages.size() - 1].end_ns;
  plan.wait_ns = plan.end_ns - view_.now - service;
  return plan;
}

}  // namespace leat::core
