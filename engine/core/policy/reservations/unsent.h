// The unsent batches of one stage of one route: by start, and, where tasks may join them, by how many items they hold
// and then by start. With so many items the one that starts first also ends first, so a search for a batch to join
// looks at one of each size.
//
// Capacity is fixed at construction: what is beyond is no batch to join. Thread rule: one thread. Changes are O(log n)
// and move what stands between; n is what is reserved ahead at one stage (hundreds).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "engine/core/model/topology.h"
#include "engine/core/snapshot.h"
#include "engine/core/types.h"

namespace leat::core {

using BookingId = std::uint32_t;

class Unsent {
 public:
  struct Entry {
    TimeNs start_ns;
    std::uint32_t place;  // of its partition in the pool
    BookingId id;
    auto operator<=>(const Entry&) const = default;
  };

  Unsent() = default;
  // `largest`: what a batch that takes one more may hold; 0: none is ever joined.
  Unsent(std::size_t capacity, std::uint32_t largest) : capacity_(capacity), first_(largest + 1, 0) {
    list_.reserve(capacity);
    if (largest > 1) by_items_.reserve(capacity);
  }

  [[nodiscard]] const std::vector<Entry>& list() const noexcept { return list_; }

  void add(const Entry& e, std::uint32_t items) noexcept {
    if (list_.size() == capacity_) return;
    list_.insert(std::ranges::upper_bound(list_, e), e);
    if (joinable(items)) insert(e, items);
  }
  void remove(const Entry& e, std::uint32_t items) noexcept {
    if (!erase(list_, list_.begin(), list_.end(), e)) return;
    if (joinable(items)) (void)take_out(e, items);
  }
  // One that was added holds another number of items now.
  void resize(const Entry& e, std::uint32_t was, std::uint32_t now) noexcept {
    if (was == now) return;
    if (joinable(was) && joinable(now)) {
      move(e, was, now);
    } else if (joinable(was)) {
      (void)take_out(e, was);
    } else if (joinable(now) && std::ranges::binary_search(list_, e)) {
      insert(e, now);
    }
  }

  // The soonest end first, then as the pool stands: calls accept(id, end) for those that start at `from` or later and
  // of whose size run_ns(items) gives a time (< 0: they do not count), until it says true or the ends are after
  // `until`. kNone: nobody.
  template <class Run, class Accept>
  [[nodiscard]] BookingId first_to_end(TimeNs from, TimeNs until, Run&& run_ns, Accept&& accept) const {
    struct Cursor {
      TimeNs end_ns, run_ns;
      std::uint32_t at, behind;
    };
    std::array<Cursor, kMaxBatch> cursors;  // only what was filled is read
    std::size_t n = 0;
    for (std::uint32_t items = 1; items + 1 < first_.size() && n < cursors.size(); ++items) {
      if (first_[items] == first_[items + 1]) continue;
      const TimeNs run = run_ns(items);
      if (run < 0) continue;
      const auto begin = by_items_.begin() + first_[items], end = by_items_.begin() + first_[items + 1];
      const auto at = std::partition_point(begin, end, [&](const Entry& e) { return e.start_ns < from; });
      if (at == end || at->start_ns + run > until) continue;
      cursors[n++] = {at->start_ns + run, run, static_cast<std::uint32_t>(at - by_items_.begin()), first_[items + 1]};
    }
    while (n > 0) {
      std::size_t best = 0;
      for (std::size_t c = 1; c < n; ++c) {
        const Cursor &x = cursors[c], &y = cursors[best];
        if (x.end_ns != y.end_ns ? x.end_ns < y.end_ns : by_items_[x.at].place < by_items_[y.at].place) best = c;
      }
      Cursor& next = cursors[best];
      const BookingId id = by_items_[next.at].id;
      if (accept(id, next.end_ns)) return id;
      if (++next.at < next.behind) next.end_ns = by_items_[next.at].start_ns + next.run_ns;
      if (next.at == next.behind || next.end_ns > until) next = cursors[--n];
    }
    return kNone;
  }
  void visit_state(Snapshot& state) { state(list_, by_items_, first_); }

 private:
  [[nodiscard]] bool joinable(std::uint32_t items) const noexcept { return items + 1 < first_.size(); }
  using At = std::vector<Entry>::iterator;
  static bool erase(std::vector<Entry>& from, At begin, At end, const Entry& e) noexcept {
    const At at = std::lower_bound(begin, end, e);
    if (at == end || *at != e) return false;
    from.erase(at);
    return true;
  }
  void insert(const Entry& e, std::uint32_t items) noexcept {
    const At begin = by_items_.begin();
    by_items_.insert(std::upper_bound(begin + first_[items], begin + first_[items + 1], e), e);
    for (std::size_t c = items + 1; c < first_.size(); ++c) ++first_[c];
  }
  bool take_out(const Entry& e, std::uint32_t items) noexcept {
    const At begin = by_items_.begin();
    if (!erase(by_items_, begin + first_[items], begin + first_[items + 1], e)) return false;
    for (std::size_t c = items + 1; c < first_.size(); ++c) --first_[c];
    return true;
  }
  void move(const Entry& e, std::uint32_t was, std::uint32_t now) noexcept {
    const At begin = by_items_.begin();
    const At at = std::lower_bound(begin + first_[was], begin + first_[was + 1], e);
    if (at == begin + first_[was + 1] || *at != e) return;
    const At to = std::lower_bound(begin + first_[now], begin + first_[now + 1], e);
    if (was < now) {
      std::move(at + 1, to, at);
      *(to - 1) = e;
      for (std::uint32_t c = was + 1; c <= now; ++c) --first_[c];
    } else {
      std::move_backward(to, at, at + 1);
      *to = e;
      for (std::uint32_t c = now + 1; c <= was; ++c) ++first_[c];
    }
  }

  std::size_t capacity_ = 0;
  std::vector<Entry> list_;
  std::vector<Entry> by_items_;       // those that hold less than the largest batch, by items, then as in list_
  std::vector<std::uint32_t> first_;  // [items]: where they begin; the last: where they end
};

}  // namespace leat::core
