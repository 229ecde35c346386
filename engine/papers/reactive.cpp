#include "engine/papers/reactive.h"

namespace leat::papers {

TaskId ReactivePools::next_task(const TaskQueue& queue) const noexcept { return oldest(view_, queue); }

TimeNs ReactivePools::bound_of(ModuleId, TaskId id) const noexcept { return module_bound(view_, task(id)); }

// When stage k of the route must have ended for a task that came at `from` and must be done at `until`.
TimeNs ReactivePools::stage_bound(RouteId id, std::size_t k, TimeNs from, TimeNs until) const noexcept {
  if (until == kNever) return kNever;
  const RouteSpec& route = view_.route(id);
  double before = 0, all = 0;
  for (std::size_t j = 0; j < route.stages.size(); ++j) {
    const StageSpec& stage = route.stages[j];
    const auto batch = std::min<std::uint32_t>(route.batch, static_cast<std::uint32_t>(stage.latency.p50_ns.size()));
    all += static_cast<double>(duration(route, j, batch) + (j == 0 ? 0 : stage_link_ns(route, j, batch)));
    if (j == k) before = all;
  }
  return k + 1 == route.stages.size() ? until
                                      : from + static_cast<TimeNs>(static_cast<double>(until - from) * before / all);
}

// Stage k on the pool's partition that can start first, or in an unsent batch that still keeps the pool's objective.
LegPlan ReactivePools::earliest_batch(RouteId id, std::size_t k, TaskId t, TimeNs ready, TimeNs bound) const noexcept {
  const std::uint32_t items = task(t).items;
  const LegPlan own = earliest_in_pool(id, k, items, ready);
  if (own.partition == kNone || own.start_ns <= ready || view_.lone(t)) return own;
  const StageSpec& stage = view_.route(id).stages[k];
  LegPlan joined{.end_ns = kNever};
  for (PartitionId p : stage.pool) {
    if (!usable(p) || planned_ns_[p] == kNever) continue;
    for (BookingId b = first_[p]; b != kNone; b = bookings_[b].next) {
      const Booking& booking = bookings_[b];
      if (booking.state != BookingState::planned || booking.route != id || booking.stage != k ||
          booking.start_ns < ready || booking.lone || !fits(stage, booking.items + items))
        continue;
      const TimeNs end = booking.start_ns + duration(view_.route(id), k, booking.items + items);
      if (end >= joined.end_ns || end > std::min(bound, booking.bound_ns) || !extends(booking, end)) continue;
      joined = {.partition = p, .join = b, .start_ns = booking.start_ns, .end_ns = end};
    }
  }
  return joined.partition != kNone ? joined : own;
}

// The entry: the route whose pool can start it first.
ReactivePools::Booked ReactivePools::book_waiting(QueueId at, TaskId id, TimeNs until) noexcept {
  LegPlan best{.start_ns = kNever};
  RouteId route = kNone;
  for (RouteId r : view_.topology().modules[view_.queues[at].module].routes) {
    if (task(id).items > view_.route(r).batch) continue;
    const LegPlan leg = earliest_batch(r, 0, id, view_.now, stage_bound(r, 0, task(id).queued_ns, until));
    if (leg.partition == kNone || leg.start_ns >= best.start_ns) continue;
    best = leg;
    route = r;
  }
  if (route == kNone) return Booked::wait;
  TimeNs rest = 0;
  for (std::size_t k = 1; k < view_.route(route).stages.size(); ++k) rest += duration(view_.route(route), k, 1);
  if (best.end_ns + rest > until) return Booked::late;
  core_.book(id);
  itineraries_[id] = Itinerary{};
  book_leg(id, route, 0, best, stage_bound(route, 0, task(id).queued_ns, until));
  return Booked::done;
}

// A stage has ended: the next pool's turn. False: nobody there is up.
bool ReactivePools::book_next(TaskId id, const Batch& batch) noexcept {
  const std::size_t k = batch.stage + 1;
  const Task& t = task(id);
  const TimeNs bound = stage_bound(batch.route, k, t.queued_ns, module_bound(view_, t));
  const TimeNs ready = view_.now + stage_link_ns(view_.route(batch.route), k, t.items);
  const LegPlan leg = earliest_batch(batch.route, k, id, ready, bound);
  if (leg.partition == kNone || bookings_.left() == 0) return false;
  book_leg(id, batch.route, k, leg, bound);
  return true;
}

namespace {

constexpr Key<Reactive> kReactiveTable[] = {
    {"append_only", [](const std::string& v, Reactive& s) { return read_flag(v, s.append_only); }},
};

}  // namespace

const std::span<const Key<Reactive>> kReactiveKeys = kReactiveTable;

void use(const Reactive& s, Policy& out) { out.scheduler = std::make_shared<FactoryOf<ReactivePools, Reactive>>(s); }

}  // namespace leat::papers
