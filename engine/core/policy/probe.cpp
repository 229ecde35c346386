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

bool Reserved::usable(PartitionId p) const noexcept {
  if (!view_.machine.partition(p).up || !timelines_[p].room(kChanges)) return false;
  if (view_.topology().hosts.empty()) return true;
  const std::uint32_t h = view_.topology().partitions[p].host;
  return up_[h].room(kChanges) && down_[h].room(kChanges);
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
  const std::vector<Bound>& bounds = unsent(id, 0).bounds;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const PartitionId p = stage.pool[i];
    const TimeNs no_earlier = bounds[i].soonest(view_.now, run) + run + move;
    if (no_earlier > least || (no_earlier == least && free_ns(p) >= free_ns(best.partition)) || !usable(p)) continue;
    const TimeNs start = timelines_[p].earliest(view_.now, run);
    TimeNs key = start + run;
    if (move > 0) key = up_[view_.topology().partitions[p].host].earliest(key, move) + move;
    if (key < least || (key == least && free_ns(p) < free_ns(best.partition))) {
      least = key;
      best = {.partition = p, .start_ns = start, .end_ns = start + run};
    }
  }
  return best;
}

// When the features that `from` has made by `made` can be on the leg's partition.
void Reserved::travel(const RouteSpec& route, std::size_t k, PartitionId from, TimeNs made, std::uint32_t items,
                      LegPlan& leg) const noexcept {
  const TimeNs move = view_.model.link_ns(route.stages[k - 1].transfer_bytes * items, from, leg.partition);
  leg.depart_ns = move == 0
                      ? made
                      : Timeline::earliest_on_both(up_[view_.topology().partitions[from].host],
                                                   down_[view_.topology().partitions[leg.partition].host], made, move);
  leg.arrive_ns = leg.depart_ns + move;
}

// Whether a member of this unsent batch has its next stage already.
bool Reserved::booked_on(const Booking& booking) const noexcept {
  for (TaskId t = booking.first; t != kNone; t = itineraries_[t].legs[booking.stage].next) {
    if (itineraries_[t].legs[booking.stage + 1].booking != kNone) return true;
  }
  return false;
}

// Stage k after the features were made on `from` at `made`: the partition that ends first, or an unsent batch to join.
LegPlan Reserved::probe_leg(RouteId id, std::size_t k, PartitionId from, TimeNs made, std::uint32_t items, TimeNs bound,
                            bool join) const noexcept {
  const RouteSpec& route = view_.route(id);
  const StageSpec& stage = route.stages[k];
  const TimeNs run = duration(route, k, items);
  TimeNs rest = 0;
  for (std::size_t j = k + 1; j < route.stages.size(); ++j)
    rest += stage_link_ns(route, j, items) + duration(route, j, items);
  LegPlan best{.end_ns = kNever};
  const std::uint32_t here = view_.topology().partitions[from].host;
  TimeNs far = -1;  // on the links to another host, where they are all alike
  const std::vector<Bound>& bounds = unsent(id, k).bounds;
  const auto no_earlier = [&](std::size_t i) {
    const Bound& b = bounds[i];
    if (!equal_links_ || b.host == here) return b.soonest(made, run) + run;
    if (far < 0) far = view_.model.link_ns(route.stages[k - 1].transfer_bytes * items, from, stage.pool[i]);
    return b.soonest(made + far, run) + run;
  };
  const auto exactly = [&](PartitionId p) {
    LegPlan leg{.partition = p};
    travel(route, k, from, made, items, leg);
    leg.start_ns = timelines_[p].earliest(leg.arrive_ns, run);
    leg.end_ns = leg.start_ns + run;
    return leg;
  };
  // The most promising first: what it can do is a bound for all others. Of equals the pool's first one is taken.
  PartitionId promising = kNone;
  TimeNs least = kNever;
  for (std::size_t i = 0; i < stage.pool.size(); ++i) {
    const TimeNs end = no_earlier(i);
    if (end < least && usable(stage.pool[i])) {
      least = end;
      promising = stage.pool[i];
    }
  }
  const LegPlan enough = promising != kNone ? exactly(promising) : best;
  if (enough.end_ns == least) best = enough;  // nobody before it in the pool can do as well, nobody at all better
  for (std::size_t i = 0; enough.end_ns > least && i < stage.pool.size(); ++i) {
    const PartitionId p = stage.pool[i];
    const TimeNs end = no_earlier(i);
    if (end > enough.end_ns || end >= best.end_ns || !usable(p)) continue;
    const LegPlan leg = exactly(p);
    if (leg.end_ns < best.end_ns) best = leg;
  }
  const bool in_time = best.partition != kNone && best.end_ns + rest <= bound;
  if (!join || (in_time && best.start_ns == best.arrive_ns)) return best;
  LegPlan joined{.end_ns = kNever};
  std::uint32_t place = kNone;
  const auto& list = unsent(id, k).list;
  for (auto at = std::ranges::upper_bound(list, std::max(view_.now, made - 1), {}, &Unsent::Entry::start_ns);
       at != list.end() && at->start_ns + shortest(id, k) <= std::min(joined.end_ns, bound - rest); ++at) {
    const Booking& booking = bookings_[at->id];
    if (!fits(stage, booking.items + items) || (in_time && !gains(stage, booking.items, items))) continue;
    LegPlan leg{.partition = booking.partition,
                .join = at->id,
                .start_ns = booking.start_ns,
                .end_ns = booking.start_ns + duration(route, k, booking.items + items)};
    const bool before = leg.end_ns < joined.end_ns || (leg.end_ns == joined.end_ns && at->place < place);
    if (!before || leg.end_ns + rest > std::min(bound, booking.bound_ns) || !usable(leg.partition) ||
        !extends(booking, leg.end_ns))
      continue;
    if (k + 1 < route.stages.size() && booked_on(booking))
      continue;  // its members would have to be booked anew: grow()
    travel(route, k, from, made, items, leg);
    if (leg.arrive_ns > booking.start_ns) continue;
    joined = leg;
    place = at->place;
  }
  return joined.partition != kNone ? joined : best;
}

// The booking's end may move to `end` without touching what is booked behind it.
bool Reserved::extends(const Booking& booking, TimeNs end) const noexcept {
  return end <= booking.end_ns ||
         timelines_[booking.partition].earliest(booking.end_ns, end - booking.end_ns) == booking.end_ns;
}

PathPlan Reserved::probe_path(RouteId id, std::uint32_t items, TimeNs bound, bool by_uplink, bool join) const noexcept {
  const RouteSpec& route = view_.route(id);
  PathPlan plan{.route = id};
  plan.legs[0] = probe_entry(id, items, by_uplink);
  if (plan.legs[0].partition == kNone) return plan;
  TimeNs service = duration(route, 0, items);
  for (std::size_t k = 1; k < route.stages.size(); ++k) {
    plan.legs[k] = probe_leg(id, k, plan.legs[k - 1].partition, plan.legs[k - 1].end_ns, items, bound, join);
    if (plan.legs[k].partition == kNone) return plan;
    service += duration(route, k, items) + plan.legs[k].arrive_ns - plan.legs[k].depart_ns;
  }
  plan.end_ns = plan.legs[route.stages.size() - 1].end_ns;
  plan.wait_ns = plan.end_ns - view_.now - service;
  return plan;
}

}  // namespace leat::core
