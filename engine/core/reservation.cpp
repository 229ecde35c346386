// How itineraries are found, booked, changed and given back. What they mean: reservation.h.
#include "engine/core/reservation.h"

#include <algorithm>

#include "engine/core/state.h"

namespace leat::core {
namespace {

constexpr std::uint32_t kJoinTries = 4;  // unsent batches of an inner stage looked at for one task

// items + more in one batch, or items alone: at least 5 % more per second?
bool gains(const StageSpec& stage, std::uint32_t items, std::uint32_t more) {
  return stage.latency.p50_ns[items - 1] * (items + more) * 100 >= stage.latency.p50_ns[items + more - 1] * items * 105;
}

}  // namespace

// ---- what may grow, decided from the plan and the module's pace ----

// A first-stage batch of n pays where the route's rate gains at least 5 % and the queue it can carry then, slack x (rate -
// load), at least doubles: a larger batch also eats the slack that absorbs bursts.
void Scheduler::State::plan_growth(ModuleId module) noexcept {
  Reservations& rv = *reservations;
  rv.planned_pace[module] = modules[module].pace_permille;
  for (RouteId id : topology.modules[module].routes) {
    const RouteSpec& route = topology.routes[id];
    const StageSpec& entry = route.stages.front();
    std::fill(rv.may_grow[id].begin(), rv.may_grow[id].end(), 0);
    double cap = 1e300;       // items per ns that links and later stages can take, each at its best batch
    TimeNs tail = 0, move = 0;
    for (std::size_t k = 1; k < route.stages.size(); ++k) {
      const StageSpec& stage = route.stages[k];
      double best = 0;
      for (std::uint32_t n = 1; fits(stage, n); ++n) {
        best = std::max(best, static_cast<double>(stage.pool.size()) * n / static_cast<double>(duration(route, k, n)));
      }
      cap = std::min(cap, best);
      const TimeNs x = stage_link_ns(route, k, 1);
      move = k == 1 ? x : move;
      tail += x + duration(route, k, 1);
      if (x > 0) {
        for (const auto* pool : {&route.stages[k - 1].pool, &stage.pool}) {
          std::uint32_t hosts = 0;
          for (std::size_t i = 0; i < pool->size(); ++i) {
            const auto same = [&](PartitionId p) { return topology.partitions[p].host == topology.partitions[(*pool)[i]].host; };
            hosts += std::none_of(pool->begin(), pool->begin() + static_cast<std::ptrdiff_t>(i), same) ? 1 : 0;
          }
          cap = std::min(cap, hosts / static_cast<double>(x));
        }
      }
    }
    const double load = route.rate_rps * 0.98e-9;
    const TimeNs slo = topology.applications[topology.modules[route.module].application].slo_ns;
    const auto rate = [&](std::uint32_t n) {
      return std::min(cap, static_cast<double>(entry.pool.size()) * n / static_cast<double>(duration(route, 0, n)));
    };
    const auto slack = [&](std::uint32_t n) { return static_cast<double>(slo - duration(route, 0, n) - tail - (n - 1) * move); };
    double most = 0;
    for (std::uint32_t n = 1; fits(entry, n) && n <= kGrowItems; ++n) {
      if (slack(n) > 0) most = std::max(most, rate(n));
    }
    std::uint32_t current = 1;
    for (std::uint32_t n = 2; fits(entry, n) && n <= kGrowItems; ++n) {
      const double carried = std::max(0.0, slack(current) * (rate(current) - load));
      const bool overloaded = most < load;  // no batch carries it: then the most that can be had
      if (rate(n) < 1.02 * rate(current) || slack(n) <= 0 || (!overloaded && slack(n) * (rate(n) - load) <= 2 * carried)) continue;
      for (std::uint32_t k = current + 1; k <= n; ++k) rv.may_grow[id][k] = 1;
      current = n;
    }
    rv.growth_ns[id] = 0;
    for (std::size_t k = 0; k < route.stages.size(); ++k) {
      const auto falls_short = [&](std::uint32_t n) {
        return static_cast<double>(route.stages[k].pool.size()) * n / static_cast<double>(duration(route, k, n)) < load;
      };
      std::uint32_t n = 1;
      while (falls_short(n) && fits(route.stages[k], n + 1) && (k > 0 ? gains(route.stages[k], n, 1) : n < current)) ++n;
      rv.growth_ns[id] += duration(route, k, n) - duration(route, k, 1);
    }
  }
}

// Time on the links into stage k when its two ends are on different hosts.
TimeNs Scheduler::State::stage_link_ns(const RouteSpec& route, std::size_t k, std::uint32_t items) const noexcept {
  return link_ns(route.stages[k - 1].transfer_bytes * items, route.stages[k - 1].pool.front(), route.stages[k].pool.front());
}

// ---- probing: nothing changes ----

bool Scheduler::State::usable(PartitionId p) const noexcept {
  if (!partitions[p].up || !reservations->partitions[p].room(Reservations::kChanges)) return false;
  if (topology.hosts.empty()) return true;
  const std::uint32_t h = topology.partitions[p].host;
  return reservations->up[h].room(Reservations::kChanges) && reservations->down[h].room(Reservations::kChanges);
}

// The entry's partition: of all that can run it, the one whose features would have left it first (Algorithm 2 looks at the
// end of the stage alone, and then waits for that partition's uplink).
LegPlan Scheduler::State::probe_entry(const RouteSpec& route, std::uint32_t items, bool by_uplink) const noexcept {
  const StageSpec& stage = route.stages.front();
  const TimeNs run = duration(route, 0, items);
  const bool sends = by_uplink && route.stages.size() > 1 && !topology.hosts.empty();
  const TimeNs move = sends ? stage_link_ns(route, 1, items) : 0;
  LegPlan best;
  TimeNs least = kNever;
  for (PartitionId p : stage.pool) {
    if (!usable(p)) continue;
    const TimeNs start = reservations->partitions[p].earliest(now, run);
    TimeNs key = start + run;
    if (move > 0) key = reservations->up[topology.partitions[p].host].earliest(key, move) + move;
    if (key < least || (key == least && partitions[p].free_ns < partitions[best.partition].free_ns)) {
      least = key;
      best = {.partition = p, .start_ns = start, .end_ns = start + run};
    }
  }
  return best;
}

// When the features that `from` has made by `made` can be on the leg's partition.
void Scheduler::State::travel(const RouteSpec& route, std::size_t k, PartitionId from, TimeNs made, std::uint32_t items, LegPlan& leg) const noexcept {
  const TimeNs move = link_ns(route.stages[k - 1].transfer_bytes * items, from, leg.partition);
  leg.depart_ns = move == 0 ? made
                            : Timeline::earliest_on_both(reservations->up[topology.partitions[from].host],
                                                         reservations->down[topology.partitions[leg.partition].host], made, move);
  leg.arrive_ns = leg.depart_ns + move;
}

// Whether a member of this unsent batch has its next stage already.
bool Scheduler::State::booked_on(const Booking& booking) const noexcept {
  for (TaskId t = booking.first; t != kNone; t = reservations->itineraries[t].legs[booking.stage].next) {
    if (reservations->itineraries[t].legs[booking.stage + 1].booking != kNone) return true;
  }
  return false;
}

// Stage k after the features were made on `from` at `made`: the partition that ends first, or an unsent batch to join.
LegPlan Scheduler::State::probe_leg(RouteId id, std::size_t k, PartitionId from, TimeNs made, std::uint32_t items, TimeNs bound,
                                    bool join) const noexcept {
  const RouteSpec& route = topology.routes[id];
  const StageSpec& stage = route.stages[k];
  const TimeNs run = duration(route, k, items);
  TimeNs rest = 0;
  for (std::size_t j = k + 1; j < route.stages.size(); ++j) rest += stage_link_ns(route, j, items) + duration(route, j, items);
  LegPlan best{.end_ns = kNever};
  for (PartitionId p : stage.pool) {
    if (!usable(p)) continue;
    LegPlan leg{.partition = p};
    travel(route, k, from, made, items, leg);
    if (leg.arrive_ns + run >= best.end_ns) continue;
    leg.start_ns = reservations->partitions[p].earliest(leg.arrive_ns, run);
    leg.end_ns = leg.start_ns + run;
    if (leg.end_ns < best.end_ns) best = leg;
  }
  const bool in_time = best.partition != kNone && best.end_ns + rest <= bound;
  if (!join || (in_time && best.start_ns == best.arrive_ns)) return best;
  LegPlan joined{.end_ns = kNever};
  for (PartitionId p : stage.pool) {
    if (!usable(p)) continue;
    for (BookingId b = reservations->first[p]; b != kNone; b = reservations->bookings[b].next) {
      const Booking& booking = reservations->bookings[b];
      if (booking.state != BookingState::planned || booking.route != id || booking.stage != k || booking.start_ns <= now) continue;
      if (!fits(stage, booking.items + items) || (in_time && !gains(stage, booking.items, items))) continue;
      LegPlan leg{.partition = p, .join = b, .start_ns = booking.start_ns, .end_ns = booking.start_ns + duration(route, k, booking.items + items)};
      if (leg.end_ns >= joined.end_ns || leg.end_ns + rest > std::min(bound, booking.bound_ns) || !extends(booking, leg.end_ns)) continue;
      if (k + 1 < route.stages.size() && booked_on(booking)) continue;  // its members would have to be booked anew: grow()
      travel(route, k, from, made, items, leg);
      if (leg.arrive_ns <= booking.start_ns) joined = leg;
    }
  }
  return joined.partition != kNone ? joined : best;
}

// The booking's end may move to `end` without touching what is booked behind it.
bool Scheduler::State::extends(const Booking& booking, TimeNs end) const noexcept {
  return end <= booking.end_ns || reservations->partitions[booking.partition].earliest(booking.end_ns, end - booking.end_ns) == booking.end_ns;
}

PathPlan Scheduler::State::probe_path(RouteId id, std::uint32_t items, TimeNs bound, bool by_uplink, bool join) const noexcept {
  const RouteSpec& route = topology.routes[id];
  PathPlan plan{.route = id};
  plan.legs[0] = probe_entry(route, items, by_uplink);
  if (plan.legs[0].partition == kNone) return plan;
  TimeNs service = duration(route, 0, items);
  for (std::size_t k = 1; k < route.stages.size(); ++k) {
    plan.legs[k] = probe_leg(id, k, plan.legs[k - 1].partition, plan.legs[k - 1].end_ns, items, bound, join);
    if (plan.legs[k].partition == kNone) return plan;
    service += duration(route, k, items) + plan.legs[k].arrive_ns - plan.legs[k].depart_ns;
  }
  plan.end_ns = plan.legs[route.stages.size() - 1].end_ns;
  plan.wait_ns = plan.end_ns - now - service;
  return plan;
}

// ---- booking ----

BookingId Scheduler::State::open_booking(RouteId route, std::size_t stage, const LegPlan& leg) noexcept {
  Reservations& rv = *reservations;
  const BookingId id = rv.bookings.take();
  insist(id != kNone, "no room for a booking");
  Booking& b = rv.bookings[id];
  b = Booking{};
  b.state = BookingState::planned;
  b.route = route;
  b.stage = static_cast<std::uint32_t>(stage);
  b.partition = leg.partition;
  b.start_ns = leg.start_ns;
  b.end_ns = leg.start_ns;
  b.due_ns = leg.start_ns;
  BookingId before = kNone, at = rv.first[leg.partition];
  while (at != kNone && rv.bookings[at].start_ns <= b.start_ns) {
    before = at;
    at = rv.bookings[at].next;
  }
  b.previous = before;
  b.next = at;
  (before == kNone ? rv.first[leg.partition] : rv.bookings[before].next) = id;
  if (at != kNone) rv.bookings[at].previous = id;
  want_timer(b.start_ns);
  if (b.start_ns <= now) mark_partition(leg.partition);
  return id;
}

void Scheduler::State::move_end(Booking& b, TimeNs end) noexcept {
  Timeline& t = reservations->partitions[b.partition];
  insist(end >= b.end_ns ? t.reserve(b.end_ns, end) : t.release(end, b.end_ns), "a timeline is full");
  b.end_ns = end;
}

void Scheduler::State::use_links(const Leg& leg, PartitionId from, PartitionId to, bool reserve) noexcept {
  const TimeNs begin = reserve ? leg.depart_ns : std::max(leg.depart_ns, now);
  if (begin >= leg.arrive_ns || topology.hosts.empty()) return;
  for (Timeline* t : {&reservations->up[topology.partitions[from].host], &reservations->down[topology.partitions[to].host]}) {
    insist(reserve ? t->reserve(begin, leg.arrive_ns) : t->release(begin, leg.arrive_ns), "a link's timeline is full");
  }
}

// Books leg k of the task's path, in a booking of its own or in one that it joins.
void Scheduler::State::book_leg(TaskId id, RouteId route, std::size_t k, const LegPlan& plan, TimeNs bound) noexcept {
  Reservations& rv = *reservations;
  Leg& leg = rv.itineraries[id].legs[k];
  leg.booking = plan.join != kNone ? plan.join : open_booking(route, k, plan);
  leg.depart_ns = plan.depart_ns;
  leg.arrive_ns = plan.arrive_ns;
  Booking& b = rv.bookings[leg.booking];
  leg.next = b.first;
  b.first = id;
  ++b.tasks;
  b.items += tasks[id].items;
  b.unmade += k > 0 ? 1 : 0;
  b.bound_ns = std::min(b.bound_ns, bound);
  move_end(b, plan.end_ns);
  if (plan.depart_ns < plan.arrive_ns) use_links(leg, rv.bookings[rv.itineraries[id].legs[k - 1].booking].partition, b.partition, true);
}

// Takes the task out of its unsent bookings from stage `from` on; what was sent stays. Last stage first, because the links
// into a stage are found through the stage before it; where that has ended, the features are already on their way.
void Scheduler::State::unbook(TaskId id, std::size_t from) noexcept {
  Reservations& rv = *reservations;
  for (std::size_t k = kMaxStages; k-- > from;) {
    Leg& leg = rv.itineraries[id].legs[k];
    if (leg.booking == kNone) continue;
    Booking& b = rv.bookings[leg.booking];
    if (b.state != BookingState::planned) continue;
    const BookingId before = k > 0 ? rv.itineraries[id].legs[k - 1].booking : kNone;
    if (before != kNone) use_links(leg, rv.bookings[before].partition, b.partition, false);
    TaskId* link = &b.first;
    while (*link != id) link = &rv.itineraries[*link].legs[k].next;
    *link = leg.next;
    --b.tasks;
    b.items -= tasks[id].items;
    b.unmade -= before != kNone ? 1 : 0;
    const BookingId left = leg.booking;
    leg = Leg{};
    if (b.tasks == 0) {
      close_booking(left);
    } else {
      move_end(b, std::min(b.end_ns, b.start_ns + duration(topology.routes[b.route], b.stage, b.items)));
    }
  }
}

void Scheduler::State::close_booking(BookingId id) noexcept {
  Reservations& rv = *reservations;
  Booking& b = rv.bookings[id];
  const TimeNs from = std::max(b.start_ns, now);
  if (from < b.end_ns) insist(rv.partitions[b.partition].release(from, b.end_ns), "a timeline is full");
  (b.previous == kNone ? rv.first[b.partition] : rv.bookings[b.previous].next) = b.next;
  if (b.next != kNone) rv.bookings[b.next].previous = b.previous;
  b.state = BookingState::free;
  rv.bookings.give(id);
}

void Scheduler::State::book_path(TaskId id, const PathPlan& plan, TimeNs bound) noexcept {
  reservations->itineraries[id] = Itinerary{};
  for (std::size_t k = 0; k < topology.routes[plan.route].stages.size(); ++k) book_leg(id, plan.route, k, plan.legs[k], bound);
  tasks[id].state = TaskState::booked;
}

// One task more for an unsent batch, as `leg` says. All its members' later stages are booked anew; if one of them would be
// late, all is put back.
bool Scheduler::State::grow(LegPlan leg, TaskId task, TimeNs bound) noexcept {
  Reservations& rv = *reservations;
  Booking& b = rv.bookings[leg.join];
  const RouteSpec& route = topology.routes[b.route];
  const std::size_t k = b.stage, stages = route.stages.size();
  leg.start_ns = b.start_ns;
  leg.end_ns = b.start_ns + duration(route, k, b.items + tasks[task].items);
  if (!extends(b, leg.end_ns)) return false;
  TimeNs least = 0;
  for (std::size_t j = k + 1; j < stages; ++j) least += stage_link_ns(route, j, 1) + duration(route, j, 1);
  if (leg.end_ns + least > std::min(b.bound_ns, bound) || (k + 1 < stages && b.tasks >= kGrowItems)) return false;
  std::array<KeptLegs, kGrowItems> group;
  std::size_t n = 0;
  group[n++] = {.task = task, .bound_ns = bound, .legs = {}};
  for (TaskId t = b.first; t != kNone && k + 1 < stages; t = rv.itineraries[t].legs[k].next, ++n) {
    group[n].task = t;
    for (std::size_t j = k + 1; j < stages; ++j) {
      const Leg& later = rv.itineraries[t].legs[j];
      if (later.booking == kNone) return false;
      const Booking& own = rv.bookings[later.booking];
      if (own.start_ns <= now) return false;  // about to be sent
      group[n].bound_ns = own.bound_ns;
      group[n].legs[j] = {.partition = own.partition, .depart_ns = later.depart_ns, .arrive_ns = later.arrive_ns, .start_ns = own.start_ns, .end_ns = own.end_ns};
    }
  }
  const TimeNs old_bound = b.bound_ns;
  for (std::size_t i = 1; i < n; ++i) unbook(group[i].task, k + 1);
  if (k == 0) rv.itineraries[task] = Itinerary{};
  book_leg(task, b.route, k, leg, bound);
  if (book_rest({group.data(), n}, b.route, k + 1)) return true;
  unbook(task, k);
  for (std::size_t i = 1; i < n; ++i) unbook(group[i].task, k + 1);
  for (std::size_t i = 1; i < n; ++i) put_back(group[i], b.route, k + 1);
  b.bound_ns = old_bound;
  return false;
}

// Into the same bookings as before: with those who stayed there or are back already, or alone.
void Scheduler::State::put_back(const KeptLegs& kept, RouteId route, std::size_t from) noexcept {
  const Reservations& rv = *reservations;
  for (std::size_t k = from; k < topology.routes[route].stages.size(); ++k) {
    LegPlan leg = kept.legs[k];
    for (BookingId other = rv.first[leg.partition]; other != kNone && rv.bookings[other].start_ns <= leg.start_ns; other = rv.bookings[other].next) {
      const Booking& shared = rv.bookings[other];
      if (shared.start_ns != leg.start_ns || shared.state != BookingState::planned || shared.route != route || shared.stage != k) continue;
      leg.join = other;
    }
    book_leg(kept.task, route, k, leg, kept.bound_ns);
  }
}

// The stages from `from` on of tasks that stand together in a batch; stage by stage, so that they may share batches again.
// False: one would be late; what was booked stays booked.
bool Scheduler::State::book_rest(std::span<const KeptLegs> group, RouteId route, std::size_t from) noexcept {
  const Reservations& rv = *reservations;
  for (std::size_t k = from; k < topology.routes[route].stages.size(); ++k) {
    for (const KeptLegs& member : group) {
      const Booking& before = rv.bookings[rv.itineraries[member.task].legs[k - 1].booking];
      const LegPlan leg = probe_leg(route, k, before.partition, before.end_ns, tasks[member.task].items, member.bound_ns, true);
      if (leg.partition == kNone || leg.end_ns > member.bound_ns) return false;
      book_leg(member.task, route, k, leg, member.bound_ns);
    }
  }
  return true;
}

// A route of three stages or more, booked stage by stage: where the task would wait at an inner stage it joins an unsent batch
// there that gains by it. The last stage must have ended by `until`.
bool Scheduler::State::book_through(TaskId id, const PathPlan& plan, TimeNs bound, TimeNs until) noexcept {
  const Reservations& rv = *reservations;
  const Itinerary& itinerary = rv.itineraries[id];
  const std::size_t stages = topology.routes[plan.route].stages.size();
  reservations->itineraries[id] = Itinerary{};
  book_leg(id, plan.route, 0, plan.legs[0], bound);
  for (std::size_t k = 1; k < stages; ++k) {
    const Booking& before = rv.bookings[itinerary.legs[k - 1].booking];
    const LegPlan leg = probe_leg(plan.route, k, before.partition, before.end_ns, tasks[id].items, bound, true);
    const bool in_time = leg.partition != kNone && leg.end_ns <= bound;
    if (k + 1 < stages && (!in_time || leg.start_ns > leg.arrive_ns) && join_inner(id, plan.route, k, bound)) break;
    if (!in_time) break;
    book_leg(id, plan.route, k, leg, bound);
  }
  const BookingId last = itinerary.legs[stages - 1].booking;
  if (last != kNone && rv.bookings[last].end_ns <= until) return true;
  unbook(id, 0);
  return false;
}

bool Scheduler::State::join_inner(TaskId id, RouteId route, std::size_t k, TimeNs bound) noexcept {
  const Reservations& rv = *reservations;
  const StageSpec& stage = topology.routes[route].stages[k];
  const Booking& before = rv.bookings[rv.itineraries[id].legs[k - 1].booking];
  const PartitionId from = before.partition;
  const TimeNs made = before.end_ns;
  std::uint32_t tries = 0;
  for (PartitionId p : stage.pool) {
    if (!usable(p)) continue;
    for (BookingId b = rv.first[p]; b != kNone && tries < kJoinTries; b = rv.bookings[b].next) {
      const Booking& c = rv.bookings[b];
      if (c.state != BookingState::planned || c.route != route || c.stage != k || c.start_ns <= std::max(now, made)) continue;
      if (!fits(stage, c.items + tasks[id].items) || !gains(stage, c.items, tasks[id].items)) continue;
      LegPlan leg{.partition = p, .join = b};
      travel(topology.routes[route], k, from, made, tasks[id].items, leg);
      if (leg.arrive_ns > c.start_ns || !extends(c, c.start_ns + duration(topology.routes[route], k, c.items + tasks[id].items))) continue;
      ++tries;
      if (grow(leg, id, bound)) return true;
    }
  }
  return false;
}

// ---- audit ----

// Every booking stands in its partition's list and has the members that name it.
void Scheduler::State::check_bookings() const {
  const Reservations& rv = *reservations;
  for (PartitionId p = 0; p < partitions.size(); ++p) {
    BookingId before = kNone;
    for (BookingId id = rv.first[p]; id != kNone; before = id, id = rv.bookings[id].next) {
      const Booking& b = rv.bookings[id];
      insist(b.state != BookingState::free && b.partition == p && b.previous == before, "a partition's bookings");
      if (b.state != BookingState::planned) continue;
      std::uint32_t n = 0, items = 0;
      for (TaskId t = b.first; t != kNone && n <= b.tasks; t = rv.itineraries[t].legs[b.stage].next, ++n) {
        insist(rv.itineraries[t].legs[b.stage].booking == id && tasks[t].state != TaskState::free, "a booking's member");
        items += tasks[t].items;
      }
      insist(n == b.tasks && n > 0 && items == b.items, "a booking's members");
    }
  }
}

}  // namespace leat::core
