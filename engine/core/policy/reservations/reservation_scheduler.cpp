#include "engine/core/policy/reservations/reservation_scheduler.h"

#include <algorithm>
#include <cmath>

namespace leat::core {
namespace {

constexpr std::int64_t kScaleReplanned = 30;  // permille: batches are planned again
constexpr std::int64_t kLostTasks = 128;      // what a module loses is smoothed over so many tasks
constexpr TimeNs kArrivalsNs = 500'000'000;   // over so long a module's rate is counted
constexpr double kRateReplanned = 0.1;        // batches are planned again where it differs by so much

}  // namespace

ReservationScheduler::ReservationScheduler(const Making& from)
    : Reservations(from, {.scaled = true, .corrects = true}),
      tries_(from.policy.canaries),
      canaries_(view_, component_, from.policy),
      growth_ns_(view_.topology().routes.size()),
      whole_(view_.topology().routes.size()),
      together_(view_.model, component_),
      lost_ppm_(view_.model, component_),
      planned_scale_(view_.model, component_),
      arrivals_(view_.model, component_) {
  for (const RouteSpec& route : view_.topology().routes)
    may_grow_.emplace_back(route.stages.front().latency.p50_ns.size() + 1, 0);
  for (ModuleId m : component_.modules) plan_growth(m);
}

// Of the highest class the earliest deadline.
TaskId ReservationScheduler::next_task(const TaskQueue& queue) const noexcept {
  return queue.classes == 0 ? kNone : queue.by_deadline[view_.top_class(queue)].front();
}

void ReservationScheduler::was_booked(const TaskQueue& queue, TaskId t, bool late) noexcept {
  count_arrival(queue.module, task(t).items);
  std::int64_t& lost = lost_ppm_[queue.module];
  lost += ((late ? 1'000'000 : 0) - lost) / kLostTasks;
  if (late && !book_canary(queue, t)) core_.drop(t, Reason::unreachable);
}

// Where more comes than the plan says, batches are planned for what comes; where less does, for what the plan says.
void ReservationScheduler::count_arrival(ModuleId module, std::uint32_t items) noexcept {
  Arrivals& a = arrivals_[module];
  a.items += items;
  const TimeNs since = view_.now - a.since_ns;
  if (since < kArrivalsNs) return;
  double planned = 0;  // of all its routes
  for (const RouteId r : view_.topology().modules[module].routes) planned += view_.route(r).rate_rps;
  const double came = static_cast<double>(a.items) * 1e9 / static_cast<double>(since);
  const bool whole = a.since_ns != 0 && since < 2 * kArrivalsNs;
  a.items = 0;
  a.since_ns = view_.now;
  const double times = whole && planned > 0 ? std::max(1.0, came / planned) : 1;
  if (std::abs(times - a.times_planned) < kRateReplanned * a.times_planned) return;
  a.times_planned = times;
  plan_growth(module);
}

void ReservationScheduler::sent(const Booking& booking, std::uint32_t batch) noexcept {
  if (!booking.canary) return;
  core_.canary(batch);
  canaries_.sent(batch);
}

void ReservationScheduler::ended(std::uint32_t batch, TimeNs ran, bool usual) noexcept {
  const ModuleId m = view_.machine.batch(batch).module;
  canaries_.ended(batch, ran, usual);
  if (view_.machine.batch(batch).canary) lost_ppm_[m] = 0;  // it was lost by another estimate
  if (std::abs(view_.load.module(m).scale_permille - planned_scale_[m]) < kScaleReplanned) return;
  plan_growth(m);
}

}  // namespace leat::core
