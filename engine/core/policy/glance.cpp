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
  Bound bound{.host = view_.topology().partitions[p].host};
  if (timeline.size() > 0) {
    if (timeline[0].begin <= view_.now) bound.gap_ns = timeline[0].end;
    bound.last_begin_ns = timeline[timeline.size() - 1].begin;
    bound.last_ns = timeline[timeline.size() - 1].end;
  }
  TimeNs look = kNever, planned = kNever;
  for (BookingId id = first_[p]; id != kNone; id = bookings_[id].next) {
    const Booking& b = bookings_[id];
    if (b.state == BookingState::planned) {
      if (planned == kNever) look = std::min(look, b.due_ns);
      planned = std::min(planned, b.start_ns);
    } else if (planned == kNever && books_ahead()) {
      look = std::min(look, b.end_ns + 1);  // it may run over
    }
  }
  planned_ns_[p] = planned;
  for (const Place& place : places_[p]) unsent_[place.stage].bounds[place.at] = bound;
  const std::uint32_t slot = view_.model.slot_of_partition(p);
  looks_.set(slot, look);
  timers_.set(slot, timer_of(p));
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
        u.bounds.resize(pool.size());
        for (std::uint32_t i = 0; i < pool.size(); ++i) {
          u.place[view_.model.slot_of_partition(pool[i])] = i;
          u.bounds[i].host = view_.topology().partitions[pool[i]].host;
          places_[pool[i]].push_back({static_cast<std::uint32_t>(r * kMaxStages + k), i});
        }
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
  looks_.for_each_by(view_.now, [&](std::size_t slot) { can_.ask(component_.partitions[slot]); });
}

TimeNs Reserved::next_timer() const noexcept {
  timers_.for_each_by(view_.now, [&](std::size_t slot) { timers_.set(slot, timer_of(component_.partitions[slot])); });
  return timers_.least();
}

}  // namespace leat::core
