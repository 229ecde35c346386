// What is kept of each partition beside its bookings, so that a search over a pool costs little for most of them. A
// lower bound says who need not be looked at; who is, is looked at as without it: the choice is the same.
#include <algorithm>

#include "engine/core/policy/reservations/reservations.h"

namespace leat::core {
namespace {

constexpr TimeNs kForgetEvery = 20'000'000;  // what is over is skipped anyway; this keeps the tables short

}  // namespace

// After every change of the partition's timeline or bookings.
void Reservations::look_again(PartitionId p) noexcept {
  Timeline& timeline = timelines_[p];
  timeline.expire(view_.now);
  StartBound bound;
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
    } else if (planned == kNever && manner_.corrects) {
      look = std::min(look, b.end_ns + 1);  // it may run over
    }
  }
  planned_ns_[p] = planned;
  for (const Place& place : places_[p]) books_[place.stage].bounds.set(place.at, bound);
  const std::uint32_t slot = view_.model.slot_of_partition(p);
  looks_.set(slot, look);
  timers_.set(slot, timer_of(p));
}

TimeNs Reservations::timer_of(PartitionId p) const noexcept {
  TimeNs at = kNever;
  for (BookingId id = first_[p]; id != kNone; id = bookings_[id].next) {
    const Booking& b = bookings_[id];
    if (b.start_ns > view_.now) return std::min(at, b.start_ns);
    if (b.state == BookingState::planned && b.bound_ns > view_.now) at = std::min(at, b.bound_ns);
  }
  return at;
}

void Reservations::make_books() {
  books_.resize(view_.topology().routes.size() * kMaxStages);
  for (ModuleId m : component_.modules) {
    for (RouteId r : view_.topology().modules[m].routes) {
      for (std::size_t k = 0; k < view_.route(r).stages.size(); ++k) {
        const StageSpec& stage = view_.route(r).stages[k];
        StageBook& book = books_[r * kMaxStages + k];
        book.unsent = Unsent(kCandidates, k > 0 ? static_cast<std::uint32_t>(stage.latency.p50_ns.size()) : 0);
        book.place.resize(component_.partitions.size());
        std::vector<std::uint32_t> hosts;
        for (const PartitionId p : stage.pool) {
          const auto at = static_cast<std::uint32_t>(hosts.size());
          hosts.push_back(view_.topology().partitions[p].host);
          book.place[view_.model.slot_of_partition(p)] = at;
          if (hosts[at] != hosts[0]) book.other = at;
          places_[p].push_back({static_cast<std::uint32_t>(r * kMaxStages + k), at});
        }
        book.bounds = PoolBounds(hosts);
      }
    }
  }
}

Unsent::Entry Reservations::entry_of(BookingId id) const noexcept {
  const Booking& b = bookings_[id];
  return {b.start_ns, book(b.route, b.stage).place[view_.model.slot_of_partition(b.partition)], id};
}

void Reservations::list_unsent(BookingId id) noexcept {
  const Booking& b = bookings_[id];
  books_[b.route * kMaxStages + b.stage].unsent.add(entry_of(id), b.items);
}

// Before its start changes.
void Reservations::unlist(BookingId id) noexcept {
  const Booking& b = bookings_[id];
  books_[b.route * kMaxStages + b.stage].unsent.remove(entry_of(id), b.items);
}

void Reservations::resized(BookingId id, std::uint32_t was) noexcept {
  const Booking& b = bookings_[id];
  books_[b.route * kMaxStages + b.stage].unsent.resize(entry_of(id), was, b.items);
}

// When features made on `from` at `made` can be at stage k, from below: their host's uplink is the same for all.
Reservations::Departure Reservations::departure(RouteId id, std::size_t k, PartitionId from, TimeNs made,
                                                std::uint32_t items) const noexcept {
  const auto host = [&](PartitionId p) { return view_.topology().partitions[p].host; };
  const StageSpec& stage = view_.route(id).stages[k];
  const std::uint32_t here = host(from);
  if (!links_.equal) return {{made, made, here}};
  const PartitionId there = host(stage.pool.front()) != here ? stage.pool.front() : stage.pool[book(id, k).other];
  const TimeNs move = view_.model.link_ns(view_.route(id).stages[k - 1].transfer_bytes * items, from, there);
  return {{made, move == 0 ? made : links_.up[here].earliest(made, move) + move, here}, move};
}

void Reservations::forget_past() noexcept {
  if (view_.now - forgot_ns_ < kForgetEvery) return;
  forgot_ns_ = view_.now;
  for (PartitionId p : component_.partitions) timelines_[p].expire(view_.now);
  for (Timeline& t : links_.up) t.expire(view_.now);
  for (Timeline& t : links_.down) t.expire(view_.now);
}

void Reservations::advance() noexcept {
  looks_.for_each_by(view_.now, [&](std::size_t slot) { core_.ask(component_.partitions[slot]); });
}

TimeNs Reservations::next_timer() const noexcept {
  timers_.for_each_by(view_.now, [&](std::size_t slot) { timers_.set(slot, timer_of(component_.partitions[slot])); });
  return timers_.min();
}

}  // namespace leat::core
