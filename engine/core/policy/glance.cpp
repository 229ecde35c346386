// What is kept of each partition beside its bookings, so that a search over a pool costs little for most of them. A
// lower bound says who need not be looked at; who is, is looked at as without it: the choice is the same.
#include <algorithm>

#include "engine/core/policy/reserved.h"

namespace leat::core {
namespace {

constexpr TimeNs kForgetEvery = 20'000'000;  // what is over is skipped anyway; this keeps the tables short

}  // namespace

// After every change of the partition's timeline or bookings.
void Reserved::look_again(PartitionId p) noexcept {
  Timeline& timeline = timelines_[p];
  timeline.expire(view_.now);
  Glance& g = glances_[p];
  g = {.timer_ns = timer_of(p)};
  if (timeline.size() > 0) {
    if (timeline[0].begin <= view_.now) g.gap_ns = timeline[0].end;
    g.last_begin_ns = timeline[timeline.size() - 1].begin;
    g.last_ns = timeline[timeline.size() - 1].end;
  }
  for (BookingId id = first_[p]; id != kNone; id = bookings_[id].next) {
    const Booking& b = bookings_[id];
    if (b.state == BookingState::planned) {
      if (g.planned_ns == kNever) g.look_ns = std::min(g.look_ns, b.due_ns);
      g.planned_ns = std::min(g.planned_ns, b.start_ns);
    } else if (g.planned_ns == kNever && books_ahead()) {
      g.look_ns = std::min(g.look_ns, b.end_ns + 1);  // it may run over
    }
  }
}

TimeNs Reserved::timer_of(PartitionId p) const noexcept {
  TimeNs at = kNever;
  for (BookingId id = first_[p]; id != kNone; id = bookings_[id].next) {
    const Booking& b = bookings_[id];
    if (b.start_ns > view_.now) return std::min(at, b.start_ns);
    if (b.state == BookingState::planned && b.bound_ns > view_.now) at = std::min(at, b.bound_ns);
  }
  return at;
}

void Reserved::make_unsent() {
  unsent_.resize(view_.topology().routes.size() * kMaxStages);
  for (ModuleId m : component_.modules) {
    for (RouteId r : view_.topology().modules[m].routes) {
      for (std::size_t k = 0; k < view_.route(r).stages.size(); ++k) {
        Unsent& u = unsent_[r * kMaxStages + k];
        u.list.reserve(kCandidates);
        u.place.resize(component_.partitions.size());
        const auto& pool = view_.route(r).stages[k].pool;
        for (std::uint32_t i = 0; i < pool.size(); ++i) u.place[view_.model.slot_of_partition(pool[i])] = i;
      }
    }
  }
}

Reserved::Unsent::Entry Reserved::entry_of(BookingId id) const noexcept {
  const Booking& b = bookings_[id];
  return {b.start_ns, unsent(b.route, b.stage).place[view_.model.slot_of_partition(b.partition)], id};
}

void Reserved::list_unsent(BookingId id) noexcept {
  auto& list = unsent_[bookings_[id].route * kMaxStages + bookings_[id].stage].list;
  if (list.size() == kCandidates) return;
  const Unsent::Entry entry = entry_of(id);
  list.insert(std::ranges::upper_bound(list, entry), entry);
}

// Before its start changes.
void Reserved::unlist(BookingId id) noexcept {
  auto& list = unsent_[bookings_[id].route * kMaxStages + bookings_[id].stage].list;
  const auto at = std::ranges::lower_bound(list, entry_of(id));
  if (at != list.end() && at->id == id) list.erase(at);
}

void Reserved::forget_past() noexcept {
  if (view_.now - forgot_ns_ < kForgetEvery) return;
  forgot_ns_ = view_.now;
  for (PartitionId p : component_.partitions) timelines_[p].expire(view_.now);
  for (Timeline& t : up_) t.expire(view_.now);
  for (Timeline& t : down_) t.expire(view_.now);
}

void Reserved::advance() noexcept {
  for (PartitionId p : component_.partitions) {
    if (glances_[p].look_ns <= view_.now) can_.ask(p);
  }
}

TimeNs Reserved::next_timer() const noexcept {
  TimeNs at = kNever;
  for (PartitionId p : component_.partitions) {
    const TimeNs kept = glances_[p].timer_ns;
    at = std::min(at, kept > view_.now ? kept : timer_of(p));
  }
  return at;
}

}  // namespace leat::core
